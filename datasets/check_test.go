package datasets

import (
	"math"
	"strings"
	"testing"
)

// TestCheck checks that a data set whose lists do not belong to its points is an error that names the numbers, in every
// function that takes one.
func TestCheck(t *testing.T) {
	numbers, classes := SyntheticRegression(5, 2, 0.1, 1), SyntheticClasses(5, 2, 2, 0.1, 1)
	for want, change := range map[string]func(numbers, classes *Dataset) *Dataset{
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
		n, c := *numbers, *classes
		c.Class = append([]int(nil), c.Class...)
		d := change(&n, &c)
		coding := Coding{}
		if d != nil {
			coding.Mean = d.Mean
		}
		_, encoded := coding.Encode(d)
		_, applied := (*Scaling)(nil).Apply(d)
		_, appended := numbers.Append(d)
		for i, err := range []error{encoded, applied, appended} {
			if i > 0 && coding.Mean != nil { // only fits use Mean
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("function %d: %v, want %q", i, err, want)
			}
		}
	}
	for _, d := range []*Dataset{numbers, classes, numbers.Head(0), {X: numbers.X}, {X: numbers.X, Task: Classification}} {
		if err := d.Check(); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}
