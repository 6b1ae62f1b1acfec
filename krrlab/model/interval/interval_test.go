package interval

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// TestJackknifePlus compares the intervals of jackknife+ with dense linear algebra, for every kernel, on more points
// than a block and more rows than a tile. The prediction of a fit without row i is f(z) − r_i(A⁻¹k_z)_i, where r_i =
// c_i/(A⁻¹)_ii is its leave-one-out residual.
func TestJackknifePlus(t *testing.T) {
	const n, lambda, level = 300, 0.01, 0.9
	d, test := datasets.SyntheticRegression(n, 3, 0.1, 1), datasets.SyntheticRegression(150, 3, 0.1, 2)
	for _, k := range kernels {
		inv := inverseOf(t, k, d.X, lambda)
		cross := crossKernelMatrix(k, d.X, test.X)
		var weights, decision mat.Dense
		weights.Mul(inv, cross)
		m := fit(t, d, k, lambda)
		decision.Mul(cross.T(), m.C)
		intervals := testkit.Must(JackknifePlusIntervals(t.Context(), newSystem(t, m), predict(t, m, test), test,
			level))
		lowEnds, highEnds := make([]float64, n), make([]float64, n) // of the fits without one row
		for row := range test.Len() {
			for i := range n {
				r := m.C.At(i, 0) / inv.At(i, i)
				prediction := decision.At(row, 0) - r*weights.At(i, row)
				lowEnds[i], highEnds[i] = prediction-math.Abs(r), prediction+math.Abs(r)
			}
			slices.Sort(lowEnds)
			slices.Sort(highEnds)
			// The ranks are ⌊0.1·301⌋ = 30 and ⌈0.9·301⌉ = 271. The rounding error of A⁻¹k_z is about u·κ ≈ 1e-11.
			if !(math.Abs(intervals.Lo.At(row, 0)-lowEnds[29]) <= 1e-6 &&
				math.Abs(intervals.Hi.At(row, 0)-highEnds[270]) <= 1e-6) {
				t.Fatalf("%v, row %d: [%g, %g], want [%g, %g]", k, row, intervals.Lo.At(row, 0),
					intervals.Hi.At(row, 0), lowEnds[29], highEnds[270])
			}
		}
	}
}

// TestLeaveOneOut compares residuals, jackknife+ and the scores of classes with fits that omit one point and its
// copies, and use the mean of the remaining targets. The guarantee must be printed only if no row repeats and the
// kernel was not chosen on the rows.
func TestLeaveOneOut(t *testing.T) {
	const n, lambda, level = 40, 0.05, 0.8
	k := kernel.Gaussian{Sigma: 1}
	different, test := datasets.SyntheticRegression(n, 2, 0.3, 1), datasets.SyntheticRegression(90, 2, 0.3, 2)
	for i := range different.Target {
		different.Target[i] += 5
	}
	for name, d := range map[string]*datasets.Dataset{"different rows": different, "centered": different.Center(),
		"repeats": withRepeats(different), "centered repeats": withRepeats(different).Center(),
		"groups":        withGroups(different).Center(),
		"repeats apart": testkit.Must(withRepeats(different).GroupByRule("apart", nil))} {
		m := fit(t, d, k, lambda)
		system := newSystem(t, m)
		residuals, want := system.LeaveOneOut(), mat.NewDense(n, 1, nil)
		low, high := make([][]float64, test.Len()), make([][]float64, test.Len())
		for i := range n {
			refit := fit(t, withoutGroupOf(d, i), k, lambda)
			residual := d.Target[i] - predict(t, refit, d.Subset([]int{i})).Value[0]
			want.Set(i, 0, residual)
			for row, f := range predict(t, refit, test).Value {
				low[row], high[row] = append(low[row], f-math.Abs(residual)), append(high[row], f+math.Abs(residual))
			}
		}
		if e := testkit.RelativeDifference(residuals, want); !(e < 1e-9) {
			t.Errorf("%s: residuals differ by %g from those of fits without a row", name, e)
		}
		intervals, err := JackknifePlusIntervals(t.Context(), system, predict(t, m, test), test, level)
		testkit.OK(t, err)
		for row := range low {
			slices.Sort(low[row])
			slices.Sort(high[row])
			// The ranks are ⌊α(n+1)⌋ = ⌊8.2⌋ = 8 and ⌈0.8·41⌉ = 33.
			if math.Abs(intervals.Lo.At(row, 0)-low[row][7]) > 1e-9 ||
				math.Abs(intervals.Hi.At(row, 0)-high[row][32]) > 1e-9 {
				t.Fatalf("%s, row %d: [%g, %g], want [%g, %g]", name, row, intervals.Lo.At(row, 0),
					intervals.Hi.At(row, 0), low[row][7], high[row][32])
			}
		}
		repeats := name == "repeats" || name == "centered repeats"
		if strings.Contains(intervals.Guarantee(), "not guaranteed") != (repeats || name == "groups") ||
			repeats != strings.Contains(intervals.Guarantee(), "of 40 rows have the features of others") {
			t.Errorf("%s: the guarantee is %q", name, intervals.Guarantee())
		}
		m.Origin.Tuned = true
		intervals = testkit.Must(JackknifePlusIntervals(t.Context(), system, predict(t, m, test), test, level))
		testkit.Contains(t, intervals.Guarantee(), "not guaranteed")
	}
	for _, classes := range []int{2, 4} {
		d := withRepeats(datasets.SyntheticClasses(n, 2, classes, 0.1, 1))
		system := newSystem(t, fit(t, d, k, lambda))
		calibration := CalibrateJackknife(system)
		var scores []float64
		for i := range n {
			others := withoutGroupOf(d, i)
			if !slices.Contains(others.Class, d.Class[i]) {
				scores = append(scores, math.Inf(1))
				continue
			}
			p := predict(t, fit(t, others, k, lambda), d.Subset([]int{i}))
			f, y := slices.Clone(p.Decision.RawRowView(0)), d.Class[i]
			if classes == 2 {
				f = []float64{-f[0], f[0]}
			}
			answerValue := f[y]
			f[y] = math.Inf(-1)
			scores = append(scores, slices.Max(f)-answerValue)
		}
		slices.Sort(scores)
		if got := mat.Col(nil, 0, calibration.Scores); !slices.EqualFunc(got, scores,
			func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%d classes: scores %.4g, want %.4g", classes, got, scores)
		}
	}
}

// TestQuantilesOfScores checks that intervals and sets use the right order statistic of the scores, that levels without
// one are refused, and that a label unknown to the model has the score +∞.
func TestQuantilesOfScores(t *testing.T) {
	p := &model.Prediction{Decision: mat.NewDense(9, 1, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9})}
	p.Value = mat.Col(nil, 0, p.Decision)
	d := &datasets.Dataset{Task: datasets.Regression, X: datasets.SyntheticRegression(9, 1, 0, 1).X,
		Target: []float64{2, 0, 6, 0, 10, 0, 14, 0, 18}}
	c := testkit.Must(CalibrateSplit(nil, p, d)) // |y−f| = 1 2 3 4 5 6 7 8 9
	for level, halfWidth := range map[float64]float64{0.9: 9, 0.85: 9, 0.8: 8, 0.5: 5, 0.01: 1} {
		v, err := FromScores(c, p, level)
		if err != nil || v.Lo.At(3, 0) != 4-halfWidth || v.Hi.At(3, 0) != 4+halfWidth || v.Method != Split {
			t.Errorf("level %g: %v, error %v, want ±%g", level, v, err, halfWidth)
		}
	}
	for level, want := range map[float64]string{0.95: "9 scores are too few for intervals of level 0.95: want at " +
		"least 19", 0.9990000000000001: "of level 0.999: want at least 999, or a lower level", 1: "between 0 and 1",
		0: "between 0 and 1"} {
		testkit.Fails(t, testkit.ErrOf(FromScores(c, p, level)), want)
	}
	three := &model.Prediction{Labels: []string{"a", "b", "c"}, Class: []int{0, 1},
		Decision: mat.NewDense(2, 3, []float64{1, 0.5, -1, -1, 0.2, 0.1})}
	answers := &datasets.Dataset{Task: datasets.Classification, X: datasets.SyntheticRegression(2, 1, 0, 1).X,
		Class: []int{1, 0}, Labels: []string{"new", "b"}}
	if c, err := CalibrateSplit(nil, three, answers); err != nil || c.Scores.At(0, 0) != 0.5 ||
		!math.IsInf(c.Scores.At(1, 0), 1) {
		t.Errorf("scores %+v of a known and an unknown label, error %v; want 0.5 and +Inf", c, err)
	}
	for _, c := range []struct {
		score float64
		sets  string // the labels of the sets of both rows if all scores are equal to score
	}{{-3, "a b"}, {-0.01, "a b"}, {0.1, "a bc"}, {0.5, "ab bc"}, {2, "abc abc"}} {
		calibration := &model.Calibration{Method: Split, Scores: mat.NewDense(2, 1, []float64{c.score, c.score})}
		v := testkit.Must(FromScores(calibration, three, 0.5))
		var sets []string
		for _, set := range v.Sets {
			labels := ""
			for _, j := range set {
				labels += three.Labels[j]
			}
			sets = append(sets, labels)
		}
		testkit.Equal(t, strings.Join(sets, " "), c.sets, c.score)
	}
}

// TestUnknownLabels checks the set at a level that the scores of known labels cannot reach. It contains all labels
// and an unknown one, and covers a new label.
func TestUnknownLabels(t *testing.T) {
	p := &model.Prediction{Labels: []string{"a", "b"}, Class: []int{0}, Decision: mat.NewDense(1, 1, []float64{-1})}
	inf := math.Inf(1)
	c := &model.Calibration{Method: Split, Scores: mat.NewDense(9, 1, []float64{-2, -2, -1, -1, 0, 0, 1, inf, inf})}
	if v, err := FromScores(c, p, 0.7); err != nil || len(v.Sets[0]) != 1 {
		t.Errorf("level 0.7: %v, error %v; want a set of one label", v, err)
	}
	v := testkit.Must(FromScores(c, p, 0.71))
	newLabel := &datasets.Dataset{Task: datasets.Classification, Class: []int{0}, Labels: []string{"new"}}
	if !slices.Equal(v.Sets[0], []int{0, 1, 2}) || v.Coverage(p, newLabel) != 1 ||
		math.Abs(v.UnknownShare-2.0/9) > 1e-15 {
		t.Errorf("level 0.71: %v, want a set of both labels and an unknown one, and 2 of 9 unknown", v)
	}
}

// TestRefusals checks that intervals that cannot be computed are refused with a reason.
func TestRefusals(t *testing.T) {
	d := datasets.SyntheticRegression(30, 2, 0.1, 1)
	m := fit(t, d, kernel.Gaussian{Sigma: 1}, 0.1)
	testkit.Fails(t, testkit.ErrOf(NewFactoredSystem(t.Context(), m, accel.Budget{Limit: 100})),
		"of 30 points would take 7.2 kB of memory, and 100 B of 100 B are free")
	system := newSystem(t, m)
	testkit.Fails(t, testkit.ErrOf(JackknifePlusIntervals(t.Context(), system, predict(t, m, d),
		datasets.SyntheticRegression(3, 5, 0, 1), 0.9)), "points have 5 features, the model was fitted on 2")
	singular := *m
	singular.Kernel, singular.Lambda = kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 1}, 1e-18
	testkit.Fails(t, testkit.ErrOf(NewFactoredSystem(t.Context(), &singular, accel.Budget{})), "not positive definite")
	weighted := *m
	weighted.Weighted = true
	testkit.Fails(t, testkit.ErrOf(NewFactoredSystem(t.Context(), &weighted, accel.Budget{})), "weights")
	classes := datasets.SyntheticClasses(30, 2, 3, 0.1, 1)
	classifier := fit(t, classes, kernel.Gaussian{Sigma: 1}, 0.1)
	testkit.Fails(t, testkit.ErrOf(JackknifePlusIntervals(t.Context(), system, predict(t, classifier, classes), classes,
		0.9)), "take split or jackknife")
	if _, err := CalibrateSplit(nil, predict(t, classifier, classes), d); err == nil {
		t.Error("the numbers of a regression calibrate predicted classes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Fails(t, testkit.ErrOf(NewFactoredSystem(ctx, m, accel.Budget{})), "canceled")
}

// meanCoverage returns the mean coverage over random splits of the rows, for each method and level. A split has n rows
// of the fit, the given number of rows to calibrate and up to 2,000 rows to test.
func meanCoverage(t *testing.T, d *datasets.Dataset, n, calibrationRows, splits int, k kernel.Kernel, lambda float64,
	levels ...float64) map[string][]float64 {
	t.Helper()
	mean := map[string][]float64{}
	for _, method := range Methods {
		mean[method] = make([]float64, len(levels))
	}
	for split := range splits {
		perm := rng.New(7).Sub("split", uint64(split)).Perm(d.Len())
		train, calibration, test := d.Subset(perm[:n]), d.Subset(perm[n:n+calibrationRows]),
			d.Subset(perm[n+calibrationRows:min(d.Len(), n+calibrationRows+2000)])
		train, test, err := datasets.Scale("standard", train, test)
		testkit.OK(t, err)
		m := fit(t, train, k, lambda)
		p, s := predict(t, m, test), newSystem(t, m)
		calibrated := testkit.Must(CalibrateSplit(nil, predict(t, m, calibration), calibration))
		for levelIndex, level := range levels {
			addCoverage := func(v *Intervals, err error) {
				testkit.OK(t, err)
				mean[v.Method][levelIndex] += v.Coverage(p, test) / float64(splits)
			}
			addCoverage(FromScores(calibrated, p, level))
			addCoverage(FromScores(CalibrateJackknife(s), p, level))
			if d.Task == datasets.Regression {
				addCoverage(JackknifePlusIntervals(t.Context(), s, p, test, level))
			}
		}
	}
	return mean
}

// TestCoverage checks on independent random data that intervals and sets cover at their level within 3 %. The share
// of 4·2000 rows by 4·400 scores has a standard deviation of 0.8 %.
func TestCoverage(t *testing.T) {
	for _, d := range []*datasets.Dataset{datasets.SyntheticRegression(2600, 3, 0.3, 1),
		datasets.SyntheticClasses(2600, 3, 4, 0.1, 1)} {
		level, methods := 0.9, []string{Split, Jackknife, JackknifePlus}
		if d.Task == datasets.Classification { // sets at a level below the share of correct labels cover too often
			level, methods = 0.95, methods[:2]
		}
		got := meanCoverage(t, d, 200, 400, 4, kernel.Gaussian{Sigma: 1.5}, 0.1, level)
		for _, method := range methods {
			if share := got[method][0]; !(math.Abs(share-level) < 0.03) {
				t.Errorf("%s, %s: %.1f %% are covered, of %g %%", d.Name, method, 100*share, 100*level)
			}
		}
	}
}
