package datasets

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/points"
)

// dense returns the points as rows.
func dense(x points.Points) [][]float64 {
	n, d := x.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, d)
		x.RowTo(rows[i], i)
	}
	return rows
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// bz2 is "1,2\n3,4\n" packed by bzip2.
const bz2 = "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x93\xb7\x0d\x0c\x00\x00\x02\x58\x00\x00\x10\x00\x04\x3c\x00\x20\x00\x30\xc0\x08\x69\xb2\x88\x23\x27\x8b\xb9\x22\x9c\x28\x48\x49\xdb\x86\x86\x00"

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		name, file string
		o          ReadOptions
		x          [][]float64
		target     []float64
		labels     []string
		class      []int
	}{
		{name: "plain", file: "1,2,3.5\n4,5,6.25\n", x: [][]float64{{1, 2}, {4, 5}}, target: []float64{3.5, 6.25}},
		{name: "no newline at the end", file: "1,2,3.5\n4,5,6", x: [][]float64{{1, 2}, {4, 5}}, target: []float64{3.5, 6}},
		{name: "crlf and blank lines", file: "\r\n1,2,3.5\r\n\r\n4,5,6\r\n\r\n", x: [][]float64{{1, 2}, {4, 5}}, target: []float64{3.5, 6}},
		{name: "header", file: "a,b,y\n1,2,3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "header quoted", file: "\"a\",\"b,c\",\"y\"\n1,2,3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "named target", file: "y,a\n1.5,2\n", o: ReadOptions{Target: "y"}, x: [][]float64{{2}}, target: []float64{1.5}},
		{name: "named target, text labels", file: "a,y\n1,u\n2,v\n", o: ReadOptions{Target: "y"}, x: [][]float64{{1}, {2}}, labels: []string{"u", "v"}, class: []int{0, 1}},
		{name: "numbers as names", file: "2020,2021\n1,2\n", o: ReadOptions{Target: "0"}, x: [][]float64{{2021}, {2}}, target: []float64{2020, 1}},
		{name: "first column", file: "7.5,1,2\n", o: ReadOptions{Target: "0"}, x: [][]float64{{1, 2}}, target: []float64{7.5}},
		{name: "from the end", file: "1,7.5,2\n", o: ReadOptions{Target: "-2"}, x: [][]float64{{1, 2}}, target: []float64{7.5}},
		{name: "none", file: "1,7,2\n", o: ReadOptions{Target: "none"}, x: [][]float64{{1, 7, 2}}},
		{name: "dim without target", file: "1,7\n", o: ReadOptions{Dim: 2}, x: [][]float64{{1, 7}}},
		{name: "dim with target", file: "1,7,0.5\n", o: ReadOptions{Dim: 2}, x: [][]float64{{1, 7}}, target: []float64{0.5}},
		{name: "text labels, no header", file: "1,2,cat\n3,4,dog\n5,6,cat\n", x: [][]float64{{1, 2}, {3, 4}, {5, 6}}, labels: []string{"cat", "dog"}, class: []int{0, 1, 0}},
		{name: "classes by task", file: "1,10\n2,9\n3,10.0\n", o: ReadOptions{Task: "classification"}, x: [][]float64{{1}, {2}, {3}}, labels: []string{"9", "10"}, class: []int{1, 0, 1}},
		{name: "classes guessed", file: strings.Repeat("1,0\n2,1\n", 5), labels: []string{"0", "1"}, class: []int{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
		{name: "regression by task", file: strings.Repeat("1,0\n2,1\n", 5), o: ReadOptions{Task: "regression"}, target: []float64{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
		{name: "semicolons", file: "1;2;3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "tabs", file: "1\t2\t3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "blanks", file: " 1  2 3.5 \n4 5   6.5\n", x: [][]float64{{1, 2}, {4, 5}}, target: []float64{3.5, 6.5}},
		{name: "spaces after commas", file: "1, 2, 3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "gzip", file: gzipped("1,2,3.5\n"), x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "bzip2", file: bz2, o: ReadOptions{Target: "none"}, x: [][]float64{{1, 2}, {3, 4}}},
		{name: "max rows", file: "1,2.5\n3,4.5\n5,oops\n", o: ReadOptions{MaxRows: 2}, x: [][]float64{{1}, {3}}, target: []float64{2.5, 4.5}},
		{name: "many blocks", file: strings.Repeat("1,2,0.5\n", 5003), target: slices.Repeat([]float64{0.5}, 5003)},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(strings.NewReader(c.file), "file", &c.o)
			if err != nil {
				t.Fatal(err)
			}
			if c.x != nil && !slices.EqualFunc(dense(d.X), c.x, slices.Equal) {
				t.Errorf("points %v, want %v", dense(d.X), c.x)
			}
			if !slices.Equal(d.Target, c.target) || !slices.Equal(d.Labels, c.labels) || !slices.Equal(d.Class, c.class) {
				t.Errorf("answers %v %q %v", d.Target, d.Labels, d.Class)
			}
		})
	}
}

func TestLIBSVM(t *testing.T) {
	long := "3 " + strings.Repeat(" ", 1<<19) + "2:5\n" // longer than any buffer
	d, err := Read(strings.NewReader("+1 1:0.5 3:2 # note\n# nothing\n\n-1 2:0 4:1e-3\n+1\n"), "file", &ReadOptions{Task: "classification"})
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]float64{{0.5, 0, 2, 0}, {0, 0, 0, 1e-3}, {0, 0, 0, 0}}; !slices.EqualFunc(dense(d.X), want, slices.Equal) {
		t.Errorf("points %v", dense(d.X))
	}
	if x := d.X.(*points.CSR); x.NNZ() != 3 {
		t.Errorf("%d nonzeros; a stored zero is none", x.NNZ())
	}
	if !slices.Equal(d.Labels, []string{"-1", "1"}) || !slices.Equal(d.Class, []int{1, 0, 1}) {
		t.Errorf("answers %q %v", d.Labels, d.Class)
	}
	if d, err = Read(strings.NewReader("1 1:1\n"+long), "file", &ReadOptions{Dim: 7}); err != nil || d.Dim() != 7 || d.Len() != 2 {
		t.Errorf("%v", err)
	}
}

// idxFiles writes n images of 2×3 pixels and their labels and returns the images' path.
func idxFiles(t *testing.T, n int, edit func(images, labels []byte) (i, l []byte)) string {
	images := binary.BigEndian.AppendUint32(nil, idxImages)
	labels := binary.BigEndian.AppendUint32(nil, idxLabels)
	for _, v := range []int{n, 2, 3} {
		images = binary.BigEndian.AppendUint32(images, uint32(v))
	}
	labels = binary.BigEndian.AppendUint32(labels, uint32(n))
	for i := range n {
		for j := range 6 {
			images = append(images, byte(10*i+j))
		}
		labels = append(labels, byte(i%3))
	}
	if edit != nil {
		images, labels = edit(images, labels)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "t-images-idx3-ubyte")
	if err := os.WriteFile(path, images, 0o644); err != nil {
		t.Fatal(err)
	}
	if labels != nil {
		if err := os.WriteFile(filepath.Join(dir, "t-labels-idx1-ubyte.gz"), []byte(gzipped(string(labels))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestIDX(t *testing.T) {
	d, err := ReadFile(t.Context(), idxFiles(t, 4, nil), &ReadOptions{Task: "classification", MaxRows: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]float64{{0, 1, 2, 3, 4, 5}, {10, 11, 12, 13, 14, 15}, {20, 21, 22, 23, 24, 25}}; !slices.EqualFunc(dense(d.X), want, slices.Equal) {
		t.Errorf("points %v", dense(d.X))
	}
	if !slices.Equal(d.Labels, []string{"0", "1", "2"}) || !slices.Equal(d.Class, []int{0, 1, 2}) {
		t.Errorf("answers %q %v", d.Labels, d.Class)
	}
	if d, err := ReadFile(t.Context(), idxFiles(t, 2, func(i, _ []byte) (_, _ []byte) { return i, nil }), &ReadOptions{Target: "none"}); err != nil || d.HasAnswers() {
		t.Errorf("without labels: %v", err)
	}
}

// TestIDXFaults checks the faults of idx files.
func TestIDXFaults(t *testing.T) {
	for want, edit := range map[string]func(i, l []byte) (_, _ []byte){
		"wrong magic number 0x00000803, want 0x00000801": func(i, _ []byte) (_, _ []byte) { return i, i },
		"wrong magic number 0x00000a03":                  func(i, l []byte) (_, _ []byte) { i[2] = 10; return i, l },
		"3 labels for 4 images":                          func(i, l []byte) (_, _ []byte) { l[7] = 3; return i, l },
		"cut short: 3 of 4 images":                       func(i, l []byte) (_, _ []byte) { return i[:len(i)-1], l },
		"cut short: 2 of 4 labels":                       func(i, l []byte) (_, _ []byte) { return i, l[:len(l)-2] },
		"labels are missing":                             func(i, l []byte) (_, _ []byte) { return i, nil },
		"0 images":                                       func(i, l []byte) (_, _ []byte) { i[7] = 0; return i, l },
		"cut short: 4 of 2147483652":                     func(i, l []byte) (_, _ []byte) { i[4] = 128; return i, l },
	} {
		_, err := ReadFile(t.Context(), idxFiles(t, 4, edit), &ReadOptions{Format: "idx"})
		var pe *ParseError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), want) || !strings.Contains(pe.File, "idx") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestFaults checks that every fault of a file is found, with its place.
func TestFaults(t *testing.T) {
	whole := gzipped(strings.Repeat("1,2\n3,4\n", 5000))
	for _, c := range []struct {
		name, file   string
		o            ReadOptions
		line, column int
		want         string
	}{
		{"empty", "", ReadOptions{}, 0, 0, "empty"},
		{"blank", "\n\n", ReadOptions{}, 0, 0, "empty"},
		{"header only", "a,b\n", ReadOptions{}, 0, 0, "one line only: a header without rows, or CR line ends"},
		{"empty gzip", gzipped(""), ReadOptions{}, 0, 0, "empty"},
		{"ragged", "1,2,3\n1,2\n", ReadOptions{}, 2, 0, "the row has 2 columns, the first row has 3"},
		{"ragged under header", "a,b\n1,2\n\n1,2,3\n", ReadOptions{}, 4, 0, "the row has 3 columns, the header has 2"},
		{"nan", "1,2,3\n1,nan,3\n", ReadOptions{}, 2, 2, "not finite"},
		{"inf", "1,2,3\n-inf,4,3\n", ReadOptions{}, 2, 1, "not finite"},
		{"overflow", "1,2,3\n1,1e309,3\n", ReadOptions{}, 2, 2, "too large"},
		{"cell empty", "1,2,3\n1,,3\n", ReadOptions{}, 2, 2, "empty"},
		{"NA", "1,2,3\n1,NA,3\n", ReadOptions{}, 2, 2, `"NA" is not a number`},
		{"later block", strings.Repeat("1,2\n", 2058) + "x,2\n", ReadOptions{}, 2059, 1, "not a number"},
		{"target nan", "1,2.5\n1,nan\n", ReadOptions{}, 2, 0, "target"},
		{"target empty", "1,2.5\n1,\n", ReadOptions{}, 2, 0, "target"},
		{"target text", "1,2.5\n1,x\n", ReadOptions{Task: "regression"}, 2, 0, "target"},
		{"target index", "1,2\n", ReadOptions{Target: "2"}, 1, 0, "2 columns"},
		{"target name", "a,b\n1,2\n", ReadOptions{Target: "c"}, 1, 0, `"c"`},
		{"target only", "1\n2\n", ReadOptions{Format: "csv"}, 1, 0, "no features"},
		{"open quote", "1,\"2\n3,4\n", ReadOptions{}, 2, 0, "quote"},
		{"dim", "1,2,3,4\n", ReadOptions{Dim: 2}, 1, 0, "3 features, want 2; column 4 is taken for the target"},
		{"cut gzip", whole[:len(whole)/2], ReadOptions{}, 0, 0, "cut short"},
		{"damaged gzip", whole[:len(whole)-6] + "abcdef", ReadOptions{}, 0, 0, "checksum"},
		{"cut bzip2", bz2[:20], ReadOptions{}, 0, 0, ""},
		{"svm zero", "1 1:2\n1 0:2\n", ReadOptions{}, 2, 2, "from 1"},
		{"svm negative", "1 1:2\n1 1:1 -3:2\n", ReadOptions{}, 2, 3, "from 1"},
		{"svm equal", "1 1:2\n1 4:2 4:3\n", ReadOptions{}, 2, 3, "increase"},
		{"svm falling", "1 1:2\n1 4:2 3:3\n", ReadOptions{}, 2, 3, "increase"},
		{"svm colon", "1 1:2\n1 4\n", ReadOptions{}, 2, 2, "index:value"},
		{"svm value", "1 1:2\n1 4:x\n", ReadOptions{}, 2, 2, "not a number"},
		{"svm nan", "1 1:2\n1 4:nan\n", ReadOptions{}, 2, 2, "not finite"},
		{"svm overflow", "1 1:2\n1 4:1e999\n", ReadOptions{}, 2, 2, "too large"},
		{"svm huge index", "1 1:2\n1 99999999999:1\n", ReadOptions{}, 2, 2, "2147483646"},
		{"svm label", "1.5 1:2\nx 4:2\n", ReadOptions{Task: "regression"}, 2, 0, "target"},
		{"svm no feature", "1\n2\n", ReadOptions{Format: "libsvm"}, 0, 0, "no row has a feature"},
		{"svm dim", "1 5:2\n", ReadOptions{Dim: 3}, 1, 0, "5 features, want 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file), "the file", &c.o)
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("error %v", err)
			}
			if pe.File != "the file" || pe.Line != c.line || pe.Column != c.column || !strings.Contains(pe.Reason, c.want) {
				t.Errorf("%v (line %d, column %d), want line %d, column %d, %q", err, pe.Line, pe.Column, c.line, c.column, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
	for _, o := range []*ReadOptions{{Format: "xls"}, {Task: "rank"}} {
		if _, err := Read(strings.NewReader("1,2\n"), "file", o); err == nil {
			t.Errorf("%+v passed", o)
		}
	}
	if _, err := ReadFile(t.Context(), t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("folder: %v", err)
	}
	if _, err := ReadFile(t.Context(), "no/such/file", nil); err == nil || !strings.Contains(err.Error(), "no/such/file") {
		t.Errorf("missing: %v", err)
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"1,2,3\n4,5,6\n", "a,b\n1,2\n", "\"x\",1\n", "1 2 3\n", "1;2\n", bz2, gzipped("1,2\n")} {
		f.Add([]byte(s), "")
		f.Add([]byte(s), "0")
	}
	f.Fuzz(func(t *testing.T, b []byte, target string) { check(t, b, &ReadOptions{Format: "csv", Target: target}) })
}

func FuzzLIBSVM(f *testing.F) {
	for _, s := range []string{"1 1:2 3:4\n", "+1 # c\n-1 2147483646:1", "a 1:1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, &ReadOptions{Format: "libsvm"}) })
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x02ab"))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, &ReadOptions{Format: "idx", Target: "none"}) })
}

// check reads b and checks that what comes out is sound: it never panics, and accepts
// finite numbers only.
func check(t *testing.T, b []byte, o *ReadOptions) {
	d, err := Read(bytes.NewReader(b), "file", o)
	if err != nil {
		return
	}
	n := d.Len()
	if n < 1 || d.Dim() < 1 || d.Target != nil && len(d.Target) != n || d.Class != nil && len(d.Class) != n {
		t.Fatalf("%d points of dimension %d, %d targets, %d classes", n, d.Dim(), len(d.Target), len(d.Class))
	}
	if x, ok := d.X.(*points.CSR); ok && x.D > 1<<20 {
		return // too wide to make dense
	}
	if err := points.CheckFinite(d.X); err != nil {
		t.Fatal(err)
	}
}

// TestReadFileEnds: a context that ends while a file is read ends the reading, with its error, in
// whatever form the file is; a file that is read to its end is not concerned.
func TestReadFileEnds(t *testing.T) {
	dir := t.TempDir()
	for name, line := range map[string]string{"table.csv": "1,2,3\n", "table.libsvm": "1 1:2 2:3\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(line, 1<<17)), 0o644); err != nil {
			t.Fatal(err)
		}
		ctx := &counted{Context: context.Background(), most: 2}
		if _, err := ReadFile(ctx, path, &ReadOptions{Task: "regression"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if d, err := ReadFile(t.Context(), path, &ReadOptions{Task: "regression"}); err != nil || d.Len() != 1<<17 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// counted is a context that ends when it was asked more than so many times.
type counted struct {
	context.Context
	most, asked int
}

func (c *counted) Err() error {
	if c.asked++; c.asked > c.most {
		return context.Canceled
	}
	return nil
}
