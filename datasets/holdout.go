package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/rng"
)

// Holdout splits the points into those to train on and those held out to judge the fit:
// round(share·n) of them, at least one, drawn by the seed and both in the order of d. Of each
// class its share is held out, to within one point, and one point at least stays to train on.
// It returns an error unless 0 < share < 1 and both parts have points.
func (d *Dataset) Holdout(share float64, seed uint64) (train, held *Dataset, err error) {
	n := d.Len()
	if !(share > 0 && share < 1) {
		return nil, nil, fmt.Errorf("a holdout of %g of the rows: want a number between 0 and 1, such as 0.2", share)
	}
	strata := [][]int{make([]int, n)}
	for i := range n {
		strata[0][i] = i
	}
	if d.Class != nil {
		strata = make([][]int, len(d.Labels))
		for i, c := range d.Class {
			strata[c] = append(strata[c], i)
		}
	}
	out := make([]bool, n)
	count := 0
	for c, k := range quotas(strata, share) {
		for _, p := range rng.New(seed).Sub("holdout", uint64(c)).Perm(len(strata[c]))[:k] {
			out[strata[c][p]] = true
		}
		count += k
	}
	if count == 0 || count == n {
		return nil, nil, fmt.Errorf("a holdout of %g of %d rows leaves no row to train on or none to judge by: give more rows, or a test file", share, n)
	}
	var in, rest []int
	for i, o := range out {
		if o {
			rest = append(rest, i)
		} else {
			in = append(in, i)
		}
	}
	return d.Subset(in), d.Subset(rest), nil
}

// quotas returns how many of each stratum are held out: the share rounded down, and one more
// where the fraction lost is largest, until the total is the share of all, rounded. One of
// each stratum stays.
func quotas(strata [][]int, share float64) []int {
	k, order := make([]int, len(strata)), make([]int, len(strata))
	n, sum := 0, 0
	lost := func(c int) float64 { return share*float64(len(strata[c])) - float64(k[c]) }
	for c, s := range strata {
		order[c] = c
		k[c] = min(int(share*float64(len(s))), max(len(s)-1, 0))
		n, sum = n+len(s), sum+k[c]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lost(b), lost(a)) })
	want := max(1, int(math.Round(share*float64(n))))
	for _, c := range order {
		if sum < want && k[c] < len(strata[c])-1 {
			k[c]++
			sum++
		}
	}
	return k
}
