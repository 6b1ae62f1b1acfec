package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Scaling maps feature j of every point to (x_j − Shift_j)·Scale_j, and then the point x, as a column, to Matrix·x. It
// is fitted on the training points and applied to all points. Dataset.Scaling records the scaling that was applied. A
// missing value (NaN) of feature j is first replaced by Fill_j.
type Scaling struct {
	// Kind is unit, standard or pixel; or fill, lengths or matrix if only Impute or ChangeDistance was applied.
	Kind  string    `json:"kind"`
	Shift []float64 `json:"shift,omitempty"` // nil means zeros
	Scale []float64 `json:"scale"`           // for unit and standard, 0 for a feature that becomes 0
	Fill  []float64 `json:"fill,omitempty"`  // nil: no value may be missing
	// Lengths are the length scales of ChangeDistance; Scale includes the division by them already. nil: none.
	Lengths []float64 `json:"lengths,omitempty"`
	// Matrix is the d×d matrix of ChangeDistance, by rows. nil: none.
	Matrix []float64 `json:"matrix,omitempty"`
}

// roundingTolerance is the largest standard deviation of a feature, relative to its mean, that is taken for rounding
// error of a constant feature.
const roundingTolerance = 1e-12

// Scale fits a scaling to the training points and returns both data sets with the scaling applied; their Scaling fields
// record it. test may be nil. The arguments are not changed. The kinds are
//
//	none      points are unchanged
//	auto      none or standard; AutoScaling chooses by the training points
//	unit      (x_j − min_j)/(max_j − min_j), in [0, 1]; for sparse points, to preserve zeros,
//	          x_j/max|x_j|, in [−1, 1]
//	standard  (x_j − mean_j)/sd_j, where sd_j² is the mean squared deviation; sparse points become dense
//	pixel     x_j/255
//
// A constant feature becomes 0 with unit and standard, except that with unit and sparse points a constant other than 0
// becomes ±1. Points that are then whole numbers from 0 to 255 times a common scale become points.Bytes,
// by the rules of points.AsBytes.
//
// It is an error if the kind is unknown, if scaled sparse points would take more than the available memory, or if the
// points were scaled before. For unit and standard, it is also an error if a feature has an absolute value above 1e100,
// or if it varies and all its absolute values are below 1e-100.
func Scale(kind string, train, test *Dataset) (scaledTrain, scaledTest *Dataset, err error) {
	return ScaleWithin(accel.AvailableMemory(0, 1), kind, train, test)
}

// ScaleWithin is Scale for scaled sparse points that have to fit a memory budget.
func ScaleWithin(memory accel.Budget, kind string, train, test *Dataset) (scaledTrain, scaledTest *Dataset, err error) {
	if kind == "auto" {
		kind, _ = train.AutoScaling()
	}
	s, err := fitScaling(memory, kind, train.X)
	if train.imputed != nil && err == nil {
		if s == nil {
			s = &Scaling{Kind: "fill", Scale: slices.Repeat([]float64{1}, train.Dim())}
		}
		s.Fill = train.imputed
	}
	if err == nil {
		scaledTrain, err = s.Apply(train)
	}
	if err == nil && test != nil {
		scaledTest, err = s.Apply(test)
	}
	if err != nil {
		return nil, nil, err
	}
	if x, ok := points.AsBytes(scaledTrain.X, 0); ok {
		scaledTrain = scaledTrain.withPoints(x)
		if scaledTest != nil {
			if x, ok := points.AsBytes(scaledTest.X, x.Scale); ok {
				scaledTest = scaledTest.withPoints(x)
			}
		}
	}
	return scaledTrain, scaledTest, nil
}

// withPoints returns d with its points in a different representation, x.
func (d *Dataset) withPoints(x points.Points) *Dataset {
	if d.X == x {
		return d
	}
	out := *d
	out.X = x
	return &out
}

// fitScaling fits a scaling of the given kind to x, within a memory budget. It returns nil for the kind none.
func fitScaling(memory accel.Budget, kind string, x points.Points) (*Scaling, error) {
	if err := requireOneOf("scaling", kind, Scalings); err != nil || kind == "none" {
		return nil, err
	}
	advice := "" // the result is sparse
	if kind == "standard" {
		advice = "scale by unit, which keeps zeros, or not at all"
	}
	if err := checkScaledMemory(memory, "--scale "+kind, advice, x); err != nil {
		return nil, err
	}
	_, d := x.Dims()
	s := &Scaling{Kind: kind, Scale: make([]float64, d)}
	if kind == "pixel" {
		for j := range s.Scale {
			s.Scale[j] = 1.0 / 255
		}
		return s, nil
	}
	lo, hi := FeatureRanges(x)
	_, isSparse := x.(*points.CSR)
	var sd []float64
	if kind == "standard" {
		s.Shift, sd = featureMoments(x)
	} else if !isSparse {
		s.Shift = lo
	}
	for j := range lo {
		largest, width := max(math.Abs(lo[j]), math.Abs(hi[j])), hi[j]-lo[j]
		// The squares of accepted values neither overflow nor underflow.
		if width > 0 && largest < 1e-100 || !(largest <= 1e100) {
			return nil,
				fmt.Errorf("feature %d goes from %g to %g: want sizes from 1e-100 to 1e100, give it in another unit",
					j, lo[j], hi[j])
		}
		switch {
		case sd != nil && (width == 0 || sd[j] <= roundingTolerance*math.Abs(s.Shift[j])): // constant
			continue
		case sd != nil:
			width = sd[j]
		case isSparse:
			width = largest
		}
		if width > 0 {
			s.Scale[j] = 1 / width
		}
	}
	return s, nil
}

// checkScaledMemory returns an error if scaling sparse points x needs more memory than the budget has. name is the name
// of the scaling in the error. Scaling needs denseVectors vectors with one number for each feature. If denseAdvice is
// not "", the scaled points are dense, their memory counts too, and the error ends with denseAdvice. There is no error
// for other kinds of points.
func checkScaledMemory(memory accel.Budget, name, denseAdvice string, x points.Points) error {
	sparse, ok := x.(*points.CSR)
	if !ok {
		return nil
	}
	required := denseVectors * 8 * float64(sparse.D)
	advice := "number the features without gaps"
	if denseAdvice != "" {
		required += 8 * float64(sparse.N) * float64(sparse.D)
		advice = denseAdvice
	}
	return memory.Check(accel.SaturateInt64(required),
		fmt.Sprintf("%s of %d sparse points with %d features", name, sparse.N, sparse.D), advice)
}

// FeatureRanges returns the smallest and the largest value of each feature.
func FeatureRanges(x points.Points) (lo, hi []float64) {
	n, d := x.Dims()
	lo, hi = make([]float64, d), make([]float64, d)
	if sparse, ok := x.(*points.CSR); ok {
		nonzeroCount := make([]int, d)
		for i := range n {
			columns, values := sparse.Row(i)
			for k, j := range columns {
				if nonzeroCount[j]++; nonzeroCount[j] == 1 {
					lo[j], hi[j] = values[k], values[k]
				}
				lo[j], hi[j] = min(lo[j], values[k]), max(hi[j], values[k])
			}
		}
		for j, count := range nonzeroCount {
			if count < n {
				lo[j], hi[j] = min(lo[j], 0), max(hi[j], 0)
			}
		}
		return lo, hi
	}
	if n > 0 {
		x.RowTo(lo, 0)
		x.RowTo(hi, 0)
	}
	visitRows(x, func(row []float64) {
		for j, v := range row {
			if !(v >= lo[j]) { // true for NaN too; min alone is slower than this comparison
				lo[j] = min(lo[j], v)
			}
			if !(v <= hi[j]) {
				hi[j] = max(hi[j], v)
			}
		}
	})
	return lo, hi
}

// featureMoments returns the mean and the standard deviation √(Σ(x_j − mean_j)²/n) of each feature.
func featureMoments(x points.Points) (mean, sd []float64) {
	n, d := x.Dims()
	mean, sd = points.Mean(x), make([]float64, d)
	visitRows(x, func(row []float64) {
		for j, v := range row {
			sd[j] += (v - mean[j]) * (v - mean[j])
		}
	})
	for j, v := range sd {
		sd[j] = math.Sqrt(v / float64(n))
	}
	return mean, sd
}

// visitRows calls visit with each row of x in turn, in float64. The slice is valid only during the call.
func visitRows(x points.Points, visit func(row []float64)) {
	n, d := x.Dims()
	row := make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		visit(row)
	}
}

// Dim returns the number of features that s scales; 0 for a nil s.
func (s *Scaling) Dim() int {
	if s == nil {
		return 0
	}
	return len(s.Scale)
}

// FillsMissing reports whether s replaces missing values.
func (s *Scaling) FillsMissing() bool { return s != nil && s.Fill != nil }

// String returns the kind, the length scales and the size of the matrix; "none" for a nil s.
func (s *Scaling) String() string {
	if s == nil {
		return "none"
	}
	const maxShown = 12
	text := s.Kind
	for j, v := range s.Lengths[:min(len(s.Lengths), maxShown)] {
		text += fmt.Sprintf("%s %g", map[bool]string{true: ", length scales", false: ","}[j == 0], v)
	}
	if len(s.Lengths) > maxShown {
		text += fmt.Sprintf(", … (%d in all)", len(s.Lengths))
	}
	if s.Matrix != nil {
		text += fmt.Sprintf(", distance by a %d×%[1]d matrix", len(s.Scale))
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "lengths, "), "matrix, ")
}

// Validate returns an error if s has an unknown kind, lists of different lengths, or numbers that are not finite. If s
// has a Matrix, it also accepts d² numbers in the other lists.
func (s *Scaling) Validate() error {
	switch {
	case s == nil:
		return nil
	case !slices.Contains([]string{"unit", "standard", "pixel", "fill", "lengths", "matrix"}, s.Kind):
		return fmt.Errorf("unknown scaling %q", s.Kind)
	}
	if d := len(s.Scale); s.Matrix != nil && len(s.Matrix) != d*d {
		return fmt.Errorf("scaling of %d features has a matrix of %d numbers", d, len(s.Matrix))
	}
	for k, list := range [][]float64{s.Matrix, s.Scale, s.Shift, s.Fill, s.Lengths} {
		if k > 0 && list != nil && len(list) != len(s.Scale) {
			return fmt.Errorf("scaling of %d features has %d shifts, fills or lengths", len(s.Scale), len(list))
		}
		if j := slices.IndexFunc(list, func(v float64) bool { return !isFinite(v) }); j >= 0 {
			return fmt.Errorf("scaling of feature %d is not finite", j)
		}
	}
	return nil
}

// Apply returns the data set with its points scaled by s. It returns d itself if d is already scaled by the same
// numbers, or if s is nil and d is unscaled. d is not changed. Without Shift, Fill and Matrix, sparse points remain
// sparse, and float32 points remain float32; bytes remain bytes if, in addition, all features have one scale. In all
// other cases the result is dense float64. It is an error if the points were scaled differently, if their number of
// features is not that of s, or if d is invalid (Dataset.Check).
func (s *Scaling) Apply(d *Dataset) (*Dataset, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	name := safe.Name(cmp.Or(d.Name, "data set"))
	switch {
	case s.equal(d.Scaling):
		return d, nil
	case s == nil:
		return nil, fmt.Errorf("%s: the points are scaled (%s), want them unscaled: pass them as they were read", name,
			d.Scaling.Kind)
	case d.Scaling != nil:
		return nil,
			fmt.Errorf("%s: the points are scaled already (%s), by other numbers than those wanted (%s): pass "+
				"them as they were read", name, d.Scaling.Kind, s.Kind)
	case s.Dim() != d.Dim():
		return nil, fmt.Errorf("%s: points of %d features, and a scaling (%s) of %d", name, d.Dim(), s.Kind, s.Dim())
	}
	out := *d
	out.X, out.Scaling = s.scalePoints(d.X), s
	return &out, nil
}

// equal reports whether s and otherScaling map points equally. Their Kind and Lengths may differ.
func (s *Scaling) equal(otherScaling *Scaling) bool {
	return s == otherScaling || s != nil && otherScaling != nil && slices.Equal(s.Shift, otherScaling.Shift) &&
		slices.Equal(s.Scale, otherScaling.Scale) &&
		slices.Equal(s.Fill, otherScaling.Fill) && slices.Equal(s.Matrix, otherScaling.Matrix)
}

// uniformScale returns the scale that all features share. ok is false if their scales differ, or if there is a shift or
// a fill.
func (s *Scaling) uniformScale() (scale float64, ok bool) {
	differs := func(v float64) bool { return v != s.Scale[0] }
	if len(s.Scale) == 0 || s.Fill != nil || slices.ContainsFunc(s.Scale, differs) ||
		slices.ContainsFunc(s.Shift, func(v float64) bool { return v != 0 }) {
		return 0, false
	}
	return s.Scale[0], true
}

// scalePoints returns the points of x, which have s.Dim() features, scaled by s. For the types see Apply.
func (s *Scaling) scalePoints(x points.Points) points.Points {
	if s.Matrix != nil {
		features := *s
		features.Matrix = nil
		return points.Transform(features.scalePoints(x), s.Matrix)
	}
	n, d := x.Dims()
	if scale, ok := s.uniformScale(); ok {
		if pixels, ok := points.AsBytes(x, 0); ok && points.ScaleFits(pixels.Scale*scale) {
			out := *pixels
			out.Scale *= scale
			return &out
		}
	}
	if s.Shift == nil && s.Fill == nil {
		switch x := x.(type) {
		case *points.CSR:
			values := make([]float64, len(x.Val))
			for k := x.Ptr[0]; k < x.Ptr[n]; k++ {
				values[k] = x.Val[k] * s.Scale[x.Col[k]]
			}
			return &points.CSR{N: n, D: d, Ptr: x.Ptr, Col: x.Col, Val: values}
		case *points.Dense32:
			out := points.NewDense32(n, d, nil)
			for i := range n {
				row := out.Row(i)
				for j, v := range x.Row(i) {
					row[j] = float32(float64(v) * s.Scale[j])
				}
			}
			return out
		}
	}
	out := points.NewDense(n, d, nil)
	for i := range n {
		row := out.Row(i)
		x.RowTo(row, i)
		for j, v := range row {
			if s.Fill != nil && math.IsNaN(v) {
				v = s.Fill[j]
			}
			if s.Shift != nil {
				v -= s.Shift[j]
			}
			row[j] = v * s.Scale[j]
		}
	}
	return out
}
