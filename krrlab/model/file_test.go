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

// modelsOfAllKinds returns models of each format of points with each kernel, some with labels, scaling and column
// names, and models of points that are zero or slices.
func modelsOfAllKinds() []*Model {
	var models []*Model
	for i, format := range []string{"float64", "float32", "sparse", "bytes"} {
		x := pointsInFormats(7, 3, 1)[format]
		for j, k := range kernels {
			m := randomModel(k, x, []int{1, 3}[(i+j)%2])
			if (i+j)%2 == 1 {
				m.Labels = []string{"-1", "zwölf, 12", `"`}
			} else if j == 2 {
				m.Labels = []string{"no", "yes"}
			}
			if j == 1 {
				m.Scaling = exampleScaling(3)
				m.Columns = []string{"a", "b, c", `"d"`}
				if i == 0 {
					m.Scaling.Matrix = []float64{1, -2, 0.3, 0, 0.7, 1.1, -0.6, 0.2, 3}
				}
			}
			models = append(models, m)
		}
	}
	empty := &points.CSR{N: 2, D: 3, Ptr: []int{0, 0, 0}} // no nonzeros
	sliced := pointsInFormats(9, 3, 1)["sparse"].Slice(2, 6)
	return append(models, randomModel(kernels[0], empty, 1), randomModel(kernels[0], sliced, 1),
		randomModel(kernels[0], pointsInFormats(9, 3, 1)["float64"].Slice(3, 5), 1))
}

// savedBytes returns the contents of the file of a model.
func savedBytes(t testing.TB, m *Model) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.krr")
	testkit.OK(t, m.Save(name))
	return testkit.Must(os.ReadFile(name))
}

// readBytes reads a model from the bytes of its file.
func readBytes(file []byte) (*Model, error) {
	return readArchive(bytes.NewReader(file), int64(len(file)), accel.Budget{})
}

// TestLoadEqualsSaved checks that a loaded model equals the saved one, to the bit.
func TestLoadEqualsSaved(t *testing.T) {
	for _, m := range modelsOfAllKinds() {
		name := filepath.Join(t.TempDir(), "m.krr")
		testkit.OK(t, m.Save(name))
		got, err := Load(name)
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		n, d, _ := m.Dims()
		savedPoints, loadedPoints := make([]float64, n*d), make([]float64, n*d)
		points.RowsTo(m.X, savedPoints, d)
		points.RowsTo(got.X, loadedPoints, d)
		if !reflect.DeepEqual(savedPoints, loadedPoints) || fmt.Sprintf("%T", got.X) != fmt.Sprintf("%T", m.X) {
			t.Errorf("%v: the loaded points %T are not the saved %T", m, got.X, m.X)
		}
		if !mat.Equal(got.C, m.C) || got.Kernel != m.Kernel || got.Lambda != m.Lambda ||
			!reflect.DeepEqual(got.Origin, m.Origin) ||
			!reflect.DeepEqual(got.Labels, m.Labels) || !reflect.DeepEqual(got.Scaling, m.Scaling) ||
			!reflect.DeepEqual(got.Columns, m.Columns) {
			t.Errorf("saved\n%+v\nloaded\n%+v", m, got)
		}
		z := pointsInFormats(4, d, 5)["float64"]
		if !mat.Equal(decide(t, m, z, nil), decide(t, got, z, nil)) {
			t.Errorf("%v: predictions differ", m)
		}
	}
}

// TestScalingMatrixInFile checks a model whose scaling has a matrix. Its file has version 5, and the loaded model must
// predict raw points as the model without scaling predicts their products with the matrix.
func TestScalingMatrixInFile(t *testing.T) {
	z := pointsInFormats(6, 3, 5)
	for format, x := range pointsInFormats(7, 3, 1) {
		m := randomModel(kernel.Matern32{Sigma: 1.5}, x, 1)
		m.Scaling = exampleScaling(3)
		m.Scaling.Matrix = []float64{1, -2, 0.3, 0, 0.7, 1.1, -0.6, 0.2, 3}
		loaded := testkit.Must(readBytes(savedBytes(t, m)))
		if info := testkit.Must(loaded.Info()); info.Version != 5 || !reflect.DeepEqual(info.Scaling, m.Scaling) {
			t.Errorf("%s: version %d, scaling %v", format, info.Version, info.Scaling)
		}
		unscaled := *m
		unscaled.Scaling = nil
		for name, raw := range z {
			products := points.NewDense(6, 3, nil)
			row := make([]float64, 3)
			for i := range 6 {
				raw.RowTo(row, i)
				for j := range row {
					row[j] = (row[j] - m.Scaling.Shift[j]) * m.Scaling.Scale[j]
				}
				mat.NewVecDense(3, products.Row(i)).MulVec(mat.NewDense(3, 3, m.Scaling.Matrix),
					mat.NewVecDense(3, row))
			}
			got, want := decide(t, loaded, raw, nil), decideByDefinition(&unscaled, products)
			if !mat.EqualApprox(got, want, 1e-5*mat.Norm(want, 2)) {
				t.Errorf("a model of %s points at %s points: %v, want %v", format, name, got, want)
			}
		}
	}
}

// TestDigest checks that a copy of a model file has the same digest, and that a model with another λ or coefficient
// has another one.
func TestDigest(t *testing.T) {
	x := pointsInFormats(7, 3, 1)["float64"]
	var models []*Model
	for range 4 {
		models = append(models, randomModel(kernels[0], x, 1))
	}
	models[2].Lambda *= 2
	models[3].C.Set(6, 0, 0.5)
	var digests []string
	for i, m := range models {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i))
		testkit.OK(t, m.Save(name))
		digests = append(digests, string(Digest(name)))
	}
	if digests[0] == "" || digests[0] != digests[1] || digests[0] == digests[2] || digests[0] == digests[3] {
		t.Errorf("digests of a model, a copy, another λ and another coefficient: %q", digests)
	}
	testkit.Equal(t, len(Digest("no such file")), 0)
}

// TestSaveFails checks that a model that cannot be saved leaves no file and does not change a file that was there.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m.krr")
	testkit.OK(t, os.WriteFile(name, []byte("precious"), 0o644))
	x := pointsInFormats(7, 3, 1)["float64"]
	for want, change := range map[string]func(m *Model){
		"the residual of its answer is NaN": func(m *Model) { m.Origin.TrueResidual = new(math.NaN()) },
		"user-defined": func(m *Model) {
			m.Kernel = kernel.Func{Name: "user-defined",
				F: kernels[0].Eval}
		},
		"6 rows of coefficients for 7 points": func(m *Model) { m.C = mat.NewDense(6, 1, nil) },
		"2 names for 3 features":              func(m *Model) { m.Columns = []string{"a", "b"} },
	} {
		m := randomModel(kernels[0], x, 1)
		change(m)
		testkit.Fails(t, m.Save(name), want)
	}
	testkit.Fails(t, randomModel(kernels[0], x, 1).Save(filepath.Join(dir, "missing folder", "m.krr")),
		"missing folder")
	if content, _ := os.ReadFile(name); string(content) != "precious" {
		t.Errorf("the old file has become %q", content)
	}
	files, _ := os.ReadDir(dir)
	testkit.Equal(t, len(files), 1, "files in the folder")
}

// TestDamagedFile checks that a file that is cut short is refused. A file with one changed byte must be refused or give
// the model that was saved, because some bytes of a zip archive have no meaning.
func TestDamagedFile(t *testing.T) {
	z := pointsInFormats(4, 3, 5)["float64"]
	models := modelsOfAllKinds()
	for _, m := range []*Model{models[1], models[6], models[11]} {
		file := savedBytes(t, m)
		want := decide(t, m, z, nil)
		for cut := range file {
			if _, err := readBytes(file[:cut]); err == nil {
				t.Fatalf("%T: the first %d of %d bytes are taken for a model", m.X, cut, len(file))
			}
		}
		refused := 0
		for i := range file {
			bad := bytes.Clone(file)
			bad[i] ^= 0x41
			got, err := readBytes(bad)
			if err != nil {
				refused++
				continue
			}
			if !mat.Equal(decide(t, got, z, nil), want) || !reflect.DeepEqual(got.Labels, m.Labels) {
				t.Fatalf("%T: with byte %d changed another model is read", m.X, i)
			}
		}
		if refused < len(file)/2 {
			t.Errorf("%T: %d of %d changed bytes are refused, want at least half", m.X, refused, len(file))
		}
	}
}

// rewriteEntry returns the archive file with the contents of the named entry changed by edit. If edit returns nil, the
// entry is removed.
func rewriteEntry(t testing.TB, file []byte, name string, edit func([]byte) []byte) []byte {
	t.Helper()
	reader := testkit.Must(zip.NewReader(bytes.NewReader(file), int64(len(file))))
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, zipFile := range reader.File {
		data := testkit.Must(fs.ReadFile(reader, zipFile.Name))
		if zipFile.Name == name {
			if data = edit(data); data == nil {
				continue
			}
		}
		entryWriter := testkit.Must(writer.Create(zipFile.Name))
		entryWriter.Write(data)
	}
	writer.Close()
	return out.Bytes()
}

// entry returns the contents of an entry of the archive file.
func entry(t testing.TB, file []byte, name string) (data []byte) {
	t.Helper()
	rewriteEntry(t, file, name, func(content []byte) []byte { data = content; return content })
	return data
}

// TestInvalidContents checks that a complete archive with contradictory or wrong contents is refused with a reason.
func TestInvalidContents(t *testing.T) {
	dense, sparse := randomModel(kernels[0], pointsInFormats(7, 3, 1)["float64"], 1),
		randomModel(kernels[0], pointsInFormats(7, 3, 1)["sparse"], 1)
	replace := func(old, replacement string) func([]byte) []byte {
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
	calibrated := randomModel(kernels[0], pointsInFormats(7, 3, 1)["float64"], 1)
	calibrated.Calibration = &Calibration{Method: "split", Scores: mat.NewDense(3, 1, []float64{0, 0.5, math.Inf(1)})}
	remove := func([]byte) []byte { return nil }
	for _, c := range []struct {
		m      *Model
		entry  string              // name of the entry that is changed
		change func([]byte) []byte // returns the changed contents; nil removes the entry
		want   string              // part of the error
	}{
		{dense, "model.json", remove, "not a model file: model.json is missing"},
		{dense, "model.json", func([]byte) []byte { return []byte("{") }, "model.json"},
		{dense, "model.json", replace("krrlab-model", "other"), "not a model file"},
		{dense, "model.json", replace(`"version": 1`, `"version": 6`), "version 6"},
		{dense, "model.json", replace(`"points": "dense",`, `"points": "dense", "mean": [1, 2],`),
			"means [1 2] of the targets"},
		{dense, "model.json", replace(`"n": 7`, `"n": 8`), "shape is [7 1], want [8 1]"},
		{dense, "model.json", replace(`"n": 7`, `"n": 0`), "n=0"},
		{dense, "model.json", replace(`"n": 7`, `"n": 2147483648`), "n=2147483648"},
		{dense, "model.json", replace(`"n": 7`, `"n": 2147483647`), "shape is"},
		{dense, "model.json", replace(`"d": 3`, `"d": 0`), "d=0"},
		{dense, "model.json", replace(`"t": 1`, `"t": 0`), "t=0"},
		{dense, "model.json", replace(`"d": 3`, `"d": 4`), "shape is [7 3]"},
		{dense, "model.json", replace(`"t": 1`, `"t": 2`), "shape"},
		{dense, "model.json", replace(`"regression"`, `"classification"`), "task"},
		{dense, "model.json", replace(`"gaussian"`, `"cubic"`), "cubic"},
		{dense, "model.json", replace(`1.5`, `-1.5`), "sigma"},
		{dense, "model.json", replace(`"dense"`, `"odd"`), `points are "odd"`},
		{dense, "model.json", replace(`"lambda": 0.25`, `"lambda": -1`), "λ = -1"},
		{dense, "model.json", replace(`"dense"`, `"csr"`), "x_indptr.npy is missing"},
		{dense, "c.npy", remove, "c.npy is missing"},
		{dense, "c.npy", func(b []byte) []byte { return append(b, 0) }, "more bytes"},
		{dense, "c.npy", func(b []byte) []byte { return b[:len(b)-1] }, "c.npy"},
		{dense, "x.npy", remove, "x.npy is missing"},
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
		_, err := readBytes(rewriteEntry(t, savedBytes(t, c.m), c.entry, c.change))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s of %T: error %v, want one with %q", c.entry, c.m.X, err, c.want)
		}
	}
	// A kernel that another program has registered is unknown, but the file is not damaged.
	_, err := readBytes(rewriteEntry(t, savedBytes(t, dense), "model.json", replace(`"gaussian"`, `"mylab.cubic"`)))
	if testkit.Fails(t, err, "unknown kernel"); strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	testkit.Fails(t, testkit.ErrOf(Load(filepath.Join(t.TempDir(), "none.krr"))), "none.krr")
	name := filepath.Join(t.TempDir(), "text.krr")
	testkit.OK(t, os.WriteFile(name, []byte("hello"), 0o644))
	if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "text.krr") ||
		!strings.Contains(err.Error(), "not a model") {
		t.Errorf("a text file: error %v, want its name and that it is not a model", err)
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
	for _, format := range []string{"float64", "float32", "sparse", "centered"} {
		x := pointsInFormats(7, 3, 1)[cmp.Or(strings.TrimPrefix(format, "centered"), "float64")]
		m := randomModel(kernels[0], x, 3, "a", "b", "c")
		if format == "centered" {
			m = randomModel(kernels[0], x, 1)
			m.Mean = []float64{50}
		}
		name := filepath.Join(t.TempDir(), "m.krr")
		testkit.OK(t, m.Save(name))
		out, err := exec.CommandContext(t.Context(), python, "-c", script, name).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s", format, out)
		}
		want := decide(t, m, points.NewDense(1, 3, nil), &Options{Float64: true})
		for j, f := range strings.Fields(string(out)) {
			var v float64
			if _, err := fmt.Sscan(f, &v); err != nil || math.Abs(v-want.At(0, j)) > 1e-6 {
				t.Errorf("%s: NumPy's f_%d is %s, want %g", format, j, f, want.At(0, j))
			}
		}
	}
}

// TestLoadWithinMemory checks that a file is refused before its arrays are allocated if they do not fit into the
// available memory, or if its sparse points have more features than a dense vector may have.
func TestLoadWithinMemory(t *testing.T) {
	defer func(saved int64) { uncheckedBytes = saved }(uncheckedBytes)
	uncheckedBytes = 0
	dense := randomModel(kernels[0], pointsInFormats(700, 3, 1)["float64"], 1)
	sparse := randomModel(kernels[0], pointsInFormats(7, 3, 1)["sparse"], 1)
	manyFeatures := *sparse.X.(*points.CSR)
	manyFeatures.D = math.MaxInt32
	sparse.X = &manyFeatures
	for _, c := range []struct {
		m     *Model
		limit int64  // memory budget in bytes
		want  string // part of the error; "" if the model is read
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
		file := savedBytes(t, c.m)
		_, err := readArchive(bytes.NewReader(file), int64(len(file)), accel.Budget{Limit: c.limit})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("a limit of %d bytes: error %v, want %q", c.limit, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "damaged") {
			t.Errorf("a limit of %d bytes: the error says that the valid file is damaged: %v", c.limit, err)
		}
	}
}

// TestSmallModelsAreRead checks that a model whose arrays take less than uncheckedBytes is read whatever the budget is,
// even if other data take more than that already.
func TestSmallModelsAreRead(t *testing.T) {
	file := savedBytes(t, randomModel(kernels[0], pointsInFormats(700, 3, 1)["float64"], 1))
	for _, memory := range []accel.Budget{{Limit: 1}, {Limit: 1, Used: 2 * uncheckedBytes}} {
		testkit.Must(readArchive(bytes.NewReader(file), int64(len(file)), memory))
	}
}

// FuzzRead checks that no contents of the entries, and no changed byte of the archive, make readArchive panic or return
// a model that cannot predict. The fuzzer changes small entries, from which the test makes an archive. It therefore
// does not waste its time on bytes that a checksum protects, and can shorten what it has found quickly.
func FuzzRead(f *testing.F) {
	addSeed := func(m *Model, names ...string) {
		b := savedBytes(f, m)
		var parts [3][]byte
		for i, name := range names {
			parts[i] = entry(f, b, name)
		}
		var js bytes.Buffer
		testkit.OK(f, json.Compact(&js, entry(f, b, "model.json")))
		f.Add(js.Bytes(), entry(f, b, "c.npy"), parts[0], parts[1], parts[2], uint16(0), byte(0))
	}
	for _, format := range []string{"float64", "float32"} {
		m := randomModel(kernels[0], pointsInFormats(2, 2, 1)[format], 1)
		m.Origin = Origin{}
		addSeed(m, "x.npy")
	}
	m := randomModel(kernels[4], pointsInFormats(2, 2, 1)["sparse"], 3, "a", "b", "c")
	m.Origin = Origin{}
	addSeed(m, "x_indptr.npy", "x_indices.npy", "x_data.npy")
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1) // the same coverage each time
	// The contents of the entries are fuzzed, and the byte at the given position of the archive is changed by mask.
	f.Fuzz(func(t *testing.T, meta, c, x, col, val []byte, position uint16, mask byte) {
		var file bytes.Buffer
		zipWriter := zip.NewWriter(&file)
		entries := []struct {
			name string
			data []byte
		}{{"model.json", meta}, {"c.npy", c}, {"x.npy", x}, {"x_indptr.npy", x}, {"x_indices.npy", col},
			{"x_data.npy", val}}
		for _, e := range entries {
			w := testkit.Must(zipWriter.CreateHeader(&zip.FileHeader{Name: e.name, Method: zip.Store}))
			w.Write(e.data)
		}
		testkit.OK(t, zipWriter.Close())
		b := file.Bytes()
		b[int(position)%len(b)] ^= mask
		m, err := readBytes(b)
		if err != nil {
			return
		}
		n, d, columns := m.Dims()
		if n*d*columns > 1000 {
			return
		}
		// A model that was read can predict, except that its kernel values may overflow.
		if _, err := m.Decision(t.Context(), points.NewDense(1, d, nil), nil); err != nil &&
			!strings.Contains(err.Error(), "kernel values overflow") {
			t.Fatal(err)
		}
	})
}

// TestCalibrationInFile checks that the scores of a calibration survive a file, and that invalid scores are refused
// when a model is saved. Models of classes may have negative scores.
func TestCalibrationInFile(t *testing.T) {
	ascending := mat.NewDense(3, 1, []float64{0, 0.5, math.Inf(1)})
	m := randomModel(kernels[0], pointsInFormats(7, 3, 1)["float64"], 1)
	m.Calibration = &Calibration{Method: "split", Scores: ascending}
	got, err := readBytes(savedBytes(t, m))
	if err != nil || got.Calibration.Method != "split" || !mat.Equal(got.Calibration.Scores, ascending) {
		t.Fatalf("error %v, calibration %+v", err, got.Calibration)
	}
	for _, scores := range []*mat.Dense{nil, mat.NewDense(1, 2, nil), mat.NewDense(2, 1, []float64{2, 1}),
		mat.NewDense(2, 1, []float64{-1, 1}), mat.NewDense(2, 1, []float64{math.NaN(), 1})} {
		m.Calibration = &Calibration{Method: "split", Scores: scores}
		testkit.Fails(t, m.check(), "ascending")
	}
	m.Labels, m.Calibration.Scores = []string{"a", "b"}, mat.NewDense(2, 1, []float64{-1, 1})
	testkit.OK(t, m.check())
}

// TestGroupsInFile checks that a file keeps the groups of the rows, and that groups of another length are refused.
func TestGroupsInFile(t *testing.T) {
	repeated := datasets.SyntheticRegression(20, 2, 0.1, 1).Subset(append(make([]int, 19), 1))
	d := testkit.Must(repeated.GroupByRule("together", nil))
	m := randomModel(kernel.Gaussian{Sigma: 1}, d.X, 1)
	m.Groups, m.Repeats = d.Groups, d.Repeats
	file := filepath.Join(t.TempDir(), "m.krr")
	testkit.OK(t, m.Save(file))
	if got := testkit.Must(Load(file)); !slices.Equal(got.Groups, d.Groups) || *got.Repeats != *d.Repeats {
		t.Errorf("loaded groups %v and repeats %+v, want %v and %+v", got.Groups, got.Repeats, d.Groups, d.Repeats)
	}
	m.Groups = m.Groups[1:]
	testkit.Fails(t, m.Save(file), "19 numbers of groups for 20 points")
}
