package datasets

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/safe"
)

// csvReader reads a table of numbers with at most one column of answers.
type csvReader struct {
	s      *source
	sep    rune
	mark   rune // begins a comment wherever it is; 0: none
	o      *ReadOptions
	read   *Reading
	before int        // lines before the first record
	next   int        // line after the last record
	names  bool       // the first column has row names, and the header does not name it
	above  []string   // the header in a comment before the first row
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

// cells are those of a row.
type cells interface {
	text(j int) string             // without blanks at its ends; "" for a missing cell
	number(j int) (float64, error) // of text(j), as parse has it; NaN for a missing cell of numbers
}

func (r *textRow) text(j int) string { return r.cells[j] }

func (r *textRow) number(j int) (float64, error) { return parse(r.cells[j]) }

// csv reads cells that are separated as Reading says. Records are split by encoding/csv. Points are dense. Columns
// that are no numbers, and missing cells, are counted to the end of the file, any other fault ends the reading.
func (s *source) csv(o *ReadOptions) (*Dataset, error) {
	c := s.table(o)
	if err := c.open(); err != nil {
		return nil, err
	}
	if err := c.records(); err != nil {
		return nil, s.failed(0, err)
	}
	return c.dataset()
}

// table returns a reader that has to find its columns.
func (s *source) table(o *ReadOptions) *csvReader {
	own := *o
	for _, k := range o.Categorical { // Dim of columns
		if own.Dim > 0 && (k.Values != nil || k.Dates != nil) {
			own.Dim -= len(k.suffixes()) - 1
		}
	}
	return &csvReader{s: s, o: &own, read: s.reading, faults: map[int]*faults{}, booleans: map[int]int{}}
}

// dataset returns what was read.
func (c *csvReader) dataset() (*Dataset, error) {
	s := c.s
	switch {
	case c.rows == 0 && c.header != nil:
		return nil, s.refuse(oneLine)
	case c.rows == 0:
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
func (s *source) answered(d *Dataset, a *answers, o *ReadOptions, err error) error {
	err = cmp.Or(err, d.setAnswers(s, a, o.Task))
	if pe, ok := errors.AsType[*ParseError](err); ok && o.TargetOptional {
		d.Target, d.Class, d.Labels, d.More, d.Targets = nil, nil, nil, nil, nil
		s.reading.Unjudged = fmt.Sprintf("line %d, %s", pe.Line, pe.Reason)
		return nil
	}
	return err
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
		if err := c.row(&textRow{cells: []string{""}}, r.line-gap+k); err != nil {
			return err
		}
	}
	if r.nums != nil {
		return c.row(r, r.line)
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
	return c.row(r, r.line)
}

func (c *csvReader) row(r cells, line int) error {
	if !c.matrix {
		if err := c.s.take(float64Growth*(len(c.keep)+len(c.unused)), c.rows); err != nil {
			return err
		}
	}
	c.rows++
	for k, j := range c.copied {
		text := strings.Clone(safe.Cell(c.s.text(r.text(j))))
		if err := c.s.take(len(text)+textGrowth, c.rows); err != nil {
			return err
		}
		c.kept[k] = append(c.kept[k], text)
	}
	if err := c.features(r, line); err != nil {
		return err
	}
	if c.weight >= 0 {
		w, err := finite(r.text(c.weight))
		if err == nil && w <= 0 {
			err = fmt.Errorf("the weight %g is not positive; leave rows of weight 0 out", w)
		}
		if err != nil {
			return c.cellFault(line, c.weight, err)
		}
		c.weights = append(c.weights, w)
	}
	if c.group >= 0 {
		text := c.s.text(r.text(c.group))
		if isMissing(text) {
			return c.cellFault(line, c.group, fmt.Errorf("%s is no group; fill in or remove missing values", quote(text)))
		}
		c.groups = append(c.groups, strings.Clone(text))
	}
	for j, u := range c.unused {
		u.add(r.text(j))
	}
	if c.target < 0 {
		return nil
	}
	for k, j := range c.more {
		v, err := finite(r.text(j))
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
	answer := c.s.text(r.text(c.target))
	if !c.o.TargetOptional && (answer == "" || c.o.Task == "regression" && isMissing(answer)) {
		_, err := finite(answer)
		c.fault1(c.target).missing(line, fmt.Errorf("target: %w", err))
	}
	return c.answers.add(c.s, answer, line)
}

// features reads the features of a row.
func (c *csvReader) features(r cells, line int) error {
	t, ok := r.(*textRow)
	known := ok && t.nums != nil
	if known && !c.wordy {
		c.nums.add(t.nums)
		return nil
	}
	c.buf = c.buf[:0]
	for i, j := range c.keep {
		if w := c.words[j]; w != nil {
			text := c.s.text(r.text(j))
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
		v, err := r.number(j)
		if err != nil || !isFinite(v) {
			text, isNaN := r.text(j), math.IsNaN(v)
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
func (c *csvReader) checkBooleans() error {
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
func (c *csvReader) copy(first []string) error {
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
func (c *csvReader) cellFault(line, j int, err error) error {
	if c.header == nil {
		return c.s.fail(line, j+1, "%v", err)
	}
	return c.s.fail(line, j+1, "%s: %v", plain(c.header[j]), err)
}

// columns returns the names of the features; nil if there is no header.
func (c *csvReader) columns() []string {
	if c.header == nil {
		return nil
	}
	names := make([]string, len(c.keep))
	for k, j := range c.keep {
		names[k] = c.header[j]
	}
	return names
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
	return c.s.fail(line, 0, "the row has %d columns, %s has %d%s", len(record), first, c.width, remedy)
}

// failed turns an error of encoding/csv into one with a place.
func (c *csvReader) failed(err error) error {
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		what := pe.Err.Error()
		if errors.Is(pe.Err, csv.ErrBareQuote) {
			what = `a cell has a quote and does not begin with one: ` +
				`write it twice and put the cell in quotes, as in "27"" wide"`
		}
		return c.s.fail(pe.Line, 0, "%s", what)
	}
	return c.s.failed(0, err)
}

// name names column j for a reader.
func (c *csvReader) name(j int) string {
	switch {
	case c.header != nil:
		return quote(c.header[j])
	case j == c.target:
		return "the target"
	}
	return "column " + strconv.Itoa(j+1)
}

// The forms in which numbers are written that are not read: digits in groups of thousands, dates, times of day,
// exponents of Fortran, hexadecimal digits, underscores, and numbers with a unit.
var (
	thousands = regexp.MustCompile(`^([+-]?\d{1,3})([ ,.'’_\x{a0}\x{202f}])(\d{3})` +
		`((?:[ ,.'’_\x{a0}\x{202f}]\d{3})*)(?:[.,](\d+))?$`)
	date     = regexp.MustCompile(`^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ,].*)?$`)
	clock    = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?$`)
	exponent = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)[dDqQ][+-]?\d+$`)
	sixteen  = regexp.MustCompile(`^[+-]?0[xX][0-9a-fA-F]`)
	under    = regexp.MustCompile(`^[+-]?\d+(?:_\d+)+(?:\.\d*)?$`)
	unit     = regexp.MustCompile(`^(?:[$€£¥] ?)?([+-]?[\d.,]+) ?(?:[%‰$€£¥°])?$`)
)

// localForm says how to write what looks like a number in a local form, or a date, and is not read
// as a number; "" for other texts.
func localForm(text string) string {
	if len(text) > maxQuoted {
		return ""
	}
	if hyphen := strings.ReplaceAll(text, "\u2212", "-"); hyphen != text {
		if _, err := parse(hyphen); err == nil {
			return ": write the minus sign as a hyphen"
		}
		text = hyphen
	}
	if m := inParentheses.FindStringSubmatch(text); m != nil {
		if _, err := parse(m[1]); err == nil {
			return ": a negative amount in parentheses? write -" + m[1]
		} else if form := localForm(m[1]); form != "" {
			return ": a negative amount in parentheses" + strings.Replace(form, ":", ",", 1) + ", with a minus sign"
		}
	}
	if s := localNumber(text); s != "" {
		return s
	}
	switch {
	case date.MatchString(text):
		return ": a date? write a number, such as the days since the first"
	case clock.MatchString(text):
		return ": a time of day? write a number, such as the seconds since midnight"
	case exponent.MatchString(text):
		return ": an exponent of Fortran? write E instead of its letter"
	case sixteen.MatchString(text):
		return ": hexadecimal? write decimal digits"
	case under.MatchString(text):
		return ": underscores between digits? write " + strings.ReplaceAll(text, "_", "")
	}
	if m := unit.FindStringSubmatch(text); m != nil && m[1] != text {
		if _, err := parse(m[1]); err == nil || localNumber(m[1]) != "" {
			return ": a unit? write the number alone"
		}
	}
	return ""
}

// localNumber is localForm of a decimal comma and separators of thousands.
func localNumber(text string) string {
	if _, err := parse(text); err == nil || len(text) > maxQuoted {
		return ""
	}
	point := strings.Replace(text, ",", ".", 1)
	_, err := parse(point)
	comma := err == nil && point != text
	number, _ := ungrouped(text)
	switch {
	case comma && number != "":
		return ": a decimal comma or a separator of thousands? write " + point + " or " + number
	case comma:
		return ": decimal comma? write " + point
	case number != "":
		return ": separators of thousands? write " + number
	}
	return ""
}
