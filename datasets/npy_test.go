package datasets

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// npyFile returns the content of a .npy file with the given array.
func npyFile(t testing.TB, data any, shape ...int) string {
	t.Helper()
	var buffer bytes.Buffer
	if err := npy.Write(&buffer, data, shape...); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// rawNPYFile returns the content of a .npy file of an element type that package npy does not write, with the given
// bytes as elements in Fortran order.
func rawNPYFile(descr, shape, elements string) string {
	header := "{'descr': '" + descr + "', 'fortran_order': True, 'shape': " + shape + ", }\n"
	return npy.Magic + "\x01\x00" + string([]byte{byte(len(header)), 0}) + header + elements
}

// TestArrays checks matrices with their answers in a column or in a separate array, with all names and shapes of
// arrays that are recognized.
func TestArrays(t *testing.T) {
	table := []float64{1, 2, 3.5, 4, 5, 6.5}
	// archiveOf returns an archive of the points [[1 2] [4 5]], the answers [3.5 6.5] and vectors [7 7] with these
	// names.
	archiveOf := func(names ...string) string {
		files := []string{names[0] + ".npy", npyFile(t, []float32{1, 2, 4, 5}, 2, 2), names[1] + ".npy",
			npyFile(t, []float64{3.5, 6.5}, 2)}
		for _, name := range names[2:] {
			files = append(files, name+".npy", npyFile(t, []float64{7, 7}, 2))
		}
		return zipFiles(t, files...)
	}
	matrix := npyFile(t, []float64{1, 2, 4, 5}, 2, 2)
	names := rawNPYFile("<U2", "(2,)", "a\x00\x00\x00\x00\x00\x00\x00y\x00\x00\x002\x00\x00\x00")
	medical := zipFiles(t, "train_images.npy", npyFile(t, []uint8{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2), "train_labels.npy",
		npyFile(t, []float64{.5, 1.5}, 2, 1), "test_images.npy", npyFile(t, []uint8{9, 8, 7, 6}, 1, 2, 2),
		"test_labels.npy",
		npyFile(t, []float64{7.5}, 1, 1))
	checkReadings(t, []reading{
		{"matrix", npyFile(t, table, 2, 3), ReadOptions{},
			"[[1 2] [4 5]] [3.5 6.5] [] [] []\nf: npy, of shape [2 3]; 2 rows of 2 features; target column 2"},
		{"column", npyFile(t, table, 2, 3), ReadOptions{Target: "0"}, "[[2 3.5] [5 6.5]] [1 4] [] [] []"},
		{"drop", npyFile(t, []float32{1, 2, 3.5, 4, 5, 6.5}, 2, 3), ReadOptions{Drop: []string{"0"},
			Task: "regression"},
			"[[2] [5]] [3.5 6.5] [] [] []\nf: npy, of shape [2 3]; 2 rows of 1 features; target column 2 (counted " +
				"from 0); left out \"0\""},
		{"predicted", npyFile(t, table, 2, 3), ReadOptions{Target: "-1", TargetOptional: true, Dim: 3},
			"[[1 2 3.5] [4 5 6.5]] [] [] [] []"},
		{"rows", npyFile(t, table, 3, 2), ReadOptions{MaxRows: 2}, "[[1] [3.5]] [2 4] [] [] []"},
		{"pictures", npyFile(t, []uint8{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2), ReadOptions{Target: "none"},
			"[[1 2 3 4] [5 6 7 8]] [] [] [] []\nf: npy, of shape [2 2 2]"},
		{"Fortran", rawNPYFile(">i2", "(2, 2)", "\x00\x01\x00\x02\xff\xff\x00\x04"), ReadOptions{Target: "none"},
			"[[1 -1] [2 4]] [] [] [] []"},
		{"names", zipFiles(t, "X.npy", matrix, "y.npy", npyFile(t, []float64{3.5, 6.5}, 2), "columns.npy", names),
			ReadOptions{}, "[[1 2] [4 5]] [3.5 6.5] [] [] [a y2]"},
		{"too many names", zipFiles(t, "X.npy", npyFile(t, []float64{1, 2, 3}, 3, 1), "y.npy", npyFile(t, []float64{4,
			5, 6.5}, 3),
			"columns.npy", names), ReadOptions{}, "[[1] [2] [3]] [4 5 6.5] [] [] []\nf: npy: points X of shape [3 1], " +
			"answers y; 3 rows of 1 features; arrays not read: columns of shape [2]"},
		{"other order", zipFiles(t, "X.npy", matrix, "columns.npy", names),
			ReadOptions{Columns: []string{"y2", "a"}, Dim: 2, TargetOptional: true}, "[[2 1] [5 4]] [] [] [] [y2 a]"},
		{"other names", zipFiles(t, "X.npy", matrix, "columns.npy", names),
			ReadOptions{Columns: []string{"y2", "b"}, Dim: 2, TargetOptional: true},
			`!f: the columns "b" of the model are missing: there are "a", "y2"`},
		{"ids", npyFile(t, []int64{1, 900719925474099301, 2, 900719925474099302}, 2, 2),
			ReadOptions{Task: "classification"},
			"[[1] [2]] [] [900719925474099301 900719925474099302] [0 1] []"},
		{"packed", packText(t, "xz", npyFile(t, table, 2, 3)), ReadOptions{},
			"[[1 2] [4 5]] [3.5 6.5] [] [] []\nf: unpacked from xz"},
		{"X and y", archiveOf("X", "y"), ReadOptions{},
			"[[1 2] [4 5]] [3.5 6.5] [] [] []\nf: npy: points X of shape [2 2], answers y"},
		{"other names", archiveOf("data", "price"), ReadOptions{Target: "-1"},
			"[[1 2] [4 5]] [3.5 6.5] [] [] []\nf: npy: points data of shape [2 2], answers price"},
		{"answers by name", archiveOf("X", "y", "z"), ReadOptions{Target: "z"},
			"[[1 2] [4 5]] [7 7] [] [] []\nf: npy: points X of shape [2 2], answers z"},
		{"no answers wanted", archiveOf("X", "y"), ReadOptions{Target: "none"}, "[[1 2] [4 5]] [] [] [] []"},
		{"one array", zipFiles(t, "a.npy", npyFile(t, table, 2, 3)), ReadOptions{},
			"[[1 2] [4 5]] [3.5 6.5] [] [] []\nf: npy: points a"},
		{"labels", zipFiles(t, "X.npy", npyFile(t, table, 2, 3), "y.npy",
			rawNPYFile("<U2", "(2,)", "n\x00\x00\x00o\x00\x00\x00\xfc\x00\x00\x00\x00\x00\x00\x00")),
			ReadOptions{},
			"[[1 2 3.5] [4 5 6.5]] [] [no ü] [0 1] []\nf: npy: points X of shape [2 3], answers y; 2 rows of 3 " +
				"features; labels no (1), ü (1)"},
		{"one column", npyFile(t, []float64{1, 2}, 2), ReadOptions{AnswersOnly: true}, "[[] []] [1 2] [] [] []"},
		{"Keras", archiveOf("x_train", "y_train", "x_test", "y_test"), ReadOptions{},
			"[[1 2] [4 5]] [3.5 6.5] [] [] []\nf: npy: points x_train of shape [2 2], answers y_train; 2 rows of 2 features; " +
				"arrays not read: x_test of shape [2], y_test of shape [2]"},
		{"MedMNIST", medical, ReadOptions{}, "[[1 2 3 4] [5 6 7 8]] [0.5 1.5] [] [] []"},
		{"its test part", medical, ReadOptions{TestPart: true, Dim: 4, DimSource: "f"}, "[[9 8 7 6]] [7.5] [] [] []"},
		{"two test parts", zipFiles(t, "test_images.npy", matrix, "x_test.npy", npyFile(t, []float64{6, 7, 8, 9}, 2,
			2)),
			ReadOptions{TestPart: true, Target: "none"}, "[[6 7] [8 9]] [] [] [] []"},
		{"points by name", medical, ReadOptions{PointsArray: "test_images", Target: "none"}, "[[9 8 7 6]] [] [] [] []"},
		{"scikit-learn", archiveOf("data", "target"), ReadOptions{}, "[[1 2] [4 5]] [3.5 6.5]"},
		{"without names", zipFiles(t, "arr_0.npy", matrix, "arr_1.npy", npyFile(t, []float64{.5, 1.5}, 2, 1)),
			ReadOptions{},
			"[[1 2] [4 5]] [0.5 1.5]"},
		{"a row of answers", zipFiles(t, "X.npy", matrix, "Y.npy", npyFile(t, []float64{.5, 1.5}, 1, 2)), ReadOptions{},
			"[[1 2] [4 5]] [0.5 1.5]"},
		{"two targets", zipFiles(t, "X.npy", matrix, "y.npy", matrix), ReadOptions{},
			"[[1 2] [4 5]] [1 4] [] [] []\nf: npy: points X of shape [2 2], answers y; 2 rows of 2 features; further targets \"y_1\""},
		{"two targets again", zipFiles(t, "X.npy", matrix, "y.npy", matrix),
			ReadOptions{Target: "y_0", MoreTargets: []string{"y_1"}, TargetOptional: true, Dim: 2}, "[[1 2] [4 5]] [1 4]"},
		{"weights", archiveOf("X", "y", "w"), ReadOptions{Weights: "w"}, "weights in column 4"},
		{"not read", archiveOf("X", "y", "w"), ReadOptions{}, "arrays not read: w of shape [2]"},
		{"booleans", zipFiles(t, "X.npy", rawNPYFile("|b1", "(2, 1)", "\x01\x00"), "y.npy", rawNPYFile("|b1", "(2,)",
			"\x00\x01")),
			ReadOptions{}, "[[1] [0]] [] [False True] [0 1] []"},
	})
}

// TestArrayFaults checks that damaged, unsuitable and too large arrays are refused with a reason.
func TestArrayFaults(t *testing.T) {
	damaged := []byte(zipFiles(t, "X.npy", npyFile(t, []float64{1, 2, 3, 4}, 2, 2), "y.npy", npyFile(t, []float64{1, 2},
		2)))
	damaged[bytes.Index(damaged, []byte("PK\x01\x02"))+16] ^= 1
	nan, matrix := npyFile(t, []float64{1, 2, 3, 4, math.NaN(), math.NaN()}, 3, 2), npyFile(t, []float64{1, 2, 3, 4}, 2,
		2)
	checkReadings(t, []reading{
		{"cut", matrix[:len(matrix)-3], ReadOptions{}, "!the file is cut short; get it again"},
		{"checksum in an archive", string(damaged), ReadOptions{}, "!bad checksum: the file is damaged"},
		{"checksum of gzip", gzipText(matrix)[:len(gzipText(matrix))-8] + "\x00\x00\x00\x00\xa0\x00\x00\x00",
			ReadOptions{},
			"!bad checksum: the file is damaged"},
		{"not finite", nan, ReadOptions{Target: "none"}, "!add --impute median"},
		{"huge", rawNPYFile("<f8", "(4000000000, 2)", ""), ReadOptions{Memory: 1 << 20},
			"!would take 64 GB of memory, and 1.05 MB of 1.05 MB are free"},
		{"bytes as float64", npyFile(t, make([]uint8, 1<<20), 1<<10, 1<<10), ReadOptions{Target: "none",
			Memory: 2 << 20},
			"!more than 1023 rows would take 9.44 MB of memory, and 2.1 MB of 2.1 MB are free"},
		{"many texts", rawNPYFile("<U1000", "(400000000000, 2)", ""), ReadOptions{Memory: 1 << 20},
			"!1.05 MB of 1.05 MB are free"},
		{"complex", rawNPYFile("<c8", "(1, 2)", "0123456789abcdef"), ReadOptions{},
			"!neither numbers nor short texts: convert them by astype"},
		{"empty", npyFile(t, []float64{}, 0, 3), ReadOptions{}, "!the array has shape [0 3]: no rows"},
		{"empty answers", zipFiles(t, "X.npy", matrix, "y.npy", npyFile(t, []float64{}, 2, 0)), ReadOptions{},
			"!the array y has shape [2 0]: no rows or no columns"},
		{"one column", npyFile(t, []float64{1, 2}, 2), ReadOptions{},
			"!one column only: no features beside the target"},
		{"target by name", matrix, ReadOptions{Target: "price"}, `!no column is named "price"`},
		{"target beyond", matrix, ReadOptions{Target: "2"}, "!column 2: the rows have 2 columns"},
		{"width", matrix, ReadOptions{Dim: 4, Target: "none"}, "!points have 2 features, want 4"},
		{"words", zipFiles(t, "X.npy", rawNPYFile("|S1", "(2, 2)", "abcd"), "y.npy", npyFile(t, []float64{1, 2}, 2)),
			ReadOptions{}, "!columns that are no numbers"},
		{"two matrices", zipFiles(t, "a.npy", matrix, "b.npy", matrix), ReadOptions{},
			"!no array is named X, and not just one is a matrix: there are a of shape [2 2], b of shape [2 2]"},
		{"two vectors", zipFiles(t, "X.npy", matrix, "a.npy", npyFile(t, []float64{1, 2}, 2), "b.npy",
			npyFile(t, []float64{1, 2}, 2)), ReadOptions{}, "!name the answers by --target"},
		{"unknown vector", zipFiles(t, "X.npy", matrix, "y.npy", npyFile(t, []float64{1, 2}, 2)),
			ReadOptions{Target: "z"},
			`!no array is named "z"`},
		{"lengths", zipFiles(t, "X.npy", matrix, "y.npy", npyFile(t, []float64{1, 2, 3}, 3)), ReadOptions{},
			"!3 answers y, and 2 points X"},
		{"two targets", zipFiles(t, "X.npy", matrix, "y.npy", matrix), ReadOptions{Task: "classification"},
			"!the answers y have 2 columns: several targets need --task regression"},
		{"two arrays", matrix + matrix, ReadOptions{}, "!a second array follows the first"},
		{"more bytes", matrix + "x", ReadOptions{}, "!more bytes follow the array, of shape [2 2]"},
		{"pictures", npyFile(t, make([]uint8, 8), 2, 2, 2), ReadOptions{},
			"!an array of shape [2 2 2] has no column of answers"},
		{"named fields", rawNPYFile("[('a', '<f8')]", "(2,)", strings.Repeat("\x00", 16)), ReadOptions{},
			"!a structured array, of named fields: write it by pandas.DataFrame"},
		{"SciPy", zipFiles(t, "indices.npy", npyFile(t, []int32{0}, 1), "indptr.npy", npyFile(t, []int32{0, 1}, 2),
			"shape.npy",
			npyFile(t, []int64{1, 1}, 2), "data.npy", npyFile(t, []float64{1}, 1)), ReadOptions{},
			"!a sparse matrix of SciPy"},
		{"SciPy diagonals", zipFiles(t, "offsets.npy", npyFile(t, []int32{0, 1}, 2), "shape.npy", npyFile(t, []int64{2,
			2}, 2),
			"data.npy", matrix), ReadOptions{Target: "none"}, "!a sparse matrix of SciPy"},
		{"no text", matrix, ReadOptions{Format: "csv"}, "!neither text"},
		{"text", "1,2\n3,4\n", ReadOptions{Format: "npy"}, "!not an array in .npy format"},
	})
	d, err := Read(strings.NewReader(nan), "file", &ReadOptions{Target: "none", KeepMissing: true})
	if err != nil || d.ReadReport.Missing != 2 {
		t.Fatalf("%v, %v, want 2 missing numbers", d, err)
	}
	if d, _, err = d.Impute("mean"); err != nil || !slices.Equal(d.X.(*points.Dense).Row(2), []float64{2, 3}) {
		t.Errorf("filled in: %v", err)
	}
}

// TestReadMatrix checks which files are read as a matrix of numbers, and the memory limit.
func TestReadMatrix(t *testing.T) {
	dir := t.TempDir()
	matrix := npyFile(t, []float64{1, 2, 3, 4}, 2, 2)
	for name, c := range map[string]struct{ file, wantErr string }{
		"float64": {matrix, ""}, "float32": {npyFile(t, []float32{1, 2, 3, 4}, 2, 2), ""},
		"bytes":   {npyFile(t, []uint8{1, 2, 3, 4}, 2, 2), ""},
		"Fortran": {rawNPYFile(">f2", "(2, 2)", "\x3c\x00\x42\x00\x40\x00\x44\x00"), ""},
		"packed":  {packText(t, "zstd", matrix), ""}, "npz": {zipFiles(t, "K.npy", matrix), ""},
		"vector": {npyFile(t, []float64{1, 2}, 2), "want a matrix of numbers"},
		"texts":  {rawNPYFile("|S1", "(2, 2)", "abcd"), "want a matrix of numbers"},
		"text":   {"1,2\n3,4\n", "not an array in .npy format"},
	} {
		x, err := ReadMatrix(t.Context(), writeFile(t, dir, "k.npy", c.file), 0)
		if c.wantErr != "" {
			wantError(t, err, c.wantErr)
			continue
		}
		row := make([]float64, 2)
		if err == nil {
			x.RowTo(row, 1)
		}
		if err != nil || !slices.Equal(row, []float64{3, 4}) {
			t.Errorf("%s: row 1 is %v, %v, want 3 and 4", name, row, err)
		}
	}
	path := writeFile(t, dir, "large.npy", npyFile(t, make([]float64, 10000), 100, 100))
	if _, err := ReadMatrix(t.Context(), path, 8); err == nil {
		t.Error("more memory was taken than allowed")
	}
}

// FuzzArrays checks that no bytes make the reader of arrays panic or accept numbers that are not finite.
func FuzzArrays(f *testing.F) {
	f.Add([]byte(npyFile(f, []float64{1, 2, 3, 4}, 2, 2)))
	f.Add([]byte(rawNPYFile(">f2", "(2, 2)", "abcdefgh")))
	f.Add([]byte(zipFiles(f, "X.npy", npyFile(f, []float32{1, 2}, 2, 1), "y.npy",
		rawNPYFile("<U1", "(2,)", "a\x00\x00\x00b\x00\x00\x00"))))
	f.Fuzz(func(t *testing.T, b []byte) { checkFuzzed(t, b, &ReadOptions{Format: "npy", Memory: 1 << 20}) })
}

// TestSelectColumns checks that columns in another order than in the array do not overwrite one another.
func TestSelectColumns(t *testing.T) {
	if got := selectColumns([]int{1, 2, 3, 4}, 2, 2, []int{1, 0}); !slices.Equal(got, []int{2, 1, 4, 3}) {
		t.Errorf("columns exchanged: %v, want 2 1 4 3", got)
	}
}
