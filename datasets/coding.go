package datasets

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Center returns d with Mean set to the mean of each target, weighted by Weights. A fit subtracts Mean from the
// targets, and its model adds it to the predictions, so that the ridge pulls f towards the mean and not towards 0. For
// classification d itself is returned.
func (d *Dataset) Center() *Dataset {
	if d.Target == nil {
		return d
	}
	out := *d
	out.Mean = nil
	for _, y := range d.TargetColumns() {
		mean := slices.Min(y)
		if mean < slices.Max(y) { // the mean of a constant target is exact, without rounding
			mean = stat.Mean(y, d.Weights)
		}
		out.Mean = append(out.Mean, mean)
	}
	return &out
}

// Coding converts answers into right-hand sides, and decision values back into answers.
//
// If Labels is nil the task is regression: the right-hand sides are the targets, one column each, minus Mean if that is
// not nil. Otherwise the coding is that of regularized least-squares classification (Rifkin, Yeo and Poggio,
// Regularized Least-Squares Classification, 2003). Two labels give one column, −1 for Labels[0] and +1 for Labels[1].
// More labels give one column for each label, +1 for the points that have it and −1 for the others.
type Coding struct {
	Labels []string
	Mean   []float64 // means of the columns; regression only
}

// Columns returns the number t of right-hand sides.
func (c Coding) Columns() int {
	if len(c.Labels) > 2 {
		return len(c.Labels)
	}
	return 1
}

// EncodeForFit returns Encode(d) for a fit. In addition to the errors of Encode, it returns an error if all points are
// of one class.
func (c Coding) EncodeForFit(d *Dataset) (*mat.Dense, error) {
	y, err := c.Encode(d)
	if err != nil || c.Labels == nil {
		return y, err
	}
	columnOf := d.ClassIn(c.Labels)
	if !slices.ContainsFunc(d.Class, func(k int) bool { return columnOf[k] != columnOf[d.Class[0]] }) {
		return nil, fmt.Errorf("%s: the rows are of one class only (%q); classification needs at least two", d.Name,
			d.Labels[d.Class[0]])
	}
	return y, nil
}

// Encode returns the right-hand sides Y, n×t. It returns an error if d has no answers, a label that is not in c.Labels,
// or a target that is not finite or whose square overflows.
func (c Coding) Encode(d *Dataset) (*mat.Dense, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	n := d.Len()
	if c.Labels == nil {
		if d.Target == nil {
			return nil, fmt.Errorf("%s: no numbers to fit", d.Name)
		}
		t := 1 + len(d.MoreTargets)
		if c.Mean != nil && (len(c.Mean) != t || !isFinite(floats.Sum(c.Mean))) {
			return nil, fmt.Errorf("%s: %d targets, and the means %v: want a finite one of each", d.Name, t, c.Mean)
		}
		y := mat.NewDense(n, t, nil)
		for j, target := range d.TargetColumns() {
			for i, v := range target {
				if !(math.Abs(v) <= maxTarget) {
					return nil,
						fmt.Errorf("%s: the target of row %d (counted from 0) is %g, which cannot be squared: "+
							"give it in another unit", d.Name, i, v)
				}
				if c.Mean != nil {
					v -= c.Mean[j]
				}
				y.Set(i, j, v)
			}
		}
		return y, nil
	}
	if d.Class == nil {
		return nil, fmt.Errorf("%s: no classes to fit", d.Name)
	}
	columnOf := d.ClassIn(c.Labels)
	y := mat.NewDense(n, c.Columns(), nil)
	for i, k := range d.Class {
		j := columnOf[k]
		if j < 0 {
			return nil, fmt.Errorf("%s: label %q of point %d is not among %q", d.Name, d.Labels[k], i, c.Labels)
		}
		row := y.RawRowView(i)
		if len(row) == 1 {
			row[0] = float64(2*j - 1)
			continue
		}
		for l := range row {
			row[l] = -1
		}
		row[j] = 1
	}
	return y, nil
}

// Decode returns the predicted class, an index into Labels, for each row of the decision values f, m×t.
func (c Coding) Decode(f *mat.Dense) []int {
	m, _ := f.Dims()
	classes := make([]int, m)
	for i := range classes {
		classes[i] = PredictedClass(f.RawRowView(i))
	}
	return classes
}

// PredictedClass returns the class that a row of decision values predicts: by the sign of a single value, otherwise the
// index of the largest value, the smallest such index in a tie.
func PredictedClass(f []float64) (best int) {
	if len(f) == 1 && f[0] > 0 {
		return 1
	}
	for j, v := range f {
		if v > f[best] {
			best = j
		}
	}
	return best
}

// Margin returns f_j − max_{k≠j} f_k, the lead of class j over all others. With two classes f has one value, the
// decision value of the second class, and the decision values of the classes are −f and f.
func Margin(f []float64, j int) float64 {
	if len(f) == 1 {
		return 2 * f[0] * float64(2*j-1)
	}
	rival := math.Inf(-1)
	for k, v := range f {
		if k != j {
			rival = max(rival, v)
		}
	}
	return f[j] - rival
}
