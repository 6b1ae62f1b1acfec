package datasets

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBlanksWide checks that no separator is lost in rows that are longer than any buffer.
func TestBlanksWide(t *testing.T) {
	for _, columns := range []int{2049, 3001} {
		var b strings.Builder
		for j := range columns - 1 {
			fmt.Fprintf(&b, " %d ", j)
		}
		row := b.String() + "2.5\n"
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(strings.Repeat(row, 3)), "bytes": iotest.OneByteReader(strings.NewReader(strings.Repeat(row, 3))),
			"halves": iotest.HalfReader(strings.NewReader(strings.Repeat(row, 3))),
		} {
			d, err := Read(r, "wide.txt", nil)
			if err != nil {
				t.Fatalf("%d columns, %s: %v", columns, name, err)
			}
			for j, v := range dense(d.X)[2] {
				if v != float64(j) {
					t.Fatalf("%d columns, %s: column %d is %g", columns, name, j, v)
				}
			}
			if d.Len() != 3 || d.Dim() != columns-1 || !slices.Equal(d.Target, []float64{2.5, 2.5, 2.5}) {
				t.Errorf("%d columns, %s: read %d×%d and %v", columns, name, d.Len(), d.Dim(), d.Target)
			}
		}
		_, err := Read(strings.NewReader(row), "wide.txt", &ReadOptions{Target: "99999"})
		if want := fmt.Sprintf("the rows have %d columns", columns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// The columns on both sides of the target keep their places.
	d, err := Read(strings.NewReader(strings.Repeat("1,", 300)+"7.5"+strings.Repeat(",2", 300)), "file", &ReadOptions{Target: "300"})
	if err != nil || d.Target[0] != 7.5 || !slices.Equal(dense(d.X)[0], append(slices.Repeat([]float64{1}, 300), slices.Repeat([]float64{2}, 300)...)) {
		t.Errorf("%v, %v", d, err)
	}
	// Each byte asked for alone still has its tab.
	got, err := io.ReadAll(iotest.OneByteReader(&blanks{r: strings.NewReader("1 2\t 3 \r\n 4 5 6")}))
	if string(got) != "1\t2\t3\n4\t5\t6" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTables checks what separates and frames the cells of a table.
func TestTables(t *testing.T) {
	for _, c := range []struct {
		name, file string
		o          ReadOptions
		x          [][]float64
		target     []float64
		columns    []string
	}{
		{name: "no header", file: "1,2,3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "CR at the end", file: "1,2,3.5\r", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "header", file: "a, b ,y\n1,2,3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}, columns: []string{"a", "b"}},
		{name: "target first", file: "y,a,b\n3.5,1,2\n", o: ReadOptions{Target: "y"}, x: [][]float64{{1, 2}}, target: []float64{3.5}, columns: []string{"a", "b"}},
		{name: "named among numbers", file: "2019,2020,y\n1,2,3.5\n", o: ReadOptions{Target: "y"}, x: [][]float64{{1, 2}}, target: []float64{3.5}, columns: []string{"2019", "2020"}},
		{name: "no name in the corner", file: ",a,y\n1,2,3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}, columns: []string{"", "a"}},
		{name: "Latin-1", file: "gr\xf6\xdfe,y\n1,3.5\n", x: [][]float64{{1}}, target: []float64{3.5}, columns: []string{"größe"}},
		{name: "mark", file: "\xef\xbb\xbf1,2,3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "mark before a name", file: "\xef\xbb\xbfy,a\n3.5,1\n", o: ReadOptions{Target: "y"}, x: [][]float64{{1}}, target: []float64{3.5}, columns: []string{"a"}},
		{name: "mark, packed", file: gzipped("\xef\xbb\xbf1,2,3.5\n"), x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "mark, LIBSVM", file: "\xef\xbb\xbf1.5 1:2\n", x: [][]float64{{2}}, target: []float64{1.5}},
		{name: "comments", file: "# made; by \"hand\n\na,y\n# here too\n1,3.5\n", x: [][]float64{{1}}, target: []float64{3.5}, columns: []string{"a"}},
		{name: "comment before blanks", file: "# x, y\n1 2 3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "quoted comma", file: "\"a, m\";\"b\";y\n1;2;3.5\n", x: [][]float64{{1, 2}}, target: []float64{3.5}, columns: []string{"a, m", "b"}},
		{name: "quoted semicolon", file: "\"a; m\",y\n1,3.5\n", x: [][]float64{{1}}, target: []float64{3.5}, columns: []string{"a; m"}},
		{name: "quoted blank", file: "\"a m\"\ty\n1\t3.5\n", x: [][]float64{{1}}, target: []float64{3.5}, columns: []string{"a m"}},
		{name: "lines of blanks", file: "  \n1,2,3.5\n \t \n4,5,6.5\n   ", x: [][]float64{{1, 2}, {4, 5}}, target: []float64{3.5, 6.5}},
		{name: "lines of blanks among tabs", file: "1\t2\t3.5\n  \n4\t5\t6.5\n", x: [][]float64{{1, 2}, {4, 5}}, target: []float64{3.5, 6.5}},
		{name: "optional, there", file: "3.5,1,2\n", o: ReadOptions{Target: "0", TargetOptional: true, Dim: 2}, x: [][]float64{{1, 2}}, target: []float64{3.5}},
		{name: "optional, by name", file: "y,a,b\n3.5,1,2\n", o: ReadOptions{Target: "y", TargetOptional: true, Dim: 2}, x: [][]float64{{1, 2}}, target: []float64{3.5}, columns: []string{"a", "b"}},
		{name: "optional, not there", file: "a,b\n1,2\n", o: ReadOptions{Target: "y", TargetOptional: true, Dim: 2}, x: [][]float64{{1, 2}}, columns: []string{"a", "b"}},
		{name: "optional, LIBSVM", file: "3.5 1:2\n", o: ReadOptions{Target: "y", TargetOptional: true}, x: [][]float64{{2}}, target: []float64{3.5}},
		{name: "last, LIBSVM", file: "3.5 1:2\n", o: ReadOptions{Target: "-1"}, x: [][]float64{{2}}, target: []float64{3.5}},
		{name: "none, LIBSVM", file: "3.5 1:2\n", o: ReadOptions{Target: "none"}, x: [][]float64{{2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(strings.NewReader(c.file), "file", &c.o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(dense(d.X), c.x, slices.Equal) || !slices.Equal(d.Target, c.target) {
				t.Errorf("points %v, want %v; answers %v, want %v", dense(d.X), c.x, d.Target, c.target)
			}
			if !slices.Equal(d.Columns, c.columns) {
				t.Errorf("columns %q, want %q", d.Columns, c.columns)
			}
		})
	}
}

// TestTableFaults checks that a fault is said with its place and its remedy.
func TestTableFaults(t *testing.T) {
	const cr = "one line only: a header without rows, or CR line ends"
	for _, c := range []struct {
		name, file   string
		o            ReadOptions
		line, column int
		want         string
	}{
		{"missing in row 1", "NA,2\n3,4\n5,6\n", ReadOptions{}, 1, 1, `"NA" is not a number`},
		{"missing in row 1, late", "1,NA,2\n3,4,5\n", ReadOptions{Target: "0"}, 1, 2, `"NA" is not a number`},
		{"empty in row 1", "1,,2\n3,4,5\n", ReadOptions{}, 1, 2, "the cell is empty"},
		{"row 1 all missing", "NA,NA\n3,4\n", ReadOptions{}, 1, 1, `"NA" is not a number`},
		{"decimal commas in row 1", "1,5;2,5\n3,5;4,5\n", ReadOptions{}, 1, 1, `"1,5" is not a number: decimal comma? write 1.5`},
		{"decimal comma", "a;y\n1,5;2\n", ReadOptions{}, 2, 1, `a: "1,5" is not a number: decimal comma? write 1.5`},
		{"decimal comma in the target", "a;y\n1;2.5\n3;-7,25\n", ReadOptions{}, 3, 0, `target: "-7,25" is not a number`},
		{"cell by name", "a,b,y\n1,2,3\n1,two,3\n", ReadOptions{}, 3, 2, `b: "two" is not a number`},
		{"cell without name", "1,2,3\n1,two,3\n", ReadOptions{}, 2, 2, `"two" is not a number`},
		{"target name", "price,x,y\n1,2,3\n", ReadOptions{Target: "prise"}, 1, 0, `no column is named "prise": there are "price", "x", "y"`},
		{"target of many", "a" + strings.Repeat(",b", 29) + "\n", ReadOptions{Target: "c"}, 1, 0, `"b" and 10 more`},
		{"target name without header", "1,2,3\n", ReadOptions{Target: "y"}, 1, 0, "the first row has numbers only"},
		{"optional, but not to be found", "a,b,c\n1,2,3\n", ReadOptions{Target: "y", TargetOptional: true, Dim: 2}, 1, 0, `"y"`},
		{"CR", "a,b\r1,2\r3,4\r", ReadOptions{}, 0, 0, cr},
		{"header only", "a,b\r\n", ReadOptions{}, 0, 0, cr},
		{"UTF-16", "\xff\xfe1\x00,\x002\x00", ReadOptions{}, 0, 0, "UTF-16; save as UTF-8"},
		{"UTF-16, big", gzipped("\xfe\xff\x001\x00,"), ReadOptions{}, 0, 0, "UTF-16; save as UTF-8"},
		{"a zip archive", "PK\x03\x04\x14\x00\x08\x00\n1,2\n", ReadOptions{}, 0, 0, "damaged zip data"},
		{"two columns of a name", "a,b,a\n1,2,3\n4,5,6\n", ReadOptions{Drop: []string{"a"}}, 1, 0, `drop: several columns are named "a": say which by its number`},
		{"one cell is missing", "a,y\n,1\n2,3\n", ReadOptions{}, 2, 1, "a: the cell is empty; fill in or remove missing values"},
		{"target of LIBSVM", "1 1:2\n", ReadOptions{Target: "price"}, 0, 0, "first in each line: --target price is for csv files"},
		{"target of idx", "\x00\x00\x08\x03", ReadOptions{Target: "0"}, 0, 0, "in a separate file: --target 0"},
		{"row of one word", "1,2\nx\n", ReadOptions{}, 2, 0, "the row has 1 columns, the first row has 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file), "the file", &c.o)
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("error %v", err)
			}
			if pe.Line != c.line || pe.Column != c.column || !strings.Contains(pe.Reason, c.want) || strings.Contains(pe.Reason, "\n") {
				t.Errorf("%v (line %d, column %d), want line %d, column %d, %q", err, pe.Line, pe.Column, c.line, c.column, c.want)
			}
		})
	}
}

// TestMixedAnswers checks when words among numbers are classes.
func TestMixedAnswers(t *testing.T) {
	classes := strings.Repeat("0,1\n0,2\n", 10)
	other := strings.Repeat("0,other\n", 5)
	for _, c := range []struct {
		name, file string
		task       string
		labels     []string // nil if it is an error
		line       int
	}{
		{"words", "0,cat\n0,dog\n", "", []string{"cat", "dog"}, 0},
		{"a word in numbers", "0,7.5\n0,8.25\n0,N/A\n0,x\n", "", nil, 3},
		{"a word before numbers", "0,N/A\n0,7.5\n0,8.25\n", "", nil, 1},
		{"words in whole numbers of many values", "0,other\n0,1\n0,2\n0,3\n", "", nil, 1},
		{"a class of words", classes + other, "", []string{"1", "2", "other"}, 0},
		{"a stray word in classes", classes + "0,other\n", "", nil, 21},
		{"missing values in classes", classes + strings.Repeat("0,NA\n", 5), "", nil, 21},
		{"said to be classes", "0,7.5\n0,N/A\n", "classification", []string{"7.5", "N/A"}, 0},
		{"an empty class", "0,cat\n0,\n", "classification", nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(strings.NewReader(c.file), "file", &ReadOptions{Task: c.task})
			if c.labels != nil {
				if err != nil || !slices.Equal(d.Labels, c.labels) {
					t.Errorf("%v, %v", d, err)
				}
				return
			}
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Line != c.line {
				t.Fatalf("%v, want an error in line %d", err, c.line)
			}
			if c.task == "" && !strings.Contains(pe.Reason, "is not a number, though others are: fill in or remove it, or say --task classification") {
				t.Error(err)
			}
		})
	}
}

func TestCheckColumns(t *testing.T) {
	read := func(file string) *Dataset {
		d, err := Read(strings.NewReader(file), "test.csv", nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := read("b,a,y\n1,2,3.5\n")
	for _, names := range [][]string{nil, {"b", "a"}} {
		if err := d.CheckColumns(names, "train.csv"); err != nil {
			t.Errorf("%q: %v", names, err)
		}
	}
	if err := read("1,2,3.5\n").CheckColumns([]string{"a", "b"}, "train.csv"); err != nil {
		t.Errorf("without header: %v", err)
	}
	err := d.CheckColumns([]string{"a", "b"}, "train.csv")
	if err == nil || !strings.HasPrefix(err.Error(), `test.csv: feature column 1 is "b" here, "a" in train.csv`) {
		t.Errorf("swapped: %v", err)
	}
	if err := d.CheckColumns([]string{"a"}, "train.csv"); err == nil || !strings.Contains(err.Error(), "2 feature columns here, 1 in train.csv") {
		t.Errorf("another number: %v", err)
	}
}
