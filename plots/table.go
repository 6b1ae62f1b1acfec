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
func ParseColumns(names ...string) (columns []Column) {
	for _, name := range names {
		column := Column{Name: name}
		if base, ok := strings.CutSuffix(name, " :"); ok {
			column.Name, column.Right = base, true
		} else if base, verb, ok := strings.Cut(name, " %"); ok {
			column.Name, column.Format = base, "%"+verb
		}
		columns = append(columns, column)
	}
	return columns
}

// heading returns the heading: the name and the unit.
func (c *Column) heading() string {
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
	blankCell  cellKind = iota
	textCell            // a text
	numberCell          // a number
	spreadCell          // a number with the ends of a sample, shown as a text
)

// Blank returns an empty cell.
func Blank() Cell { return Cell{} }

// Text returns a cell with a text.
func Text(s string) Cell { return Cell{kind: textCell, text: s} }

// Number returns a cell with a number.
func Number(v float64) Cell { return Cell{kind: numberCell, value: v} }

// AtLeast returns a cell with a lower bound, such as the lower end of an interval. It is rounded down when it is shown.
func AtLeast(v float64) Cell { return Cell{kind: numberCell, value: v, side: -1} }

// AtMost returns a cell with an upper bound. It is rounded up when it is shown.
func AtMost(v float64) Cell { return Cell{kind: numberCell, value: v, side: 1} }

// Spread returns a cell with a number, such as a median, and the minimum and the maximum of a sample. It is shown as
// text. CSV contains the three numbers; a NaN is blank.
func Spread(v, minimum, maximum float64, text string) Cell {
	return Cell{kind: spreadCell, text: text, value: v, ends: [2]float64{minimum, maximum}}
}

// Float returns the cell's number. ok reports whether it has one.
func (c Cell) Float() (v float64, ok bool) {
	return c.value, c.kind == numberCell || c.kind == spreadCell && !math.IsNaN(c.value)
}

// IsBlank reports whether the cell is empty.
func (c Cell) IsBlank() bool { return c.kind == blankCell }

// String returns the cell's text, or its number with all digits.
func (c Cell) String() string {
	if c.kind == numberCell {
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
	value := reflect.ValueOf(v)
	stringer, isStringer := v.(fmt.Stringer)
	switch {
	case value.Kind() == reflect.String:
		return Text(value.String())
	case value.CanFloat():
		return Number(value.Float())
	case value.CanInt() && isStringer:
		return Text(stringer.String())
	case value.CanInt():
		return Number(float64(value.Int()))
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

// isAlignedRight reports whether the cells of column j are aligned right: if Right is set, or if the column has numbers
// and no texts. Blank cells and spreads do not matter.
func (t *Table) isAlignedRight(j int) bool {
	hasNumbers := false
	for i := range t.Rows {
		switch t.cell(i, j).kind {
		case textCell:
			return t.Columns[j].Right
		case numberCell:
			hasNumbers = true
		}
	}
	return hasNumbers || t.Columns[j].Right
}

// cellText returns the text of the cell at row i and column j, in the format of its column. A bound is rounded outward.
func (t *Table) cellText(i, j int) string {
	c := t.cell(i, j)
	if c.kind != numberCell {
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
		return tidyExponent(c.formatOutward(func(v float64) string { return fmt.Sprintf(f, v) }))
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return text.Group(strconv.FormatFloat(v, 'f', 0, 64))
	default:
		return tidyExponent(c.formatOutward(func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }))
	}
}

// formatOutward formats the cell's number by write. If the result is on the wrong side of a bound, it formats the next
// number in the direction of c.side that write can represent. It searches this number by steps of doubling size from
// the bound. The first step that is large enough is shorter than a unit of the last digit, so it skips no number.
func (c Cell) formatOutward(write func(float64) string) string {
	formatted := write(c.value)
	step := max(math.Abs(c.value)*0x1p-52, math.SmallestNonzeroFloat64) // at least the distance to the next float64
	for side := float64(c.side); side != 0; step *= 2 {
		if rounded, err := strconv.ParseFloat(formatted, 64); err != nil || side*rounded >= side*c.value {
			break
		}
		formatted = write(c.value + side*step)
	}
	return formatted
}

// tidyExponent removes leading zeros from an exponent: 1.2e-05 becomes 1.2e-5.
var tidyExponent = strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace

// cells returns the headings and then the rows as escaped texts.
func (t *Table) cells(escape func(string) string) [][]string {
	out := make([][]string, len(t.Rows)+1)
	for j := range t.Columns {
		out[0] = append(out[0], escape(t.Columns[j].heading()))
		for i := range t.Rows {
			out[i+1] = append(out[i+1], escape(t.cellText(i, j)))
		}
	}
	return out
}

// FormatCount formats a whole number as in tables and figures, with commas if it has five digits or more.
func FormatCount(n int) string { return text.Group(strconv.Itoa(n)) }
