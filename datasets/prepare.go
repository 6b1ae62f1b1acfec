package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/accel"
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
func (d *Dataset) Impute(method string) (filled *Dataset, missingCount []int, err error) {
	x, isDense := d.X.(*points.Dense) // only dense points can have missing values
	if err := requireOneOf("imputation", method, imputations); err != nil || method == "none" || !isDense {
		return d, nil, err
	}
	values, missingCount, fill := make([]float64, 0, x.N), make([]int, x.D), make([]float64, x.D)
	for j := range fill {
		values = values[:0]
		for i := range x.N {
			if v := x.Row(i)[j]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if missingCount[j] = x.N - len(values); len(values) == 0 {
			return nil, nil, fmt.Errorf("%s: %s has no value at all: leave it out by --drop", d.Source,
				d.featureName(j))
		}
		if fill[j] = stat.Mean(values, nil); method == "median" {
			slices.Sort(values)
			n := len(values)
			fill[j] = values[(n-1)/2]/2 + values[n/2]/2 // halved before the sum, which could overflow
		}
	}
	filling := &Scaling{Scale: slices.Repeat([]float64{1}, x.D), Fill: fill}
	out := *d
	out.X, out.imputed = filling.scalePoints(x), fill
	return &out, missingCount, nil
}

// ChangeDistance changes the distance between points: it returns both data sets with their features, which may be
// scaled, transformed once more; test may be nil. distance has one of two forms, for d features:
//
//   - d numbers are length scales. Feature j is divided by distance[j], so that a kernel of ‖x−z‖ with σ = 1 has the
//     length scale distance[j] for feature j (automatic relevance determination, ARD).
//   - d² numbers are a matrix L by rows. Each point x is replaced by Lx, dense, so that a kernel of ‖x−z‖ becomes one
//     of ‖L(x−z)‖.
//
// The Scaling of both results includes the change. If distance is nil, the data sets are returned unchanged. It is an
// error if there are other than d or d² numbers, a length scale that is not positive, a number that is not finite, or
// too little memory for dense points. For d = 1, a number is a length scale.
func ChangeDistance(distance []float64, train, test *Dataset) (scaledTrain, scaledTest *Dataset, err error) {
	return ChangeDistanceWithin(accel.AvailableMemory(0, 1), distance, train, test)
}

// ChangeDistanceWithin is ChangeDistance for sparse points that have to fit a memory budget when a matrix makes them
// dense.
func ChangeDistanceWithin(memory accel.Budget, distance []float64, train, test *Dataset) (scaledTrain,
	scaledTest *Dataset, err error) {
	if distance == nil {
		return train, test, nil
	}
	dim := train.Dim()
	change := &Scaling{Kind: "lengths", Scale: slices.Repeat([]float64{1}, dim)}
	switch len(distance) {
	case dim:
		for j, v := range distance {
			if change.Scale[j] = 1 / v; !(v > 0 && change.Scale[j] > 0) || !isFinite(change.Scale[j]) {
				return nil, nil, fmt.Errorf("the length scale of %s is %g: want a positive number",
					train.featureName(j), v)
			}
		}
		change.Lengths = slices.Clone(distance)
	case dim * dim:
		change.Kind, change.Matrix = "matrix", slices.Clone(distance)
		const name, advice = "the matrix of the distance", "give length scales, which keep zeros"
		err := cmp.Or(change.Validate(), checkScaledMemory(memory, name, advice, train.X))
		if test != nil && err == nil {
			memory = memory.Reserve(8 * int64(train.Len()) * int64(dim)) // of the dense training points
			err = checkScaledMemory(memory, name, advice, test.X)
		}
		if err != nil {
			return nil, nil, err
		}
	default:
		names := ""
		if train.Space != nil && train.Columns != nil { // the features are not the columns of the table
			names = " (" + nameList(train.Columns) + ")"
		}
		return nil, nil, fmt.Errorf("%d length scales for %s%s: want one for each, or the %d numbers of a matrix",
			len(distance), plural(dim, "feature"), names, dim*dim)
	}
	combined := change.composeWith(train.Scaling)
	withChange := func(d *Dataset) *Dataset {
		if d == nil {
			return nil
		}
		out := *d
		out.X, out.Scaling = change.scalePoints(d.X), combined
		return &out
	}
	return withChange(train), withChange(test), nil
}

// composeWith returns the scaling that applies previous and then s, which is of the kind lengths or matrix.
func (s *Scaling) composeWith(previous *Scaling) *Scaling {
	if previous == nil {
		return s
	}
	out, dim := *previous, len(s.Scale)
	if previous.Matrix == nil {
		if s.Lengths != nil {
			out.Lengths = s.Lengths
		}
		out.Scale = floats.MulTo(make([]float64, dim), previous.Scale, s.Scale)
		out.Matrix = s.Matrix
		return &out
	}
	// The new matrix is the product of s and the previous matrix, whose columns s transforms as if they were points.
	columns := points.NewDense(dim, dim, nil) // row k has column k of the previous matrix
	for k := range previous.Matrix {
		columns.Data[k%dim*dim+k/dim] = previous.Matrix[k]
	}
	product := s.scalePoints(columns)
	row := make([]float64, dim)
	out.Matrix = make([]float64, dim*dim)
	for k := range dim {
		product.RowTo(row, k)
		for j, v := range row {
			out.Matrix[j*dim+k] = v
		}
	}
	return &out
}
