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
	// The pivots are 2, 1.5, 4/3 and 5/4, and the residuals 1/2, 1/3, 1/4 and 1/5.
	for k, tau := range []float64{0.51, 0.34, 0.26, 0.21} {
		testkit.Equal(t, RitzIterations(alpha, beta, tau, 4), float64(k+1), tau, k+1)
	}
	// Beyond T, each step reduces the residual 1/5 by (√4−1)/(√4+1) = 1/3.
	testkit.Equal(t, RitzIterations(alpha, beta, 0.2/8.9, 4), 6)
	for _, iterations := range []float64{RitzIterations([]float64{1, 0.5}, beta, 1e-3, 4),
		RitzIterations(alpha, beta, 1e-3, math.Inf(1)), RitzIterations(alpha, beta, 1e-3, math.NaN())} {
		if !math.IsInf(iterations, 1) {
			t.Errorf("%g iterations without convergence in T and without κ, want +Inf", iterations)
		}
	}
	if iterations := RitzIterations([]float64{1, -1}, []float64{1, 0}, 0.1, 1); !math.IsInf(iterations, 1) {
		t.Errorf("%g iterations for a T that is not positive definite, want +Inf", iterations)
	}
	if residuals, isDefinite := Residuals([]float64{2, 2}, []float64{0, 1}); len(residuals) != 1 || residuals[0] != 0 ||
		!isDefinite {
		t.Errorf("residuals %v, definite %v, of a T that ends after one step", residuals, isDefinite)
	}
	testkit.Panics(t, map[string]func(){"residual of 1": func() { RitzIterations([]float64{1}, []float64{0}, 1, 1) }})
}
