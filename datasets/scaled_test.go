package datasets

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestScalingRecord checks that a data set records the scaling of its points, that its parts inherit the record, and
// that nothing is scaled twice or with another scaling.
func TestScalingRecord(t *testing.T) {
	raw := classifiedRows([]int{0, 1, 0, 1, 0, 1}, "a", "b")
	raw.X = points.NewDense(6, 2, []float64{1, 5, 3, 4, 2, 5, 0, 7, 1, 1, 9, 2})
	d, other, err := Scale("standard", raw, raw.Slice(2, 4))
	s := d.Scaling
	if err != nil || s == nil || other.Scaling != s || other.X.(*points.Dense).Data[0] != d.X.(*points.Dense).Data[4] ||
		raw.Scaling != nil || raw.X.(*points.Dense).Data[0] != 1 {
		t.Fatalf("%+v, %+v of %+v", d, other, raw)
	}
	training, heldOut := mustPair(d.Holdout(0.5, 1))
	for what, part := range map[string]*Dataset{"slice": d.Slice(1, 4), "head": d.Head(2),
		"subset": d.Subset([]int{5, 0}), "kept": training, "held out": heldOut} {
		if part.Scaling != s {
			t.Errorf("%s: scaling %v, want that of the whole data", what, part.Scaling)
		}
	}
	for _, equalScaling := range []*Scaling{s, must(readJSON(s))} {
		if again, err := equalScaling.Apply(d); err != nil || again != d {
			t.Errorf("scaled again: %v", err)
		}
	}
	if again, err := (*Scaling)(nil).Apply(raw); err != nil || again != raw {
		t.Errorf("not scaled: %v", err)
	}
	_, _, err = Scale("unit", d, nil)
	wantError(t, err, "scaled already (standard)")
	unit, _ := fitScalingUnlimited("unit", raw.X)
	shifted := &Scaling{Kind: "standard", Shift: slices.Clone(s.Shift), Scale: s.Scale}
	shifted.Shift[1]++
	for _, c := range []struct {
		scaling *Scaling
		d       *Dataset
		wantErr string
	}{
		{nil, d, "the points are scaled (standard), want them unscaled: pass them as they were read"},
		{unit, d, "scaled already (standard), by other numbers than those wanted (unit)"},
		{shifted, d, "scaled already (standard), by other numbers than those wanted (standard)"},
		{&Scaling{Kind: "standard", Scale: s.Scale}, d, "scaled already"},
		{&Scaling{Kind: "standard", Shift: s.Shift, Scale: []float64{1, 2}}, d, "scaled already"},
		{&Scaling{Kind: "pixel", Scale: make([]float64, 3)}, raw, "points of 2 features, and a scaling (pixel) of 3"},
	} {
		if got, err := c.scaling.Apply(c.d); got != nil || err == nil || !strings.HasPrefix(err.Error(), "made: ") ||
			!strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%+v: %v, want %q", c.scaling, err, c.wantErr)
		}
	}
}

// TestChangeDistance compares length scales and matrices, applied one after the other and after other scalings, with
// dense algebra. The resulting scaling must give a raw row the bits of the row of the fit, and be equal only to itself.
func TestChangeDistance(t *testing.T) {
	lengths, matrix := []float64{2, 0.5, 4}, []float64{1, -2, 0.3, 0, 0.7, 1.1, -0.6, 0.2, 3}
	dense := points.NewDense(5, 3, []float64{1, 5, 3, 0, 2, 5, 0, 7, 0, 1, 9, 2, 0, 0, -6})
	float32Points := points.NewDense32(5, 3, nil)
	for i, v := range dense.Data {
		float32Points.Data[i] = float32(v)
	}
	for kind, x := range map[string]points.Points{"dense": dense, "sparse": toSparse(dense), "float32": float32Points} {
		for _, scale := range []string{"none", "standard", "unit"} {
			raw := &Dataset{Name: "raw", X: x, Task: Regression, Target: make([]float64, 5)}
			train, test := mustPair(Scale(scale, raw, raw.Slice(1, 3)))
			want := mat.NewDense(5, 3, nil)
			points.RowsTo(train.X, want.RawMatrix().Data, 3)
			for step, distance := range [][]float64{matrix, lengths, matrix, nil} {
				if train, test = mustPair(ChangeDistance(distance, train, test)); len(distance) == 3 {
					want.Apply(func(_, j int, v float64) float64 { return v / lengths[j] }, want)
				} else if distance != nil {
					var product mat.Dense
					product.Mul(want, mat.NewDense(3, 3, matrix).T())
					want.Copy(&product)
				}
				got := mat.NewDense(5, 3, nil)
				points.RowsTo(train.X, got.RawMatrix().Data, 3)
				again := must(must(readJSON(train.Scaling)).Apply(raw))
				row, testRow := make([]float64, 3), make([]float64, 3)
				again.X.RowTo(row, 1)
				if test.X.RowTo(testRow, 0); step == 0 && (!slices.Equal(row, testRow) ||
					!slices.Equal(row, got.RawRowView(1))) {
					t.Errorf("%s, %s: row %v of the test data, %v by the scaling, %v of the fit", kind, scale, testRow,
						row,
						got.RawRowView(1))
				}
				appliedAgain := mat.NewDense(5, 3, nil)
				points.RowsTo(again.X, appliedAgain.RawMatrix().Data, 3)
				// The points may be float32, so some rounding errors of 6e-8 are allowed.
				if !mat.EqualApprox(got, want, 1e-5) || !mat.EqualApprox(appliedAgain, want, 1e-5) {
					t.Errorf("%s, %s, step %d: %v and %v, want %v", kind, scale, step, got, appliedAgain, want)
				}
				if other := *train.Scaling; step == 0 {
					other.Matrix = slices.Clone(matrix)
					if other.Matrix[0]++; train.Scaling.equal(&other) || other.equal(train.Scaling) {
						t.Errorf("%s: scalings of different matrices are equal", kind)
					}
					if text := train.Scaling.String(); !strings.HasSuffix(text, "distance by a 3×3 matrix") {
						t.Errorf("%s: the scaling is described as %q", kind, text)
					}
				}
			}
		}
	}
	raw := &Dataset{X: dense}
	for want, distance := range map[string][]float64{
		"4 length scales for 3 features: want one for each, or the 9 numbers of a matrix": {1, 2, 3, 4},
		"the length scale of feature 1 is 0: want a positive number":                      {1, 0, 2},
		"scaling of feature 4 is not finite":                                              {1, 0, 0, 0, math.NaN(), 0, 0, 0, 1},
	} {
		if _, _, err := ChangeDistance(distance, raw, nil); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", distance, err, want)
		}
	}
	if err := (&Scaling{Kind: "matrix", Scale: make([]float64, 3), Matrix: make([]float64, 3)}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "a matrix of 3 numbers") {
		t.Errorf("a matrix of 3 numbers: %v", err)
	}
}

// TestChangeDistanceWithin checks to the byte which budget a matrix of the distance needs on sparse training and test
// points, and that length scales, which keep the zeros, need none.
func TestChangeDistanceWithin(t *testing.T) {
	const n, d = 5, 40
	train := &Dataset{X: &points.CSR{N: n, D: d, Ptr: make([]int, n+1)}}
	test := &Dataset{X: &points.CSR{N: 2 * n, D: d, Ptr: make([]int, 2*n+1)}}
	matrix := make([]float64, d*d)
	for _, c := range []struct {
		test  *Dataset
		bytes int64
	}{{nil, 8 * d * (n + denseVectors)}, {test, 8 * d * (n + 2*n + denseVectors)}} {
		_, _, err := ChangeDistanceWithin(accel.Budget{Limit: c.bytes}, matrix, train, c.test)
		_, _, tooLarge := ChangeDistanceWithin(accel.Budget{Limit: c.bytes - 1}, matrix, train, c.test)
		if err != nil || tooLarge == nil || !strings.Contains(tooLarge.Error(),
			"give length scales, which keep zeros") {
			t.Errorf("test rows %v: %v, and with a byte less %v", c.test != nil, err, tooLarge)
		}
	}
	lengths := slices.Repeat([]float64{2}, d)
	if _, _, err := ChangeDistanceWithin(accel.Budget{Limit: 1}, lengths, train, test); err != nil {
		t.Errorf("length scales: %v", err)
	}
}

// readJSON returns the value that is read from the JSON of v.
func readJSON[T any](v T) (read T, err error) {
	err = json.Unmarshal(must(json.Marshal(v)), &read)
	return read, err
}

// mustPair returns the two data sets and panics on an error.
func mustPair(a, b *Dataset, err error) (*Dataset, *Dataset) {
	if err != nil {
		panic(err)
	}
	return a, b
}

// TestDirs checks that data are searched in $KRRLAB_DATA and in the user's cache by default.
func TestDirs(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Setenv("KRRLAB_DATA", first)
	t.Setenv("XDG_CACHE_HOME", second)
	if dirs := Dirs(); dirs[0] != first || len(dirs) > 2 {
		t.Errorf("folders %q, want first %s and at most one more", dirs, first)
	}
	row := strings.Repeat(" 0.5", 256) + "\n"
	writeFile(t, first, "usps/zip.train", "6.0"+row+"2.0"+row)
	writeFile(t, first, "usps/zip.test", "2"+row)
	if data, err := Load(t.Context(), "usps", nil); err != nil || data.Train.Len() != 2 {
		t.Errorf("found by default: %v", err)
	}
	wantError(t, errorFrom(Load(t.Context(), "usps", &LoadOptions{Dirs: []string{}})), "is missing")
	t.Setenv("KRRLAB_DATA", "")
	if dirs := Dirs(); slices.Contains(dirs, "") || slices.Contains(dirs, first) {
		t.Errorf("folders %q without KRRLAB_DATA", dirs)
	}
}
