package datasets

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// imputations are the words that Impute takes.
var imputations = []string{"none", "median", "mean"}

// Impute returns d with the missing values of each feature (NaN, as ReadOptions.KeepMissing leaves them) replaced by
// the median or the mean of its others, and says how many there were of which. What Scale fits to d, or to a part of
// it, keeps these numbers as Scaling.Fill and fills other data by them. It is an error if a feature has no value at
// all.
func (d *Dataset) Impute(how string) (filled *Dataset, count []int, err error) {
	_, table := d.X.(*points.Dense)
	// elsewhere none is missing
	if err := known("imputation", how, imputations); err != nil || how == "none" || !table {
		return d, nil, err
	}
	n, dim := d.X.Dims()
	column, count := make([]float64, 0, n), make([]int, dim)
	x, fill := points.NewDense(n, dim, nil), make([]float64, dim)
	points.Panel64To(d.X, x.Data, dim)
	for j := range fill {
		column = column[:0]
		for i := range n {
			if v := x.Row(i)[j]; !math.IsNaN(v) {
				column = append(column, v)
			}
		}
		if count[j] = n - len(column); len(column) == 0 {
			return nil, nil, fmt.Errorf("%s: %s has no value at all: leave it out by --drop", d.Source, d.feature(j))
		}
		if fill[j] = stat.Mean(column, nil); how == "median" {
			slices.Sort(column)
			m := len(column)
			fill[j] = column[(m-1)/2]/2 + column[m/2]/2
		}
		for i := range n {
			if v := &x.Row(i)[j]; math.IsNaN(*v) {
				*v = fill[j]
			}
		}
	}
	out := *d
	out.X, out.fill = x, fill
	return &out, count, nil
}

// Stretch divides feature j of the points by length[j], on top of how they are scaled, in both data sets; test may be
// nil. A kernel of ‖x−z‖ with σ = 1 then has the length scale length[j] for each feature (automatic relevance
// determination, ARD). Both Scaling fields say so. Without lengths, nil, nothing is divided. It is an error if the
// lengths are not positive, one for each feature.
func Stretch(length []float64, train, test *Dataset) (strain, stest *Dataset, err error) {
	if length == nil {
		return train, test, nil
	}
	if len(length) != train.Dim() {
		return nil, nil, fmt.Errorf("%d length scales for %d feature%s: want one for each", len(length), train.Dim(),
			map[bool]string{false: "s"}[train.Dim() == 1])
	}
	by := &Scaling{Kind: "lengths", Scale: make([]float64, len(length))}
	for j, v := range length {
		if by.Scale[j] = 1 / v; !(v > 0 && by.Scale[j] > 0) || !isFinite(by.Scale[j]) {
			return nil, nil, fmt.Errorf("the length scale of %s is %g: want a positive number", train.feature(j), v)
		}
	}
	all := *by
	if was := train.Scaling; was != nil {
		all = *was
		all.Scale = floats.MulTo(make([]float64, len(length)), was.Scale, by.Scale)
	}
	all.Lengths = slices.Clone(length)
	stretched := func(d *Dataset) *Dataset {
		if d == nil {
			return nil
		}
		out := *d
		out.X, out.Scaling = by.points(d.X), &all
		return &out
	}
	return stretched(train), stretched(test), nil
}
