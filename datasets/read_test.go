package datasets

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// denseRows returns the points as rows of float64 numbers.
func denseRows(x points.Points) [][]float64 {
	n, d := x.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, d)
		x.RowTo(rows[i], i)
	}
	return rows
}

// gzipText returns the text packed by gzip.
func gzipText(text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(text))
	w.Close()
	return packed.String()
}

// bz2 is the text "1,2\n3,4\n" packed by bzip2.
const bzip2Text = "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x93\xb7\x0d\x0c\x00\x00\x02\x58\x00\x00\x10\x00\x04\x3c\x00\x20\x00\x30\xc0\x08\x69\xb2\x88\x23\x27\x8b\xb9\x22\x9c\x28\x48\x49\xdb\x86\x86\x00"

// reading is a file and the expected result of reading it with the options. If want begins with "!", the rest of want
// is a part of the error. Otherwise want is a part of the rows, targets, labels, classes and columns, followed by the
// read report.
type reading struct {
	name, file string
	options    ReadOptions
	want       string
}

// UnmarshalJSON implements json.Unmarshaler. In JSON a reading is a list of its fields, and the file is a template that
// may call numberRows, classRows and strings.Repeat by the names rows, classes and repeat.
func (r *reading) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&[]any{&r.name, &r.file, &r.options, &r.want}); err != nil {
		return err
	}
	var file strings.Builder
	functions := template.FuncMap{"rows": numberRows, "classes": classRows, "repeat": strings.Repeat}
	err := template.Must(template.New("").Funcs(functions).Parse(r.file)).Execute(&file, nil)
	r.file = file.String()
	return err
}

// checkReadings checks the given readings and those of testdata/readings.json that belong to the test. Every error
// must be one line.
func checkReadings(t *testing.T, cases []reading) {
	t.Helper()
	fromFile := map[string][]reading{}
	if err := json.Unmarshal(must(os.ReadFile("testdata/readings.json")), &fromFile); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(cases, fromFile[t.Name()]...) {
		d, err := Read(strings.NewReader(c.file), "f", &c.options)
		want, isError := strings.CutPrefix(c.want, "!")
		got, message := "", fmt.Sprint(err)
		if err == nil {
			got, message = fmt.Sprintln(denseRows(d.X), d.Target, d.Labels, d.Class, d.Columns), d.ReadReport.String()
		}
		if isError != (err != nil) || !strings.Contains(got+message, want) || strings.Contains(message, "\n") {
			t.Errorf("%s: %.2000s, want %s", c.name, got+message, c.want)
		}
	}
}

// TestRead checks separators, headers, byte order marks, targets by number and by name, dropped columns, and that
// every fault is reported with its place.
func TestRead(t *testing.T) {
	packedText := gzipText(strings.Repeat("1,2\n3,4\n", 5000))
	checkReadings(t, []reading{
		{"bzip2", bzip2Text, ReadOptions{Target: "none"}, "[[1 2] [3 4]] [] [] [] []"},
		{"Latin-1", "gr\xf6\xdfe,y\n1,3.5\n", ReadOptions{}, "[[1]] [3.5] [] [] [größe]"},
		{"Windows-1252", "preis \x80,y\n1,3.5\n", ReadOptions{}, "[preis €]"},
		{"mark, packed", gzipText("\xef\xbb\xbf1,2,3.5\n"), ReadOptions{}, "[[1 2]] [3.5] [] [] []"},
		{"empty gzip", gzipText(""), ReadOptions{}, "!f: the file is empty"},
		{"cut gzip", packedText[:len(packedText)/2], ReadOptions{}, "!f: the file is cut short"},
		{"damaged gzip", packedText[:len(packedText)-6] + "abcdef", ReadOptions{}, "!f: bad checksum"},
		{"cut bzip2", bzip2Text[:20], ReadOptions{}, "!f: the file is cut short"},
		{"damaged bzip2", bzip2Text[:20] + "x" + bzip2Text[21:], ReadOptions{}, "!f: damaged bzip2 data"},
		{"UTF-16", "\xff\xfe1\x00,\x002\x00", ReadOptions{}, "!f: the text is UTF-16; save as UTF-8"},
		{"UTF-16, big", gzipText("\xfe\xff\x001\x00,"), ReadOptions{}, "!f: the text is UTF-16; save as UTF-8"},
	})
	wantError(t, errorFrom(ReadFile(t.Context(), t.TempDir(), nil)), "folder")
	wantError(t, errorFrom(ReadFile(t.Context(), "no/such/file", nil)), "no/such/file")
}

// idxFiles writes n images of h×w pixels and their labels in idx format and returns the path of the images. Pixel j
// of image i is 10i+j. edit may change the contents of the two files before they are written.
func idxFiles(t *testing.T, n, h, w int, edit func(images, labels []byte) (i, l []byte)) string {
	images := binary.BigEndian.AppendUint32(nil, idxImages)
	labels := binary.BigEndian.AppendUint32(nil, idxLabels)
	for _, v := range []int{n, h, w} {
		images = binary.BigEndian.AppendUint32(images, uint32(v))
	}
	labels = binary.BigEndian.AppendUint32(labels, uint32(n))
	for i := range n {
		for j := range h * w {
			images = append(images, byte(10*i+j))
		}
		labels = append(labels, byte(i%3))
	}
	if edit != nil {
		images, labels = edit(images, labels)
	}
	dir := t.TempDir()
	if labels != nil {
		writeFile(t, dir, "t-labels-idx1-ubyte.gz", gzipText(string(labels)))
	}
	return writeFile(t, dir, "t-images-idx3-ubyte", images)
}

// TestIDX checks files with few small images, and with more pixels than are read at once.
func TestIDX(t *testing.T) {
	for _, c := range []struct{ n, h, w, maxRows, wantRows int }{{4, 2, 3, 3, 3}, {700, 50, 50, 0, 700},
		{700, 50, 50, 9999, 700}} {
		d := must(ReadFile(t.Context(), idxFiles(t, c.n, c.h, c.w, nil),
			&ReadOptions{Task: "classification", MaxRows: c.maxRows}))
		x := d.X.(*points.Bytes)
		if x.N != c.wantRows || x.D != c.h*c.w || !slices.Equal(d.Labels, []string{"0", "1", "2"}) {
			t.Fatalf("%v: %d×%d, labels %q", c, x.N, x.D, d.Labels)
		}
		for i := range x.N {
			if row := x.Row(i); row[0] != byte(10*i) || row[x.D-1] != byte(10*i+x.D-1) || d.Class[i] != i%3 {
				t.Fatalf("%v: image %d is %v of class %d", c, i, row, d.Class[i])
			}
		}
	}
	path := idxFiles(t, 4, 2, 3, nil)
	labels := gzipText("\x00\x00\x08\x01\x00\x00\x00\x04\x00\x01\x02\x00")
	writeFile(t, filepath.Dir(path), "t-labels-idx1-ubyte.gz", labels[:len(labels)-8]+"none"+labels[len(labels)-4:])
	wantError(t, errorFrom(ReadFile(t.Context(), path, nil)), "bad checksum: the file is damaged")
	if d, err := ReadFile(t.Context(), idxFiles(t, 2, 2, 3, func(i, _ []byte) (_, _ []byte) { return i, nil }),
		&ReadOptions{Target: "none"}); err != nil || d.HasAnswers() {
		t.Errorf("without labels: %v", err)
	}
}

// TestIDXFaults checks that faults of idx files are reported.
func TestIDXFaults(t *testing.T) {
	for wantErr, edit := range map[string]func(i, l []byte) (_, _ []byte){
		"wrong magic number 0x00000803, want 0x00000801": func(i, _ []byte) (_, _ []byte) { return i, i },
		"wrong magic number 0x00000a03":                  func(i, l []byte) (_, _ []byte) { i[2] = 10; return i, l },
		"3 labels for 4 images":                          func(i, l []byte) (_, _ []byte) { l[7] = 3; return i, l },
		"cut short: 3 of 4 images":                       func(i, l []byte) (_, _ []byte) { return i[:len(i)-1], l },
		"cut short: 2 of 4 labels":                       func(i, l []byte) (_, _ []byte) { return i, l[:len(l)-2] },
		"labels are missing":                             func(i, l []byte) (_, _ []byte) { return i, nil },
		"0 images":                                       func(i, l []byte) (_, _ []byte) { i[7] = 0; return i, l },
		"images of 0×3 pixels":                           func(i, l []byte) (_, _ []byte) { i[11] = 0; return i, l },
		"images of 2×65539 pixels":                       func(i, l []byte) (_, _ []byte) { i[13] = 1; return i, l },
		"cut short: 4 of 2147483652":                     func(i, l []byte) (_, _ []byte) { i[4] = 128; return i, l },
	} {
		_, err := ReadFile(t.Context(), idxFiles(t, 4, 2, 3, edit), &ReadOptions{Format: "idx"})
		var parseErr *ParseError
		if !errors.As(err, &parseErr) || !strings.Contains(err.Error(), wantErr) ||
			!strings.Contains(parseErr.File, "idx") {
			t.Errorf("want %q, got %v", wantErr, err)
		}
	}
}

// FuzzCSV checks that no CSV text makes the reader panic or accept numbers that are not finite.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"1,2,3\n4,5,6\n", "a,b\n1,2\n", "\"x\",1\n", "1 2 3\n", "1;2\n", bzip2Text,
		gzipText("1,2\n")} {
		f.Add([]byte(s), "")
		f.Add([]byte(s), "0")
	}
	f.Fuzz(func(t *testing.T, b []byte, target string) {
		checkFuzzed(t, b, &ReadOptions{Format: "csv", Target: target})
	})
}

// FuzzLIBSVM checks that no LIBSVM text makes the reader panic or accept numbers that are not finite.
func FuzzLIBSVM(f *testing.F) {
	for _, s := range []string{"1 1:2 3:4\n", "+1 # c\n-1 2147483646:1", "a 1:1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkFuzzed(t, b, &ReadOptions{Format: "libsvm"}) })
}

// FuzzIDX checks that no idx file makes the reader panic or accept numbers that are not finite.
func FuzzIDX(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x02ab"))
	f.Fuzz(func(t *testing.T, b []byte) { checkFuzzed(t, b, &ReadOptions{Format: "idx", Target: "none"}) })
}

// checkFuzzed reads a file with the given content. If the reader accepts it, the data must be consistent and finite.
func checkFuzzed(t *testing.T, content []byte, options *ReadOptions) {
	d, err := Read(bytes.NewReader(content), "file", options)
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

// TestReadFileEnds checks that a context that is canceled during the reading of a file ends it with the error of the
// context, and that the file is read with a context that is not canceled.
func TestReadFileEnds(t *testing.T) {
	dir := t.TempDir()
	for name, line := range map[string]string{"table.csv": "1,2,3\n", "table.libsvm": "1 1:2 2:3\n"} {
		path := writeFile(t, dir, name, strings.Repeat(line, 1<<17))
		ctx := &countdownContext{Context: context.Background(), limit: 2}
		if _, err := ReadFile(ctx, path, &ReadOptions{Task: "regression"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
		if d, err := ReadFile(t.Context(), path, &ReadOptions{Task: "regression"}); err != nil || d.Len() != 1<<17 {
			t.Errorf("%s: %v, want %d rows", name, err, 1<<17)
		}
	}
}

// countdownContext is a context that is canceled once its Err was called more than limit times.
type countdownContext struct {
	context.Context
	limit, calls int // largest number of calls of Err before the context is canceled, and calls so far
}

// Err implements context.Context.
func (c *countdownContext) Err() error {
	if c.calls++; c.calls > c.limit {
		return context.Canceled
	}
	return nil
}

// must returns v. It panics if a call on which the test depends fails.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// errorFrom returns the error of a call with a result.
func errorFrom[T any](_ T, err error) error { return err }

// wantError reports a missing error, and an error that does not contain the wanted text.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// checkContains reports a text without the wanted part.
func checkContains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s, want %q", text, want)
	}
}
