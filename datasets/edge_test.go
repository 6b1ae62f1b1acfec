package datasets

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestScalingSlice checks that a scaling fitted on a slice of dense or sparse points uses the ranges, means and
// deviations of the rows of the slice only. Invalid scalings are refused.
func TestScalingSlice(t *testing.T) {
	x := points.NewDense(5, 4, []float64{
		9, 9, 9, 9,
		1, 0, 2, -1,
		3, 0, 2, -2,
		2, -4, 2, 0,
		8, 8, 8, 8,
	})
	dense, sparse := x.Slice(1, 4), toSparse(x).Slice(1, 4)
	for kind, want := range map[string][]float64{ // features of the first point after scaling
		"standard": {-1 / math.Sqrt(2.0/3), (4.0 / 3) / math.Sqrt(32.0/9), 0, 0},
		"unit":     {1.0 / 3, 0, 1, -0.5},
		"pixel":    {1.0 / 255, 0, 2.0 / 255, -1.0 / 255},
	} {
		scaling := must(fitScalingUnlimited(kind, sparse))
		for _, slice := range []points.Points{dense, sparse} {
			// Up to rounding errors.
			if got := denseRows(applyScaling(scaling, slice))[0]; !floats.EqualApprox(got, want, 1e-15) {
				t.Errorf("%s of %T: %v, want %v", kind, slice, got, want)
			}
		}
	}
	x32 := points.NewDense32(1, 2, []float32{3, 5})
	if y, ok := applyScaling(&Scaling{Kind: "pixel", Scale: []float64{2, 3}}, x32).(*points.Dense32); !ok ||
		!slices.Equal(y.Data, []float32{6, 15}) {
		t.Errorf("float32 points: %v", y)
	}
	for want, scaling := range map[string]*Scaling{
		"unknown scaling": {Kind: "none"}, "2 features has 1 shifts": {Kind: "unit", Scale: make([]float64, 2),
			Shift: make([]float64, 1)},
		"feature 1 is not finite": {Kind: "unit", Scale: []float64{0, 1}, Shift: []float64{0, math.Inf(1)}},
		"feature 0 is":            {Kind: "unit", Scale: []float64{math.NaN()}},
		"2 features has 4 shifts": {Kind: "matrix", Scale: []float64{1, 1}, Shift: make([]float64, 4), Matrix: make([]float64, 4)},
	} {
		wantError(t, scaling.Validate(), want)
	}
}

// TestGuessedTask checks which task is guessed for answers that are whole numbers, other numbers or words, just below
// and just above the limits on the number of different values and on the rows per value.
func TestGuessedTask(t *testing.T) {
	for _, c := range []struct {
		distinct int    // number of distinct answers
		rows     int    // number of rows
		format   string // format of an answer
		want     string // task, or part of the error
	}{
		{20, 100, "%d", "classification"}, {20, 99, "%d", "regression"}, {21, 105, "%d", "regression"},
		{2, 10, "%d", "classification"},
		{2, 9, "%d", "regression"}, {2, 10, "%d.5", "regression"}, {3, 100, "%d.0", "classification"},
		{20, 20, "w%d", "classification"}, {21, 104, "w%d", "too many to be classes"},
		{21, 105, "w%d", "classification"}, {30, 150, "w%d", "classification"},
		{3, 12, "%d/5/2020", "a date"},
	} {
		text := joinLines(c.rows, func(i int) string { return fmt.Sprintf("7,"+c.format, i%c.distinct) })
		d, err := Read(strings.NewReader(text), "file", nil)
		got := fmt.Sprint(err)
		if err == nil {
			got = "regression"
			if d.Task == Classification {
				got = "classification"
				if len(d.Labels) != c.distinct {
					t.Errorf("%+v: %d classes", c, len(d.Labels))
				}
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
}

// TestCodingErrors checks that data without answers, and targets that are not finite or whose square overflows, are
// refused. It also checks the number of columns for few and for many labels.
func TestCodingErrors(t *testing.T) {
	x := points.NewDense(2, 1, nil)
	wantError(t, errorFrom((Coding{}).EncodeForFit(&Dataset{Name: "d", X: x})), "d: no numbers to fit")
	wantError(t, errorFrom((Coding{Labels: []string{"a", "b"}}).EncodeForFit(&Dataset{Name: "d", X: x})),
		"d: no classes to fit")
	if y, err := (Coding{}).EncodeForFit(&Dataset{X: x, Target: []float64{maxTarget, -maxTarget}}); err != nil ||
		y.At(1, 0) != -maxTarget {
		t.Errorf("the largest numbers that can be fitted: %v, %v", y, err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), -1e308} {
		d := &Dataset{Name: "made", X: points.NewDense(3, 1, nil), Target: []float64{1, 2, v}}
		wantError(t, errorFrom((Coding{}).EncodeForFit(d)), "made: the target of row 2 (counted from 0) is")
	}
	for n, want := range []int{1, 1, 1, 3, 4} {
		if got := (Coding{Labels: make([]string, n)}).Columns(); got != want {
			t.Errorf("%d labels: %d columns", n, got)
		}
	}
	if got := (Coding{}).Decode(mat.NewDense(1, 1, []float64{3})); !slices.Equal(got, []int{1}) {
		t.Errorf("one column without labels: class %v, want 1", got)
	}
}
