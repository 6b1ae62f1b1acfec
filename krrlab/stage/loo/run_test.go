package loo_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/loo"
	_ "github.com/krrlab/lab/plots/draw"
)

// TestRepeatedRows checks that rows with the same features are left out together and counted. Random probes in a
// subspace of landmarks cannot leave rows of classes out together; then no interval is claimed, and the report says so.
func TestRepeatedRows(t *testing.T) {
	lambdas := []float64{10, 0.1, 1}
	for _, classes := range []bool{false, true} {
		set := datasets.SyntheticRegression(120, 2, 0.1, 1)
		if classes {
			set = datasets.SyntheticClasses(120, 2, 2, 0.1, 1)
		}
		x := set.X.(*points.Dense)
		copy(x.Row(7), x.Row(3))
		set = testkit.Must(set.GroupByRule("together", nil))
		lab := testkit.Must(krrlab.New(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1}))
		exact := testkit.Must(lab.LeaveOneOut(t.Context(), loo.Options{Lambdas: lambdas}))
		testkit.Contains(t, exact.String(), "1 rows repeat the features of an earlier one: they stay together",
			"takes the equal rows that are left out together as one row")
		if rows := exact.Table().Rows; len(rows) != 3 || exact.Repeats.Grouped != 1 ||
			exact.Scores[exact.Best].Error.Confidence != 1 {
			t.Errorf("classes %v: %d rows of a table, %d grouped: %v", classes, len(rows), exact.Repeats.Grouped, exact)
		}
		probes := testkit.Must(lab.LeaveOneOut(t.Context(), loo.Options{Lambdas: lambdas, MaxExactN: -1, Rank: 60}))
		testkit.Contains(t, probes.String(), "one subspace for all λ with")
		for i, score := range probes.Scores {
			want, errorInterval := exact.Scores[i].Error.Value, score.Error
			if classes && (errorInterval.Method != "none" || errorInterval.Lo != 0 || errorInterval.Hi != 1) ||
				!classes && (errorInterval.Method == "none" || !errorInterval.Contains(want)) {
				t.Errorf("classes %v, λ = %g: %s %v, exactly %g", classes, score.Lambda, errorInterval.Method,
					errorInterval, want)
			}
		}
		if classes {
			testkit.Contains(t, probes.String(), "so that errors are too small and no")
			if text := probes.String(); strings.Contains(text, "takes the equal rows") {
				t.Errorf("GCV takes each row for itself, and the report says otherwise:\n%s", text)
			}
		}
		_, err := lab.LeaveOneOut(t.Context(), loo.Options{Lambdas: lambdas, MaxExactN: -1, Rank: 121})
		testkit.Fails(t, err, "s = 121 landmarks for n = 120 points")
	}
}

// TestDefaultGrid checks that the default grid has 13 values of λ, centered on a logarithmic scale at the λ of the
// problem.
func TestDefaultGrid(t *testing.T) {
	lab := testkit.Must(krrlab.New(datasets.SyntheticRegression(50, 2, 0.1, 1),
		krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1}))
	scores := testkit.Must(lab.LeaveOneOut(t.Context(), loo.Options{})).Scores
	if n := len(scores); n != 13 || math.Abs(scores[0].Lambda*scores[12].Lambda-0.1*0.1) > 1e-12 {
		t.Errorf("%d values of λ from %g to %g, want 13 around 0.1", n, scores[0].Lambda, scores[n-1].Lambda)
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
	limited := leaveOneOut(11e6) // bytes; K in float32 and a subspace of 40 landmarks fit, two dense factors do not
	if !limited.Scores[0].Error.Contains(exact.Scores[0].Error.Value) || exact.NotDenseReason != "" {
		t.Errorf("with 11 MB: %v\nwith dense factors: %v", limited, exact)
	}
	testkit.Contains(t, limited.String(), "weighted RMSE",
		"n = 1200 points would take 23 MB of memory, and 10.9 MB of 11 MB are free")
	testkit.Contains(t, limited.HTML(), "weighted RMSE", "<svg")
}
