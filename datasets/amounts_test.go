package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// TestAmounts checks that numbers in parentheses are read as negative amounts, for a feature and for the target, and
// that a note says so. Separators of thousands may be combined with parentheses, which may have spaces inside. A column
// in which a cell is no such number is refused with a message that names the cell or the form.
func TestAmounts(t *testing.T) {
	// table returns a file of two columns, the second of which has the given cells.
	table := func(head string, cells []string) string {
		text := head + "\n"
		for i, cell := range cells {
			text += fmt.Sprintf("%d;%s\n", i%3, cell)
		}
		return text
	}
	for _, c := range []struct {
		cells   string // cells of the column, separated by |
		want    string // the numbers that are read
		wantErr string // part of the error if the column is refused
	}{
		{cells: "(3.00)|7|(.5)", want: "[-3 7 -0.5]"},
		{cells: "(1,234.50)|1,000.00|( 12 )", want: "[-1234.5 1000 -12]"},
		{cells: "1.234,50|(1.234.567)|-2", want: "[1234.5 -1.234567e+06 -2]"},
		{cells: "(0)|1|2", want: "[0 1 2]"},
		{cells: "(3)|x|5", wantErr: `line 3, column 2: cost: "x" is not a number`},
		{cells: "(3)|(1,234)|5",
			wantErr: "a negative amount in parentheses, a decimal comma or a separator of thousands?"},
		{cells: "(3)|($3)|5", wantErr: "a negative amount in parentheses, a unit?"},
		{cells: "1,000.00|2|3", wantErr: "separators of thousands? write 1000.00"},
		{cells: "(-3)|1|2", wantErr: `"(-3)" is not a number`},
		{cells: "(1e999)|1|2", wantErr: "is not a number"},
	} {
		cells := strings.Split(c.cells, "|")
		options := ReadOptions{Task: "regression", Separator: ";", Target: "0", Header: "yes"}
		d, err := Read(strings.NewReader(table("y;cost", cells)), "f", &options)
		options.Target = "cost"
		asTarget, targetErr := Read(strings.NewReader(table("a;cost", cells)), "f", &options)
		if c.wantErr != "" {
			wantError(t, err, c.wantErr)
			if targetErr == nil {
				t.Errorf("%s: the target is read", c.cells)
			}
			continue
		}
		if err != nil || targetErr != nil {
			t.Errorf("%s: as a feature %v, as the target %v", c.cells, err, targetErr)
			continue
		}
		var got []float64
		for _, row := range denseRows(d.X) {
			got = append(got, row[0])
		}
		if fmt.Sprint(got) != c.want || fmt.Sprint(asTarget.Target) != c.want {
			t.Errorf("%s: %v, target %v, want %s", c.cells, got, asTarget.Target, c.want)
		}
		checkContains(t, d.ReadReport.String(), `"cost": amounts in parentheses, in `)
		checkContains(t, asTarget.ReadReport.String(), "target: amounts in parentheses, in ")
	}
}
