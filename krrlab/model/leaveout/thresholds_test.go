package leaveout

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestThresholds: a row is wrong if and only if its leverage is below its threshold, of one column and of several.
func TestThresholds(t *testing.T) {
	g := rand.New(rand.NewPCG(8, 9))
	for _, cols := range []int{1, 2, 4} {
		const n = 100
		y, r := mat.NewDense(n, cols, nil), mat.NewDense(n, cols, nil)
		for i := range n {
			for j := range cols {
				y.Set(i, j, -1)
				r.Set(i, j, g.NormFloat64())
			}
			y.Set(i, g.IntN(cols), 1-2*float64(g.IntN(2)*(1/cols)))
		}
		for i, tau := range thresholds(y, r) {
			for _, p := range []float64{0.05, 0.3, 0.7, 1} {
				f := make([]float64, cols)
				for j := range f {
					f[j] = y.At(i, j) - r.At(i, j)/p
				}
				testkit.Equal(t, datasets.PredictedClass(f) != datasets.PredictedClass(y.RawRowView(i)), (p < tau), cols, p, tau)
			}
		}
	}
}

// TestTolerance tests that each column is solved to the tolerance, relative to bᵀx of the solution, for every λ, also
// for λ far from those whose residuals were computed.
func TestTolerance(t *testing.T) {
	p, k, _, _ := small(t, 150, nil)
	p.lambdas = []float64{100, 10, 1, 0.1, 0.01, 0.001}
	testkit.OK(t, p.solve(t.Context()))
	_, q := p.b.Dims()
	for j, l := range p.lambdas {
		x, _, err := p.solutions(t.Context(), j)
		testkit.OK(t, err)
		a, want := testkit.Plus(testkit.Symmetric(k), l), new(mat.Dense)
		testkit.OK(t, want.Solve(a, p.b))
		for c := range q {
			if bx := mat.Dot(p.b.ColView(c), x.ColView(c)); math.Abs(p.s.energy[j*q+c]/bx-1) > 1e-9 {
				t.Errorf("λ = %g, column %d: bᵀx = %g, want %g", l, c, p.s.energy[j*q+c], bx)
			}
		}
		x.Sub(want, x)
		for c := range q {
			tol := solveTol
			if c >= p.t {
				tol *= probeTolFactor
			}
			e, size := mat.Inner(x.ColView(c), a, x.ColView(c)), mat.Dot(p.b.ColView(c), want.ColView(c))
			if off := math.Sqrt(e / size); !(off <= tol) {
				t.Errorf("λ = %g, column %d: off by %.2g of the solution, want %.2g at most", l, c, off, tol)
			}
		}
	}
}
