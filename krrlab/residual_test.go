package krrlab

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/results"
)

// TestCertainOfLandmarks: the bound of κ is that of the factor, and what M⁻¹ in float32 adds: it is that
// of M to a tenth, so that κ grows by (1+0.1)/(1−0.1) at most.
func TestCertainOfLandmarks(t *testing.T) {
	l := newLab(t, regression(kinds(200, 4, 6)["float64"]), Config{Kernel: gauss, Lambda: 0.1, Precond: RPCholesky{S: 30}, Solver: PCG})
	sol := solveLab(t, l)
	f := l.z.low
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
			l := newLab(t, classes(x, 3), Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 100}, Tol: 1e-2, Seed: seed, Storage: gram.Float32, Exact: StoredResidual, Solver: PCG})
			sol := solveLab(t, l)
			want := newReference(t, gauss, x, 0.1, l.y).residuals(sol.Model.C, l.y)
			if sol.SampledRows != bound.RowsChecked {
				t.Errorf("%d rows", sol.SampledRows)
			}
			for j, r := range sol.SampledResiduals {
				if ratio := r / want[j]; ratio > slack*(1+1e-6) || ratio < 1/slack*(1-1e-6) {
					t.Errorf("n = %d, column %d: residual %.4g estimated, is %.4g", n, j, r, want[j])
				}
			}
		}
	}
}

// TestWithin: an answer that the rows checked say is within the tolerance, by 15 % for what they may
// be off by, has converged; with 16 % more it has not. Of few points all rows are checked.
func TestWithin(t *testing.T) {
	x := kinds(1000, 3, 1)["float64"]
	for _, c := range []struct {
		n                     int
		stored, diff, sampled float64 // in units of τ
		want                  bool
	}{
		{1000, 0.5, 0.42, 9, true}, {1000, 0.5, 0.45, 9, false},
		{1000, 0.99, 9, 0.86, true}, {1000, 0.99, 9, 0.88, false},
		{1000, 0.99, 0.1, 0.88, false}, {1000, 0.5, math.NaN(), math.NaN(), false},
		{200, 0.5, 0.49, 9, true}, {200, 0.5, 0.51, 9, false}, {200, 0.99, 9, 0.99, true},
	} {
		l := newLab(t, regression(x).Head(c.n), Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-3})
		unit := l.cfg.Tol
		s := &solve{Lab: l, sol: &Solution{Solution: results.Solution{TrueResiduals: []float64{0, c.stored * unit}, StorageResiduals: []float64{0, c.diff * unit}, SampledResiduals: []float64{0, c.sampled * unit}}}}
		if s.within() != c.want {
			t.Errorf("%+v: %v", c, !c.want)
		}
	}
}
