package datasets

import (
	"math"
	"strings"
	"testing"
)

// TestCheck checks that Encode, Apply and Append reject an inconsistent data set (nil, lists of a wrong length, an
// invalid class or task, a mean that is not finite) with an error that says what is wrong, and that Check accepts
// consistent ones.
func TestCheck(t *testing.T) {
	regression, classification := SyntheticRegression(5, 2, 0.1, 1), SyntheticClasses(5, 2, 2, 0.1, 1)
	for wantErr, change := range map[string]func(regression, classification *Dataset) *Dataset{
		"the data set is nil":                   func(_, _ *Dataset) *Dataset { return nil },
		"no points: the data set is nil":        func(_, _ *Dataset) *Dataset { return &Dataset{Target: []float64{1}} },
		"4 numbers of target 0 for 5 points":    func(d, _ *Dataset) *Dataset { d.Target = d.Target[:4]; return d },
		"0 numbers of target 0 for 5 points":    func(d, _ *Dataset) *Dataset { d.Target = []float64{}; return d },
		"6 numbers of target 2 for 5 points":    func(d, _ *Dataset) *Dataset { d.MoreTargets = [][]float64{d.Target, make([]float64, 6)}; return d },
		"class of row 3 (counted from 0) is 2":  func(_, d *Dataset) *Dataset { d.Class[3] = 2; return d },
		"class of row 0 (counted from 0) is -1": func(_, d *Dataset) *Dataset { d.Class[0] = -1; return d },
		"and there are 0 labels":                func(_, d *Dataset) *Dataset { d.Labels = nil; return d },
		"4 classes and 0 groups for 5 points":   func(_, d *Dataset) *Dataset { d.Class = d.Class[:4]; return d },
		"0 classes and 3 groups for 5 points":   func(d, _ *Dataset) *Dataset { d.Groups = make([]int, 3); return d },
		"task 7":                                func(d, _ *Dataset) *Dataset { d.Task = 7; return d },
		"task 1: want Regression, with answers": func(d, _ *Dataset) *Dataset { d.Task = Classification; return d },
		"want a finite one of each":             func(d, _ *Dataset) *Dataset { d.Mean = []float64{math.NaN()}; return d },
		"the means [1 2]: want a finite one":    func(d, _ *Dataset) *Dataset { d.Mean = []float64{1, 2}; return d },
	} {
		r, c := *regression, *classification
		c.Class = append([]int(nil), c.Class...)
		d := change(&r, &c)
		coding := Coding{}
		if d != nil {
			coding.Mean = d.Mean
		}
		_, encodeErr := coding.Encode(d)
		_, applyErr := (*Scaling)(nil).Apply(d)
		_, appendErr := regression.Append(d)
		for name, err := range map[string]error{"Encode": encodeErr, "Apply": applyErr, "Append": appendErr} {
			if name != "Encode" && coding.Mean != nil { // only Encode uses Mean
				continue
			}
			if err == nil || !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%s: %v, want %q", name, err, wantErr)
			}
		}
	}
	for _, d := range []*Dataset{regression, classification, regression.Head(0), {X: regression.X},
		{X: regression.X, Task: Classification}} {
		if err := d.Check(); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}
