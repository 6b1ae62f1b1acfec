package tune_test

import (
	"context"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// newLab returns a lab and panics on an error.
func newLab(train *datasets.Dataset, config krrlab.Config) *krrlab.Lab {
	return testkit.Must(krrlab.New(train, config))
}

// TestLastLevelHoldsOutRows checks that the last level fits four fifths of the rows and judges by the others, with the
// error that New, Solve and Predict give for them.
func TestLastLevelHoldsOutRows(t *testing.T) {
	ctx := context.Background()
	set := datasets.SyntheticRegression(700, 2, 0.1, 1)
	lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Seed: 3})
	result := testkit.Must(lab.Tune(ctx, tune.Options{Kernels: []string{"gaussian"}, Rows: 200}))
	last := result.Levels[len(result.Levels)-1]
	if last.Name != "140 rows held out, fits of 560" || result.N != 700 || result.Lambda != result.Best.Lambda ||
		result.Header.Kernel != result.Best.Spec() {
		t.Errorf("the last level is %+v, the header %+v; the choice %+v", last, result.Header, result.Best)
	}
	train, test, err := set.Holdout(0.2, 3)
	testkit.OK(t, err)
	refit := newLab(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: result.Best.Sigma}, Lambda: result.Best.Lambda,
		Tol: 1e-8})
	solution := testkit.Must(refit.Solve(ctx))
	prediction := testkit.Must(solution.Model.Predict(ctx, test, nil))
	if want, got := float64(prediction.Score(test).RMSE), float64(result.Best.Error); got < 0.999*want ||
		got > 1.001*want {
		t.Errorf("error %g of rows held out, want %g", got, want)
	}
}

// TestTuneRareClasses checks that data with a class of one or two rows can be tuned, with a sample of all rows and with
// a subsample.
func TestTuneRareClasses(t *testing.T) {
	for _, rows := range []int{0, 60} {
		for rare := 1; rare <= 2; rare++ {
			set := datasets.SyntheticClasses(150, 2, 2, 0, 1)
			for i := range set.Class {
				set.Class[i] = 0
			}
			set.Class[7], set.Class[8] = 1, rare-1
			lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Seed: 3})
			result, err := lab.Tune(t.Context(), tune.Options{Kernels: []string{"gaussian"}, Rows: rows, Points: 5})
			if err != nil || float64(result.Best.Error) > 0.1 {
				t.Errorf("%d rows, rare class of %d: %v, %v", rows, rare, result, err)
			}
		}
	}
}

// TestTuneUnconverged checks that a search whose solves do not converge fails with this reason, and that the stopping
// rule of the lab does not apply to the fits of the search.
func TestTuneUnconverged(t *testing.T) {
	set := datasets.SyntheticRegression(400, 2, 0.1, 1)
	lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Solver: krrlab.CG, MaxIter: 1,
		Seed: 3})
	options := tune.Options{Kernels: []string{"gaussian"}, Rows: 100, Points: 5}
	testkit.Fails(t, testkit.ErrOf(lab.Tune(t.Context(), options)), "did not converge")
	lab = newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 10, Solver: krrlab.CG,
		Stop: bound.Stop{Rule: bound.ByANorm}})
	testkit.Must(lab.Tune(t.Context(), options))
}

// TestTuneSeveralTargets checks that the units of several targets do not change the errors: with a subsample and with
// validation rows.
func TestTuneSeveralTargets(t *testing.T) {
	set := datasets.SyntheticRegression(500, 2, 0.1, 1)
	other := make([]float64, set.Len())
	for i := range other {
		other[i] = set.X.(*points.Dense).Row(i)[0] * set.X.(*points.Dense).Row(i)[1]
	}
	results := map[bool]*tune.Result{} // for the first unit, with and without validation rows
	for _, unit := range []float64{1, 1 << 20} {
		twoTargets := *set
		twoTargets.TargetNames, twoTargets.MoreTargets = []string{"y", "z"}, [][]float64{make([]float64, len(other))}
		for i, value := range other {
			twoTargets.MoreTargets[0][i] = unit * value
		}
		for _, valid := range []*datasets.Dataset{nil, twoTargets.Head(100)} {
			lab := newLab(&twoTargets, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, Seed: 3,
				Solver: krrlab.Direct})
			options := tune.Options{Kernels: []string{"gaussian"}, Rows: 120, Valid: valid}
			if valid != nil {
				options.Rows = 500
			}
			result := testkit.Must(lab.Tune(t.Context(), options))
			want := results[valid != nil]
			if want == nil {
				want, results[valid != nil] = result, result
			}
			const unitsNote = "of all 2 targets, each in units of its root mean square"
			if len(result.Points) != len(want.Points) || !strings.Contains(result.String(), unitsNote) ||
				!strings.Contains(result.Short(), "("+unitsNote+") with 95 %") {
				t.Fatalf("%d points, want %d: %s", len(result.Points), len(want.Points), result)
			}
			for i, p := range result.Points {
				// The predictions have errors within the tolerance, so the losses do not agree to the last digit.
				testkit.Near(t, float64(p.Error/want.Points[i].Error), 1, 0.01, unit, i, p.Error, want.Points[i].Error)
			}
		}
	}
}

// TestTuneWithValidationRows checks that validation rows may be unscaled although the training rows are scaled, and
// that rows with other features are an error.
func TestTuneWithValidationRows(t *testing.T) {
	raw := datasets.SyntheticRegression(120, 2, 0.1, 1)
	train, valid, err := datasets.Scale("standard", raw.Head(80), raw)
	testkit.OK(t, err)
	lab := newLab(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 1})
	tuneWith := func(valid *datasets.Dataset) (*tune.Result, error) {
		return lab.Tune(t.Context(), tune.Options{Kernels: []string{"gaussian"}, Points: 5, Valid: valid})
	}
	if got, want := testkit.Must(tuneWith(raw)), testkit.Must(tuneWith(valid)); got.Best.Error != want.Best.Error {
		t.Errorf("error %g of raw rows, %g of scaled ones", got.Best.Error, want.Best.Error)
	}
	testkit.Fails(t, testkit.ErrOf(tuneWith(datasets.SyntheticRegression(9, 1, 0.1, 1))), "a scaling (standard) of 2")
	lab = newLab(raw, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 1})
	testkit.Fails(t, testkit.ErrOf(tuneWith(datasets.SyntheticRegression(9, 1, 0.1, 1))), "have 1 feature")
}

// TestBaseline checks the baseline: the standard deviation of the answers for a regression, and the share of all
// classes but the most frequent one among the judged rows for classes. The report compares the choice with it.
func TestBaseline(t *testing.T) {
	options := tune.Options{Kernels: []string{"gaussian"}, Points: 5}
	set := datasets.SyntheticRegression(120, 2, 0.1, 1)
	lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	result := testkit.Must(lab.Tune(t.Context(), options))
	testkit.Near(t, float64(result.Baseline), stat.PopStdDev(set.Target, nil), 1e-12, "standard deviation")

	classes := datasets.SyntheticClasses(120, 2, 3, 0, 1)
	for i := range classes.Class {
		classes.Class[i] = max(0, i%6-3) // four of six rows are of class 0, and the features do not tell which
	}
	lab = newLab(classes, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	result = testkit.Must(lab.Tune(t.Context(), options))
	testkit.Near(t, float64(result.Baseline), 1.0/3, 1e-12, "share of other classes")
	if !strings.Contains(result.Short(),
		"error 33.33 % if the most frequent class is predicted for each row: the choice") {
		t.Error(result.Short())
	}
	options.Valid = classes.Subset([]int{0, 1, 4, 5})
	result = testkit.Must(lab.Tune(t.Context(), options))
	testkit.Near(t, float64(result.Baseline), 0.5, 1e-12, "share of other classes in the validation rows")
	options.Metric = string(model.AUC)
	if result = testkit.Must(lab.Tune(t.Context(), options)); result.Baseline.Known() {
		t.Errorf("the baseline of the AUC is %g, want none", result.Baseline)
	}
}

// TestQuickSearch checks that a quick search has one level. The sample has more rows of a rare class than a random one,
// with weights that preserve the share of the class, so that the error is close to the leave-one-out error of all rows.
func TestQuickSearch(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		set := datasets.SyntheticClasses(900, 2, 2, 0.05, seed)
		for i, class := range set.Class {
			if class == 1 && i%25 > 0 {
				set.Class[i] = 0
			}
		}
		// With fixed parameters, the search evaluates one point.
		options := tune.Options{Kernels: []string{"gaussian"}, Sigma: 1, Lambda: 1, Rows: 900}
		lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, Seed: seed})
		exact := testkit.Must(lab.Tune(t.Context(), options))
		options.Rows, options.Quick = 0, true
		quick := testkit.Must(lab.Tune(t.Context(), options))
		rareCount := 0
		for _, class := range set.Class {
			rareCount += class
		}
		if len(quick.Levels) != 1 || quick.Levels[0].Rows <= 500 || quick.Levels[0].Rows > 550 || rareCount > 60 {
			t.Errorf("seed %d: %+v, %d rows of the rare class", seed, quick.Levels, rareCount)
		}
		if got, want := float64(quick.Best.Error), float64(exact.Best.Error); got < want-0.012 || got > want+0.012 {
			t.Errorf("seed %d: error %g by the sample, %g by all rows; want a difference of at most 0.012", seed, got,
				want)
		}
	}
}
