package verify

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRoundingOfPredictions compares predictions, whose coefficients are so large that rounding is visible, with sums
// in 300 bits. The residual is zero, so that the bound covers rounding alone. The test also checks the gap of two
// labels, and that the rounding error of a residual widens the bound in the same way as the residual.
func TestRoundingOfPredictions(t *testing.T) {
	const n, columns, lambda = 70, 2, 0.1
	spec := kernel.Spec{Name: "polynomial", Gamma: 0.5, Coef0: 1, Degree: 3}
	x, z := normalPoints(n, 4, 1, 9), normalPoints(40, 4, 1, 10)
	c := testkit.RandomPoints(3, n, columns).Data
	floats.Scale(1e9, c)
	m := newMatrix(t, spec, x, 1<<30)
	r := &Residual{Norms: make([]float64, columns), NormErrors: make([]float64, columns),
		CrossNorms: make([]float64, columns*columns), OneNorms: oneNorms(c, columns)}
	p := testkit.Must(m.Predict(t.Context(), z, c, columns, r, lambda))
	exact := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	largestShare := 0.0 // largest ratio of an error to its bound
	for a := range z.N {
		for j := range columns {
			sum := exact(0)
			for i := range n {
				base := exact(0) // γxᵀz+c, whose third power is k(x, z)
				for k, v := range x.Row(i) {
					base.Add(base, new(big.Float).SetPrec(300).Mul(exact(v), exact(z.Row(a)[k])))
				}
				base.Mul(base, exact(spec.Gamma)).Add(base, exact(spec.Coef0))
				power := exact(1)
				for range spec.Degree {
					power.Mul(power, base)
				}
				sum.Add(sum, power.Mul(power, exact(c[i*columns+j])))
			}
			difference, _ := sum.Sub(sum, exact(p.F[a*columns+j])).Float64()
			bound := p.Bound[a*columns+j]
			if math.Abs(difference) > bound {
				t.Errorf("point %d, column %d: off by %g, bound %g", a, j, difference, bound)
			}
			largestShare = max(largestShare, math.Abs(difference)/bound)
		}
		if want := math.Abs(p.F[a*columns]-p.F[a*columns+1]) / (p.Bound[a*columns] +
			p.Bound[a*columns+1]); math.Abs(p.Gap[a]-want) > 1e-9*want {
			t.Errorf("point %d: gap %g, want %g", a, p.Gap[a], want)
		}
	}
	if largestShare < 1e-5 {
		t.Errorf("the largest error is %g of the bound: no rounding is visible", largestShare)
	}
	// The rounding error of the residual widens the bound in the same way as the residual itself.
	exactResidual, roundedResidual := *r, *r
	exactResidual.Norms, roundedResidual.NormErrors = []float64{1e9, 2e9}, []float64{1e9, 2e9}
	got := testkit.Must(m.Predict(t.Context(), z, c, columns, &roundedResidual, lambda)).Bound
	want := testkit.Must(m.Predict(t.Context(), z, c, columns, &exactResidual, lambda)).Bound
	if !slices.Equal(got, want) || !(got[0] > p.Bound[0]) {
		t.Errorf("bounds %v for a rounding error of the residual, %v for a residual of that size", got, want)
	}
}

// TestEntryError checks the error bound of an entry of K for points with 2,000 equal coordinates. Many additions of
// equal terms to a running sum round in the same direction, so that the error is large.
func TestEntryError(t *testing.T) {
	const d = 2000
	x := points.NewDense(2, d, nil)
	for i := range d {
		x.Data[d+i] = 0.1
	}
	sum := new(big.Float).SetPrec(300).SetFloat64(0.1)
	sqDistance, _ := sum.Mul(sum, sum).Mul(sum, big.NewFloat(d)).Float64()
	for _, spec := range []kernel.Spec{{Name: "gaussian", Sigma: 4}, {Name: "matern32", Sigma: 4},
		{Name: "matern52", Sigma: 4}} {
		m := newMatrix(t, spec, x, 1<<30)
		r := math.Sqrt(sqDistance) / spec.Sigma
		want := map[string]float64{
			"gaussian": math.Exp(-r * r / 2),
			"matern32": (1 + math.Sqrt(3)*r) * math.Exp(-math.Sqrt(3)*r),
			"matern52": (1 + math.Sqrt(5)*r + 5*r*r/3) * math.Exp(-math.Sqrt(5)*r),
		}[spec.Name]
		// An error below 20 unit roundoffs would not test the bound.
		if difference := math.Abs(m.entries[1] - want); difference > m.EntryError || difference < 20*unitRoundoff {
			t.Errorf("%s: off by %.3g u, bound %.3g u", spec.Name, difference/unitRoundoff, m.EntryError/unitRoundoff)
		}
	}
}
