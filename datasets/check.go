package datasets

import (
	"cmp"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// missingValues says whether features may be NaN, which stands for a missing value.
type missingValues bool

const (
	forbidMissing missingValues = false
	allowMissing  missingValues = true
)

// check returns an error unless the data set is consistent. In addition to the conditions of Check, there must be as
// many weights and copied cells as points, a name and a scaling for each feature, and all numbers must be finite. With
// allowMissing, features may be NaN. Every reader of files calls check last.
func (d *Dataset) check(missing missingValues) error {
	n, dim := d.X.Dims()
	if n < 1 || dim < 0 {
		return fmt.Errorf("%d rows of %d features", n, dim)
	}
	if err := cmp.Or(d.Check(), d.checkAnswers(n), d.Scaling.Validate()); err != nil {
		return err
	}
	if d.Columns != nil && len(d.Columns) != dim {
		return fmt.Errorf("%d names of columns for %d features", len(d.Columns), dim)
	}
	for _, cells := range d.CopiedColumns {
		if len(cells) != 1+n {
			return fmt.Errorf("%d cells of a column for %d rows", len(cells)-1, n)
		}
	}
	if d.Scaling != nil && d.Scaling.Dim() != dim {
		return fmt.Errorf("a scaling of %d features for %d", d.Scaling.Dim(), dim)
	}
	if _, isBytes := d.X.(*points.Bytes); isBytes { // bytes are always finite
		return nil
	}
	isAllowed := func(v float64) bool { return missing == allowMissing && math.IsNaN(v) }
	if i, j, v, exists := points.FindNonFinite(d.X, isAllowed); exists {
		return fmt.Errorf("row %d (counted from 0), %s: %g is not finite", i, d.featureName(j), v)
	}
	return nil
}

// checkAnswers is the part of check for the answers and weights of n points.
func (d *Dataset) checkAnswers(n int) error {
	hasBoth := d.Class != nil && d.Target != nil
	taskDiffers := d.HasAnswers() && (d.Class != nil) != (d.Task == Classification)
	targetsDiffer := len(d.MoreTargets) > 0 && (d.Target == nil || len(d.TargetNames) != 1+len(d.MoreTargets))
	if hasBoth || taskDiffers || targetsDiffer {
		return fmt.Errorf("the answers do not fit the task %v or the %d names of targets", d.Task, len(d.TargetNames))
	}
	for k, values := range append([][]float64{d.Weights, d.bestErrors}, d.TargetColumns()...) {
		if values != nil && len(values) != n {
			return fmt.Errorf("%d answers or weights for %d rows", len(values), n)
		}
		for i, v := range values {
			isValid := math.Abs(v) <= maxTarget
			if k == 0 { // weights
				isValid = v > 0 && isFinite(v)
			}
			if !isValid {
				quantity := map[int]string{0: "weight", 1: "error of the best predictor"}[k]
				return fmt.Errorf("row %d (counted from 0): the %s is %g", i, cmp.Or(quantity, "answer"), v)
			}
		}
	}
	return nil
}
