package datasets

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// joinLines returns the rows line(0), …, line(n−1), each followed by a line break.
func joinLines(n int, line func(i int) string) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(line(i) + "\n")
	}
	return text.String()
}

// TestMissingCells checks that one error counts the missing cells of the whole file by column.
func TestMissingCells(t *testing.T) {
	file := "id,age,\"pri\nce\",y\n" + joinLines(30, func(i int) string {
		age, price, y := "3", "4", "5.5"
		if i%3 == 1 {
			age = []string{"", "NA", "nan"}[i/3%3]
		}
		if i == 7 {
			price = "?"
		}
		if i == 20 {
			y = ""
		}
		return fmt.Sprintf("%d,%s,%s,%s", i, age, price, y)
	})
	_, err := Read(strings.NewReader(file), "file", nil)
	want := `file, line 4, column 2: age: the cell is empty; fill in or remove missing values; in 30 rows 12 cells are missing: "age" 10, "pri\nce" 1, "y" 1; rows without a target have to be removed`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	wantError(t, errorFrom(Read(strings.NewReader("1,2,2.5\n1,,\n1,,3.5\n"), "file", nil)),
		"in 3 rows 3 cells are missing: column 2 2, the target 1; rows without a target have to be removed")
	wide := strings.Repeat("x,", 30) + "y\n" + strings.Repeat("1,", 30) + "2.5\n" + strings.Repeat(",", 30) + "2.5\n"
	wantError(t, errorFrom(Read(strings.NewReader(wide), "file", nil)), "and 10 more")
	if d, err := Read(strings.NewReader("a,b,y\n1,,2.5\n1,,3.5\n"), "file",
		&ReadOptions{Drop: []string{"b"}}); err != nil || d.Dim() != 1 {
		t.Errorf("dropped: %v", err)
	}
}

// TestErrorsArePrintable checks that an error is one line of bounded length without control characters, whatever the
// file contains.
func TestErrorsArePrintable(t *testing.T) {
	const controlCharacters = "\x1b[2J\x07\u202egnp\x9b\r"
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		file    string
		options ReadOptions
	}{
		{"\"" + controlCharacters + "\n\",y\nx,1\n", ReadOptions{}},
		{"\"" + controlCharacters + "\n\",y\n,1\n", ReadOptions{}},
		{"\"" + controlCharacters + "\n\",y\n,1\n,2\n", ReadOptions{}},
		{"\"" + controlCharacters + "\n\",y\n1,2\n", ReadOptions{Target: controlCharacters + "x"}},
		{"\"" + controlCharacters + "\n\",y\n1,2\n", ReadOptions{Drop: []string{controlCharacters + "x"}}},
		{"1,2\n" + controlCharacters + ",2\n", ReadOptions{}},
		{"1,2\n3," + controlCharacters + "\n", ReadOptions{Task: "regression"}},
		{"1,2.5\n3," + controlCharacters + "\n", ReadOptions{}},
		{"1,2.5\n" + long + ",2\n", ReadOptions{}},
		{long + ",y\nx,2\n", ReadOptions{}},
		{long + ",y\n1,2\n", ReadOptions{Target: long + "y"}},
		{"1,2\n1," + long + "\n", ReadOptions{Task: "regression"}},
		{"1 1:2\n1 " + controlCharacters + ":2\n", ReadOptions{}},
		{"1 1:2\n1 2:" + controlCharacters + "\n", ReadOptions{}},
		{"1 1:2\n1 " + controlCharacters + "\n", ReadOptions{}},
		{"1 1:2\n1 " + long + "\n", ReadOptions{}},
		{"1 1:2\n", ReadOptions{Target: controlCharacters}},
		{"1 5:2\n", ReadOptions{Dim: 3, DimSource: controlCharacters}},
	} {
		_, err := Read(strings.NewReader(c.file), "a\x1b[31m\nfile", &c.options)
		if err == nil {
			t.Errorf("%.40q is read", c.file)
		} else if s := err.Error(); strings.ContainsAny(s, "\x1b\x07\u202e\x9b\r\n") || len(s) > 2000 {
			t.Errorf("%.40q: %.200q", c.file, s)
		}
	}
}

// repeatingReader is a reader of n bytes, which are the head followed by the text again and again.
type repeatingReader struct {
	head, text  string
	n, position int
}

// Read implements io.Reader.
func (r *repeatingReader) Read(p []byte) (int, error) {
	if r.position >= r.n {
		return 0, io.EOF
	}
	k := 0
	for ; k < len(p) && r.position < r.n; k, r.position = k+1, r.position+1 {
		if r.position < len(r.head) {
			p[k] = r.head[r.position]
		} else {
			p[k] = r.text[(r.position-len(r.head))%len(r.text)]
		}
	}
	return k, nil
}

// TestMemoryLimit checks that a file that needs more memory than is allowed ends with an error of one line and without
// much more memory than that, for every format.
func TestMemoryLimit(t *testing.T) {
	const limit, size = 8 << 20, 64 << 20
	images := "\x00\x00\x08\x03\x01\x00\x00\x00\x00\x00\x00\x1c\x00\x00\x00\x1c" // 2^24 of 28×28
	for _, c := range []struct {
		name, head, text string
		format           FormatName
		want             string
	}{
		{"csv, one line", "", "0", "csv", "the line is longer than"},
		{"csv, one line of cells", "", "0,", "csv", "the line is longer than"},
		{"csv, one quoted cell", "1,2\n\"", "0\n", "csv", "the line is longer than"},
		{"csv, one line of blanks", "1 2\n3 4", " ", "csv", "the line is longer than"},
		{"csv, rows", "", "0,0\n", "csv", "rows would take"},
		{"csv, wide rows", "", strings.Repeat("0,", 99) + "1\n", "csv", "rows would take"},
		{"csv, no features wanted", "", "0\n", "csv", "one column only"},
		{"libsvm, one line", "", "0", "libsvm", "the line is longer than"},
		{"libsvm, rows", "", "0 1:1\n", "libsvm", "rows would take"},
		{"libsvm, rows without features", "1 1:1\n", "0\n", "libsvm", "rows would take"},
		{"idx", images, "\x00", "idx", "rows would take"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := ""
			if c.format == "idx" { // the images have no labels
				target = "none"
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Read(&repeatingReader{head: c.head, text: c.text, n: size}, "bomb",
				&ReadOptions{Format: c.format, Target: target, Memory: limit})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
			// TotalAlloc also counts short-lived small objects, such as the words of a line, so eight times the limit
			// is allowed.
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8*limit {
				t.Errorf("%d bytes were allocated", allocated)
			}
		})
	}
	// The limit also applies while a file is unpacked.
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	io.Copy(w, &repeatingReader{text: "0,0\n", n: size})
	w.Close()
	wantError(t, errorFrom(Read(&packed, "bomb.gz", &ReadOptions{Memory: limit})),
		"8.39 MB of 8.39 MB are free: read fewer rows by --n")
	// The limit also includes the memory that is needed after the rows are read.
	wantError(t, errorFrom(Read(strings.NewReader(strings.Repeat("1,2\n", 200000)), "rows",
		&ReadOptions{Memory: limit})),
		"more than 199999 rows would take 11.2 MB of memory, and 8.39 MB of 8.39 MB are free")
	// A sparse row with the index 2^31−2 is small, but vectors of that dimension do not fit.
	wide := "1 1:1\n1 2147483646:1\n2 1:1\n"
	wantError(t, errorFrom(Read(strings.NewReader(wide), "wide.svm", &ReadOptions{Memory: 1 << 30})),
		"wide.svm, line 2: index 2147483646: vectors of that length would take")
	d, err := Read(strings.NewReader(wide), "wide.svm", &ReadOptions{Memory: 1 << 40})
	if err != nil || d.X.(*points.CSR).NNZ() != 3 {
		t.Errorf("a wide row on a machine for it: %v", err)
	}
}

// TestWideLine checks that a row of many cells is read with far fewer allocations than cells.
func TestWideLine(t *testing.T) {
	const cells = 400000
	d, err := Read(strings.NewReader(strings.Repeat("1.5,", cells)+"2.5\n"), "wide.csv", nil)
	if err != nil || d.Dim() != cells || d.Target[0] != 2.5 {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(1, func() {
		if _, err := Read(strings.NewReader(strings.Repeat("1.5,", cells)+"2.5\n"), "wide.csv", nil); err != nil {
			t.Fatal(err)
		}
	})
	if got > cells/100 {
		t.Errorf("%.0f allocations for %d cells", got, cells)
	}
}
