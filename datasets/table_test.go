package datasets

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/points"
)

// lines returns rows of f(i).
func lines(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i) + "\n")
	}
	return b.String()
}

// TestLocalAnswers: targets in a local number format, dates and texts of all kinds are no classes
// unless the user says so.
func TestLocalAnswers(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"five decimal commas", "a;b;y\n" + lines(5, func(i int) string { return fmt.Sprintf("1;2;%d,5", 10+i) }),
			`line 2: target: "10,5" is not a number: decimal comma? write 10.5; if the answers are classes, say --task classification`},
		{"thousands", lines(300, func(i int) string { return fmt.Sprintf(`1;"1,%03d,567"`, i) }), `"1,000,567" is not a number: separators of thousands? write 1000567;`},
		{"either", lines(9, func(i int) string { return fmt.Sprintf("1;1,23%d", i) }), "a decimal comma or a separator of thousands? write 1.230 or 1230"},
		{"thousands and comma", lines(9, func(i int) string { return fmt.Sprintf("1;1.234.567,%d", i) }), "write 1234567.0"},
		{"apostrophes", lines(9, func(i int) string { return fmt.Sprintf("1;1'234'56%d.5", i) }), "write 1234560.5"},
		{"dates", lines(40, func(i int) string { return fmt.Sprintf("1,2024-01-%02d", 1+i%28) }), `"2024-01-01" is not a number: a date? write a number`},
		{"German dates", lines(40, func(i int) string { return fmt.Sprintf("1,%02d.01.2024", 1+i%2) }), "a date?"},
		{"times", lines(40, func(i int) string { return fmt.Sprintf("1,12:%02d", i%3) }), "a time of day?"},
		{"percent", lines(40, func(i int) string { return fmt.Sprintf("1,%d %%", i%3) }), "a unit? write the number alone"},
		{"minus of print", lines(40, func(int) string { return "1,−5" }), "write the minus sign as a hyphen"},
		{"half stars", lines(40, func(i int) string { return []string{"1;4", "1;3,5"}[i%2] }), `line 2: target: "3,5" is not a number, though others are`},
		{"names", lines(40, func(i int) string { return fmt.Sprintf("1,person %d", i) }), "the 40 rows have more than 20 different words, too many to be classes"},
		{"many names", lines(400, func(i int) string { return fmt.Sprintf("1,person %d", i/4) }), "too many to be classes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file), "file", nil)
			var pe *ParseError
			if !errors.As(err, &pe) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if d, err := Read(strings.NewReader(c.file), "file", &ReadOptions{Task: "classification"}); err != nil || d.Class == nil {
				t.Errorf("said to be classes: %v", err)
			}
		})
	}
	for name, file := range map[string]string{
		"20 words":           lines(40, func(i int) string { return fmt.Sprintf("1,word %d", i%20) }),
		"five rows a word":   lines(200, func(i int) string { return fmt.Sprintf("1,word %d", i%40) }),
		"ages":               lines(40, func(i int) string { return []string{"1,20-30", "1,30-40", "1,70+"}[i%3] }),
		"versions and parts": lines(40, func(i int) string { return []string{"1,A-1", "1,3/4", "1,50%x"}[i%3] }),
	} {
		if d, err := Read(strings.NewReader(file), "file", nil); err != nil || d.Task != Classification {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d, err := Read(strings.NewReader("1,2.5\n2,-1e100\n"), "file", nil); err != nil || d.Target[1] != -1e100 {
		t.Errorf("the largest target: %v", err)
	}
	if _, err := Read(strings.NewReader("1,2.5\n2,-1.01e100\n"), "file", nil); err == nil {
		t.Error("a target beyond it is read")
	}
	if _, err := Read(strings.NewReader("1,2.5\n2,1e308\n"), "file", nil); err == nil || !strings.Contains(err.Error(), "line 2: target: \"1e308\" is too large to be squared") {
		t.Errorf("a target whose square overflows: %v", err)
	}
}

// TestMissingCells: one error counts the missing cells of the whole file by column.
func TestMissingCells(t *testing.T) {
	file := "id,age,\"pri\nce\",y\n" + lines(30, func(i int) string {
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
	_, err = Read(strings.NewReader("1,2,2.5\n1,,\n1,,3.5\n"), "file", nil)
	if err == nil || !strings.HasSuffix(err.Error(), "in 3 rows 3 cells are missing: column 2 2, the target 1; rows without a target have to be removed") {
		t.Errorf("without a header: %v", err)
	}
	wide := strings.Repeat("x,", 30) + "y\n" + strings.Repeat("1,", 30) + "2.5\n" + strings.Repeat(",", 30) + "2.5\n"
	if _, err = Read(strings.NewReader(wide), "file", nil); err == nil || !strings.Contains(err.Error(), "and 10 more") {
		t.Errorf("many columns: %v", err)
	}
	if d, err := Read(strings.NewReader("a,b,y\n1,,2.5\n1,,3.5\n"), "file", &ReadOptions{Drop: []string{"b"}}); err != nil || d.Dim() != 1 {
		t.Errorf("dropped: %v", err)
	}
}

// TestDrop: columns are left out by number and name, whatever they hold.
func TestDrop(t *testing.T) {
	const named, bare = "id,name,a,y,b\n17,Ann,1,0.5,2\n18,,3,1.5,4\n", "17,Ann,1,0.5,2\n18,Bo,3,1.5,4\n"
	for _, c := range []struct {
		name, file string
		o          ReadOptions
		x          [][]float64
		target     []float64
		columns    []string
	}{
		{"names", named, ReadOptions{Drop: []string{"name", "id"}, Target: "y"}, [][]float64{{1, 2}, {3, 4}}, []float64{0.5, 1.5}, []string{"a", "b"}},
		{"numbers", bare, ReadOptions{Drop: []string{"0", "1", "-1"}, Target: "-2"}, [][]float64{{1}, {3}}, []float64{0.5, 1.5}, nil},
		{"twice", bare, ReadOptions{Drop: []string{"0", "1", "0"}, Target: "3"}, [][]float64{{1, 2}, {3, 4}}, []float64{0.5, 1.5}, nil},
		{"dim is of what is left", named, ReadOptions{Drop: []string{"0", "1"}, Target: "y", Dim: 2}, [][]float64{{1, 2}, {3, 4}}, []float64{0.5, 1.5}, []string{"a", "b"}},
		{"no target", "id,a,b\n7,1,2\n", ReadOptions{Drop: []string{"id", "name"}, Target: "y", TargetOptional: true, Dim: 2}, [][]float64{{1, 2}}, nil, []string{"a", "b"}},
		{"the features alone", "a,b\n1,2\n", ReadOptions{Drop: []string{"0"}, Target: "1", TargetOptional: true, Dim: 2}, [][]float64{{1, 2}}, nil, []string{"a", "b"}},
		{"with the target", named, ReadOptions{Drop: []string{"0", "name"}, Target: "y", TargetOptional: true, Dim: 2}, [][]float64{{1, 2}, {3, 4}}, []float64{0.5, 1.5}, []string{"a", "b"}},
		{"another format", "1.5 1:2\n", ReadOptions{Drop: []string{"id"}, TargetOptional: true}, [][]float64{{2}}, []float64{1.5}, nil},
	} {
		d, err := Read(strings.NewReader(c.file), "file", &c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !slices.EqualFunc(dense(d.X), c.x, slices.Equal) || !slices.Equal(d.Target, c.target) || !slices.Equal(d.Columns, c.columns) {
			t.Errorf("%s: %v, %v, %q", c.name, dense(d.X), d.Target, d.Columns)
		}
	}
	for _, c := range []struct {
		file string
		o    ReadOptions
		want string
	}{
		{named, ReadOptions{Drop: []string{"ids"}}, `line 1: drop: no column is named "ids": there are "id", "name"`},
		{named, ReadOptions{Drop: []string{"5"}}, "drop: column 5: the rows have 5 columns, 0 to 4"},
		{named, ReadOptions{Drop: []string{"y"}, Target: "y"}, "the target, column 3, is among those dropped"},
		{named, ReadOptions{Drop: []string{"0", "1", "2", "4"}, Target: "y"}, "no column is left for a feature"},
		{"1 1:2\n", ReadOptions{Drop: []string{"id"}}, "--drop is for csv files"},
		{named, ReadOptions{Dim: 3, DimOf: "train.csv"}, "line 1: points have 4 features, train.csv has 3; column 5 is taken for the target"},
		{"1,2,3,4\n2,3,Bob,5\n", ReadOptions{Dim: 2, DimOf: "the model"}, "line 1: points have 3 features, the model has 2; column 4 is taken for the target"},
		{named, ReadOptions{}, `columns that are no numbers: "name" has words (1, such as "Ann"); add --categorical name`},
	} {
		if _, err := Read(strings.NewReader(c.file), "file", &c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.o, err, c.want)
		}
	}
}

// TestErrorsPrint: whatever a file holds, an error is one line without control characters and of
// bounded length.
func TestErrorsPrint(t *testing.T) {
	const evil = "\x1b[2J\x07\u202egnp\x9b\r"
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		file string
		o    ReadOptions
	}{
		{"\"" + evil + "\n\",y\nx,1\n", ReadOptions{}},
		{"\"" + evil + "\n\",y\n,1\n", ReadOptions{}},
		{"\"" + evil + "\n\",y\n,1\n,2\n", ReadOptions{}},
		{"\"" + evil + "\n\",y\n1,2\n", ReadOptions{Target: evil + "x"}},
		{"\"" + evil + "\n\",y\n1,2\n", ReadOptions{Drop: []string{evil + "x"}}},
		{"1,2\n" + evil + ",2\n", ReadOptions{}},
		{"1,2\n3," + evil + "\n", ReadOptions{Task: "regression"}},
		{"1,2.5\n3," + evil + "\n", ReadOptions{}},
		{"1,2.5\n" + long + ",2\n", ReadOptions{}},
		{long + ",y\nx,2\n", ReadOptions{}},
		{long + ",y\n1,2\n", ReadOptions{Target: long + "y"}},
		{"1,2\n1," + long + "\n", ReadOptions{Task: "regression"}},
		{"1 1:2\n1 " + evil + ":2\n", ReadOptions{}},
		{"1 1:2\n1 2:" + evil + "\n", ReadOptions{}},
		{"1 1:2\n1 " + evil + "\n", ReadOptions{}},
		{"1 1:2\n1 " + long + "\n", ReadOptions{}},
		{"1 1:2\n", ReadOptions{Target: evil}},
		{"1 5:2\n", ReadOptions{Dim: 3, DimOf: evil}},
	} {
		_, err := Read(strings.NewReader(c.file), "a\x1b[31m\nfile", &c.o)
		if err == nil {
			t.Errorf("%.40q is read", c.file)
		} else if s := err.Error(); strings.ContainsAny(s, "\x1b\x07\u202e\x9b\r\n") || len(s) > 2000 {
			t.Errorf("%.40q: %.200q", c.file, s)
		}
	}
}

// TestDimOf: a file with more features than the training file says which is which, in which
// line, and what to do.
func TestDimOf(t *testing.T) {
	_, err := Read(strings.NewReader("1 1:2\n1 64:1\n2 3:1\n"), "test.svm", &ReadOptions{Dim: 63, DimOf: "train.svm"})
	if want := "test.svm, line 2: points have 64 features, train.svm has 63; where the last features of sparse data are all zero, say --dim 64 for both files"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestMaxRows: no more than so many rows are read, of any form.
func TestMaxRows(t *testing.T) {
	for format, file := range map[string]string{"csv": "1,2.5\n3,4.5\n5,6.5\n7,8.5\n", "libsvm": "2.5 1:1\n4.5 1:3\n6.5 1:5\n8.5 1:7\n"} {
		for _, rows := range []int{1, 2, 3} {
			d, err := Read(strings.NewReader(file), "file", &ReadOptions{MaxRows: rows})
			if err != nil || d.Len() != rows || len(d.Target) != rows {
				t.Errorf("%s: %d rows of %d, %v", format, d.Len(), rows, err)
			}
		}
	}
}

// repeated reads text over and over, n bytes in all.
type repeated struct {
	head, text string
	n, at      int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.at >= r.n {
		return 0, io.EOF
	}
	k := 0
	for ; k < len(p) && r.at < r.n; k, r.at = k+1, r.at+1 {
		if r.at < len(r.head) {
			p[k] = r.head[r.at]
		} else {
			p[k] = r.text[(r.at-len(r.head))%len(r.text)]
		}
	}
	return k, nil
}

// TestBombs: what would take more than the memory that is allowed ends with one line, and takes
// no more than that, whatever the form of the file.
func TestBombs(t *testing.T) {
	const limit, size = 8 << 20, 64 << 20
	images := "\x00\x00\x08\x03\x01\x00\x00\x00\x00\x00\x00\x1c\x00\x00\x00\x1c" // 2^24 of 28×28
	for _, c := range []struct{ name, head, text, format, want string }{
		{"csv, one line", "", "0", "csv", "the line is longer than"},
		{"csv, one line of cells", "", "0,", "csv", "the line is longer than"},
		{"csv, one quoted cell", "1,2\n\"", "0\n", "csv", "the line is longer than"},
		{"csv, one line of blanks", "1 2\n3 4", " ", "csv", "the line is longer than"},
		{"csv, rows", "", "0,0\n", "csv", "rows takes more than"},
		{"csv, wide rows", "", strings.Repeat("0,", 99) + "1\n", "csv", "rows takes more than"},
		{"csv, no features wanted", "", "0\n", "csv", "one column only"},
		{"libsvm, one line", "", "0", "libsvm", "the line is longer than"},
		{"libsvm, rows", "", "0 1:1\n", "libsvm", "rows takes more than"},
		{"libsvm, rows without features", "1 1:1\n", "0\n", "libsvm", "rows takes more than"},
		{"idx", images, "\x00", "idx", "rows takes more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Read(&repeated{head: c.head, text: c.text, n: size}, "bomb", &ReadOptions{Format: c.format, Target: map[string]string{"idx": "none"}[c.format], Memory: limit})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
			// Small objects that are soon garbage are counted too: the words of a line.
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*limit {
				t.Errorf("%d bytes were allocated", took)
			}
		})
	}
	// Packed, the same is met while it unpacks.
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.Copy(z, &repeated{text: "0,0\n", n: size})
	z.Close()
	if _, err := Read(&packed, "bomb.gz", &ReadOptions{Memory: limit}); err == nil || !strings.Contains(err.Error(), "rows takes more than 8.39 MB") {
		t.Errorf("packed: %v", err)
	}
	// An index of 2^31−2 is one number, but vectors of as many are not to be had.
	wide := "1 1:1\n1 2147483646:1\n2 1:1\n"
	if _, err := Read(strings.NewReader(wide), "wide.svm", &ReadOptions{Memory: 1 << 30}); err == nil || !strings.Contains(err.Error(), "wide.svm, line 2: index 2147483646: vectors of that length need") {
		t.Errorf("a wide row: %v", err)
	}
	d, err := Read(strings.NewReader(wide), "wide.svm", &ReadOptions{Memory: 1 << 40})
	if err != nil || d.X.(*points.CSR).NNZ() != 3 {
		t.Errorf("a wide row on a machine for it: %v", err)
	}
}

// TestWideLine: a row of many cells takes a time that grows with their number; by columns of
// gota's it took ten microseconds a cell.
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
