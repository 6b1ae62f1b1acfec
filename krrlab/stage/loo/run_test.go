package loo_test

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/loo"
	_ "github.com/krrlab/lab/plots/draw"
)

// TestRepeats checks that repeated rows are left out together and counted. For classes, probes cannot leave them out
// together; then no interval is claimed, and the report says so.
func TestRepeats(t *testing.T) {
	o := loo.Options{Lambdas: []float64{10, 0.1, 1}}
	for _, classes := range []bool{false, true} {
		set := datasets.SyntheticRegression(120, 2, 0.1, 1)
		if classes {
			set = datasets.SyntheticClasses(120, 2, 2, 0.1, 1)
		}
		x := set.X.(*points.Dense)
		copy(x.Row(7), x.Row(3))
		set = testkit.Must(set.GroupByRule("together", nil))
		lab := testkit.Must(krrlab.New(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1}))
		o.ExactBelow, o.Rank = 0, 0
		r := testkit.Must(lab.LeaveOneOut(t.Context(), o))
		testkit.Contains(t, r.String(), "1 rows repeat the features of an earlier one: they stay together")
		if rows := r.Table().Rows; len(rows) != 3 || r.Repeats.Grouped != 1 || r.Scores[r.Best].Error.Confidence != 1 {
			t.Errorf("%d rows of a table, %d grouped: %v", len(rows), r.Repeats.Grouped, r)
		}
		o.ExactBelow, o.Rank = -1, 60
		probes := testkit.Must(lab.LeaveOneOut(t.Context(), o))
		testkit.Contains(t, probes.String(), "one subspace for all λ with")
		for i, s := range probes.Scores {
			e := s.Error
			if claimed := e.Method != "none"; claimed == classes || claimed && !e.Contains(r.Scores[i].Error.Value) ||
				!claimed && (e.Lo != 0 || e.Hi != 1) {
				t.Errorf("classes %v, λ = %g: %v, exactly %v", classes, s.Lambda, e, r.Scores[i].Error)
			}
		}
		if classes {
			testkit.Contains(t, probes.String(), "so that errors are too small and no")
		}
		o.Rank = 121
		testkit.Fails(t, testkit.ErrOf(lab.LeaveOneOut(t.Context(), o)), "s = 121 landmarks for n = 120 points")
	}
	lab := testkit.Must(krrlab.New(datasets.SyntheticRegression(50, 2, 0.1, 1),
		krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1}))
	r := testkit.Must(lab.LeaveOneOut(t.Context(), loo.Options{}))
	if n := len(r.Scores); n != 13 || math.Abs(r.Scores[0].Lambda*r.Scores[12].Lambda-0.01) > 1e-12 {
		t.Errorf("%d ridges around 0.1: %v", n, r)
	}
}

// TestMemoryRefusesDense checks that a subspace is used if dense factors do not fit into the memory budget, that the
// report says so, and that the intervals cover the exact error. A negative λ is an error.
func TestMemoryRefusesDense(t *testing.T) {
	set := datasets.SyntheticRegression(1200, 3, 0.1, 5)
	leaveOneOut := func(memory int64) *loo.Result {
		lab := testkit.Must(krrlab.New(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 3}, Lambda: 1, Memory: memory,
			Solver: krrlab.PCG, Precond: krrlab.RPCholesky{S: 40}}))
		testkit.Fails(t, testkit.ErrOf(lab.LeaveOneOut(t.Context(), loo.Options{Lambdas: []float64{-1}})),
			"Lambdas -1: want a positive number")
		return testkit.Must(lab.LeaveOneOut(t.Context(), loo.Options{Lambdas: []float64{1}}))
	}
	exact := leaveOneOut(0)
	set.Weights = slices.Repeat([]float64{1}, 1200)
	limited := leaveOneOut(11e6)
	if !limited.Scores[0].Error.Contains(exact.Scores[0].Error.Value) || exact.NotDenseReason != "" {
		t.Errorf("%v, exactly %v", limited, exact)
	}
	testkit.Contains(t, limited.String(), "weighted RMSE", "n = 1200 points would take 23 MB of memory, and 10.9 MB of 11 MB are free")
	testkit.Contains(t, limited.HTML(), "weighted RMSE", "<svg")
}
