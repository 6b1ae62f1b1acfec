package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Column is a column of a table as its file describes it.
type Column struct {
	Name string
	// IsText says that the file calls the cells texts. A note says so if they are read as numbers.
	IsText bool
	// IsIndex says that the column numbers or names the rows. It is dropped unless an option names it.
	IsIndex bool
	// Unreadable says what the cells are, such as "lists", if they are no numbers or texts. The column has to be dropped.
	Unreadable string
}

// Cells are those of a row of a table.
type Cells interface {
	// Text returns the text of column j, without blanks at its ends; "" for a missing cell.
	Text(j int) string
	// Number returns the number of column j, NaN for a missing cell; ok is false if it has to be read from the text.
	Number(j int) (v float64, ok bool)
}

// Table makes a data set of rows that a Format adds to it, by the options for columns.
type Table struct {
	s      *Source
	o      *ReadOptions
	read   *Reading
	names  bool       // the first column has row names, and the header does not name it
	rest   [][]string // the first rows after the first, to decide by
	header []string   // nil if there is none
	width  int
	target int            // column of the answers, -1 for none
	more   []int          // columns of further targets
	weight int            // of the weights, -1 for none
	group  int            // of the groups, -1 for none
	keep   []int          // columns of the features
	role   map[int]string // the flag that names a column
	copied []int          // of ReadOptions.Keep
	words  []*category    // of the columns, nil where there are none
	wordy  bool           // there are

	nums    grown[float64] // of the features, which are data in the end
	data    []float64
	buf     []float64  // those of a row
	kept    [][]string // copied, each below its name
	weights []float64
	groups  []string
	unused  map[int]*unusedColumn // columns that are left out
	others  [][]float64           // of further targets
	noMore  error                 // why these cannot be read, where they need not
	answers answers
	faults  map[int]*faults
	// booleans are the columns of numbers that have the words true and false, with the lines of the first.
	booleans map[int]int
	rows     int
	matrix   bool // the features are in an array already, and are only looked at
}

// Table returns a table of the columns that the file names.
func (s *Source) Table(columns []Column, o *ReadOptions) (*Table, error) {
	c := s.table(o)
	c.o.Header = "yes"
	var names []string
	for _, column := range columns {
		names = append(names, column.Name)
	}
	c.dropIndex(columns)
	if _, err := c.begin(names, 0); err != nil {
		return nil, err
	}
	c.read.Header = "yes (the columns have names)"
	fault := &ParseError{File: s.name}
	var digits, drop, unreadable []string
	for j, column := range columns {
		switch {
		case column.Unreadable != "":
			delete(c.unused, j) // copies of a record are told by the other columns
			if c.Reads(j) {
				fault.Reason = column.Unreadable
				drop, unreadable = append(drop, c.flagName(j)), append(unreadable, c.name(j))
			}
		case column.IsText && c.words[j] == nil && slices.Contains(c.keep, j):
			digits = append(digits, c.flagName(j))
		}
	}
	if drop != nil {
		fault.Reason += " are in " + listed(unreadable)
		fault.add("--drop", drop)
		return nil, fault
	}
	if digits != nil {
		c.read.note("texts are read as numbers in %s (--categorical %s reads them as words)", nameList(digits),
			safe.Shell(joinNames(digits)))
	}
	return c, nil
}

// dropIndex drops the columns that are an index, unless an option names them.
func (c *Table) dropIndex(columns []Column) {
	wanted := slices.Concat([]string{c.o.Target, c.o.Weights}, c.o.More, c.o.Columns)
	for _, k := range c.o.Categorical {
		wanted = append(wanted, k.Column)
	}
	var index []string
	for j, column := range columns {
		name := column.Name
		if !column.IsIndex || slices.Contains(wanted, name) {
			continue
		}
		if index = append(index, name); isIndex(name) {
			name = strconv.Itoa(j)
		}
		c.o.Drop = append(slices.Clip(c.o.Drop), name)
	}
	if index != nil {
		c.read.note("index of the data frame: %s (reset_index() in pandas makes it a feature)", nameList(index))
	}
}

// Reads reports whether Add reads the cells of column j.
func (c *Table) Reads(j int) bool {
	return j == c.target || j == c.weight || j == c.group || slices.Contains(c.keep, j) || slices.Contains(c.more, j) ||
		slices.Contains(c.copied, j)
}

// Compares reports whether Add compares the cells of column j, which is dropped, to tell copies of a record.
func (c *Table) Compares(j int) bool { return !c.Reads(j) && c.unused[j] != nil }

// CompareNot has the cells of column j not compared, since they take too much memory.
func (c *Table) CompareNot(j int) {
	delete(c.unused, j)
	c.read.note("%s is not compared to tell copies of a record: it takes too much memory", c.name(j))
}

// table returns a reader that has to find its columns.
func (s *Source) table(o *ReadOptions) *Table {
	own := *o
	for _, k := range o.Categorical { // Dim of columns
		if own.Dim > 0 && (k.Values != nil || k.Dates != nil) {
			own.Dim -= len(k.suffixes()) - 1
		}
	}
	return &Table{s: s, o: &own, read: s.reading, faults: map[int]*faults{}, booleans: map[int]int{}}
}

// Dataset returns what was read.
func (c *Table) Dataset() (*Dataset, error) {
	s := c.s
	if c.rows == 0 {
		return nil, s.refuse("the file is empty: no rows")
	}
	c.data = c.nums.all()
	if err := cmp.Or(c.fault(), c.checkBooleans()); err != nil {
		return nil, err
	}
	d := &Dataset{Columns: c.columns(), Weights: c.weights, Kept: c.kept, fileColumns: c.keep}
	if !c.matrix {
		d.X = points.NewDense(c.rows, len(c.keep), c.data)
	}
	if c.weight >= 0 {
		c.read.note("weights in %s", c.name(c.weight))
	}
	if c.group >= 0 {
		c.read.note("groups in %s", c.name(c.group))
		d.Groups = firstOf(c.groups)
	}
	for _, u := range c.unused {
		if u.varies {
			d.unused = append(d.unused, u.hashes)
		}
	}
	if len(c.more) > 0 {
		c.read.note("further targets %s", nameList(c.o.More))
		d.More, d.Targets = c.others, append([]string{c.o.Target}, c.o.More...)
	}
	if err := c.coded(d); err != nil || c.target < 0 {
		return d, err
	}
	if c.read.Target = strconv.Itoa(c.target); c.header != nil {
		c.read.Target = c.header[c.target]
	}
	return d, s.answered(d, &c.answers, c.o, c.noMore)
}

// answered sets the answers of d, which may be left out where the options say so.
func (s *Source) answered(d *Dataset, a *answers, o *ReadOptions, err error) error {
	err = cmp.Or(err, d.setAnswers(s, a, o.Task))
	if pe, ok := errors.AsType[*ParseError](err); ok && o.TargetOptional {
		d.Target, d.Class, d.Labels, d.More, d.Targets = nil, nil, nil, nil, nil
		s.reading.Unjudged = fmt.Sprintf("line %d, %s", pe.Line, pe.Reason)
		return nil
	}
	return err
}

// Add adds a row, whose place in errors is the line. It returns io.EOF if no more rows are wanted.
func (c *Table) Add(r Cells, line int) error {
	if c.o.MaxRows > 0 && c.rows >= c.o.MaxRows {
		return io.EOF
	}
	if c.rows%1024 == 0 && c.s.ctx.Err() != nil {
		return c.s.ctx.Err()
	}
	if !c.matrix {
		if err := c.s.take(float64Growth*(len(c.keep)+len(c.unused)), c.rows); err != nil {
			return err
		}
	}
	c.rows++
	for k, j := range c.copied {
		text := strings.Clone(safe.Cell(c.s.text(r.Text(j))))
		if err := c.s.take(len(text)+textGrowth, c.rows); err != nil {
			return err
		}
		c.kept[k] = append(c.kept[k], text)
	}
	if err := c.features(r, line); err != nil {
		return err
	}
	if c.weight >= 0 {
		w, err := finite(r.Text(c.weight))
		if err == nil && w <= 0 {
			err = fmt.Errorf("the weight %g is not positive; leave rows of weight 0 out", w)
		}
		if err != nil {
			return c.cellFault(line, c.weight, err)
		}
		c.weights = append(c.weights, w)
	}
	if c.group >= 0 {
		text := c.s.text(r.Text(c.group))
		if isMissing(text) {
			return c.cellFault(line, c.group, fmt.Errorf("%s is no group; fill in or remove missing values", quote(text)))
		}
		c.groups = append(c.groups, strings.Clone(text))
	}
	for j, u := range c.unused {
		u.add(r.Text(j))
	}
	if c.target < 0 {
		return nil
	}
	for k, j := range c.more {
		v, err := finite(r.Text(j))
		if err == nil && math.Abs(v) > maxTarget {
			err = fmt.Errorf("%g is too large to be squared: give the target in another unit", v)
		}
		if err != nil && !c.o.TargetOptional {
			return c.cellFault(line, j, err)
		} else if err != nil {
			v, c.noMore = math.NaN(), cmp.Or(c.noMore, c.cellFault(line, j, err))
		}
		c.others[k] = append(c.others[k], v)
	}
	answer := c.s.text(r.Text(c.target))
	if !c.o.TargetOptional && (answer == "" || c.o.Task == "regression" && isMissing(answer)) {
		_, err := finite(answer)
		c.fault1(c.target).missing(line, fmt.Errorf("target: %w", err))
	}
	return c.answers.add(c.s, answer, line)
}

// features reads the features of a row.
func (c *Table) features(r Cells, line int) error {
	t, ok := r.(*textRow)
	known := ok && t.nums != nil
	if known && !c.wordy {
		c.nums.add(t.nums)
		return nil
	}
	c.buf = c.buf[:0]
	for i, j := range c.keep {
		if w := c.words[j]; w != nil {
			text := c.s.text(r.Text(j))
			v, err := math.NaN(), error(nil)
			if w.dates != nil && isMissing(text) {
				err = c.noNumber(line, j, text, true)
			} else if v, err = w.of(text); err != nil {
				err = c.cellFault(line, j, err)
			}
			if err != nil {
				return err
			}
			c.buf = append(c.buf, v)
			continue
		}
		if known {
			c.buf = append(c.buf, t.nums[i])
			continue
		}
		v, ok := r.Number(j)
		err := error(nil)
		if !ok {
			v, err = parse(r.Text(j))
		}
		if err != nil || !isFinite(v) {
			text, isNaN := r.Text(j), math.IsNaN(v)
			isAmount, isBoolean := false, false
			if v, isAmount = c.amount(line, j, text); !isAmount {
				v, isBoolean = boolean(text)
			}
			if isBoolean {
				c.booleans[j] = cmp.Or(c.booleans[j], line)
			} else if !isAmount {
				v, err = math.NaN(), c.noNumber(line, j, text, isNaN)
				if err != nil {
					return err
				}
			}
		}
		c.buf = append(c.buf, v)
	}
	if !c.matrix {
		c.nums.add(c.buf)
	}
	return nil
}

// boolean returns 1 and 0 for the words true and false in any case, as programs write booleans.
func boolean(text string) (v float64, ok bool) {
	if strings.EqualFold(text, "true") {
		return 1, true
	}
	return 0, strings.EqualFold(text, "false")
}

// checkBooleans notes the columns in which true and false are 1 and 0. It returns an error if such a column has other
// numbers, too.
func (c *Table) checkBooleans() error {
	var names []string
	for k, j := range c.keep {
		line := c.booleans[j]
		if line == 0 {
			continue
		}
		names = append(names, c.name(j))
		for i := range c.rows {
			if v := c.data[i*len(c.keep)+k]; v != 0 && v != 1 && !math.IsNaN(v) {
				return c.cellFault(line, j, fmt.Errorf("true or false, and the column has other numbers, such as %g", v))
			}
		}
	}
	if names != nil {
		c.read.note("true and false are read as 1 and 0 in %s", listed(names))
	}
	return nil
}

// copy finds the columns whose text is kept.
func (c *Table) copy(first []string) error {
	for _, column := range c.o.Keep {
		j, _, err := findColumn(first, column)
		if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		name := "column " + strconv.Itoa(j)
		if c.header != nil {
			name = c.header[j]
		}
		c.copied, c.kept = append(c.copied, j), append(c.kept, []string{name})
	}
	return nil
}

// cellFault says what is wrong with cell j of a line, by the header's name where there is one.
func (c *Table) cellFault(line, j int, err error) error {
	if c.header == nil {
		return c.s.Fault(line, j+1, "%v", err)
	}
	return c.s.Fault(line, j+1, "%s: %v", plain(c.header[j]), err)
}

// columns returns the names of the features; nil if there is no header.
func (c *Table) columns() []string {
	if c.header == nil {
		return nil
	}
	names := make([]string, len(c.keep))
	for k, j := range c.keep {
		names[k] = c.header[j]
	}
	return names
}

// name names column j for a reader.
func (c *Table) name(j int) string {
	switch {
	case c.header != nil:
		return quote(c.header[j])
	case j == c.target:
		return "the target"
	}
	return "column " + strconv.Itoa(j+1)
}
