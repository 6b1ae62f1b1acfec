package datasets

import (
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
			"whole":  strings.NewReader(strings.Repeat(row, 3)),
			"bytes":  iotest.OneByteReader(strings.NewReader(strings.Repeat(row, 3))),
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
		if want := fmt.Sprintf("the rows have %d columns", columns); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// The columns on both sides of the target keep their places.
	d, err := Read(strings.NewReader(strings.Repeat("1,", 300)+"7.5"+strings.Repeat(",2", 300)), "file",
		&ReadOptions{Target: "300"})
	if err != nil || d.Target[0] != 7.5 || !slices.Equal(dense(d.X)[0],
		append(slices.Repeat([]float64{1}, 300), slices.Repeat([]float64{2}, 300)...)) {
		t.Errorf("%v, %v", d, err)
	}
	d, err = Read(strings.NewReader("1 2\t 3 \r\n 4 5 6\t\n"), "file", nil)
	if err != nil || !slices.EqualFunc(dense(d.X), [][]float64{{1, 2}, {4, 5}}, slices.Equal) {
		t.Errorf("%v, %v", d, err)
	}
}

func TestCheckColumns(t *testing.T) {
	read := func(file string) *Dataset {
		d := must(Read(strings.NewReader(file), "test.csv", nil))
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
	fails(t, d.CheckColumns([]string{"a"}, "train.csv"), "2 feature columns here, 1 in train.csv")
}
