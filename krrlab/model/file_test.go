package model

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// models returns a model of every kind: each format of points with each kernel, some with labels, scaling and column
// names, and points that are empty or slices.
func models() []*Model {
	var all []*Model
	for i, kind := range []string{"float64", "float32", "sparse", "bytes"} {
		x := kinds(7, 3, 1)[kind]
		for j, k := range kernels {
			m := random(k, x, []int{1, 3}[(i+j)%2])
			if (i+j)%2 == 1 {
				m.Labels = []string{"-1", "zwölf, 12", `"`}
			} else if j == 2 {
				m.Labels = []string{"no", "yes"}
			}
			if j == 1 {
				m.Scaling = scaled(3)
				m.Columns = []string{"a", "b, c", `"d"`}
				if i == 0 {
					m.Scaling.Matrix = []float64{1, -2, 0.3, 0, 0.7, 1.1, -0.6, 0.2, 3}
				}
			}
			all = append(all, m)
		}
	}
	empty := &points.CSR{N: 2, D: 3, Ptr: []int{0, 0, 0}} // no nonzeros
	sliced := kinds(9, 3, 1)["sparse"].Slice(2, 6)
	return append(all, random(kernels[0], empty, 1), random(kernels[0], sliced, 1),
		random(kernels[0], kinds(9, 3, 1)["float64"].Slice(3, 5), 1))
}

// save returns the bytes of the file of a model.
func save(t testing.TB, m *Model) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.krr")
	testkit.OK(t, m.Save(name))
	b := testkit.Must(os.ReadFile(name))
	return b
}

// read reads a model from the bytes of its file.
func read(b []byte) (*Model, error) {
	return readArchive(bytes.NewReader(b), int64(len(b)), accel.Budget{})
}

// TestRoundTrip checks that a loaded model equals the saved one, to the bit.
func TestRoundTrip(t *testing.T) {
	for _, m := range models() {
		name := filepath.Join(t.TempDir(), "m.krr")
		testkit.OK(t, m.Save(name))
		got, err := Load(name)
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		n, d, _ := m.Dims()
		a, b := make([]float64, n*d), make([]float64, n*d)
		points.RowsTo(m.X, a, d)
		points.RowsTo(got.X, b, d)
		if !reflect.DeepEqual(a, b) || fmt.Sprintf("%T", got.X) != fmt.Sprintf("%T", m.X) {
			t.Errorf("%v: points %T are not the %T saved", m, got.X, m.X)
		}
		if !mat.Equal(got.C, m.C) || got.Kernel != m.Kernel || got.Lambda != m.Lambda ||
			!reflect.DeepEqual(got.Origin, m.Origin) ||
			!reflect.DeepEqual(got.Labels, m.Labels) || !reflect.DeepEqual(got.Scaling, m.Scaling) ||
			!reflect.DeepEqual(got.Columns, m.Columns) {
			t.Errorf("saved\n%+v\nloaded\n%+v", m, got)
		}
		z := kinds(4, d, 5)["float64"]
		if !mat.Equal(mustDecide(t, m, z, nil), mustDecide(t, got, z, nil)) {
			t.Errorf("%v: predictions differ", m)
		}
	}
}

// TestMatrixFile checks a model whose scaling has a matrix. Its file has version 5, and the loaded model must predict
// raw points as the model without scaling predicts their products with the matrix.
func TestMatrixFile(t *testing.T) {
	z := kinds(6, 3, 5)
	for kind, x := range kinds(7, 3, 1) {
		m := random(kernel.Matern32{Sigma: 1.5}, x, 1)
		m.Scaling = scaled(3)
		m.Scaling.Matrix = []float64{1, -2, 0.3, 0, 0.7, 1.1, -0.6, 0.2, 3}
		loaded := testkit.Must(read(save(t, m)))
		if info := testkit.Must(loaded.Info()); info.Version != 5 || !reflect.DeepEqual(info.Scaling, m.Scaling) {
			t.Errorf("%s: version %d, scaling %v", kind, info.Version, info.Scaling)
		}
		bare := *m
		bare.Scaling = nil
		for name, points := range z {
			product := mat.NewDense(6, 3, nil)
			row := make([]float64, 3)
			for i := range 6 {
				points.RowTo(row, i)
				for j := range row {
					row[j] = (row[j] - m.Scaling.Shift[j]) * m.Scaling.Scale[j]
				}
				var lz mat.VecDense
				lz.MulVec(mat.NewDense(3, 3, m.Scaling.Matrix), mat.NewVecDense(3, row))
				product.SetRow(i, lz.RawVector().Data)
			}
			got, want := mustDecide(t, loaded, points, nil), reference(&bare, dense(product))
			if !mat.EqualApprox(got, want, 1e-5*mat.Norm(want, 2)) {
				t.Errorf("%s, %s: %v, want %v", kind, name, got, want)
			}
		}
	}
}

// dense returns the points whose coordinates are the rows of m.
func dense(m *mat.Dense) *points.Dense {
	n, d := m.Dims()
	return points.NewDense(n, d, m.RawMatrix().Data)
}

// TestDigest checks that a copy of a model file has the same digest, and that a model with another λ or coefficient
// has another one.
func TestDigest(t *testing.T) {
	x := kinds(7, 3, 1)["float64"]
	var all []*Model
	for range 4 {
		all = append(all, random(kernels[0], x, 1))
	}
	all[2].Lambda *= 2
	all[3].C.Set(6, 0, 0.5)
	var texts []string
	for i, m := range all {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i))
		testkit.OK(t, m.Save(name))
		texts = append(texts, string(Digest(name)))
	}
	if texts[0] == "" || texts[0] != texts[1] || texts[0] == texts[2] || texts[0] == texts[3] {
		t.Errorf("%q", texts)
	}
	testkit.Equal(t, len(Digest("no such file")), 0)
}

// TestSaveFails checks that a model that cannot be saved leaves no file and does not change a file that was there.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m.krr")
	testkit.OK(t, os.WriteFile(name, []byte("precious"), 0o644))
	x := kinds(7, 3, 1)["float64"]
	own := random(kernel.Func{Name: "own", F: kernels[0].Eval}, x, 1)
	short := random(kernels[0], x, 1)
	short.C = mat.NewDense(6, 1, nil)
	named := random(kernels[0], x, 1)
	named.Columns = []string{"a", "b"}
	lost := random(kernels[0], x, 1)
	lost.Origin.TrueResidual = new(math.NaN())
	for want, m := range map[string]*Model{"the residual of its answer is NaN": lost, "own": own,
		"6 rows of coefficients for 7 points": short, "2 names for 3 features": named} {
		testkit.Fails(t, m.Save(name), want)
	}
	if err := random(kernels[0], x, 1).Save(filepath.Join(dir, "no", "m.krr")); err == nil {
		t.Error("saved to a folder that is not there")
	}
	if b, _ := os.ReadFile(name); string(b) != "precious" {
		t.Errorf("the old file is %q", b)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}

// TestDamaged checks that a file that is cut short is refused. A file with one changed byte must be refused or give
// the model that was saved, because some bytes of a zip archive have no meaning.
func TestDamaged(t *testing.T) {
	z := kinds(4, 3, 5)["float64"]
	all := models()
	for _, m := range []*Model{all[1], all[6], all[11]} {
		file := save(t, m)
		want := mustDecide(t, m, z, nil)
		for cut := range file {
			if _, err := read(file[:cut]); err == nil {
				t.Fatalf("%T: the first %d of %d bytes are taken for a model", m.X, cut, len(file))
			}
		}
		refused := 0
		for i := range file {
			bad := bytes.Clone(file)
			bad[i] ^= 0x41
			got, err := read(bad)
			if err != nil {
				refused++
				continue
			}
			if !mat.Equal(mustDecide(t, got, z, nil), want) || !reflect.DeepEqual(got.Labels, m.Labels) {
				t.Fatalf("%T: with byte %d changed another model is read", m.X, i)
			}
		}
		if refused < len(file)/2 {
			t.Errorf("%T: %d of %d changes are seen", m.X, refused, len(file))
		}
	}
}

// rewrite returns the archive b with the contents of one entry replaced by f of them. If f returns nil, the entry is
// removed.
func rewrite(t testing.TB, b []byte, name string, f func([]byte) []byte) []byte {
	t.Helper()
	r := testkit.Must(zip.NewReader(bytes.NewReader(b), int64(len(b))))
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range r.File {
		data := testkit.Must(fs.ReadFile(r, e.Name))
		if e.Name == name {
			if data = f(data); data == nil {
				continue
			}
		}
		dst := testkit.Must(w.Create(e.Name))
		dst.Write(data)
	}
	w.Close()
	return out.Bytes()
}

// entry returns the contents of an entry of the archive b.
func entry(t testing.TB, b []byte, name string) (data []byte) {
	t.Helper()
	rewrite(t, b, name, func(b []byte) []byte { data = b; return b })
	return data
}

// TestContradictions checks that a complete archive with contradictory or wrong contents is refused with a reason.
func TestContradictions(t *testing.T) {
	dense, sparse := random(kernels[0], kinds(7, 3, 1)["float64"], 1), random(kernels[0], kinds(7, 3, 1)["sparse"], 1)
	swap := func(old, replacement string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				t.Fatalf("no %q in %q", old, b)
			}
			return bytes.ReplaceAll(b, []byte(old), []byte(replacement))
		}
	}
	setColumn := func(v byte) func([]byte) []byte { // sets the lowest byte of the last column index, an int32
		return func(b []byte) []byte { b[len(b)-4] = v; return b }
	}
	array := func(data any, shape ...int) func([]byte) []byte {
		return func([]byte) []byte {
			var w bytes.Buffer
			testkit.OK(t, npy.Write(&w, data, shape...))
			return w.Bytes()
		}
	}
	calibrated := random(kernels[0], kinds(7, 3, 1)["float64"], 1)
	calibrated.Calibration = &Calibration{Method: "split", Scores: mat.NewDense(3, 1, []float64{0, 0.5, math.Inf(1)})}
	drop := func([]byte) []byte { return nil }
	for _, c := range []struct {
		m     *Model
		entry string
		f     func([]byte) []byte
		want  string
	}{
		{dense, "model.json", drop, "not a model file: model.json is missing"},
		{dense, "model.json", func([]byte) []byte { return []byte("{") }, "model.json"},
		{dense, "model.json", swap("krrlab-model", "other"), "not a model file"},
		{dense, "model.json", swap(`"version": 1`, `"version": 6`), "version 6"},
		{dense, "model.json", swap(`"points": "dense",`, `"points": "dense", "mean": [1, 2],`),
			"means [1 2] of the targets"},
		{dense, "model.json", swap(`"n": 7`, `"n": 8`), "shape is [7 1], want [8 1]"},
		{dense, "model.json", swap(`"n": 7`, `"n": 0`), "n=0"},
		{dense, "model.json", swap(`"n": 7`, `"n": 2147483648`), "n=2147483648"},
		{dense, "model.json", swap(`"n": 7`, `"n": 2147483647`), "shape is"},
		{dense, "model.json", swap(`"d": 3`, `"d": 0`), "d=0"},
		{dense, "model.json", swap(`"t": 1`, `"t": 0`), "t=0"},
		{dense, "model.json", swap(`"d": 3`, `"d": 4`), "shape is [7 3]"},
		{dense, "model.json", swap(`"t": 1`, `"t": 2`), "shape"},
		{dense, "model.json", swap(`"regression"`, `"classification"`), "task"},
		{dense, "model.json", swap(`"gaussian"`, `"cubic"`), "cubic"},
		{dense, "model.json", swap(`1.5`, `-1.5`), "sigma"},
		{dense, "model.json", swap(`"dense"`, `"odd"`), `points are "odd"`},
		{dense, "model.json", swap(`"lambda": 0.25`, `"lambda": -1`), "λ = -1"},
		{dense, "model.json", swap(`"dense"`, `"csr"`), "x_indptr.npy is missing"},
		{dense, "c.npy", drop, "c.npy is missing"},
		{dense, "c.npy", func(b []byte) []byte { return append(b, 0) }, "more bytes"},
		{dense, "c.npy", func(b []byte) []byte { return b[:len(b)-1] }, "c.npy"},
		{dense, "x.npy", drop, "x.npy is missing"},
		{sparse, "x_indices.npy", setColumn(3), "column 3"},
		{sparse, "x_indices.npy", func(b []byte) []byte { b[len(b)-1] = 0xff; return b }, "column -"},
		{sparse, "x_indptr.npy", func(b []byte) []byte { b[len(b)-8]++; return b }, "offsets"},
		{sparse, "x_indptr.npy", func(b []byte) []byte { b[len(b)-16] = 0; return b }, "row"},
		{sparse, "x_indptr.npy", func(b []byte) []byte { b[len(b)-9] = 0x80; return b }, "row"},
		{dense, "x.npy", array(make([]int32, 21), 7, 3), ": elements are of type "},
		{dense, "c.npy", array(make([]float32, 7), 7, 1), ": elements are of type "},
		{sparse, "x_indptr.npy", array(make([]int32, 8), 8), ": elements are of type "},
		{sparse, "x_data.npy", array(make([]float32, 3), 3), ": elements are of type "},
		{calibrated, "scores.npy", array([]float64{2, 1}, 2, 1), "damaged model"},
		{calibrated, "scores.npy", array([]float64{1, 2}, 1, 2), "damaged model"},
		{calibrated, "scores.npy", array([]float64{}, 0, 1), "damaged model"},
	} {
		_, err := read(rewrite(t, save(t, c.m), c.entry, c.f))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s of %T: error %v, want one with %q", c.entry, c.m.X, err, c.want)
		}
	}
	testkit.Fails(t, testkit.ErrOf(Load(filepath.Join(t.TempDir(), "none.krr"))), "none.krr")
	name := filepath.Join(t.TempDir(), "text.krr")
	testkit.OK(t, os.WriteFile(name, []byte("hello"), 0o644))
	if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "text.krr") ||
		!strings.Contains(err.Error(), "not a model") {
		t.Errorf("text: %v", err)
	}
}

// TestNumPy checks that NumPy can read the file and compute the same predictions from it.
func TestNumPy(t *testing.T) {
	python := testkit.Python(t, "numpy", "python3-numpy")
	const script = `
import json, sys, numpy as np
m = np.load(sys.argv[1])
meta = json.loads(m["model.json"])
c = m["c"]
if meta["points"] == "dense":
    x = m["x"]
else:
    x = np.zeros((meta["n"], meta["d"]))
    p = m["x_indptr"]
    for i in range(meta["n"]):
        x[i, m["x_indices"][p[i]:p[i+1]]] = m["x_data"][p[i]:p[i+1]]
assert c.shape == (meta["n"], meta["t"]) and x.shape == (meta["n"], meta["d"]), (c.shape, x.shape)
z = np.zeros(meta["d"])
k = np.exp(-((x - z) ** 2).sum(axis=1) / (2 * meta["kernel"]["sigma"] ** 2))
print(*[repr(float(v)) for v in k @ c + meta.get("mean", 0)])
`
	for _, kind := range []string{"float64", "float32", "sparse", "centered"} {
		x := kinds(7, 3, 1)[cmp.Or(strings.TrimPrefix(kind, "centered"), "float64")]
		m := random(kernels[0], x, 3, "a", "b", "c")
		if kind == "centered" {
			m = random(kernels[0], x, 1)
			m.Mean = []float64{50}
		}
		name := filepath.Join(t.TempDir(), "m.krr")
		testkit.OK(t, m.Save(name))
		out, err := exec.CommandContext(t.Context(), python, "-c", script, name).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s", kind, out)
		}
		want := mustDecide(t, m, points.NewDense(1, 3, nil), &Options{Float64: true})
		for j, f := range strings.Fields(string(out)) {
			var v float64
			if _, err := fmt.Sscan(f, &v); err != nil || math.Abs(v-want.At(0, j)) > 1e-6 {
				t.Errorf("%s: NumPy's f_%d is %s, want %g", kind, j, f, want.At(0, j))
			}
		}
	}
}

// TestMemory checks that a file is refused before its arrays are allocated if they do not fit into the available
// memory, or if its sparse points have more features than a dense vector may have.
func TestMemory(t *testing.T) {
	defer func(b int64) { uncheckedBytes = b }(uncheckedBytes)
	uncheckedBytes = 0
	dense, sparse := random(kernels[0], kinds(700, 3, 1)["float64"], 1), random(kernels[0], kinds(7, 3, 1)["sparse"], 1)
	wide := *sparse.X.(*points.CSR)
	wide.D = math.MaxInt32
	sparse.X = &wide
	for _, c := range []struct {
		m    *Model
		left int64
		want string
	}{
		{dense, 0, ""}, // 0 means that the available memory is unknown
		{dense, 1, "c.npy: an array of the model would take 5.73 kB of memory"},
		{dense, 10000, "x.npy: an array of the model would take 16.9 kB of memory"}, // 700·3·8 and a header; c.npy takes 5,728
		{dense, 5000, "c.npy: an array of the model would take 5.73 kB of memory"},
		{dense, 22000, "x.npy: an array of the model would take 16.9 kB of memory, and 16.3 kB of 22 kB are free"},
		{dense, 23000, ""},
		{sparse, 1 << 34, "would take 68.7 GB of memory, and 17.2 GB of 17.2 GB are free"},
		{sparse, 1 << 40, ""},
	} {
		b := save(t, c.m)
		_, err := readArchive(bytes.NewReader(b), int64(len(b)), accel.Budget{Limit: c.left})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes left: %v, want %q", c.left, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "damaged") {
			t.Errorf("%d bytes left: %v, but the file is good", c.left, err)
		}
	}
}

// TestSmallModelsAreRead checks that a model whose arrays take less than uncheckedBytes is read whatever the budget is,
// even if other data take more than that already.
func TestSmallModelsAreRead(t *testing.T) {
	b := save(t, random(kernels[0], kinds(700, 3, 1)["float64"], 1))
	for _, memory := range []accel.Budget{{Limit: 1}, {Limit: 1, Used: 2 * uncheckedBytes}} {
		testkit.Must(readArchive(bytes.NewReader(b), int64(len(b)), memory))
	}
}

// FuzzRead checks that no contents of the entries, and no changed byte of the archive, make readArchive panic or return
// a model that cannot predict. The fuzzer changes small entries, from which the test makes an archive. It therefore
// does not waste its time on bytes that a checksum protects, and can shorten what it has found quickly.
func FuzzRead(f *testing.F) {
	add := func(m *Model, names ...string) {
		b := save(f, m)
		var parts [3][]byte
		for i, name := range names {
			parts[i] = entry(f, b, name)
		}
		var js bytes.Buffer
		testkit.OK(f, json.Compact(&js, entry(f, b, "model.json")))
		f.Add(js.Bytes(), entry(f, b, "c.npy"), parts[0], parts[1], parts[2], uint16(0), byte(0))
	}
	for _, kind := range []string{"float64", "float32"} {
		m := random(kernels[0], kinds(2, 2, 1)[kind], 1)
		m.Origin = Origin{}
		add(m, "x.npy")
	}
	m := random(kernels[4], kinds(2, 2, 1)["sparse"], 3, "a", "b", "c")
	m.Origin = Origin{}
	add(m, "x_indptr.npy", "x_indices.npy", "x_data.npy")
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1) // the same coverage each time
	f.Fuzz(func(t *testing.T, meta, c, x, col, val []byte, at uint16, mask byte) {
		var file bytes.Buffer
		z := zip.NewWriter(&file)
		entries := []struct {
			name string
			data []byte
		}{{"model.json", meta}, {"c.npy", c}, {"x.npy", x}, {"x_indptr.npy", x}, {"x_indices.npy", col},
			{"x_data.npy", val}}
		for _, e := range entries {
			w := testkit.Must(z.CreateHeader(&zip.FileHeader{Name: e.name, Method: zip.Store}))
			w.Write(e.data)
		}
		testkit.OK(t, z.Close())
		b := file.Bytes()
		b[int(at)%len(b)] ^= mask
		m, err := read(b)
		if err != nil {
			return
		}
		n, d, k := m.Dims()
		if n*d*k > 1000 {
			return
		}
		// A model that was read can predict, except that its kernel values may overflow.
		if _, err := m.Decision(t.Context(), points.NewDense(1, d, nil), nil); err != nil &&
			!strings.Contains(err.Error(), "kernel values overflow") {
			t.Fatal(err)
		}
	})
}

// TestCalibration checks that the scores of a calibration survive a file, and that invalid scores are refused when a
// model is saved. Models of classes may have negative scores.
func TestCalibration(t *testing.T) {
	ascending := mat.NewDense(3, 1, []float64{0, 0.5, math.Inf(1)})
	m := random(kernels[0], kinds(7, 3, 1)["float64"], 1)
	m.Calibration = &Calibration{Method: "split", Scores: ascending}
	got, err := read(save(t, m))
	if err != nil || got.Calibration.Method != "split" || !mat.Equal(got.Calibration.Scores, ascending) {
		t.Fatalf("%v, %+v", err, got.Calibration)
	}
	for _, c := range map[string]*mat.Dense{
		"none": nil, "two columns": mat.NewDense(1, 2, nil), "descending": mat.NewDense(2, 1, []float64{2, 1}),
		"negative": mat.NewDense(2, 1, []float64{-1, 1}), "NaN": mat.NewDense(2, 1, []float64{math.NaN(), 1}),
	} {
		m.Calibration = &Calibration{Method: "split", Scores: c}
		testkit.Fails(t, m.check(), "ascending")
	}
	m.Labels, m.Calibration.Scores = []string{"a", "b"}, mat.NewDense(2, 1, []float64{-1, 1})
	if err := m.check(); err != nil {
		t.Errorf("margins of classes: %v", err)
	}
}

// TestGroups checks that a file keeps the groups of the rows, and that groups of another length are refused.
func TestGroups(t *testing.T) {
	repeated := datasets.SyntheticRegression(20, 2, 0.1, 1).Subset(append(make([]int, 19), 1))
	d := testkit.Must(repeated.GroupByRule("together", nil))
	m := random(kernel.Gaussian{Sigma: 1}, d.X, 1)
	m.Groups, m.Repeats = d.Groups, d.Repeats
	file := filepath.Join(t.TempDir(), "m.krr")
	testkit.OK(t, m.Save(file))
	if got := testkit.Must(Load(file)); !slices.Equal(got.Groups, d.Groups) || *got.Repeats != *d.Repeats {
		t.Errorf("%v, %+v", got.Groups, got.Repeats)
	}
	m.Groups = m.Groups[1:]
	testkit.Fails(t, m.Save(file), "19 numbers of groups for 20 points")
}
