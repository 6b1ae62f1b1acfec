package plots

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/krrlab/lab/plots/internal/text"
)

// Column describes one column of a Table.
type Column struct {
	Name string
	// Unit follows the name in parentheses: "time (s)".
	Unit string
	// Right aligns the cells right. A column without texts is aligned right in any case.
	Right bool
	// Format is a fmt verb for the column's numbers as float64, such as "%.2f" or "%.3g". Default: whole numbers in
	// full, others to four significant digits. CSV does not use it, since numbers there have all digits.
	Format string
}

// ParseColumns returns columns with the given names. A name may be followed by a blank and the column's Format, as in
// "κ %.3g", or by a blank and a colon, which sets Right, as in "status :".
func ParseColumns(names ...string) (all []Column) {
	for _, name := range names {
		c := Column{Name: name}
		if base, ok := strings.CutSuffix(name, " :"); ok {
			c.Name, c.Right = base, true
		} else if base, verb, ok := strings.Cut(name, " %"); ok {
			c.Name, c.Format = base, "%"+verb
		}
		all = append(all, c)
	}
	return all
}

// head returns the heading: the name and the unit.
func (c *Column) head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " (" + c.Unit + ")"
}

// Cell is one entry of a Table: blank (the zero value), a text or a number. Blank, Text, Number, AtLeast, AtMost and
// Spread return cells. Cells can be compared with ==, except numbers that are NaN.
type Cell struct {
	kind  cellKind
	text  string
	value float64
	ends  [2]float64 // the ends of a spread
	side  int8       // direction in which a number is rounded: −1 down, 1 up, 0 to nearest
}

// cellKind is the kind of a cell's content.
type cellKind uint8

const (
	blank   cellKind = iota
	words            // a text
	numeral          // a number
	sampled          // a number with the ends of a sample, shown as a text
)

// Blank returns an empty cell.
func Blank() Cell { return Cell{} }

// Text returns a cell with a text.
func Text(s string) Cell { return Cell{kind: words, text: s} }

// Number returns a cell with a number.
func Number(v float64) Cell { return Cell{kind: numeral, value: v} }

// AtLeast returns a cell with a lower bound, such as the lower end of an interval. It is rounded down when it is shown.
func AtLeast(v float64) Cell { return Cell{kind: numeral, value: v, side: -1} }

// AtMost returns a cell with an upper bound. It is rounded up when it is shown.
func AtMost(v float64) Cell { return Cell{kind: numeral, value: v, side: 1} }

// Spread returns a cell with a number, such as a median, and the minimum and the maximum of a sample. It is shown as
// text. CSV contains the three numbers; a NaN is blank.
func Spread(v, minimum, maximum float64, text string) Cell {
	return Cell{kind: sampled, text: text, value: v, ends: [2]float64{minimum, maximum}}
}

// Float returns the cell's number. ok reports whether it has one.
func (c Cell) Float() (v float64, ok bool) {
	return c.value, c.kind == numeral || c.kind == sampled && !math.IsNaN(c.value)
}

// IsBlank reports whether the cell is empty.
func (c Cell) IsBlank() bool { return c.kind == blank }

// String returns the cell's text, or its number with all digits.
func (c Cell) String() string {
	if c.kind == numeral {
		return strconv.FormatFloat(c.value, 'g', -1, 64)
	}
	return c.text
}

// Table is a table as data.
type Table struct {
	Title   string
	Caption string
	Columns []Column
	Rows    [][]Cell // a row may be shorter than Columns; its missing cells are blank
}

// interval is a value that Add converts to three cells: a number and the ends of an interval.
type interval interface {
	Ends() (value, lo, hi float64)
}

// Add appends a row. It converts each value to a cell: floating-point numbers and integers of any type to numbers,
// strings and integers with a String method to texts, and nil to a blank. A value with a method Ends becomes three
// cells: itself, and its ends by AtLeast and AtMost. Cells are appended unchanged. Add panics on any other type and on
// more cells than columns.
func (t *Table) Add(values ...any) {
	row := make([]Cell, 0, len(t.Columns))
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			row = append(row, Cell{})
		case Cell:
			row = append(row, v)
		case []Cell:
			row = append(row, v...)
		case interval:
			value, lo, hi := v.Ends()
			row = append(row, Number(value), AtLeast(lo), AtMost(hi))
		default:
			row = append(row, cellOf(v))
		}
	}
	if len(row) > len(t.Columns) {
		panic(fmt.Sprintf("plots: a row of %d cells in a table of %d columns", len(row), len(t.Columns)))
	}
	t.Rows = append(t.Rows, row)
}

// cellOf converts a value of a string, floating-point or signed integer type to a cell. It panics on any other type.
func cellOf(v any) Cell {
	r := reflect.ValueOf(v)
	stringer, isStringer := v.(fmt.Stringer)
	switch {
	case r.Kind() == reflect.String:
		return Text(r.String())
	case r.CanFloat():
		return Number(r.Float())
	case r.CanInt() && isStringer:
		return Text(stringer.String())
	case r.CanInt():
		return Number(float64(r.Int()))
	}
	panic(fmt.Sprintf("plots: a value of type %T in a table; want a string, a number, nil or a Cell", v))
}

// cell returns the cell at row i and column j.
func (t *Table) cell(i, j int) Cell {
	if j < len(t.Rows[i]) {
		return t.Rows[i][j]
	}
	return Cell{}
}

// alignedRight reports whether the cells of column j are aligned right: if Right is set, or if the column has numbers
// and no texts. Blank cells and spreads do not matter.
func (t *Table) alignedRight(j int) bool {
	hasNumbers := false
	for i := range t.Rows {
		switch t.cell(i, j).kind {
		case words:
			return t.Columns[j].Right
		case numeral:
			hasNumbers = true
		}
	}
	return hasNumbers || t.Columns[j].Right
}

// show returns the text of the cell at row i and column j, in the format of its column. A bound is rounded outward.
func (t *Table) show(i, j int) string {
	c := t.cell(i, j)
	if c.kind != numeral {
		return c.text
	}
	v := c.value
	switch f := t.Columns[j].Format; {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "-∞"
	case f != "":
		return tidyExponent(c.rounded(func(v float64) string { return fmt.Sprintf(f, v) }))
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return text.Group(strconv.FormatFloat(v, 'f', 0, 64))
	default:
		return tidyExponent(c.rounded(func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }))
	}
}

// rounded formats the cell's number by write. If the result is on the wrong side of a bound, it formats the next number
// that write can represent. This number is found by steps of doubling size from the bound, because the first step that
// reaches it is shorter than a unit of the last digit.
func (c Cell) rounded(write func(float64) string) string {
	s := write(c.value)
	step := max(math.Abs(c.value)*0x1p-52, math.SmallestNonzeroFloat64) // at least the distance to the next float64
	for side := float64(c.side); side != 0; step *= 2 {
		if r, err := strconv.ParseFloat(s, 64); err != nil || side*r >= side*c.value {
			break
		}
		s = write(c.value + side*step)
	}
	return s
}

// tidyExponent removes leading zeros from an exponent: 1.2e-05 becomes 1.2e-5.
var tidyExponent = strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace

// cells returns the headings and then the rows as escaped texts.
func (t *Table) cells(escape func(string) string) [][]string {
	out := make([][]string, len(t.Rows)+1)
	for j := range t.Columns {
		out[0] = append(out[0], escape(t.Columns[j].head()))
		for i := range t.Rows {
			out[i+1] = append(out[i+1], escape(t.show(i, j)))
		}
	}
	return out
}

// FormatCount formats a whole number as in tables and figures, with commas if it has five digits or more.
func FormatCount(n int) string { return text.Group(strconv.Itoa(n)) }
