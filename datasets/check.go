package datasets

import (
	"cmp"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// check returns an error unless the data set is one that a fit may rely on: as many answers, weights and cells as
// points; classes that have a label; names, targets and a scaling for each feature; and numbers that are finite, of
// which features may be NaN if canMiss is set. Every reader of files ends with it.
func (d *Dataset) check(canMiss bool) error {
	n, dim := d.X.Dims()
	if n < 1 || dim < 0 {
		return fmt.Errorf("%d rows of %d features", n, dim)
	}
	if err := d.checkAnswers(n); err != nil {
		return err
	}
	if d.Columns != nil && len(d.Columns) != dim {
		return fmt.Errorf("%d names of columns for %d features", len(d.Columns), dim)
	}
	if d.Groups != nil && len(d.Groups) != n {
		return fmt.Errorf("%d groups for %d rows", len(d.Groups), n)
	}
	for _, cells := range d.Kept {
		if len(cells) != 1+n {
			return fmt.Errorf("%d cells of a column for %d rows", len(cells)-1, n)
		}
	}
	if d.Scaling != nil && d.Scaling.Dim() != dim {
		return fmt.Errorf("a scaling of %d features for %d", d.Scaling.Dim(), dim)
	}
	if err := d.Scaling.Validate(); err != nil {
		return err
	}
	if _, bytes := d.X.(*points.Bytes); bytes { // of a file: always finite
		return nil
	}
	isMissing := func(v float64) bool { return canMiss && math.IsNaN(v) }
	if i, j, v, found := points.NotFinite(d.X, isMissing); found {
		return fmt.Errorf("row %d (counted from 0), %s: %g is not finite", i, d.feature(j), v)
	}
	return nil
}

// checkAnswers is check for the answers and weights of n points.
func (d *Dataset) checkAnswers(n int) error {
	if d.Class != nil && d.Target != nil || d.HasAnswers() && (d.Class != nil) != (d.Task == Classification) ||
		len(d.More) > 0 && (d.Target == nil || len(d.Targets) != 1+len(d.More)) {
		return fmt.Errorf("answers of another task than %v, or of %d targets", d.Task, len(d.Targets))
	}
	columns := append([][]float64{d.Weights, d.oracle, d.Target}, d.More...)
	for k, v := range columns {
		if v != nil && len(v) != n {
			return fmt.Errorf("%d answers or weights for %d rows", len(v), n)
		}
		for i, y := range v {
			valid := math.Abs(y) <= maxTarget
			if k == 0 { // weights
				valid = y > 0 && isFinite(y)
			}
			if !valid {
				what := map[int]string{0: "weight", 1: "error of the best predictor"}[k]
				return fmt.Errorf("row %d (counted from 0): the %s is %g", i, cmp.Or(what, "answer"), y)
			}
		}
	}
	if d.Class != nil && len(d.Class) != n {
		return fmt.Errorf("%d classes for %d rows", len(d.Class), n)
	}
	for i, c := range d.Class {
		if c < 0 || c >= len(d.Labels) {
			return fmt.Errorf("row %d (counted from 0): class %d of %d labels", i, c, len(d.Labels))
		}
	}
	return nil
}
