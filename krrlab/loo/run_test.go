package loo_test

import (
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/loo"
	"github.com/krrlab/lab/krrlab/points"
)

// TestRepeats: rows that repeat are left out together and counted; where probes cannot do so, of classes, no interval is
// claimed, and the lines say so.
func TestRepeats(t *testing.T) {
	o := loo.Options{Lambdas: []float64{10, 0.1, 1}}
	for _, classes := range []bool{false, true} {
		set := datasets.SyntheticRegression(120, 2, 0.1, 1)
		if classes {
			set = datasets.SyntheticClasses(120, 2, 2, 0.1, 1)
		}
		x := set.X.(*points.Dense)
		copy(x.Row(7), x.Row(3))
		lab := testkit.Must(krrlab.New(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1}))
		o.ExactBelow, o.Rank = 0, 0
		r := testkit.Must(lab.LeaveOneOut(t.Context(), o))
		testkit.Contains(t, r.String(), "1 of 120 rows repeat others: equal rows are left out together")
		if rows := r.Table().Rows; len(rows) != 3 || r.Repeated != 1 || r.Scores[r.Best].Error.Confidence != 1 {
			t.Errorf("%d rows of a table, %d repeated: %v", len(rows), r.Repeated, r)
		}
		o.ExactBelow, o.Rank = -1, 60
		probes := testkit.Must(lab.LeaveOneOut(t.Context(), o))
		testkit.Contains(t, probes.String(), "one subspace for all λ with")
		for i, s := range probes.Scores {
			e := s.Error
			if claimed := e.Method != "none"; claimed == classes || claimed && !e.Covers(r.Scores[i].Error.Value) ||
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
