package datasets

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestCoding checks the coding of classes as ±1 and of numbers, and that labels are matched by their text and unknown
// ones refused.
func TestCoding(t *testing.T) {
	classified := func(labels []string, class ...int) *Dataset {
		return &Dataset{Name: "d", Task: Classification, X: points.NewDense(len(class), 1, nil), Labels: labels,
			Class: class}
	}
	for _, c := range []struct {
		labels []string
		class  []int
		want   *mat.Dense
	}{
		{[]string{"-1", "1"}, []int{0, 1, 1}, mat.NewDense(3, 1, []float64{-1, 1, 1})},
		{[]string{"a", "b", "c"}, []int{2, 0}, mat.NewDense(2, 3, []float64{-1, -1, 1, 1, -1, -1})},
	} {
		y, err := Coding{Labels: c.labels}.EncodeForFit(classified(c.labels, c.class...))
		if err != nil || !mat.Equal(y, c.want) {
			t.Errorf("labels %q: %v, %v, want %v", c.labels, y, err, c.want)
		}
		if got := (Coding{Labels: c.labels}).Decode(y); !slices.Equal(got, c.class) {
			t.Errorf("decoded %v, want %v", got, c.class)
		}
	}
	// Labels are matched by text, whatever their place among the data's own.
	if y, err := (Coding{Labels: []string{"a", "b"}}).EncodeForFit(classified([]string{"b", "a"}, 0, 1)); err != nil ||
		y.At(0, 0) != 1 || y.At(1, 0) != -1 {
		t.Errorf("labels in another order: %v, %v, want 1 and -1", y, err)
	}
	wantError(t, errorFrom((Coding{Labels: []string{"a", "b"}}).EncodeForFit(classified([]string{"a", "b"}, 1, 1))),
		`one class only ("b")`)
	wantError(t, errorFrom((Coding{Labels: []string{"a", "b"}}).EncodeForFit(classified([]string{"a", "c"}, 0, 1))),
		`"c"`)
	regression := &Dataset{X: points.NewDense(2, 1, nil), Target: []float64{3, 4}}
	y, err := Coding{}.EncodeForFit(regression)
	if err != nil || !slices.Equal(mat.Col(nil, 0, y), regression.Target) {
		t.Errorf("regression: %v, %v", y, err)
	}
	y.Set(0, 0, 9)
	if regression.Target[0] != 3 {
		t.Error("EncodeForFit shares the targets' memory")
	}
}

// TestLabelOrder checks that labels are sorted as numbers if all of them are numbers, and as texts otherwise.
func TestLabelOrder(t *testing.T) {
	for _, c := range [][]string{{"-1", "0", "2", "10"}, {"10", "2", "x"}, {"1e1", "1e2"}} {
		got := slices.Clone(c)
		slices.Reverse(got)
		if sortLabels(got); !slices.Equal(got, c) {
			t.Errorf("sorted %q, want %q", got, c)
		}
	}
}

// fitScalingUnlimited is fitScaling with all available memory as budget.
func fitScalingUnlimited(kind string, x points.Points) (*Scaling, error) {
	return fitScaling(accel.AvailableMemory(0, 1), kind, x)
}

// applyScaling returns x scaled by s.
func applyScaling(s *Scaling, x points.Points) points.Points { return must(s.Apply(&Dataset{X: x})).X }

// TestScaling compares each scaling of dense and sparse points with values computed by hand.
func TestScaling(t *testing.T) {
	x := points.NewDense(3, 3, []float64{1, 5, -2, 3, 5, 0, 2, 5, 2})
	csr := &points.CSR{N: 3, D: 3, Ptr: []int{0, 1, 3, 4}, Col: []int32{0, 0, 2, 2}, Val: []float64{-4, 2, 5, 10}}
	sd := math.Sqrt(2.0 / 3)
	for _, c := range []struct {
		kind string
		x    points.Points
		want [][]float64
	}{
		{"none", x, denseRows(x)},
		{"unit", x, [][]float64{{0, 0, 0}, {1, 0, 0.5}, {0.5, 0, 1}}},
		{"standard", x, [][]float64{{-1 / sd, 0, -1 / sd / 1}, {1 / sd, 0, 0}, {0, 0, 1 / sd}}},
		{"pixel", x, [][]float64{{1. / 255, 5. / 255, -2. / 255}, {3. / 255, 5. / 255, 0},
			{2. / 255, 5. / 255, 2. / 255}}},
		{"unit", csr, [][]float64{{-1, 0, 0}, {0.5, 0, 0.5}, {0, 0, 1}}},
	} {
		s := must(fitScalingUnlimited(c.kind, c.x))
		if got := denseRows(applyScaling(s, c.x)); !slices.EqualFunc(got, c.want,
			func(a, b []float64) bool { return floats.EqualApprox(a, b, 1e-15) }) { // up to rounding errors
			t.Errorf("%s of %T: %v, want %v", c.kind, c.x, got, c.want)
		}
		if read := must(readJSON(s)); !reflect.DeepEqual(s, read) {
			t.Errorf("%s through JSON: %v", c.kind, read)
		}
	}
	if y, ok := applyScaling(must(fitScalingUnlimited("unit", csr)), csr).(*points.CSR); !ok || y.NNZ() != 4 ||
		csr.Val[0] != -4 {
		t.Error("unit scaling of sparse points must stay sparse and leave them as they are")
	}
	// Fitted on some points, applied to others: a test point may leave [0, 1].
	if got := denseRows(applyScaling(must(fitScalingUnlimited("unit", x)), points.NewDense(1, 3, []float64{5, 7,
		6}))); !slices.Equal(
		got[0], []float64{2, 0, 2}) {
		t.Errorf("applied to another point: %v", got)
	}
	// Constant up to the rounding of the mean is constant.
	if s := must(fitScalingUnlimited("standard", points.NewDense(3, 1, []float64{0.1, 0.1, 0.1}))); s.Scale[0] != 0 {
		t.Errorf("a constant feature got the scale %g", s.Scale[0])
	}
	wantError(t, errorFrom(fitScalingUnlimited("log", x)), "standard")
}

// TestSynthetic checks that the noise of synthetic data is the documented one within five standard deviations, and
// that the first rows do not depend on the number of rows.
func TestSynthetic(t *testing.T) {
	const n = 20000
	regression := SyntheticRegression(n, 4, 0.1, 1)
	if rmse := regression.BestError(); math.Abs(rmse-0.1) > 5*0.1/math.Sqrt(2*n) { // 5 standard deviations
		t.Errorf("noise %g, want 0.1", rmse)
	}
	classes := SyntheticClasses(n, 3, 5, 0.05, 1)
	if rate := classes.BestError(); math.Abs(rate-0.05) > 5*math.Sqrt(0.05*0.95/n) { // 5 standard deviations
		t.Errorf("share of wrong labels %g, want 0.05", rate)
	}
	for _, rows := range classes.rowsOfClasses() {
		if rows < n/100 {
			t.Errorf("classes of %v points", classes.rowsOfClasses())
		}
	}
	if first := SyntheticRegression(10, 4, 0.1, 1).Target; !slices.Equal(first, regression.Target[:10]) {
		t.Error("the first points depend on n")
	} else if slices.Equal(first, SyntheticRegression(10, 4, 0.1, 2).Target) {
		t.Error("the seed does nothing")
	}
	if !math.IsNaN((&Dataset{X: points.NewDense(1, 1, nil)}).BestError()) {
		t.Error("the best error of unknown data is known")
	}
}

// TestRegistry checks that the entries of the registry are complete and consistent.
func TestRegistry(t *testing.T) {
	paperSets := 0
	for _, info := range Registry() {
		if info.Name != strings.ToLower(info.Name) || info.Title == "" || info.Split == "" || info.License == "" ||
			info.N < 1 ||
			info.TestN < 1 || info.D < 1 {
			t.Errorf("%s is not complete", info.Name)
		}
		if !slices.Contains(Scalings, info.Scale) || (info.Classes > 1) != (info.Task == Classification) ||
			!(info.Sigma > 0 && info.Lambda > 0) {
			t.Errorf("%s is not consistent", info.Name)
		}
		if info.BuiltIn() != (len(info.Files) == 0) || !info.BuiltIn() && info.Page == "" {
			t.Errorf("%s: files and page", info.Name)
		}
		for _, f := range info.Files {
			if f.Path == "" || f.Role == "" || f.SHA256 != "" && len(f.SHA256) != 64 {
				t.Errorf("%s: want a path, a role and a checksum of 64 digits or none, got %+v", info.Name, f)
			}
		}
		if info.Paper != nil {
			paperSets++
		}
		if _, err := Lookup(strings.ToUpper(info.Name)); err != nil {
			t.Error(err)
		}
		if info.Similar != "" {
			if _, err := Lookup(info.Similar); err != nil {
				t.Error(err)
			}
		}
	}
	if paperSets != 9 {
		t.Errorf("%d sets of the paper, want 9", paperSets)
	}
	wantError(t, errorFrom(Lookup("minst")), "mnist")
}

// TestMissingFiles checks that the error for a missing data set says how to get it and where its files belong.
func TestMissingFiles(t *testing.T) {
	for name, want := range map[string][]string{
		"mnist":       {"krrlab data fetch mnist", "https://", "dir/mnist/train-images-idx3-ubyte.gz", "3 more"},
		"covtype":     {"covtype-sample"},
		"cal-housing": {"cannot be downloaded", "https://", "dir/cal_housing/cal_housing.data.gz"},
	} {
		_, err := Load(context.Background(), name, &LoadOptions{Dirs: []string{"none", "dir"}})
		var missing *MissingFilesError
		if !errors.As(err, &missing) {
			t.Fatalf("%s: %v, want a MissingFilesError", name, err)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error does not say %q: %v", name, part, err)
			}
		}
	}
}

// writeFile writes a file below a folder, which it creates, and returns its path.
func writeFile[T string | []byte](t *testing.T, dir, name string, content T) string {
	t.Helper()
	path := filepath.Join(dir, name)
	os.MkdirAll(filepath.Dir(path), 0o755) // an error is one of the file too
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoad loads a small set laid out like USPS, and checks that the random split of abalone has the documented sizes
// and is always the same.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	row := strings.Repeat(" 0.5", 256) + "\n"
	writeFile(t, dir, "usps/zip.train", "6.0"+row+"2.0"+row+"7.0"+row)
	writeFile(t, dir, "usps/zip.test", "2"+row)
	data := must(Load(t.Context(), "usps", &LoadOptions{Dirs: []string{"none", dir}, N: 2, Scale: "standard"}))
	if data.Train.Len() != 2 || !slices.Equal(data.Train.Labels, []string{"2", "6"}) ||
		data.Test.Labels[data.Test.Class[0]] != "2" || data.Train.Scaling.Kind != "standard" ||
		data.Test.Scaling != data.Train.Scaling {
		t.Errorf("training data %+v, test data %+v", data.Train, data.Test)
	}
	for n, want := range map[int]string{3: "the first 3 of 7291 training rows",
		12000: "all 3 training rows: 12000 were asked for, and there are no more"} {
		if data, err := Load(t.Context(), "usps", &LoadOptions{Dirs: []string{dir}, N: n}); err != nil ||
			!strings.HasPrefix(data.Train.Note, want+"; ") {
			t.Errorf("%d rows: %v, %v", n, data, err)
		}
	}
	writeFile(t, dir, "libsvm_regression/abalone", joinLines(100, func(i int) string {
		return strings.Repeat("1", 1+i%15) + ".5 1:1 8:" + strings.Repeat("2", 1+i%3)
	}))
	options := &LoadOptions{Dirs: []string{dir}}
	if data = must(Load(t.Context(), "abalone", options)); data.Train.Len() != 80 || data.Test.Len() != 20 {
		t.Errorf("abalone: %v", data)
	}
	if again := must(Load(t.Context(), "abalone", options)); !slices.Equal(data.Train.Target, again.Train.Target) {
		t.Error("the split is not fixed")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, "abalone", options); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestOneVersusRest checks that all classes but the given one are merged.
func TestOneVersusRest(t *testing.T) {
	d := &Dataset{Class: []int{0, 1, 2, 1}, Labels: []string{"1", "2", "3"}}
	d.oneVersusRest("2")
	if !slices.Equal(d.Class, []int{0, 1, 0, 1}) || !slices.Equal(d.Labels, []string{"rest", "2"}) {
		t.Errorf("classes %v of labels %q, want rest and 2", d.Class, d.Labels)
	}
}

// TestMinorityClass checks that the rarer class is found by the weights of the rows, as if a row of weight 2 were two
// rows, and that the second class wins a tie.
func TestMinorityClass(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		want    int
	}{{nil, 1}, {[]float64{1, 1, 1, 4, 4}, 0}, {[]float64{2, 2, 2, 3, 3}, 1}, {[]float64{5, 1, 1, 3, 3}, 1}} {
		d := classifiedRows([]int{0, 0, 0, 1, 1}, "a", "b")
		d.Weights = c.weights
		if got := d.MinorityClass(); got != c.want {
			t.Errorf("weights %v: class %d, want %d", c.weights, got, c.want)
		}
	}
}

// TestPredictedClass checks that the predicted class is that of the first largest value, or the sign of a single value,
// and that the margin of a class is positive if the class is predicted.
func TestPredictedClass(t *testing.T) {
	for _, c := range []struct {
		f       []float64 // decision values
		class   int       // predicted class
		margins []float64 // margin of each class
	}{
		{[]float64{math.Copysign(0, -1)}, 0, []float64{0, 0}}, {[]float64{5e-324}, 1, []float64{-1e-323, 1e-323}},
		{[]float64{0}, 0, []float64{0, 0}}, {[]float64{0.5}, 1, []float64{-1, 1}}, {[]float64{-2}, 0, []float64{4, -4}},
		{[]float64{0, 0, 0}, 0, []float64{0, 0, 0}}, {[]float64{1, 3, 3}, 1, []float64{-2, 0, 0}}, {[]float64{-1, -5, -4}, 0, []float64{3, -4, -3}},
	} {
		if got := PredictedClass(c.f); got != c.class {
			t.Errorf("%v: label %d, want %d", c.f, got, c.class)
		}
		for j, want := range c.margins {
			if got := Margin(c.f, j); got != want {
				t.Errorf("%v: margin of %d is %g, want %g", c.f, j, got, want)
			}
		}
	}
}
