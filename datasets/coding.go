package datasets

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Coding turns answers into right-hand sides and decision values into answers. Nil Labels
// are those of regression: the answers themselves in one column. Otherwise it is that of
// regularised least squares classification (RLSC; Rifkin, Yeo and Poggio 2003): with two
// labels one column, −1 for Labels[0] and +1 for Labels[1]; with more one column for each
// label, +1 for the points that have it and −1 for the others.
type Coding struct{ Labels []string }

// Columns returns the number t of right-hand sides.
func (c Coding) Columns() int {
	if len(c.Labels) > 2 {
		return len(c.Labels)
	}
	return 1
}

// Encode returns Y, n×t. It returns an error if d has no answers, a label that is not
// among c's, points of one class only, or a target that is not finite or whose square overflows.
func (c Coding) Encode(d *Dataset) (*mat.Dense, error) {
	n := d.Len()
	if c.Labels == nil {
		if d.Target == nil {
			return nil, fmt.Errorf("%s: no numbers to fit", d.Name)
		}
		for i, v := range d.Target {
			if !(math.Abs(v) <= maxTarget) {
				return nil, fmt.Errorf("%s: the target of row %d (counted from 0) is %g, which cannot be squared: give it in another unit", d.Name, i, v)
			}
		}
		return mat.NewDense(n, 1, slices.Clone(d.Target)), nil
	}
	if d.Class == nil {
		return nil, fmt.Errorf("%s: no classes to fit", d.Name)
	}
	column := make([]int, len(d.Labels)) // of each of d's labels
	for i, l := range d.Labels {
		column[i] = slices.Index(c.Labels, l)
	}
	y := mat.NewDense(n, c.Columns(), nil)
	seen := make([]bool, len(c.Labels))
	for i, k := range d.Class {
		j := column[k]
		if j < 0 {
			return nil, fmt.Errorf("%s: label %q of point %d is not among %q", d.Name, d.Labels[k], i, c.Labels)
		}
		seen[j] = true
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
	if n := len(slices.DeleteFunc(seen, func(s bool) bool { return !s })); n < 2 {
		return nil, fmt.Errorf("%s: the rows are of one class only (%q); classification wants at least two", d.Name, d.Labels[d.Class[0]])
	}
	return y, nil
}

// Decode returns the index into Labels for each row of F, m×t: the sign of the one column,
// or the largest of several, the first of equals.
func (c Coding) Decode(f *mat.Dense) []int {
	m, t := f.Dims()
	class := make([]int, m)
	for i := range class {
		row := f.RawRowView(i)
		if t == 1 {
			if row[0] > 0 {
				class[i] = 1
			}
			continue
		}
		for j, v := range row {
			if v > row[class[i]] {
				class[i] = j
			}
		}
	}
	return class
}
