package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
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
	// IsText says that the file declares the type of the cells as text. If they are read as numbers, the report has a
	// note on this.
	IsText bool
	// IsIndex says that the column numbers or names the rows. It is dropped unless an option names it.
	IsIndex bool
	// Unreadable describes the cells, such as "lists", if they are neither numbers nor texts; else it is "". Such a
	// column has to be dropped.
	Unreadable string
}

// Cells are the cells of one row of a table. A Format implements it for its rows and passes them to Table.Add.
type Cells interface {
	// Text returns the text of column j, trimmed; "" for a missing cell.
	Text(j int) string
	// Number returns the number in column j, NaN for a missing cell. If ok is false, the number has to be parsed from
	// the text.
	Number(j int) (v float64, ok bool)
}

// Table builds a data set from the rows that a Format adds, according to the options for columns (ReadOptions).
type Table struct {
	source  *Source
	options *ReadOptions
	report  *ReadReport

	hasRowNames       bool          // the first column has row names, and the header does not name it
	nextRows          [][]string    // rows after the first one, by which the header is recognized
	header            []string      // names of the columns; nil without a header
	columns           []tableColumn // all columns of the file; nil if they are not known yet
	targetColumn      int           // column of the answers; -1 for none
	moreTargetColumns []int         // columns of the second and further targets
	weightColumn      int           // column of the weights; -1 for none
	groupColumn       int           // column of the groups; -1 for none
	featureColumns    []int         // columns of the features
	copiedColumns     []int         // columns of ReadOptions.Keep
	hasCoders         bool          // some column has a coder

	featureChunks  chunkedSlice[float64] // features and codes of the rows added so far
	features       []float64             // the elements of featureChunks as one slice, set after the last row
	rowFeatures    []float64             // features and codes of the current row
	copiedCells    [][]string            // copied columns, each as its name followed by its cells
	weights        []float64
	groups         []string
	moreAnswers    [][]float64 // answers of the second and further targets
	moreAnswersErr error       // first error in moreAnswers, if answers are optional
	answers        answers
	rows           int  // number of rows added so far
	isArray        bool // the features are in an array already, and are checked but not copied
}

// tableColumn describes the use of a column of a table, and its cells.
type tableColumn struct {
	role        string        // flag that names the column, or "feature" for a column of a model; "" for others
	coder       *columnCoder  // coder of words or dates; nil for numbers
	hashes      *columnHashes // hashes of the cells of a dropped column that are compared; nil if they are not
	faults      *columnFaults // cells that are not plain numbers; nil if there are none
	booleanLine int           // line of the first true or false in a column of numbers; 0 for none
}

// Table returns a table with the columns that the file declares.
func (s *Source) Table(columns []Column, options *ReadOptions) (*Table, error) {
	t := s.newTable(options)
	t.options.Header = "yes"
	var names []string
	for _, column := range columns {
		names = append(names, column.Name)
	}
	t.dropIndex(columns)
	if _, err := t.readFirstRow(names, 0); err != nil {
		return nil, err
	}
	t.report.Header = "yes (the columns have names)"
	fault := &ParseError{File: s.name}
	var textColumns, dropped, unreadable []string
	for j, column := range columns {
		switch {
		case column.Unreadable != "":
			t.columns[j].hashes = nil // copies of a record are recognized by the other columns
			if t.Reads(j) {
				fault.Reason = column.Unreadable
				dropped, unreadable = append(dropped, t.flagName(j)), append(unreadable, t.columnName(j))
			}
		case column.IsText && t.columns[j].coder == nil && slices.Contains(t.featureColumns, j):
			textColumns = append(textColumns, t.flagName(j))
		}
	}
	if dropped != nil {
		fault.Reason += " are in " + joinLimited(unreadable)
		fault.addFlag("--drop", dropped)
		return nil, fault
	}
	if textColumns != nil {
		t.report.note("texts are read as numbers in %s (--categorical %s reads them as words)", nameList(textColumns),
			safe.Shell(joinNames(textColumns)))
	}
	return t, nil
}

// dropIndex drops the columns that are an index, unless an option names them.
func (t *Table) dropIndex(columns []Column) {
	namedColumns := slices.Concat([]string{t.options.Target, t.options.Weights}, t.options.MoreTargets,
		t.options.Columns)
	for _, coding := range t.options.ColumnCodings {
		namedColumns = append(namedColumns, coding.Column)
	}
	var indexNames []string
	for j, column := range columns {
		name := column.Name
		if !column.IsIndex || slices.Contains(namedColumns, name) {
			continue
		}
		if indexNames = append(indexNames, name); isIndex(name) {
			name = strconv.Itoa(j)
		}
		t.options.Drop = append(slices.Clip(t.options.Drop), name)
	}
	if indexNames != nil {
		t.report.note("index of the data frame: %s (reset_index() in pandas makes it a feature)", nameList(indexNames))
	}
}

// width returns the number of columns; 0 if it is not known yet.
func (t *Table) width() int { return len(t.columns) }

// Reads reports whether Add reads the cells of column j.
func (t *Table) Reads(j int) bool {
	return j == t.targetColumn || j == t.weightColumn || j == t.groupColumn || slices.Contains(t.featureColumns, j) ||
		slices.Contains(t.moreTargetColumns, j) || slices.Contains(t.copiedColumns, j)
}

// Compares reports whether Add compares the cells of column j, which is dropped, to recognize copies of a record.
func (t *Table) Compares(j int) bool { return !t.Reads(j) && t.columns[j].hashes != nil }

// ExcludeFromComparison makes Compares(j) false, because the cells of column j take too much memory.
func (t *Table) ExcludeFromComparison(j int) {
	t.columns[j].hashes = nil
	t.report.note("%s is not compared to tell copies of a record: it takes too much memory", t.columnName(j))
}

// newTable returns a table whose columns are not known yet.
func (s *Source) newTable(options *ReadOptions) *Table {
	tableOptions := *options
	for _, coding := range options.ColumnCodings { // Dim counts the features; here it becomes the number of columns
		if tableOptions.Dim > 0 && (coding.Values != nil || coding.Dates != nil) {
			tableOptions.Dim -= len(coding.suffixes()) - 1
		}
	}
	if space := options.Space; space != nil && space.Projection != "" {
		tableOptions.Dim = len(space.Columns)
		if tableOptions.Columns != nil { // the coordinates replace their features
			tableOptions.Columns = space.Columns
		}
	}
	return &Table{source: s, options: &tableOptions, report: s.report}
}

// Dataset returns the data set of the rows that were added.
func (t *Table) Dataset() (*Dataset, error) {
	s := t.source
	if t.rows == 0 {
		return nil, s.fileFault("the file is empty: no rows")
	}
	t.features = t.featureChunks.concat()
	if err := cmp.Or(t.faultError(), t.checkBooleans()); err != nil {
		return nil, err
	}
	d := &Dataset{Columns: t.featureNames(), Weights: t.weights, CopiedColumns: t.copiedCells,
		fileColumns: t.featureColumns}
	if !t.isArray {
		d.X = points.NewDense(t.rows, len(t.featureColumns), t.features)
	}
	if t.weightColumn >= 0 {
		t.report.note("weights in %s", t.columnName(t.weightColumn))
	}
	if t.groupColumn >= 0 {
		t.report.note("groups in %s", t.columnName(t.groupColumn))
		d.Groups = firstEqualIndex(t.groups)
	}
	for _, column := range t.columns {
		if h := column.hashes; h != nil && h.isNotCounter {
			d.unusedHashes = append(d.unusedHashes, h.values)
		}
	}
	if len(t.moreTargetColumns) > 0 {
		t.report.note("further targets %s", nameList(t.options.MoreTargets))
		d.MoreTargets, d.TargetNames = t.moreAnswers, append([]string{t.options.Target}, t.options.MoreTargets...)
	}
	if err := t.encodeColumns(d); err != nil || t.targetColumn < 0 {
		return d, err
	}
	if t.report.Target = strconv.Itoa(t.targetColumn); t.header != nil {
		t.report.Target = t.header[t.targetColumn]
	}
	return d, s.setAnswers(d, &t.answers, t.options, t.moreAnswersErr)
}

// setAnswers sets the answers of d. If they are optional, err or an error in the answers removes them, and the reason
// is recorded.
func (s *Source) setAnswers(d *Dataset, a *answers, options *ReadOptions, err error) error {
	err = cmp.Or(err, d.setAnswers(s, a, options.Task))
	if parseErr, ok := errors.AsType[*ParseError](err); ok && options.TargetOptional {
		d.Target, d.Class, d.Labels, d.MoreTargets, d.TargetNames = nil, nil, nil, nil, nil
		s.report.NoAnswersReason = fmt.Sprintf("line %d, %s", parseErr.Line, parseErr.Reason)
		return nil
	}
	return err
}

// Add adds a row; line is its place in errors. It returns io.EOF if no more rows are wanted.
func (t *Table) Add(r Cells, line int) error {
	if t.rows >= t.options.MaxRows {
		return io.EOF
	}
	if t.rows%1024 == 0 && t.source.ctx.Err() != nil {
		return t.source.ctx.Err()
	}
	newNumbers := len(t.featureColumns)
	for j := range t.columns {
		if h := t.columns[j].hashes; h != nil {
			h.add(r.Text(j))
			newNumbers++
		}
	}
	if !t.isArray {
		if err := t.source.reserve(float64Growth*newNumbers, t.rows); err != nil {
			return err
		}
	}

	t.rows++
	for k, j := range t.copiedColumns {
		text := strings.Clone(safe.Cell(t.source.decodeText(r.Text(j))))
		if err := t.source.reserve(len(text)+textGrowth, t.rows); err != nil {
			return err
		}
		t.copiedCells[k] = append(t.copiedCells[k], text)
	}
	if err := t.addFeatures(r, line); err != nil {
		return err
	}
	if err := t.addWeightAndGroup(r, line); err != nil || t.targetColumn < 0 {
		return err
	}
	return t.addAnswers(r, line)
}

// addWeightAndGroup appends the weight and the group of a row, if the table has them.
func (t *Table) addWeightAndGroup(r Cells, line int) error {
	if t.weightColumn >= 0 {
		weight, err := parseFinite(r.Text(t.weightColumn))
		if err == nil && weight <= 0 {
			err = fmt.Errorf("the weight %g is not positive; leave rows of weight 0 out", weight)
		}
		if err != nil {
			return t.cellFault(line, t.weightColumn, err)
		}
		t.weights = append(t.weights, weight)
	}
	if t.groupColumn >= 0 {
		text := t.source.decodeText(r.Text(t.groupColumn))
		if isMissing(text) && t.options.TestPart { // a group of its own, as in a file without groups
			text = fmt.Sprintf("\x00%d", t.rows)
		} else if isMissing(text) {
			return t.cellFault(line, t.groupColumn, fmt.Errorf("%s is no group; fill in or remove missing values",
				quote(text)))
		}
		t.groups = append(t.groups, strings.Clone(text))
	}
	return nil
}

// addAnswers appends the answers of a row.
func (t *Table) addAnswers(r Cells, line int) error {
	for k, j := range t.moreTargetColumns {
		v, err := parseFinite(r.Text(j))
		if err == nil && math.Abs(v) > maxTarget {
			err = fmt.Errorf("%g is too large to be squared: give the target in another unit", v)
		}
		if err != nil {
			err = t.cellFault(line, j, err)
			if !t.options.TargetOptional {
				return err
			}
			v, t.moreAnswersErr = math.NaN(), cmp.Or(t.moreAnswersErr, err)
		}
		t.moreAnswers[k] = append(t.moreAnswers[k], v)
	}
	answer := t.source.decodeText(r.Text(t.targetColumn))
	if !t.options.TargetOptional && (answer == "" || t.options.Task == "regression" && isMissing(answer)) {
		_, err := parseFinite(answer)
		t.faultsOf(t.targetColumn).addMissing(t.source.Fault(line, 0, "target: %v", err))
	}
	return t.answers.addRow(t.source, answer, line)
}

// addFeatures appends the features of a row to t.featureChunks, with codes for words and dates. If the features are in
// an array already (isArray), it only checks them.
func (t *Table) addFeatures(r Cells, line int) error {
	var parsed []float64 // features of a row of text, if all are numbers
	if text, ok := r.(*textRow); ok {
		parsed = text.numbers
	}
	if parsed != nil && !t.hasCoders {
		t.featureChunks.appendAll(parsed)
		return nil
	}
	t.rowFeatures = t.rowFeatures[:0]
	for i, j := range t.featureColumns {
		var v float64
		var err error
		switch coder := t.columns[j].coder; {
		case coder != nil:
			v, err = t.encodeCell(coder, line, j, t.source.decodeText(r.Text(j)))
		case parsed != nil:
			v = parsed[i]
		default:
			v, err = t.readNumber(r, line, j)
		}
		if err != nil {
			return err
		}
		t.rowFeatures = append(t.rowFeatures, v)
	}
	if !t.isArray {
		t.featureChunks.appendAll(t.rowFeatures)
	}
	return nil
}

// encodeCell returns the code of a cell of words or dates, NaN for a missing date.
func (t *Table) encodeCell(coder *columnCoder, line, j int, text string) (float64, error) {
	if coder.dates != nil && isMissing(text) {
		t.recordMissing(line, j, text)
		return math.NaN(), nil
	}
	v, err := coder.encode(text)
	if err != nil {
		return 0, t.cellFault(line, j, err)
	}
	return v, nil
}

// readNumber returns the number in column j of a row. A cell that is not the text of a finite number is recorded; its
// number is the value of the amount or boolean that it has, else NaN. readNumber returns an error if no flag of the
// command can repair the cell.
func (t *Table) readNumber(r Cells, line, j int) (float64, error) {
	v, ok := r.Number(j)
	var err error
	if !ok {
		v, err = parseNumber(r.Text(j))
	}
	if err == nil && isFinite(v) {
		return v, nil
	}
	text := r.Text(j)
	if amount, isAmount := t.recordAmount(line, j, text); isAmount {
		return amount, nil
	}
	if v, isBoolean := parseBoolean(text); isBoolean {
		t.columns[j].booleanLine = cmp.Or(t.columns[j].booleanLine, line)
		return v, nil
	}
	if math.IsNaN(v) {
		t.recordMissing(line, j, text)
		return math.NaN(), nil
	}
	return math.NaN(), t.recordNonNumber(line, j, text)
}

// featureValues returns the numbers or codes of feature column k, row by row.
func (t *Table) featureValues(k int) iter.Seq[float64] {
	return columnValues(t.features, t.rows, len(t.featureColumns), k)
}

// columnValues returns the elements of column j of a matrix of n rows, which is stored by rows with the given stride.
func columnValues(data []float64, n, stride, j int) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := range n {
			if !yield(data[i*stride+j]) {
				return
			}
		}
	}
}

// checkBooleans notes the columns in which true and false are read as 1 and 0. It returns an error if such a column
// also has other numbers.
func (t *Table) checkBooleans() error {
	var names []string
	for k, j := range t.featureColumns {
		line := t.columns[j].booleanLine
		if line == 0 {
			continue
		}
		names = append(names, t.columnName(j))
		for v := range t.featureValues(k) {
			if v != 0 && v != 1 && !math.IsNaN(v) {
				return t.cellFault(line, j, fmt.Errorf("true or false, and the column has other numbers, "+
					"such as %g", v))
			}
		}
	}
	if names != nil {
		t.report.note("true and false are read as 1 and 0 in %s", joinLimited(names))
	}
	return nil
}

// findCopied finds the columns whose text is copied (ReadOptions.Keep).
func (t *Table) findCopied(firstRow []string) error {
	for _, column := range t.options.Keep {
		j, _, err := findColumn(firstRow, column)
		if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		name := "column " + strconv.Itoa(j)
		if t.header != nil {
			name = t.header[j]
		}
		t.copiedColumns, t.copiedCells = append(t.copiedColumns, j), append(t.copiedCells, []string{name})
	}
	return nil
}

// cellFault returns the error err at cell j of a line, with the name of the column if there is a header.
func (t *Table) cellFault(line, j int, err error) *ParseError {
	fault := t.source.Fault(line, j+1, "%v", err)
	if t.header != nil {
		fault.Reason = quoteIfLong(t.header[j]) + ": " + fault.Reason
	}
	return fault
}

// featureNames returns the names of the features; nil if there is no header.
func (t *Table) featureNames() []string {
	if t.header == nil {
		return nil
	}
	names := make([]string, len(t.featureColumns))
	for k, j := range t.featureColumns {
		names[k] = t.header[j]
	}
	return names
}

// columnName names column j in messages.
func (t *Table) columnName(j int) string {
	name := "column " + strconv.Itoa(j+1)
	switch {
	case t.header != nil && t.header[j] == "":
		return name + " (without a name)"
	case t.header != nil:
		return quote(t.header[j])
	case j == t.targetColumn:
		return "the target"
	}
	return name
}
