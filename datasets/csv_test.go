package datasets

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// TestTabsInQuotes checks that a tab in quotes stays in its cell and does not decide for another separator, whether
// tabs or blanks separate cells and whatever is in comments.
func TestTabsInQuotes(t *testing.T) {
	const row = "%d S \"x\ty\" S %d\n"
	for separator, want := range map[string]string{"\t": "separator tab", " ": "separator blank",
		" \t": "separator blank",
		",":   "separator comma", ";": "separator semicolon"} {
		text := "# a comment with a \"\na S w S y\n"
		for i := range 20 {
			text += fmt.Sprintf(row, i, i*i)
		}
		text += "20 S z S 7\n"
		text = strings.ReplaceAll(text, " S ", separator)
		d, err := Read(strings.NewReader(text), "t.txt", &ReadOptions{
			ColumnCodings: []ColumnCoding{{Column: "w"}}, Target: "y", Comment: "#"})
		if err != nil {
			t.Fatalf("%q: %v", separator, err)
		}
		if report := d.ReadReport.String(); !slices.Equal(d.ColumnCodings[0].Values, []string{"x\ty", "z"}) ||
			!strings.Contains(report, want) {
			t.Errorf("%q: words %q, report %s", separator, d.ColumnCodings[0].Values, report)
		}
	}
}

// TestSeparatorOfLongRows checks that separators are found in rows that are longer than any buffer, whatever the sizes
// in which the reader delivers them.
func TestSeparatorOfLongRows(t *testing.T) {
	for _, columns := range []int{2049, 3001} {
		var rowText strings.Builder
		for j := range columns - 1 {
			fmt.Fprintf(&rowText, " %d ", j)
		}
		row := rowText.String() + "2.5\n"
		for name, r := range map[string]io.Reader{
			"whole":  strings.NewReader(strings.Repeat(row, 3)),
			"bytes":  iotest.OneByteReader(strings.NewReader(strings.Repeat(row, 3))),
			"halves": iotest.HalfReader(strings.NewReader(strings.Repeat(row, 3))),
		} {
			d, err := Read(r, "wide.txt", nil)
			if err != nil {
				t.Fatalf("%d columns, %s: %v", columns, name, err)
			}
			for j, v := range denseRows(d.X)[2] {
				if v != float64(j) {
					t.Fatalf("%d columns, %s: column %d is %g", columns, name, j, v)
				}
			}
			if d.Len() != 3 || d.Dim() != columns-1 || !slices.Equal(d.Target, []float64{2.5, 2.5, 2.5}) {
				t.Errorf("%d columns, %s: read %d×%d and %v", columns, name, d.Len(), d.Dim(), d.Target)
			}
		}
		wantError(t, errorFrom(Read(strings.NewReader(row), "wide.txt", &ReadOptions{Target: "99999"})),
			fmt.Sprintf("the rows have %d columns", columns))
	}
	// The columns on both sides of the target keep their places.
	d, err := Read(strings.NewReader(strings.Repeat("1,", 300)+"7.5"+strings.Repeat(",2", 300)), "file",
		&ReadOptions{Target: "300"})
	if err != nil || d.Target[0] != 7.5 || !slices.Equal(denseRows(d.X)[0],
		append(slices.Repeat([]float64{1}, 300), slices.Repeat([]float64{2}, 300)...)) {
		t.Errorf("the target in the middle of a wide row: %v, %v", d, err)
	}
	d, err = Read(strings.NewReader("1 2\t 3 \r\n 4 5 6\t\n"), "file", nil)
	if err != nil || !slices.EqualFunc(denseRows(d.X), [][]float64{{1, 2}, {4, 5}}, slices.Equal) {
		t.Errorf("cells separated by spaces and tabs: %v, %v", d, err)
	}
}

// randomText returns a random text of 0 to n of the given letters.
func randomText(random *rand.Rand, letters string, n int) string {
	text := make([]byte, random.IntN(n+1))
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}

// TestSplitRecords checks on random texts that rows without quotes are split in the way of encoding/csv. The reference
// is the same text with a quote in its last row, for which encoding/csv is used.
func TestSplitRecords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := randomText(random, "1a,;|\t \r\n\n\v\xff", 20)
		for _, separator := range separators {
			split := func(text string) (rows []string) {
				err := splitRecords([]byte(text), separator.sep, 0, func(cells []string, line, next int) bool {
					rows = append(rows, fmt.Sprintf("%q %d %d", cells, line, next))
					return true
				})
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				return rows
			}
			if got, want := split(text+"\nq"), split(text+"\n\"q\""); !slices.Equal(got, want) {
				t.Fatalf("%q by a %s: %s, want %s", text, separator.name, got, want)
			}
		}
	}
}

// TestParseNumber checks on random texts that parseNumber gives the bits of strconv.ParseFloat, and refuses the same
// texts.
func TestParseNumber(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		text := randomText(random, "0123456789012345678901234567890123456789..-+e", 20)
		got, err := parseNumber(text)
		want, wantErr := strconv.ParseFloat(text, 64)
		if (err != nil) != (wantErr != nil) || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q: %v, %v, want %v, %v", text, got, err, want, wantErr)
		}
	}
}

// TestCheckColumns checks the comparison of the feature names of two files.
func TestCheckColumns(t *testing.T) {
	read := func(file string) *Dataset {
		return must(Read(strings.NewReader(file), "test.csv", nil))
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
	wantError(t, d.CheckColumns([]string{"a", "b"}, "train.csv"),
		`test.csv: feature column 1 is "b" here, "a" in train.csv`)
	wantError(t, d.CheckColumns([]string{"a"}, "train.csv"), "2 feature columns here, 1 in train.csv")
}
