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
func newLab(train *datasets.Dataset, cfg krrlab.Config) *krrlab.Lab {
	return testkit.Must(krrlab.New(train, cfg))
}

// TestLastLevelHoldsOutRows checks that the last level fits four fifths of the rows and judges by the others, with the
// error that New, Solve and Predict give for them.
func TestLastLevelHoldsOutRows(t *testing.T) {
	ctx := context.Background()
	set := datasets.SyntheticRegression(700, 2, 0.1, 1)
	lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Seed: 3})
	r := testkit.Must(lab.Tune(ctx, tune.Options{Kernels: []string{"gaussian"}, Rows: 200}))
	last := r.Levels[len(r.Levels)-1]
	if last.Name != "140 rows held out, fits of 560" || r.N != 700 || r.Lambda != r.Best.Lambda ||
		r.Header.Kernel != r.Best.Spec() {
		t.Errorf("the last level is %+v, the header %+v; the choice %+v", last, r.Header, r.Best)
	}
	train, test, err := set.Holdout(0.2, 3)
	testkit.OK(t, err)
	refit := newLab(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: r.Best.Sigma}, Lambda: r.Best.Lambda,
		Tol: 1e-8})
	sol := testkit.Must(refit.Solve(ctx))
	p := testkit.Must(sol.Model.Predict(ctx, test, nil))
	if want, got := float64(p.Score(test).RMSE), float64(r.Best.Error); got < 0.999*want || got > 1.001*want {
		t.Errorf("error %g of rows held out, want %g", got, want)
	}
}

// TestTuneRareClasses checks that classes of one or two rows can be tuned, with a sample of all rows and with a
// subsample.
func TestTuneRareClasses(t *testing.T) {
	for _, rows := range []int{0, 60} {
		for rare := 1; rare <= 2; rare++ {
			set := datasets.SyntheticClasses(150, 2, 2, 0, 1)
			for i := range set.Class {
				set.Class[i] = 0
			}
			set.Class[7], set.Class[8] = 1, rare-1
			lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Seed: 3})
			r, err := lab.Tune(t.Context(), tune.Options{Kernels: []string{"gaussian"}, Rows: rows, Points: 5})
			if err != nil || float64(r.Best.Error) > 0.1 {
				t.Errorf("%d rows, rare class of %d: %v, %v", rows, rare, r, err)
			}
		}
	}
}

// TestTuneUnconverged checks that a solve that does not converge has no loss, and that the stopping rule of the lab
// does not apply to the fits of the search.
func TestTuneUnconverged(t *testing.T) {
	set := datasets.SyntheticRegression(400, 2, 0.1, 1)
	lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Solver: krrlab.CG, MaxIter: 1,
		Seed: 3})
	o := tune.Options{Kernels: []string{"gaussian"}, Rows: 100, Points: 5}
	testkit.Fails(t, testkit.ErrOf(lab.Tune(t.Context(), o)), "did not converge")
	lab = newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 10, Solver: krrlab.CG,
		Stop: bound.Stop{Rule: bound.ByANorm}})
	testkit.Must(lab.Tune(t.Context(), o))
}

// TestTuneTargets checks that the units of several targets do not matter: on a subsample, on all rows and with
// validation rows.
func TestTuneTargets(t *testing.T) {
	set := datasets.SyntheticRegression(500, 2, 0.1, 1)
	other := make([]float64, set.Len())
	for i := range other {
		other[i] = set.X.(*points.Dense).Row(i)[0] * set.X.(*points.Dense).Row(i)[1]
	}
	results := map[bool]*tune.Result{} // for the first unit, with and without validation rows
	for _, unit := range []float64{1, 1 << 20} {
		twoTargets := *set
		twoTargets.TargetNames, twoTargets.MoreTargets = []string{"y", "z"}, [][]float64{make([]float64, len(other))}
		for i, v := range other {
			twoTargets.MoreTargets[0][i] = unit * v
		}
		for _, valid := range []*datasets.Dataset{nil, twoTargets.Head(100)} {
			lab := newLab(&twoTargets, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, Seed: 3,
				Solver: krrlab.Direct})
			o := tune.Options{Kernels: []string{"gaussian"}, Rows: 120, Valid: valid}
			if valid != nil {
				o.Rows = 500
			}
			r := testkit.Must(lab.Tune(t.Context(), o))
			want := results[valid != nil]
			if want == nil {
				want, results[valid != nil] = r, r
			}
			if len(r.Points) != len(want.Points) || !strings.Contains(r.String(), "in units of its root mean square") ||
				!strings.Contains(r.Short(), "(of all 2 targets, each in units of its root mean square) with 95 %") {
				t.Fatalf("%d points, want %d: %s", len(r.Points), len(want.Points), r)
			}
			for i, p := range r.Points {
				// The predictions have errors within the tolerance, so the losses do not agree to the last digit.
				testkit.Near(t, float64(p.Error/want.Points[i].Error), 1, 0.01, unit, i, p.Error, want.Points[i].Error)
			}
		}
	}
}

// TestTuneValid checks that validation rows may be raw although the rows of the fit are scaled, and that rows with
// other features are refused.
func TestTuneValid(t *testing.T) {
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
	kernels := tune.Options{Kernels: []string{"gaussian"}, Points: 5}
	set := datasets.SyntheticRegression(120, 2, 0.1, 1)
	lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	r := testkit.Must(lab.Tune(t.Context(), kernels))
	testkit.Near(t, float64(r.Baseline), stat.PopStdDev(set.Target, nil), 1e-12, "standard deviation")

	classes := datasets.SyntheticClasses(120, 2, 3, 0, 1)
	for i := range classes.Class {
		classes.Class[i] = max(0, i%6-3) // four of six rows are of class 0, and the features do not tell which
	}
	lab = newLab(classes, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	r = testkit.Must(lab.Tune(t.Context(), kernels))
	testkit.Near(t, float64(r.Baseline), 1.0/3, 1e-12, "share of other classes")
	if !strings.Contains(r.Short(), "error 33.33 % if the most frequent class is predicted for each row: the choice") {
		t.Error(r.Short())
	}
	kernels.Valid = classes.Subset([]int{0, 1, 4, 5})
	r = testkit.Must(lab.Tune(t.Context(), kernels))
	testkit.Near(t, float64(r.Baseline), 0.5, 1e-12, "share of other classes in the validation rows")
	kernels.Metric = string(model.AUC)
	if r = testkit.Must(lab.Tune(t.Context(), kernels)); r.Baseline.Known() {
		t.Errorf("the baseline of the AUC is %g, want none", r.Baseline)
	}
}

// TestQuickSearch checks that a quick search has one level. Its sample has more rows of a rare class, with weights that
// preserve the share of the class, so that its error is close to the leave-one-out error of all rows.
func TestQuickSearch(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		set := datasets.SyntheticClasses(900, 2, 2, 0.05, seed)
		for i, c := range set.Class {
			if c == 1 && i%25 > 0 {
				set.Class[i] = 0
			}
		}
		// With fixed parameters, the search evaluates one point.
		o := tune.Options{Kernels: []string{"gaussian"}, Sigma: 1, Lambda: 1, Rows: 900}
		lab := newLab(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, Seed: seed})
		all := testkit.Must(lab.Tune(t.Context(), o))
		o.Rows, o.Quick = 0, true
		r := testkit.Must(lab.Tune(t.Context(), o))
		rare := 0
		for _, c := range set.Class {
			rare += c
		}
		if len(r.Levels) != 1 || r.Levels[0].Rows <= 500 || r.Levels[0].Rows > 550 || rare > 60 {
			t.Errorf("seed %d: %+v, %d rows of the rare class", seed, r.Levels, rare)
		}
		if got, want := float64(r.Best.Error), float64(all.Best.Error); got < want-0.012 || got > want+0.012 {
			t.Errorf("seed %d: error %g by the sample, %g by all rows; want a difference of at most 0.012", seed, got,
				want)
		}
	}
}
