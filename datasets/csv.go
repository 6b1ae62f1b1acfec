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
		Read: (*Source).csv})
}

// csvReader reads a table of text.
type csvReader struct {
	*Table
	sep    rune
	mark   rune     // begins a comment wherever it is; 0: none
	before int      // lines before the first record
	next   int      // line after the last record
	above  []string // the header in a comment before the first row
}

func (r *textRow) Text(j int) string { return r.cells[j] }

func (r *textRow) Number(j int) (v float64, ok bool) { return short(r.cells[j]) }

// csv reads a table that begins with the file.
func (s *Source) csv(o *ReadOptions) (*Dataset, error) { return s.Delimited(nil, 1, o) }

// Delimited reads a table from the rest of the content, which begins with a line of that number, counted from 1: rows of
// cells that are separated as the options say, or as the rows show. If columns is nil, the header is found likewise.
// Records are split by encoding/csv. Points are dense. Columns that are no numbers, and missing cells, are counted to
// the end of the file, any other fault ends the reading.
func (s *Source) Delimited(columns []Column, line int, o *ReadOptions) (*Dataset, error) {
	c := &csvReader{Table: s.table(o), before: line - 1}
	if columns != nil {
		t, err := s.Table(columns, o)
		if err != nil {
			return nil, err
		}
		c.Table = t
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	if err := c.records(); err != nil {
		return nil, s.failed(0, err)
	}
	if c.rows == 0 && c.header != nil && columns == nil {
		return nil, s.refuse(oneLine)
	}
	return c.Dataset()
}

// records reads the rows, and the header.
func (c *csvReader) records() error {
	c.next = c.before + 1
	if c.above != nil {
		if _, err := c.begin(c.above, c.before); err != nil {
			return err
		}
	}
	most := func() int {
		if c.width == 0 { // the columns are not known
			return 1
		}
		return threadsAhead()
	}
	return c.s.eachRow(c.next, c.quoted, most, c.split, func(r *textRow) error {
		if c.o.MaxRows > 0 && c.rows >= c.o.MaxRows {
			return io.EOF
		}
		return c.record(r)
	})
}

// quoted reports whether a text ends within quotes.
func (c *csvReader) quoted(text []byte) bool {
	quote := []byte{'"'}
	if c.mark == 0 {
		return bytes.Count(text, quote)%2 == 1
	}
	mark, open := []byte(string(c.mark)), 0
	for line := range bytes.Lines(text) {
		if open%2 == 1 || !bytes.HasPrefix(line, mark) {
			open += bytes.Count(line, quote)
		}
	}
	return open%2 == 1
}

// split reads the records of a block, and their numbers where the columns are known.
func (c *csvReader) split(b *block) {
	err := records(b.text, c.sep, c.mark, func(cells []string, line, next int) bool {
		r, at := textRow{line: b.line + line, next: b.line + next}, len(b.cells)
		if b.cells = append(b.cells, cells...); len(cells) == c.width {
			r.nums = c.numbers(b, cells)
		}
		r.cells = b.cells[at:]
		b.rows = append(b.rows, r)
		return true
	})
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		if pe.Line += b.line - 1; errors.Is(err, csv.ErrQuote) && b.end != nil && b.end != io.EOF {
			err = b.end // the text was cut there
		}
	}
	if err != nil {
		b.rows = append(b.rows, textRow{err: err})
	}
}

// numbers reads the features of a record, NaN for words; it returns nil where others are no numbers.
func (c *csvReader) numbers(b *block, cells []string) []float64 {
	from := len(b.nums)
	for _, j := range c.keep {
		v := math.NaN()
		if c.words[j] == nil {
			var err error
			if v, err = parse(cells[j]); err != nil || !isFinite(v) {
				b.nums = b.nums[:from]
				return nil
			}
		}
		b.nums = append(b.nums, v)
	}
	return b.nums[from:]
}

// record takes a record: a row, or the header.
func (c *csvReader) record(r *textRow) error {
	if r.err != nil {
		return c.failed(r.err)
	}
	gap := r.line - c.next
	c.next = r.next
	if c.width != 1 || c.mark != 0 {
		c.read.skip(r.line-gap, gap)
		gap = 0
	}
	for k := range gap { // a blank line of one column is a cell without a value
		if err := c.Add(&textRow{cells: []string{""}}, r.line-gap+k); err != nil {
			return err
		}
	}
	if r.nums != nil {
		return c.Add(r, r.line)
	}
	first := r.cells[0]
	note := c.rows == 0 && c.width > 0 && c.o.Comment == "" && first != "" && first[0] == '#' && len(r.cells) != c.width
	if note || len(r.cells) == 1 && c.width != 1 && first == "" {
		c.read.skip(r.line, 1)
		return nil
	}
	if c.width == 0 {
		if header, err := c.begin(r.cells, r.line); header || err != nil {
			return err
		}
	}
	if len(r.cells) != c.width {
		return c.ragged(r.line, r.cells)
	}
	return c.Add(r, r.line)
}

// ragged is the error for a row of another width.
func (c *csvReader) ragged(line int, record []string) error {
	first, remedy := "the first row", ""
	if c.header != nil {
		first = "the header"
	}
	switch sep := strings.Fields(c.read.Separator)[0]; {
	case len(record) == 1 && !strings.HasPrefix(record[0], "#"):
		remedy = ": " + quote(record[0])
	case strings.HasPrefix(record[0], "#"):
		remedy = "; if lines that begin with # are comments, say --comment #"
	case sep != "comma":
		remedy = "; cells are separated by a " + sep + ": --separator says otherwise"
	case len(record) == c.width+1:
		remedy = "; one cell more may be row names or a decimal comma"
	}
	return c.s.Fault(line, 0, "the row has %d columns, %s has %d%s", len(record), first, c.width, remedy)
}

// failed turns an error of encoding/csv into one with a place.
func (c *csvReader) failed(err error) error {
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		what := pe.Err.Error()
		if errors.Is(pe.Err, csv.ErrBareQuote) {
			what = `a cell has a quote and does not begin with one: ` +
				`write it twice and put the cell in quotes, as in "27"" wide"`
		}
		return c.s.Fault(pe.Line, 0, "%s", what)
	}
	return c.s.failed(0, err)
}
