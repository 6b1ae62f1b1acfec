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

// Column describes a column of a table, as the file declares it.
type Column struct {
	Name string
	// IsText says that the file declares the cells as texts. If they are read as numbers, a note says so.
	IsText bool
	// IsIndex says that the column numbers or names the rows. It is dropped unless an option names it.
	IsIndex bool
	// Unreadable describes the cells, such as "lists", if they are neither numbers nor texts; else it is "". Such a
	// column has to be dropped.
	Unreadable string
}

// Cells are the cells of one row of a table.
type Cells interface {
	// Text returns the text of column j, trimmed; "" for a missing cell.
	Text(j int) string
	// Number returns the number in column j, NaN for a missing cell. If ok is false, the number has to be parsed from
	// the text.
	Number(j int) (v float64, ok bool)
}

// Table builds a data set from the rows that a Format adds, according to the options for columns.
type Table struct {
	s      *Source
	o      *ReadOptions
	report *ReadReport

	hasRowNames    bool           // the first column has row names, and the header does not name it
	nextRows       [][]string     // rows after the first one, by which the header is recognized
	header         []string       // names of the columns; nil without a header
	width          int            // number of columns; 0 if it is not known yet
	target         int            // column of the answers; -1 for none
	moreTargets    []int          // columns of the second and further targets
	weight         int            // column of the weights; -1 for none
	group          int            // column of the groups; -1 for none
	featureColumns []int          // columns of the features
	roleOf         map[int]string // flag that names a column
	copiedColumns  []int          // columns of ReadOptions.Keep
	categories     []*category    // category of each column; nil for columns of numbers
	hasCategories  bool           // some column has a category

	numbers     chunkedSlice[float64] // features and codes of the rows added so far
	data        []float64             // the same as one slice, after the last row
	rowNumbers  []float64             // features and codes of the current row
	copiedCells [][]string            // copied columns, each as its name followed by its cells
	weights     []float64
	groups      []string
	unused      map[int]*unusedColumn // columns that are dropped
	moreAnswers [][]float64           // answers of the second and further targets
	moreErr     error                 // first error in moreAnswers, if answers are optional
	answers     answers
	faults      map[int]*columnFaults
	booleanLine map[int]int // line of the first true or false in a column of numbers
	rows        int         // number of rows added so far
	isArray     bool        // the features are in an array already, and are checked but not copied
}

// Table returns a table with the columns that the file declares.
func (s *Source) Table(columns []Column, o *ReadOptions) (*Table, error) {
	c := s.newTable(o)
	c.o.Header = "yes"
	var names []string
	for _, column := range columns {
		names = append(names, column.Name)
	}
	c.dropIndex(columns)
	if _, err := c.readFirstRow(names, 0); err != nil {
		return nil, err
	}
	c.report.Header = "yes (the columns have names)"
	fault := &ParseError{File: s.name}
	var textColumns, dropped, unreadable []string
	for j, column := range columns {
		switch {
		case column.Unreadable != "":
			delete(c.unused, j) // copies of a record are recognized by the other columns
			if c.Reads(j) {
				fault.Reason = column.Unreadable
				dropped, unreadable = append(dropped, c.flagName(j)), append(unreadable, c.columnName(j))
			}
		case column.IsText && c.categories[j] == nil && slices.Contains(c.featureColumns, j):
			textColumns = append(textColumns, c.flagName(j))
		}
	}
	if dropped != nil {
		fault.Reason += " are in " + listed(unreadable)
		fault.addFlag("--drop", dropped)
		return nil, fault
	}
	if textColumns != nil {
		c.report.note("texts are read as numbers in %s (--categorical %s reads them as words)", nameList(textColumns),
			safe.Shell(joinNames(textColumns)))
	}
	return c, nil
}

// dropIndex drops the columns that are an index, unless an option names them.
func (c *Table) dropIndex(columns []Column) {
	namedColumns := slices.Concat([]string{c.o.Target, c.o.Weights}, c.o.MoreTargets, c.o.Columns)
	for _, k := range c.o.ColumnCodings {
		namedColumns = append(namedColumns, k.Column)
	}
	var index []string
	for j, column := range columns {
		name := column.Name
		if !column.IsIndex || slices.Contains(namedColumns, name) {
			continue
		}
		if index = append(index, name); isIndex(name) {
			name = strconv.Itoa(j)
		}
		c.o.Drop = append(slices.Clip(c.o.Drop), name)
	}
	if index != nil {
		c.report.note("index of the data frame: %s (reset_index() in pandas makes it a feature)", nameList(index))
	}
}

// Reads reports whether Add reads the cells of column j.
func (c *Table) Reads(j int) bool {
	return j == c.target || j == c.weight || j == c.group || slices.Contains(c.featureColumns, j) ||
		slices.Contains(c.moreTargets, j) || slices.Contains(c.copiedColumns, j)
}

// Compares reports whether Add compares the cells of column j, which is dropped, to recognize copies of a record.
func (c *Table) Compares(j int) bool { return !c.Reads(j) && c.unused[j] != nil }

// ExcludeFromComparison makes Compares(j) false, because the cells of column j take too much memory.
func (c *Table) ExcludeFromComparison(j int) {
	delete(c.unused, j)
	c.report.note("%s is not compared to tell copies of a record: it takes too much memory", c.columnName(j))
}

// newTable returns a table whose columns are not known yet.
func (s *Source) newTable(o *ReadOptions) *Table {
	options := *o
	for _, k := range o.ColumnCodings { // Dim counts the features of a column; here it becomes the number of columns
		if options.Dim > 0 && (k.Values != nil || k.Dates != nil) {
			options.Dim -= len(k.suffixes()) - 1
		}
	}
	if s := o.Space; s != nil && s.Projection != "" {
		options.Dim = len(s.Columns)
		if options.Columns != nil { // the coordinates stand for their features
			options.Columns = s.Columns
		}
	}
	return &Table{s: s, o: &options, report: s.report, faults: map[int]*columnFaults{}, booleanLine: map[int]int{}}
}

// Dataset returns the data set of the rows that were added.
func (c *Table) Dataset() (*Dataset, error) {
	s := c.s
	if c.rows == 0 {
		return nil, s.fileFault("the file is empty: no rows")
	}
	c.data = c.numbers.concat()
	if err := cmp.Or(c.faultError(), c.checkBooleans()); err != nil {
		return nil, err
	}
	d := &Dataset{Columns: c.featureNames(), Weights: c.weights, CopiedColumns: c.copiedCells,
		fileColumns: c.featureColumns}
	if !c.isArray {
		d.X = points.NewDense(c.rows, len(c.featureColumns), c.data)
	}
	if c.weight >= 0 {
		c.report.note("weights in %s", c.columnName(c.weight))
	}
	if c.group >= 0 {
		c.report.note("groups in %s", c.columnName(c.group))
		d.Groups = firstOf(c.groups)
	}
	for _, u := range c.unused {
		if u.notCounter {
			d.unusedHashes = append(d.unusedHashes, u.hashes)
		}
	}
	if len(c.moreTargets) > 0 {
		c.report.note("further targets %s", nameList(c.o.MoreTargets))
		d.MoreTargets, d.TargetNames = c.moreAnswers, append([]string{c.o.Target}, c.o.MoreTargets...)
	}
	if err := c.encodeCategories(d); err != nil || c.target < 0 {
		return d, err
	}
	if c.report.Target = strconv.Itoa(c.target); c.header != nil {
		c.report.Target = c.header[c.target]
	}
	return d, s.setAnswers(d, &c.answers, c.o, c.moreErr)
}

// setAnswers sets the answers of d. If they are optional, err or an error in the answers removes them, and the reason
// is recorded.
func (s *Source) setAnswers(d *Dataset, a *answers, o *ReadOptions, err error) error {
	err = cmp.Or(err, d.setAnswers(s, a, o.Task))
	if pe, ok := errors.AsType[*ParseError](err); ok && o.TargetOptional {
		d.Target, d.Class, d.Labels, d.MoreTargets, d.TargetNames = nil, nil, nil, nil, nil
		s.report.NoAnswersReason = fmt.Sprintf("line %d, %s", pe.Line, pe.Reason)
		return nil
	}
	return err
}

// Add adds a row; line is its place in errors. It returns io.EOF if no more rows are wanted.
func (c *Table) Add(r Cells, line int) error {
	if c.rows >= c.o.MaxRows {
		return io.EOF
	}
	if c.rows%1024 == 0 && c.s.ctx.Err() != nil {
		return c.s.ctx.Err()
	}
	if !c.isArray {
		if err := c.s.reserve(float64Growth*(len(c.featureColumns)+len(c.unused)), c.rows); err != nil {
			return err
		}
	}

	c.rows++
	for k, j := range c.copiedColumns {
		text := strings.Clone(safe.Cell(c.s.decodeText(r.Text(j))))
		if err := c.s.reserve(len(text)+textGrowth, c.rows); err != nil {
			return err
		}
		c.copiedCells[k] = append(c.copiedCells[k], text)
	}
	if err := c.addFeatures(r, line); err != nil {
		return err
	}
	if c.weight >= 0 {
		w, err := parseFinite(r.Text(c.weight))
		if err == nil && w <= 0 {
			err = fmt.Errorf("the weight %g is not positive; leave rows of weight 0 out", w)
		}
		if err != nil {
			return c.cellFault(line, c.weight, err)
		}
		c.weights = append(c.weights, w)
	}
	if c.group >= 0 {
		text := c.s.decodeText(r.Text(c.group))
		if isMissing(text) && c.o.TestPart { // a group of its own, as in a file without groups
			text = fmt.Sprintf("\x00%d", c.rows)
		} else if isMissing(text) {
			return c.cellFault(line, c.group, fmt.Errorf("%s is no group; fill in or remove missing values",
				quote(text)))
		}
		c.groups = append(c.groups, strings.Clone(text))
	}
	for j, u := range c.unused {
		u.add(r.Text(j))
	}

	if c.target < 0 {
		return nil
	}
	for k, j := range c.moreTargets {
		v, err := parseFinite(r.Text(j))
		if err == nil && math.Abs(v) > maxTarget {
			err = fmt.Errorf("%g is too large to be squared: give the target in another unit", v)
		}
		if err != nil {
			err = c.cellFault(line, j, err)
			if !c.o.TargetOptional {
				return err
			}
			v, c.moreErr = math.NaN(), cmp.Or(c.moreErr, err)
		}
		c.moreAnswers[k] = append(c.moreAnswers[k], v)
	}
	answer := c.s.decodeText(r.Text(c.target))
	if !c.o.TargetOptional && (answer == "" || c.o.Task == "regression" && isMissing(answer)) {
		_, err := parseFinite(answer)
		c.faultsOf(c.target).addMissing(c.s.fault(line, 0, "target: "+err.Error()))
	}
	return c.answers.addRow(c.s, answer, line)
}

// addFeatures appends the features of a row to c.numbers, with codes for words and dates. If the features are in an
// array already (isArray), it only checks them.
func (c *Table) addFeatures(r Cells, line int) error {
	text, ok := r.(*textRow)
	hasNumbers := ok && text.numbers != nil
	if hasNumbers && !c.hasCategories {
		c.numbers.appendAll(text.numbers)
		return nil
	}
	c.rowNumbers = c.rowNumbers[:0]
	for i, j := range c.featureColumns {
		if w := c.categories[j]; w != nil {
			text := c.s.decodeText(r.Text(j))
			v, err := math.NaN(), error(nil)
			if w.dates != nil && isMissing(text) {
				c.noteMissing(line, j, text)
			} else if v, err = w.encode(text); err != nil {
				err = c.cellFault(line, j, err)
			}
			if err != nil {
				return err
			}
			c.rowNumbers = append(c.rowNumbers, v)
			continue
		}
		if hasNumbers {
			c.rowNumbers = append(c.rowNumbers, text.numbers[i])
			continue
		}
		v, ok := r.Number(j)
		err := error(nil)
		if !ok {
			v, err = parseNumber(r.Text(j))
		}
		if err != nil || !isFinite(v) {
			if v, err = c.readIrregular(line, j, r.Text(j), v); err != nil {
				return err
			}
		}
		c.rowNumbers = append(c.rowNumbers, v)
	}
	if !c.isArray {
		c.numbers.appendAll(c.rowNumbers)
	}
	return nil
}

// readIrregular returns the number for a cell of column j that is not the text of a finite number: that of an amount or
// a boolean, else NaN. parsed is the number that was read, such as NaN for a missing one. readIrregular records the
// cell and returns an error if no flag of the command can repair it.
func (c *Table) readIrregular(line, j int, text string, parsed float64) (float64, error) {
	if v, isAmount := c.recordAmount(line, j, text); isAmount {
		return v, nil
	}
	if v, isBoolean := boolean(text); isBoolean {
		c.booleanLine[j] = cmp.Or(c.booleanLine[j], line)
		return v, nil
	}
	if math.IsNaN(parsed) {
		c.noteMissing(line, j, text)
		return math.NaN(), nil
	}
	return math.NaN(), c.noteNonNumber(line, j, text)
}

// boolean returns 1 for the word true and 0 for the word false, in any case; ok is false for other texts.
func boolean(text string) (v float64, ok bool) {
	if strings.EqualFold(text, "true") {
		return 1, true
	}
	return 0, strings.EqualFold(text, "false")
}

// checkBooleans notes the columns in which true and false are read as 1 and 0. It returns an error if such a column
// also has other numbers.
func (c *Table) checkBooleans() error {
	var names []string
	for k, j := range c.featureColumns {
		line := c.booleanLine[j]
		if line == 0 {
			continue
		}
		names = append(names, c.columnName(j))
		for i := range c.rows {
			if v := c.data[i*len(c.featureColumns)+k]; v != 0 && v != 1 && !math.IsNaN(v) {
				return c.cellFault(line, j, fmt.Errorf("true or false, and the column has other numbers, "+
					"such as %g", v))
			}
		}
	}
	if names != nil {
		c.report.note("true and false are read as 1 and 0 in %s", listed(names))
	}
	return nil
}

// findCopied finds the columns whose text is copied (ReadOptions.Keep).
func (c *Table) findCopied(firstRow []string) error {
	for _, column := range c.o.Keep {
		j, _, err := findColumn(firstRow, column)
		if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		name := "column " + strconv.Itoa(j)
		if c.header != nil {
			name = c.header[j]
		}
		c.copiedColumns, c.copiedCells = append(c.copiedColumns, j), append(c.copiedCells, []string{name})
	}
	return nil
}

// cellFault returns the error err at cell j of a line, with the name of the column if there is a header.
func (c *Table) cellFault(line, j int, err error) *ParseError {
	fault := c.s.fault(line, j+1, err.Error())
	if c.header != nil {
		fault.Reason = quoteIfLong(c.header[j]) + ": " + fault.Reason
	}
	return fault
}

// featureNames returns the names of the features; nil if there is no header.
func (c *Table) featureNames() []string {
	if c.header == nil {
		return nil
	}
	names := make([]string, len(c.featureColumns))
	for k, j := range c.featureColumns {
		names[k] = c.header[j]
	}
	return names
}

// columnName names column j in messages.
func (c *Table) columnName(j int) string {
	switch {
	case c.header != nil:
		return quote(c.header[j])
	case j == c.target:
		return "the target"
	}
	return "column " + strconv.Itoa(j+1)
}
