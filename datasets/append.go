package datasets

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Append returns the rows of d followed by the rows of tail, which may be unscaled or have the scaling of d. The
// scaling, the coding of words, the columns and the labels are those of d. The box of coordinates (Space) is enlarged
// to contain the rows of tail. The mean of a centered data set, the class weights of a balanced one, and groups that a
// rule formed are computed again for all rows. Rows without weights have the weight 1.
//
// Append returns an error if tail has another task, dimension, scaling or number of targets, other names of targets or
// columns, no answers or a label that d does not have. It also returns an error if words or dates are coded differently
// or coordinates are projected differently, and if groups were given (GroupBy), because the numbers of given groups
// have different meanings in different files.
func (d *Dataset) Append(tail *Dataset) (*Dataset, error) {
	if err := tail.Check(); err != nil {
		return nil, err
	}
	switch {
	case tail.Task != d.Task || len(tail.MoreTargets) != len(d.MoreTargets) || !tail.HasAnswers():
		return nil, fmt.Errorf("%s: the rows to append need answers for the same %v of %d targets", tail.Name, d.Task,
			1+len(d.MoreTargets))
	case tail.Dim() != d.Dim():
		return nil, fmt.Errorf("%s: the rows to append have %d features, the others %d", tail.Name, tail.Dim(), d.Dim())
	case d.hasGivenGroups() || tail.hasGivenGroups():
		return nil, fmt.Errorf("%s: the numbers of given groups do not tell which rows of two data sets belong "+
			"together: fit all rows anew", tail.Name)
	}
	if err := tail.CheckColumns(d.Columns, "the data to append to"); err != nil {
		return nil, err
	}
	if err := d.checkCoding(tail); err != nil {
		return nil, err
	}
	tail, err := d.Scaling.Apply(tail)
	if err != nil {
		return nil, err
	}

	out := *d
	out.X = points.Concat(d.X, tail.X)
	if d.Space != nil && tail.Space != nil {
		out.Space = d.Space.enlarged(tail.Space)
	}
	out.CopiedColumns, out.UnknownWords, out.bestErrors, out.unusedHashes = nil, nil, nil, nil
	out.Target, out.MoreTargets = slices.Concat(d.Target, tail.Target), nil
	for j, y := range d.MoreTargets {
		out.MoreTargets = append(out.MoreTargets, slices.Concat(y, tail.MoreTargets[j]))
	}
	if d.Weights != nil || tail.Weights != nil {
		out.Weights = slices.Concat(d.allWeights(), tail.allWeights())
	}
	classIn := tail.ClassIn(d.Labels)
	out.Class = slices.Clone(d.Class)
	for _, class := range tail.Class {
		if classIn[class] < 0 {
			return nil, fmt.Errorf("%s: the label %s is not among those of the fit, %s: fit all rows anew", tail.Name,
				quote(tail.Labels[class]), nameList(d.Labels))
		}
		out.Class = append(out.Class, classIn[class])
	}
	return out.recompute()
}

// recompute returns d with the quantities that depend on all rows computed again, after rows were appended: the class
// weights of a balanced data set, the mean of a centered one, and groups that a rule formed.
func (d *Dataset) recompute() (*Dataset, error) {
	if d.hasBalancedWeights {
		var err error
		if d, err = d.BalanceClasses(); err != nil {
			return nil, err
		}
	}
	if d.Mean != nil {
		d = d.Center()
	}
	if d.Repeats != nil {
		return d.GroupByRule(d.Repeats.Rule, nil)
	}
	return d, nil
}

// checkCoding returns an error if the features of tail are computed from the columns of a file in another way than
// those of d, or if the targets have other names or another order.
func (d *Dataset) checkCoding(tail *Dataset) error {
	if d.TargetNames != nil && tail.TargetNames != nil && !slices.Equal(d.TargetNames, tail.TargetNames) {
		return fmt.Errorf("%s: the rows to append have the targets %s, the others %s: give both in the same order",
			tail.Name, nameList(tail.TargetNames), nameList(d.TargetNames))
	}
	if !d.Space.sameFeatures(tail.Space) {
		return fmt.Errorf("%s: the coordinates of the rows to append are projected differently: read them with the "+
			"Space of the others", tail.Name)
	}
	codings, tailCodings := d.ColumnCodings, tail.ColumnCodings
	for _, lists := range [][2][]ColumnCoding{{codings, tailCodings}, {tailCodings, codings}} {
		for _, coding := range lists[0] {
			if !slices.ContainsFunc(lists[1], func(other ColumnCoding) bool { return coding.equal(&other) }) {
				return fmt.Errorf("%s: the column %s of the rows to append is coded differently: read them with the "+
					"Categories of the others", tail.Name, quote(coding.Column))
			}
		}
	}
	return nil
}

// hasGivenGroups reports whether the groups of the rows were given, so that no rule forms them.
func (d *Dataset) hasGivenGroups() bool {
	return d.Repeats == nil && d.Groups != nil || d.Repeats != nil && d.Repeats.Rule == "groups"
}
