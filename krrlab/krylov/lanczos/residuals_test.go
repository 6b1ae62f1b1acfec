package lanczos

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestRitzIterations compares the predicted iterations with pivots worked out by hand. The tests of the stage quality
// compare them with those of PCG.
func TestRitzIterations(t *testing.T) {
	alpha, beta := []float64{2, 2, 2, 2}, []float64{1, 1, 1, 1}
	// d: 2, 1.5, 4/3, 5/4; residuals 1/2, 1/3, 1/4, 1/5.
	for k, tau := range []float64{0.51, 0.34, 0.26, 0.21} {
		testkit.Equal(t, RitzIterations(alpha, beta, tau, 4), float64(k+1), tau, k+1)
	}
	// Beyond T: (√4−1)/(√4+1) = 1/3 a step from 1/5.
	testkit.Equal(t, RitzIterations(alpha, beta, 0.2/8.9, 4), 6)
	for _, c := range []float64{RitzIterations([]float64{1, 0.5}, beta, 1e-3, 4),
		RitzIterations(alpha, beta, 1e-3, math.Inf(1)), RitzIterations(alpha, beta, 1e-3, math.NaN())} {
		if !math.IsInf(c, 1) {
			t.Errorf("%g iterations without convergence in T and without κ, want +Inf", c)
		}
	}
	if its := RitzIterations([]float64{1, -1}, []float64{1, 0}, 0.1, 1); !math.IsInf(its, 1) {
		t.Errorf("%g iterations for a T that is not positive definite, want +Inf", its)
	}
	if res, definite := Residuals([]float64{2, 2}, []float64{0, 1}); len(res) != 1 || res[0] != 0 || !definite {
		t.Errorf("residuals %v, definite %v, of a T that ends after one step", res, definite)
	}
	testkit.Panics(t, map[string]func(){"residual of 1": func() { RitzIterations([]float64{1}, []float64{0}, 1, 1) }})
}
