package krrlab

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
)

// TestCertainOfLandmarks: the bound of κ is that of the factor, and what M⁻¹ in float32 adds: it is that
// of M to a tenth, so that κ grows by (1+0.1)/(1−0.1) at most.
func TestCertainOfLandmarks(t *testing.T) {
	l := newLab(t, regression(kinds(200, 4, 6)["float64"]),
		Config{Kernel: gauss, Lambda: 0.1, Precond: RPCholesky{S: 30}, Solver: PCG})
	sol := solveLab(t, l)
	f := l.z.a.Low
	if want := f.CondBound(l.cfg.Lambda, ridge(l)) * 11 / 9; math.Abs(float64(sol.KappaBound)/want-1) > 1e-12 {
		t.Errorf("κ ≤ %g, want %g", sol.KappaBound, want)
	}
}

// TestSampledResidual: of 288 of 1,200 rows, 32 of them those of largest norm, the residual is
// estimated to the slack that it is given, and of points of which as many are enough, exactly.
func TestSampledResidual(t *testing.T) {
	for _, n := range []int{1200, bound.RowsChecked} {
		slack := bound.Slack(n)
		for seed := range uint64(4) {
			x := kinds(n, 4, 5)["float64"].(*points.Dense)
			for i := range 32 { // all of one place in the order
				x.Row(n/2 + i)[0] += 20 + float64(i)
			}
			l := newLab(t, classes(x, 3), Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 100}, Tol: 1e-2,
				Seed: seed, Storage: gram.Float32, Exact: StoredResidual, Solver: PCG})
			sol := solveLab(t, l)
			want := newReference(t, gauss, x, 0.1, l.y).residuals(sol.Model.C, l.y)
			testkit.Equal(t, sol.SampledRows, bound.RowsChecked)
			for j, r := range sol.SampledResiduals {
				if ratio := r / want[j]; ratio > slack*(1+1e-6) || ratio < 1/slack*(1-1e-6) {
					t.Errorf("n = %d, column %d: residual %.4g estimated, is %.4g", n, j, r, want[j])
				}
			}
		}
	}
}
