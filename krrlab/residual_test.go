package krrlab

import (
	"math"
	"testing"
)

// TestCertainOfLandmarks: the bound of κ is that of the factor, and what M⁻¹ in float32 adds: it is that
// of M to a tenth, so that κ grows by (1+0.1)/(1−0.1) at most.
func TestCertainOfLandmarks(t *testing.T) {
	l := newLab(t, regression(kinds(200, 4, 6)["float64"]),
		Config{Kernel: gauss, Lambda: 0.1, Precond: RPCholesky{S: 30}, Solver: PCG})
	sol := solveLab(t, l)
	f := l.z.value.Factor
	if want := f.CondBound(l.cfg.Lambda, ridge(l)) * 11 / 9; math.Abs(float64(sol.KappaBound)/want-1) > 1e-12 {
		t.Errorf("κ ≤ %g, want %g", sol.KappaBound, want)
	}
}
