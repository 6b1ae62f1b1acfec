package interval

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// TestGuarantees checks that the printed guarantees are those of the theorems, for example 1−2α for jackknife+ at level
// 1−α, and that the reason why there is none counts the repeated rows.
func TestGuarantees(t *testing.T) {
	for want, intervals := range map[string]*Intervals{
		"probability 0.8 at least":   {Method: JackknifePlus, Level: 0.9},
		"probability 0.5 at least":   {Method: JackknifePlus, Level: 0.75},
		"probability 0 at least":     {Method: JackknifePlus, Level: 0.4},
		"probability 0.9 at least":   {Method: Split, Level: 0.9},
		"not guaranteed: rows repea": {Method: Split, Level: 0.9, Doubt: "rows repeat"},
	} {
		if got := intervals.Guarantee(); !strings.Contains(got, want) {
			t.Errorf("%v at the level %g: %q, want %q", intervals.Method, intervals.Level, got, want)
		}
	}
	for count, want := range []string{"", "1 of 3 rows are", "2 of 3 rows are"} {
		if got := doubtReason(count, 3, repeatDescription(datasets.RowKindNew)); !strings.Contains(got, want) ||
			(got == "") != (want == "") {
			t.Errorf("%d of 3 rows repeat: the doubt is %q, want %q", count, got, want)
		}
	}
}

// TestCoverageOfTargets compares the coverage of two targets with a count by hand. An answer at the end of its
// interval is covered.
func TestCoverageOfTargets(t *testing.T) {
	d := &datasets.Dataset{Task: datasets.Regression, X: points.NewDense(3, 1, []float64{1, 2, 3}),
		Target: []float64{1, 2, 3}, MoreTargets: [][]float64{{4, 5, 6}}}
	intervals := &Intervals{Lo: mat.NewDense(3, 2, []float64{1, 0, 0, 5.5, 3.5, 0}),
		Hi: mat.NewDense(3, 2, []float64{9, 4, 1, 9, 9, 5})}
	testkit.Equal(t, intervals.Coverage(&model.Prediction{}, d), 2.0/6)
}

// TestNormalizedProbabilities checks that probabilities agree with the normalized logistic function, and that a
// regression, a missing calibration and a calibration with another number of columns have none.
func TestNormalizedProbabilities(t *testing.T) {
	f := mat.NewDense(1, 3, []float64{1, 2, 3})
	classes := &model.Prediction{Decision: f, Labels: []string{"a", "b", "c"}}
	calibration := &model.Calibration{Slope: []float64{1, 1, 1}, Offset: []float64{0, 0, 0}}
	for name, c := range map[string]struct {
		calibration *model.Calibration
		p           *model.Prediction
	}{
		"regression":      {calibration, &model.Prediction{Decision: f}},
		"no calibration":  {nil, classes},
		"a single column": {&model.Calibration{Slope: []float64{1}, Offset: []float64{0}}, classes},
	} {
		if got, err := Probabilities(c.calibration, c.p); err == nil {
			t.Errorf("%s: probabilities %v, want an error", name, got)
		}
	}
	got := testkit.Must(Probabilities(calibration, classes))
	var sum float64
	for j := range 3 {
		sum += 1 / (1 + math.Exp(-f.At(0, j)))
	}
	for j := range 3 {
		if want := 1 / (1 + math.Exp(-f.At(0, j))) / sum; math.Abs(got.At(0, j)-want) > 1e-15 {
			t.Errorf("probability %d is %g, want %g", j, got.At(0, j), want)
		}
	}
}
