package datasets

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// Holdout splits the points by HoldoutRows into training points and held-out points, on which the fit is evaluated.
//
// The training points have only the labels that occur among them. If all points of a class are held out, the fit does
// not know the class, and its points are scored as points of an unknown class.
func (d *Dataset) Holdout(share float64, seed uint64) (train, test *Dataset, err error) {
	d = d.WithGroups(nil)
	trainRows, testRows, err := d.HoldoutRows(share, seed)
	if err != nil {
		return nil, nil, err
	}
	return d.Subset(trainRows).WithoutUnusedLabels(), d.Subset(testRows), nil
}

// HoldoutRows draws round(share·n) rows, at least one, to hold out, by a generator with the given seed. It returns the
// training rows and the held-out rows, both in increasing order. The rows are drawn uniformly, without regard to
// classes. All rows of a group (Grouping) are on the same side, which may increase the number of held-out rows. It
// returns an error unless 0 < share < 1 and both parts have rows.
func (d *Dataset) HoldoutRows(share float64, seed uint64) (trainRows, testRows []int, err error) {
	n := d.Len()
	if !(share > 0 && share < 1) {
		return nil, nil, fmt.Errorf("a holdout of %g of the rows: want a number between 0 and 1, such as 0.2", share)
	}
	groupOf := d.Grouping(nil).FirstRow
	groupSize, isHeldOut := groupSizes(groupOf), make([]bool, n) // of each group, at its first row
	remaining := max(1, int(math.Round(share*float64(n))))       // rows still to be held out
	order := shuffledGroups(groupOf, rng.New(seed).Sub("holdout", 0))
	for _, first := range order {
		if remaining > 0 {
			isHeldOut[first], remaining = true, remaining-groupSize[first]
		}
	}
	for i, first := range groupOf {
		if isHeldOut[first] {
			testRows = append(testRows, i)
		} else {
			trainRows = append(trainRows, i)
		}
	}
	if len(trainRows) == 0 {
		return nil, nil,
			fmt.Errorf("a holdout of %g of %d rows in %d groups leaves no row to train on: give more rows, or a test "+
				"file", share, n, len(order))
	}
	return trainRows, testRows, nil
}

// Folds divides the rows into k folds of nearly equal numbers of groups (Grouping), drawn by a generator with the given
// seed. The rows of a group are in one fold. The folds are stratified: each has nearly the same number of groups whose
// first row is of a class. The rows of a fold are in increasing order. It returns an error unless 2 ≤ k ≤ the number of
// groups.
func (d *Dataset) Folds(k int, seed uint64) ([][]int, error) {
	groupOf := d.Grouping(nil).FirstRow
	order := shuffledGroups(groupOf, rng.New(seed).Sub("folds", 0))
	if k < 2 || k > len(order) {
		return nil, fmt.Errorf("%d folds of %d rows in %d groups: want at least 2, and no more than there are groups",
			k, len(groupOf), len(order))
	}
	if d.Class != nil {
		slices.SortStableFunc(order, func(a, b int) int { return d.Class[a] - d.Class[b] })
	}
	foldOf := make([]int, len(groupOf)) // at the first row of each group, its fold
	for position, first := range order {
		foldOf[first] = position % k
	}
	folds := make([][]int, k)
	for i, first := range groupOf {
		folds[foldOf[first]] = append(folds[foldOf[first]], i)
	}
	return folds, nil
}

// shuffledGroups returns the first row of each group, in random order. groupOf has the first row of each row's group.
func shuffledGroups(groupOf []int, random rng.Stream) []int {
	var groups []int
	for i, first := range groupOf {
		if first == i {
			groups = append(groups, i)
		}
	}
	return gather(groups, random.Perm(len(groups)))
}
