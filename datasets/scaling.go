package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Scaling maps feature j of every point to (x_j − Shift_j)·Scale_j. It is fitted on training points only and applied to
// all. A data set says by its field Scaling what was applied. A missing value (NaN) of feature j is Fill_j first.
type Scaling struct {
	// unit, standard or pixel; fill or lengths where Impute or Stretch alone was
	Kind  string    `json:"kind"`
	Shift []float64 `json:"shift,omitempty"` // nil means zeros
	Scale []float64 `json:"scale"`           // 0 for a constant feature
	Fill  []float64 `json:"fill,omitempty"`  // nil: no value may be missing
	// Lengths are those of Stretch, by which Scale is divided already; nil: none.
	Lengths []float64 `json:"lengths,omitempty"`
}

// roundedMean is the deviation, relative to the mean, up to which it is rounding of the mean.
const roundedMean = 1e-12

// Scale fits a scaling to the training points and applies it to both data sets, which are not changed; test
// may be nil. Both Scaling fields of what it returns say what was applied. Kinds are
//
//	none      points stay as they are
//	auto      none or standard, which AutoScaling chooses by the training points
//	unit      (x_j − min_j)/(max_j − min_j), in [0, 1]; sparse points, whose zeros must stay,
//	          x_j/max|x_j|, in [−1, 1]
//	standard  (x_j − mean_j)/sd_j, sd_j² the mean squared deviation; sparse points become dense
//	pixel     x_j/255
//
// Points that are whole numbers from 0 to 255 times one scale then, by the rules of points.AsBytes, become
// points.Bytes. A feature that is constant becomes 0 with unit and standard. It is an error if the kind is
// unknown, if a feature's values are above 1e100 or all below 1e-100, if the scaled points would
// take more memory than the machine has, and if points were scaled before.
func Scale(kind string, train, test *Dataset) (strain, stest *Dataset, err error) {
	if kind == "auto" {
		kind, _ = train.AutoScaling()
	}
	s, err := fitScaling(kind, train.X)
	if train.fill != nil && err == nil {
		if s == nil {
			s = &Scaling{Kind: "fill", Scale: slices.Repeat([]float64{1}, train.Dim())}
		}
		s.Fill = train.fill
	}
	if err == nil {
		strain, err = s.Apply(train)
	}
	if err == nil && test != nil {
		stest, err = s.Apply(test)
	}
	if err != nil {
		return nil, nil, err
	}
	if x, ok := points.AsBytes(strain.X, 0); ok {
		strain = strain.with(x)
		if stest != nil {
			if x, ok := points.AsBytes(stest.X, x.Scale); ok {
				stest = stest.with(x)
			}
		}
	}
	return strain, stest, nil
}

// with returns d with other points for the same ones.
func (d *Dataset) with(x points.Points) *Dataset {
	if d.X == x {
		return d
	}
	out := *d
	out.X = x
	return &out
}

// fitScaling fits a scaling to x, nil for none.
func fitScaling(kind string, x points.Points) (*Scaling, error) {
	if err := known("scaling", kind, Scalings); err != nil || kind == "none" {
		return nil, err
	}
	if err := scalingFits(kind, x); err != nil {
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
	lo, hi := ranges(x)
	_, sparse := x.(*points.CSR)
	var sd []float64
	if kind == "standard" {
		s.Shift, sd = moments(x)
	} else if !sparse {
		s.Shift = lo
	}
	for j := range lo {
		most, width := max(math.Abs(lo[j]), math.Abs(hi[j])), hi[j]-lo[j]
		// The squares of what passes neither overflow nor vanish.
		if width > 0 && most < 1e-100 || !(most <= 1e100) {
			return nil,
				fmt.Errorf("feature %d goes from %g to %g: want values from 1e-100 to 1e100, give it in another unit",
					j, lo[j], hi[j])
		}
		switch {
		case sd != nil && (width == 0 || sd[j] <= roundedMean*math.Abs(s.Shift[j])):
			continue
		case sd != nil:
			width = sd[j]
		case sparse:
			width = most
		}
		if width > 0 {
			s.Scale[j] = 1 / width
		}
	}
	return s, nil
}

// scalingFits returns an error if what the scaling makes of sparse points, dense ones or numbers
// for each feature, is more than the memory there is, 0 if that is not known.
func scalingFits(kind string, x points.Points) error {
	has := accel.MemoryAvailable()
	c, ok := x.(*points.CSR)
	if !ok || has == 0 {
		return nil
	}
	need := vectorsHeld * 8 * float64(c.D)
	advice := "number the features without gaps"
	if kind == "standard" {
		need += 8 * float64(c.N) * float64(c.D)
		advice = "scale by unit, which keeps zeros, or not at all"
	}
	if need <= float64(has) {
		return nil
	}
	return fmt.Errorf("--scale %s of %d sparse points with %d features takes %s, and %s are free: %s",
		kind, c.N, c.D, accel.Bytes(int64(need)), accel.Bytes(has), advice)
}

// ranges returns the least and the largest value of each feature.
func ranges(x points.Points) (lo, hi []float64) {
	n, d := x.Dims()
	lo, hi = make([]float64, d), make([]float64, d)
	if c, ok := x.(*points.CSR); ok {
		count := make([]int, d)
		for i := range n {
			col, val := c.Row(i)
			for k, j := range col {
				if count[j]++; count[j] == 1 {
					lo[j], hi[j] = val[k], val[k]
				}
				lo[j], hi[j] = min(lo[j], val[k]), max(hi[j], val[k])
			}
		}
		for j, k := range count {
			if k < n {
				lo[j], hi[j] = min(lo[j], 0), max(hi[j], 0)
			}
		}
		return lo, hi
	}
	if n > 0 {
		x.RowTo(lo, 0)
		x.RowTo(hi, 0)
	}
	eachRow(x, func(row []float64) {
		for j, v := range row {
			lo[j], hi[j] = min(lo[j], v), max(hi[j], v)
		}
	})
	return lo, hi
}

// moments returns the mean and the standard deviation √(Σ(x_j − mean_j)²/n) of each feature.
func moments(x points.Points) (mean, sd []float64) {
	n, d := x.Dims()
	mean, sd = points.Mean(x), make([]float64, d)
	eachRow(x, func(row []float64) {
		for j, v := range row {
			sd[j] += (v - mean[j]) * (v - mean[j])
		}
	})
	for j, v := range sd {
		sd[j] = math.Sqrt(v / float64(n))
	}
	return mean, sd
}

func eachRow(x points.Points, f func(row []float64)) {
	n, d := x.Dims()
	row := make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		f(row)
	}
}

// Dim returns the number of features that s scales; 0 for a nil s.
func (s *Scaling) Dim() int {
	if s == nil {
		return 0
	}
	return len(s.Scale)
}

// Fills reports whether s fills missing values in.
func (s *Scaling) Fills() bool { return s != nil && s.Fill != nil }

// String returns the kind, "none" for a nil s.
func (s *Scaling) String() string {
	if s == nil {
		return "none"
	}
	const most = 12
	text := s.Kind
	for j, v := range s.Lengths[:min(len(s.Lengths), most)] {
		text += fmt.Sprintf("%s %g", map[bool]string{true: ", length scales", false: ","}[j == 0], v)
	}
	if len(s.Lengths) > most {
		text += fmt.Sprintf(", … (%d in all)", len(s.Lengths))
	}
	return strings.TrimPrefix(text, "lengths, ")
}

// Validate returns an error if s is of an unknown kind or has numbers that are not finite.
func (s *Scaling) Validate() error {
	switch {
	case s == nil:
		return nil
	case !slices.Contains([]string{"unit", "standard", "pixel", "fill", "lengths"}, s.Kind):
		return fmt.Errorf("unknown scaling %q", s.Kind)
	}
	for _, list := range [][]float64{s.Scale, s.Shift, s.Fill, s.Lengths} {
		if list != nil && len(list) != len(s.Scale) {
			return fmt.Errorf("scaling of %d features has %d shifts, fills or lengths", len(s.Scale), len(list))
		}
		if j := slices.IndexFunc(list, func(v float64) bool { return !isFinite(v) }); j >= 0 {
			return fmt.Errorf("scaling of feature %d is not finite", j)
		}
	}
	return nil
}

// Apply returns the data set with its points scaled by s, or d itself if they are already: scaled by the
// same numbers, or raw and s nil. d is not changed. Bytes stay bytes, float32 points float32 and sparse
// points sparse if there is no shift and, for bytes, one scale for all features; all else becomes dense float64.
// It is an error if the points were scaled otherwise, or do not have s's number of features.
func (s *Scaling) Apply(d *Dataset) (*Dataset, error) {
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
	out.X, out.Scaling = s.points(d.X), s
	return &out, nil
}

func (s *Scaling) equal(r *Scaling) bool {
	return s == r || s != nil && r != nil && slices.Equal(s.Shift, r.Shift) && slices.Equal(s.Scale, r.Scale) &&
		slices.Equal(s.Fill, r.Fill)
}

// uniform returns the one scale of all features, if they have one and no shift, that keeps bytes bytes.
func (s *Scaling) uniform() (scale float64, ok bool) {
	differs := func(v float64) bool { return v != s.Scale[0] }
	if len(s.Scale) == 0 || s.Fill != nil || slices.ContainsFunc(s.Scale, differs) ||
		slices.ContainsFunc(s.Shift, func(v float64) bool { return v != 0 }) {
		return 0, false
	}
	return s.Scale[0], true
}

func (s *Scaling) points(x points.Points) points.Points {
	n, d := x.Dims()
	if scale, ok := s.uniform(); ok {
		if b, ok := points.AsBytes(x, 0); ok && points.ScaleFits(b.Scale*scale) {
			out := *b
			out.Scale *= scale
			return &out
		}
	}
	if s.Shift == nil && s.Fill == nil {
		switch x := x.(type) {
		case *points.CSR:
			val := make([]float64, len(x.Val))
			for k := x.Ptr[0]; k < x.Ptr[n]; k++ {
				val[k] = x.Val[k] * s.Scale[x.Col[k]]
			}
			return &points.CSR{N: n, D: d, Ptr: x.Ptr, Col: x.Col, Val: val}
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

// Holdout splits the points into those to train on and those held out to judge the fit, as HoldoutRows says. The labels
// of the first part are those of its points: a label that is held out whole is unknown to a fit, as labels of new points
// may be, so that scores of held-out points (package interval) are those of new ones.
func (d *Dataset) Holdout(share float64, seed uint64) (train, test *Dataset, err error) {
	d = d.Decided()
	in, out, err := d.HoldoutRows(share, seed)
	if err != nil {
		return nil, nil, err
	}
	return d.Subset(in).OwnLabels(), d.Subset(out), nil
}

// OwnLabels returns d without the labels that no point has.
func (d *Dataset) OwnLabels() *Dataset {
	if d.Class == nil || d.hasAllLabels() {
		return d
	}
	out, at := *d, make([]int, len(d.Labels))
	out.Labels = nil
	for c, l := range d.Labels {
		if at[c] = len(out.Labels); slices.Contains(d.Class, c) {
			out.Labels = append(out.Labels, l)
		}
	}
	out.Class = chosen[int](d.Class)(at)
	return &out
}

// HoldoutRows draws the rows to hold out by the seed: round(share·n) of them, at least one. It returns the rows to train
// on and those held out, both in order. They are drawn at random, whatever their classes. Rows of one group (Grouping)
// are on the same side, which may make them more. It returns an error unless 0 < share < 1 and both parts have rows.
func (d *Dataset) HoldoutRows(share float64, seed uint64) (in, out []int, err error) {
	n := d.Len()
	if !(share > 0 && share < 1) {
		return nil, nil, fmt.Errorf("a holdout of %g of the rows: want a number between 0 and 1, such as 0.2", share)
	}
	groups := d.Grouping(nil).First
	size, held := counts(groups), make([]bool, n)
	var first []int
	for i, f := range groups {
		if f == i {
			first = append(first, i)
		}
	}
	want := max(1, int(math.Round(share*float64(n))))
	for _, g := range rng.New(seed).Sub("holdout", 0).Perm(len(first)) {
		if f := first[g]; want > 0 {
			held[f], want = true, want-size[f]
		}
	}
	for i, f := range groups {
		if held[f] {
			out = append(out, i)
		} else {
			in = append(in, i)
		}
	}
	if len(in) == 0 {
		return nil, nil,
			fmt.Errorf("a holdout of %g of %d rows in %d groups leaves no row to train on: give more rows, or a test "+
				"file", share, n, len(first))
	}
	return in, out, nil
}
