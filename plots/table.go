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
	// Right puts the cells on the right, where they are if all are numbers.
	Right bool
	// Format is a fmt verb for the column's numbers as float64, such as "%.2f" or
	// "%.3g". Empty: whole numbers in full, others to four significant digits. CSV
	// does not use it: there a number has all its digits.
	Format string
}

// Heads returns columns by their names, each with its unit and, after a blank, the verb of its numbers if it has one,
// or a colon if it stands right whatever it holds: "n", "time (s)", "κ %.3g", "status :".
func Heads(names ...string) (all []Column) {
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

func (c *Column) head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " (" + c.Unit + ")"
}

// Cell is one entry of a Table: blank (the zero value), a text or a number. Make them
// with Blank, Text, Number, AtLeast and AtMost. Cells compare with ==, except numbers that are NaN.
type Cell struct {
	kind  cellKind
	text  string
	value float64
	ends  [2]float64 // of a spread
	side  int8       // to which a number is rounded: −1 down, 1 up, 0 to the nearest
}

type cellKind uint8

const (
	blank cellKind = iota
	words
	numeral
	sampled
)

// Blank returns the cell that holds nothing.
func Blank() Cell { return Cell{} }

// Text returns a cell that holds a text.
func Text(s string) Cell { return Cell{kind: words, text: s} }

// Number returns a cell that holds a number; whole numbers are numbers too.
func Number(v float64) Cell { return Cell{kind: numeral, value: v} }

// AtLeast returns the cell of a lower bound, such as the lower end of an interval. It is rounded down when it is shown.
func AtLeast(v float64) Cell { return Cell{kind: numeral, value: v, side: -1} }

// AtMost returns the cell of an upper bound. It is rounded up when it is shown.
func AtMost(v float64) Cell { return Cell{kind: numeral, value: v, side: 1} }

// Spread returns the cell of a number, such as a median, with the least and the largest of a sample, which is shown as
// text. In CSV it is the numbers, blank where they are NaN; those of a column are in three columns if any has ends.
func Spread(v, minimum, maximum float64, text string) Cell {
	return Cell{kind: sampled, text: text, value: v, ends: [2]float64{minimum, maximum}}
}

// Float returns the cell's number, and whether it holds one.
func (c Cell) Float() (v float64, ok bool) {
	return c.value, c.kind == numeral || c.kind == sampled && !math.IsNaN(c.value)
}

// IsBlank reports whether the cell holds nothing.
func (c Cell) IsBlank() bool { return c.kind == blank }

// String returns the cell's text, or its number with every digit.
func (c Cell) String() string {
	if c.kind == numeral {
		return strconv.FormatFloat(c.value, 'g', -1, 64)
	}
	return c.text
}

// Table is a table as data. Rows may be shorter than Columns: missing cells are
// blank.
type Table struct {
	Title   string
	Caption string
	Columns []Column
	Rows    [][]Cell
}

// interval is a number with its ends, which are three cells.
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

func cellOf(v any) Cell {
	r := reflect.ValueOf(v)
	text, named := v.(fmt.Stringer)
	switch {
	case r.Kind() == reflect.String:
		return Text(r.String())
	case r.CanFloat():
		return Number(r.Float())
	case r.CanInt() && named:
		return Text(text.String())
	case r.CanInt():
		return Number(float64(r.Int()))
	}
	panic(fmt.Sprintf("plots: a value of type %T in a table; want a string, a number, nil or a Cell", v))
}

// cell returns the cell at row i, column j.
func (t *Table) cell(i, j int) Cell {
	if j < len(t.Rows[i]) {
		return t.Rows[i][j]
	}
	return Cell{}
}

// alignedRight reports whether the cells of column j are aligned right.
func (t *Table) alignedRight(j int) bool {
	numbers := t.Columns[j].Right
	for i := range t.Rows {
		switch t.cell(i, j).kind {
		case words:
			return t.Columns[j].Right
		case numeral:
			numbers = true
		}
	}
	return numbers
}

// show writes a cell as its column asks.
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

// rounded writes the cell's number: of a bound that the digits put on the wrong side, the next number that they can
// write. Steps from it that double find that one, for the first to reach it is shorter than a unit of the last digit.
func (c Cell) rounded(write func(float64) string) string {
	s, step := write(c.value), max(math.Abs(c.value)*0x1p-52, math.SmallestNonzeroFloat64)
	for side := float64(c.side); side != 0; step *= 2 {
		if r, err := strconv.ParseFloat(s, 64); err != nil || side*r >= side*c.value {
			break
		}
		s = write(c.value + side*step)
	}
	return s
}

// tidyExponent writes 1.2e-05 as 1.2e-5.
var tidyExponent = strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace

// cells returns the heading and the rows as text, each cell escaped; missing cells are
// blank.
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
