package datasets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"strings"
)

func init() {
	register(Format{Name: "csv", Endings: []string{".csv", ".txt", ".data"}, IsText: true, isDefault: true,
		Options: []string{"separator", "header", "comment"}, Read: (*Source).readCSV})
}

// csvReader reads a table from csv text.
type csvReader struct {
	*Table
	sep           rune     // separator of the cells
	commentMark   rune     // character that begins a comment line anywhere; 0 for none
	linesBefore   int      // number of lines before the first record
	nextLine      int      // line after the record that was added last
	commentHeader []string // header found in a comment before the first row; nil for none
}

// Text implements Cells.
func (r *textRow) Text(j int) string { return r.cells[j] }

// Number implements Cells. ok is true for a short decimal number (parseShort).
func (r *textRow) Number(j int) (v float64, ok bool) { return parseShort(r.cells[j]) }

// readCSV reads a table that starts at the beginning of the file.
func (s *Source) readCSV(options *ReadOptions) (*Dataset, error) {
	return s.ReadDelimited(nil, 1, options)
}

// ReadDelimited reads a table from the rest of the content. Its first line has the given number, counted from 1. The
// cells of a row are separated as the options say, or by the separator that the first rows suggest. If columns is nil,
// the columns are taken from the header, if there is one. The points of the result are dense.
//
// Columns that are not numeric, and missing cells, are counted to the end of the file and reported together; any other
// fault ends the reading with a *ParseError.
func (s *Source) ReadDelimited(columns []Column, line int, options *ReadOptions) (*Dataset, error) {
	c := &csvReader{Table: s.newTable(options), linesBefore: line - 1}
	if columns != nil {
		t, err := s.Table(columns, options)
		if err != nil {
			return nil, err
		}
		c.Table = t
	}
	if err := c.readPreamble(); err != nil {
		return nil, err
	}
	if err := c.readRecords(); err != nil {
		return nil, s.readError(0, err)
	}
	if c.rows == 0 && c.header != nil && columns == nil {
		return nil, s.fileFault(oneLineReason)
	}
	return c.Dataset()
}

// readRecords reads the header and the rows.
func (c *csvReader) readRecords() error {
	c.nextLine = c.linesBefore + 1
	if c.commentHeader != nil {
		if _, err := c.readFirstRow(c.commentHeader, c.linesBefore); err != nil {
			return err
		}
	}
	maxBlocks := func() int { // parsed concurrently
		if c.width() == 0 { // the columns are not known yet
			return 1
		}
		return pipelineDepth()
	}
	return c.source.eachRow(c.nextLine, c.endsInQuotes, maxBlocks, c.splitBlock, func(r *textRow) error {
		if c.rows >= c.options.MaxRows {
			return io.EOF
		}
		return c.addRecord(r)
	})
}

// endsInQuotes reports whether the text ends within a quoted cell.
func (c *csvReader) endsInQuotes(text []byte) bool {
	quote := []byte{'"'}
	if c.commentMark == 0 {
		return bytes.Count(text, quote)%2 == 1
	}
	prefix, quotes := []byte(string(c.commentMark)), 0
	for line := range bytes.Lines(text) {
		if quotes%2 == 1 || !bytes.HasPrefix(line, prefix) {
			quotes += bytes.Count(line, quote)
		}
	}
	return quotes%2 == 1
}

// splitBlock splits a block into records and, if the columns are known, parses their numbers.
func (c *csvReader) splitBlock(b *block) {
	err := splitRecords(b.text, c.sep, c.commentMark, func(cells []string, line, nextLine int) bool {
		r, start := textRow{line: b.line + line, nextLine: b.line + nextLine}, len(b.cells)
		if b.cells = append(b.cells, cells...); len(cells) == c.width() {
			r.numbers = c.parseFeatures(b, cells)
		}
		r.cells = b.cells[start:]
		b.rows = append(b.rows, r)
		return true
	})
	if parseErr, ok := errors.AsType[*csv.ParseError](err); ok {
		if parseErr.Line += b.line - 1; errors.Is(err, csv.ErrQuote) && b.endErr != nil && b.endErr != io.EOF {
			err = b.endErr // the text ends there because of this error
		}
	}
	if err != nil {
		b.rows = append(b.rows, textRow{err: err})
	}
}

// parseFeatures parses the features of a record into b.numbers, NaN for categorical columns. It returns nil if a cell
// of a numeric column is not a finite number.
func (c *csvReader) parseFeatures(b *block, cells []string) []float64 {
	start := len(b.numbers)
	for _, j := range c.featureColumns {
		v := math.NaN()
		if c.columns[j].coder == nil {
			var err error
			if v, err = parseNumber(cells[j]); err != nil || !isFinite(v) {
				b.numbers = b.numbers[:start]
				return nil
			}
		}
		b.numbers = append(b.numbers, v)
	}
	return b.numbers[start:]
}

// addRecord adds a record, which is a row or the header, and handles the blank lines before it.
func (c *csvReader) addRecord(r *textRow) error {
	if r.err != nil {
		return c.splitError(r.err)
	}
	blankLines := r.line - c.nextLine
	c.nextLine = r.nextLine
	if c.width() != 1 || c.commentMark != 0 {
		c.report.addSkipped(r.line-blankLines, blankLines)
		blankLines = 0
	}
	for k := range blankLines { // in a table of one column, a blank line is a missing cell
		if err := c.Add(&textRow{cells: []string{""}}, r.line-blankLines+k); err != nil {
			return err
		}
	}
	if r.numbers != nil {
		return c.Add(r, r.line)
	}
	firstCell := r.cells[0]
	// Without the option comment, a line before the first row that begins with # and has another width is a comment.
	isComment := c.rows == 0 && c.width() > 0 && c.options.Comment == "" && strings.HasPrefix(firstCell, "#") &&
		len(r.cells) != c.width()
	if isComment || len(r.cells) == 1 && c.width() != 1 && firstCell == "" {
		c.report.addSkipped(r.line, 1)
		return nil
	}
	if c.width() == 0 {
		if isHeader, err := c.readFirstRow(r.cells, r.line); isHeader || err != nil {
			return err
		}
	}
	if len(r.cells) != c.width() {
		return c.widthError(r.line, r.cells)
	}
	return c.Add(r, r.line)
}

// widthError returns the error for a record whose number of cells is not that of the first row.
func (c *csvReader) widthError(line int, record []string) error {
	reference, remedy := "the first row", ""
	if c.header != nil {
		reference = "the header"
	}
	switch sep := c.report.separatorName(); {
	case len(record) == 1 && !strings.HasPrefix(record[0], "#"):
		remedy = ": " + quote(record[0])
	case strings.HasPrefix(record[0], "#"):
		remedy = "; if lines that begin with # are comments, say --format comment=#"
	case sep != "comma":
		remedy = "; cells are separated by a " + sep + ": --format separator= says otherwise"
	case len(record) == c.width()+1 && record[c.width()] == "":
		remedy = "; the last one is empty: remove the separator at the end of the line"
	case len(record) == c.width()+1:
		remedy = "; one cell more may be row names or a decimal comma"
	}
	return c.source.Fault(line, 0, "the row has %s, %s has %d%s", plural(len(record), "column"), reference, c.width(),
		remedy)
}

// splitError converts an error of encoding/csv, a *csv.ParseError, into a *ParseError of this package with the same
// line.
func (c *csvReader) splitError(err error) error {
	if parseErr, ok := errors.AsType[*csv.ParseError](err); ok {
		reason := parseErr.Err.Error()
		if errors.Is(parseErr.Err, csv.ErrBareQuote) {
			reason = `a cell has a quote and does not begin with one: ` +
				`write it twice and put the cell in quotes, as in "27"" wide"`
		}
		return c.source.Fault(parseErr.Line, 0, "%s", reason)
	}
	return c.source.readError(0, err)
}
