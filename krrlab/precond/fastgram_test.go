package precond

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// decayingColumns returns columns like those of a landmark factor of a smooth kernel. The first one is nearly constant
// and has most of the norm; each next one is shorter by the factor rate.
func decayingColumns(n, s int, rate float64) *points.Dense32 {
	z := points.NewDense32(n, s, nil)
	g := rng.New(6)
	for i := range n {
		x := g.Float64(uint64(i))
		for j := range s {
			decay := math.Pow(rate, float64(j))
			z.Data[i*s+j] = float32(decay * (0.99 - 0.01*math.Cos(float64(j+1)*x)) * math.Cos(float64(j)*x))
		}
	}
	return z
}

// spectralNorm returns ‖a−b‖₂ of two symmetric matrices of order s, given by their lower triangles.
func spectralNorm(t *testing.T, a, b []float64, s int) float64 {
	t.Helper()
	difference := mat.NewSymDense(s, nil)
	for i := range s {
		for j := range i + 1 {
			difference.SetSym(i, j, a[i*s+j]-b[i*s+j])
		}
	}
	eigenvalues := testkit.Eigenvalues(t, difference)
	return max(math.Abs(eigenvalues[0]), math.Abs(eigenvalues[s-1]))
}

// TestMeasuredErrorBound compares the measured bound of the error E of float32 products with ‖E‖₂. The columns have
// similar or very different norms, the rows repeat, so that their errors add up, or a few rows have most of the norm.
// The factor of New with Options.Fast must be that of ZᵀZ+λ_pI to a tenth of λ_p.
func TestMeasuredErrorBound(t *testing.T) {
	repeated, row := points.NewDense32(4096, 60, nil), cosineFeatures(1, 60)
	for i := range repeated.N {
		copy(repeated.Row(i), row.Row(0))
	}
	peaked := randomFeatures(2000, 80)
	for i := range 20 {
		for j := range peaked.D {
			peaked.Row(i)[j] *= 1000
		}
	}
	matrices := map[string]*points.Dense32{
		"even": cosineFeatures(1500, 300), "decaying": decayingColumns(5000, 60, 0.7),
		"slowly decaying": decayingColumns(3000, 120, 0.97),
		"steep":           decayingColumns(6000, 40, 0.1), "repeated rows": repeated, "few large rows": peaked,
		"one column": decayingColumns(5000, 1, 1),
	}
	run := func(t *testing.T) {
		for name, z := range matrices {
			exact := testkit.Must(gram(t.Context(), z, exactProducts))
			fast := testkit.Must(gram(t.Context(), z, fastProducts))
			bound := testkit.Must(measuredError(t.Context(), comm.Alone(), z,
				(&Woodbury{s: z.D, factor: fast}).localGram()))
			norm := spectralNorm(t, exact, fast, z.D)
			t.Logf("%s: ‖E‖₂ = %.3g, measured bound %.3g, predicted %.3g", name, norm, bound, predictedError(t, z))
			if norm > bound {
				t.Errorf("%s: ‖E‖₂ = %.3g, bound %.3g", name, norm, bound)
			}
			// For independent errors, the bound is about three times ‖E‖₂.
			if bound > 8*norm+1e-12*traceOf(exact, z.D) {
				t.Errorf("%s: bound %.3g is far above ‖E‖₂ = %.3g", name, bound, norm)
			}
			for _, lambdaP := range []float64{10 * norm, 3 * norm, norm, norm / 4} {
				if err := checkFastFactor(t, z, lambdaP); err != nil {
					t.Errorf("%s, λ_p = %.3g with ‖E‖₂ = %.3g: %v", name, lambdaP, norm, err)
				}
			}
		}
	}
	testkit.EachBLAS(t, run)
}

// traceOf returns the trace of the matrix a of order s.
func traceOf(a []float64, s int) (sum float64) {
	for j := range s {
		sum += a[j*s+j]
	}
	return sum
}

// checkFastFactor returns an error unless the factor of New with Options.Fast belongs to ZᵀZ+E+λ_pI with ‖E‖₂ ≤ λ_p/10.
func checkFastFactor(t *testing.T, z *points.Dense32, lambdaP float64) error {
	t.Helper()
	if !(lambdaP > 0) {
		return nil
	}
	exact := testkit.Must(gram(t.Context(), z, exactProducts))
	w, err := New(t.Context(), z, lambdaP, &Options{Form: FormL, Fast: true})
	if err != nil {
		return err
	}
	s := z.D
	l := mat.NewTriDense(s, mat.Lower, nil)
	for i := range s {
		for j := range i + 1 {
			l.SetTri(i, j, w.factor[i*s+j])
		}
		exact[i*s+i] += lambdaP
	}
	var c mat.Dense
	c.Mul(l, l.T())
	if norm := spectralNorm(t, c.RawMatrix().Data, exact, s); norm > lambdaP/10+1e-14*traceOf(exact, s) {
		return fmt.Errorf("the factor has an error of %.3g", norm)
	}
	return nil
}

// TestFastGramOnRanks checks that repeated rows make New refuse float32 products on any number of ranks, and that the
// factor has the same bits on all of them.
func TestFastGramOnRanks(t *testing.T) {
	z, row := points.NewDense32(4096, 60, nil), cosineFeatures(1, 60)
	for i := range z.N {
		copy(z.Row(i), row.Row(0))
	}
	exact := testkit.Must(gram(t.Context(), z, exactProducts))
	for _, lambdaP := range []float64{0.01, 10} { // the predicted error is 5.9e-4, the true one 5e-3
		var first []float64
		for _, ranks := range []int{1, 3} {
			onRanks(ranks, z, func(c comm.Comm, rankRows *points.Dense32) {
				w, err := newWoodbury(t.Context(), rankRows, lambdaP, &Options{Form: FormL, Comm: c})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := w.fastGram(t.Context()); err != nil {
					t.Error(err)
					return
				}
				got := w.factor
				if c.Rank() > 0 {
					return
				}
				if norm := spectralNorm(t, got, exact, z.D); norm > lambdaP/10 {
					t.Errorf("λ_p = %g, %d ranks: ‖E‖₂ = %.3g", lambdaP, ranks, norm)
				}
				if first == nil {
					first = got
				} else if !slices.Equal(first, got) {
					t.Errorf("λ_p = %g: other bits on %d ranks", lambdaP, ranks)
				}
			})
		}
	}
}
