package datasets

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// imputations are the methods of Impute.
var imputations = []string{"none", "median", "mean"}

// Impute returns d with the missing values of each feature (NaN, see ReadOptions.KeepMissing) replaced by the median or
// the mean of its other values, and the number of missing values of each feature. With the method "none", and for
// points other than dense float64, which have no missing values, it returns d itself. It returns an error if a feature
// has no value at all.
//
// A scaling that Scale fits to the result, or to a part of it, stores the replacements as Scaling.Fill and fills other
// data with them.
func (d *Dataset) Impute(method string) (filled *Dataset, count []int, err error) {
	_, table := d.X.(*points.Dense)
	// only dense points can have missing values
	if err := requireOneOf("imputation", method, imputations); err != nil || method == "none" || !table {
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
			return nil, nil, fmt.Errorf("%s: %s has no value at all: leave it out by --drop", d.Source,
				d.featureName(j))
		}
		if fill[j] = stat.Mean(column, nil); method == "median" {
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
	out.X, out.imputed = x, fill
	return &out, count, nil
}

// Stretch divides feature j of the points, after their scaling, by length[j] in both data sets; test may be nil. A
// kernel of ‖x−z‖ with σ = 1 then has the length scale length[j] for feature j (automatic relevance determination,
// ARD). The Scaling of both results includes the division. If length is nil, the data sets are returned unchanged. It
// is an error if there is not one positive length for each feature.
func Stretch(length []float64, train, test *Dataset) (strain, stest *Dataset, err error) {
	if length == nil {
		return train, test, nil
	}
	if len(length) != train.Dim() {
		return nil, nil, fmt.Errorf("%d length scales for %d feature%s: want one for each", len(length), train.Dim(),
			map[bool]string{false: "s"}[train.Dim() == 1])
	}
	stretch := &Scaling{Kind: "lengths", Scale: make([]float64, len(length))}
	for j, v := range length {
		if stretch.Scale[j] = 1 / v; !(v > 0 && stretch.Scale[j] > 0) || !isFinite(stretch.Scale[j]) {
			return nil, nil, fmt.Errorf("the length scale of %s is %g: want a positive number", train.featureName(j), v)
		}
	}
	combined := *stretch
	if previous := train.Scaling; previous != nil {
		combined = *previous
		combined.Scale = floats.MulTo(make([]float64, len(length)), previous.Scale, stretch.Scale)
	}
	combined.Lengths = slices.Clone(length)
	stretched := func(d *Dataset) *Dataset {
		if d == nil {
			return nil
		}
		out := *d
		out.X, out.Scaling = stretch.scalePoints(d.X), &combined
		return &out
	}
	return stretched(train), stretched(test), nil
}
