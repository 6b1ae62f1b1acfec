package datasets

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
)

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
