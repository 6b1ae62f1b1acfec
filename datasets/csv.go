package datasets

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/points"
)

// csvReader reads a table of numbers with at most one column of answers.
type csvReader struct {
	s      *source
	r      *csv.Reader
	long   *lineGuard
	o      *ReadOptions
	header []string // nil if there is none
	width  int
	target int   // column of the answers, -1 for none
	more   []int // columns of further targets
	weight int   // of the weights, -1 for none
	keep   []int // columns of the features
	words  map[int]*category

	data    []float64
	weights []float64
	others  [][]float64 // of further targets
	answers answers
	missing missing
	rows    int
}

// csv reads cells separated by commas, semicolons, tabs or blanks. Records are split
// by encoding/csv; the first row is a header if it has the target's name or no number. Blank
// lines and lines that start with # are skipped. Points are dense. Missing cells are counted to the
// end of the file, any other fault ends the reading.
func (s *source) csv(o *ReadOptions) (*Dataset, error) {
	own := *o
	for _, k := range o.Categorical { // Dim of columns
		if own.Dim > 0 && k.Values != nil {
			own.Dim -= len(k.Values) - 1
		}
	}
	c := &csvReader{s: s, o: &own}
	if err := c.open(); err != nil {
		return nil, err
	}
	for o.MaxRows == 0 || c.rows < o.MaxRows {
		record, err := c.r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.failed(err)
		}
		c.long.reset()
		if len(record) == 1 && c.width != 1 && strings.TrimSpace(record[0]) == "" {
			continue
		}
		line, _ := c.r.FieldPos(0)
		if c.width > 0 && len(record) != c.width {
			return nil, c.ragged(line, len(record))
		}
		if c.width == 0 {
			if header, err := c.begin(record, line); err != nil {
				return nil, err
			} else if header {
				continue
			}
		}
		if err := c.row(record, line); err != nil {
			return nil, err
		}
	}
	switch {
	case c.rows == 0 && c.header != nil:
		return nil, s.fail(0, 0, oneLine)
	case c.rows == 0:
		return nil, s.fail(0, 0, "the file is empty: no rows")
	}
	if err := c.missing.fault(c); err != nil {
		return nil, err
	}
	d := &Dataset{X: points.NewDense(c.rows, len(c.keep), c.data), Columns: c.columns(), Weights: c.weights}
	if len(c.more) > 0 {
		d.More, d.Targets = c.others, append([]string{c.o.Target}, c.o.More...)
	}
	if err := c.coded(d); err != nil || c.target < 0 {
		return d, err
	}
	return d, d.setAnswers(s, &c.answers, o.Task)
}

func (c *csvReader) row(record []string, line int) error {
	if err := c.s.take(float64Growth*len(c.keep), c.rows); err != nil {
		return err
	}
	c.rows++
	for _, j := range c.keep {
		if w := c.words[j]; w != nil {
			k, err := w.of(strings.TrimSpace(record[j]))
			if err != nil {
				return c.cellFault(line, j, err)
			}
			c.data = append(c.data, float64(k))
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(record[j]), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			cell := strings.TrimSpace(record[j])
			_, err := number(cell)
			if !isMissing(cell) && !math.IsNaN(v) {
				if isWord(cell) && localForm(cell) == "" && c.o.Dim == 0 { // else what is dropped is known
					err = fmt.Errorf("%w; leave out a column that is not a feature by --drop, or code a column of words by --categorical", err)
				}
				return c.cellFault(line, j, err)
			}
			if v = math.NaN(); !c.o.KeepMissing {
				c.missing.add(line, j, err)
			}
		}
		c.data = append(c.data, v)
	}
	if c.weight >= 0 {
		w, err := number(strings.TrimSpace(record[c.weight]))
		if err == nil && w <= 0 {
			err = fmt.Errorf("the weight %g is not positive; leave rows of weight 0 out", w)
		}
		if err != nil {
			return c.cellFault(line, c.weight, err)
		}
		c.weights = append(c.weights, w)
	}
	if c.target < 0 {
		return nil
	}
	for k, j := range c.more {
		v, err := number(strings.TrimSpace(record[j]))
		if err == nil && math.Abs(v) > maxTarget {
			err = fmt.Errorf("%g is too large to be squared: give the target in another unit", v)
		}
		if err != nil {
			return c.cellFault(line, j, err)
		}
		c.others[k] = append(c.others[k], v)
	}
	answer := strings.TrimSpace(record[c.target])
	if answer == "" || c.o.Task == "regression" && isMissing(answer) {
		_, err := number(answer)
		c.missing.add(line, c.target, fmt.Errorf("target: %w", err))
	}
	return c.answers.add(c.s, answer, line)
}

// cellFault says what is wrong with cell j of a line, by the header's name where there is one.
func (c *csvReader) cellFault(line, j int, err error) error {
	if c.header == nil {
		return c.s.fail(line, j+1, "%v", err)
	}
	return c.s.fail(line, j+1, "%s: %v", plain(c.header[j]), err)
}

// columns returns the names of the features, as UTF-8, so that a model file keeps them as
// they are; nil if there is no header.
func (c *csvReader) columns() []string {
	if c.header == nil {
		return nil
	}
	names := make([]string, len(c.keep))
	for k, j := range c.keep {
		names[k] = strings.ToValidUTF8(c.header[j], "\uFFFD")
	}
	return names
}

// ragged is the error for a row of another width.
func (c *csvReader) ragged(line, cells int) error {
	first := "the first row"
	if c.header != nil {
		first = "the header"
	}
	return c.s.fail(line, 0, "the row has %d columns, %s has %d", cells, first, c.width)
}

// failed turns an error of encoding/csv into one with a place.
func (c *csvReader) failed(err error) error {
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		return c.s.fail(pe.Line, 0, "%v", pe.Err)
	}
	return c.s.failed(0, err)
}

// missing counts the missing cells of a table by column.
type missing struct {
	line, column int // of the first
	err          error
	count        map[int]int
	total        int
}

func (m *missing) add(line, column int, err error) {
	if m.err == nil {
		m.line, m.column, m.err, m.count = line, column, err, map[int]int{}
	}
	m.count[column]++
	m.total++
}

// fault returns an error with the first of the missing cells, and how many there are in which
// columns; nil if there are none.
func (m *missing) fault(c *csvReader) error {
	if m.err == nil {
		return nil
	}
	place, name, remedy := m.column+1, "", "; krrlab fit --impute median fills it in"
	if m.column == c.target {
		place, remedy = 0, ""
	} else if c.header != nil {
		name = plain(c.header[m.column]) + ": "
	}
	if m.total == 1 {
		return c.s.fail(m.line, place, "%s%v%s", name, m.err, remedy)
	}
	const most = 20
	columns := slices.SortedFunc(maps.Keys(m.count), func(a, b int) int { return cmp.Or(m.count[b]-m.count[a], a-b) }) // most first
	var each []string
	for _, j := range columns[:min(most, len(columns))] {
		each = append(each, fmt.Sprintf("%s %d", c.name(j), m.count[j]))
	}
	if n := len(columns) - most; n > 0 {
		each = append(each, fmt.Sprintf("and %d columns more", n))
	}
	return c.s.fail(m.line, place, "%s%v; in %d rows %d cells are missing: %s; columns are left out by --drop, features filled in by krrlab fit --impute median",
		name, m.err, c.rows, m.total, strings.Join(each, ", "))
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

// The forms in which numbers are written that strconv does not read: digits in groups of
// thousands, dates, times of day, and numbers with a unit.
var (
	thousands = regexp.MustCompile(`^([+-]?\d{1,3})([ ,.'’_\x{a0}\x{202f}])(\d{3})((?:[ ,.'’_\x{a0}\x{202f}]\d{3})*)(?:[.,](\d+))?$`)
	date      = regexp.MustCompile(`^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ,].*)?$`)
	clock     = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?$`)
	unit      = regexp.MustCompile(`^(?:[$€£¥] ?)?([+-]?[\d.,]+) ?(?:[%‰$€£¥°])?$`)
)

// localForm says how to write what looks like a number in a local form, or a date, and is not read
// as a number; "" for other texts.
func localForm(text string) string {
	if len(text) > maxQuoted {
		return ""
	}
	if hyphen := strings.ReplaceAll(text, "\u2212", "-"); hyphen != text {
		if _, err := strconv.ParseFloat(hyphen, 64); err == nil {
			return ": write the minus sign as a hyphen"
		}
		text = hyphen
	}
	if s := localNumber(text); s != "" {
		return s
	}
	switch {
	case date.MatchString(text):
		return ": a date? write a number, such as the days since the first"
	case clock.MatchString(text):
		return ": a time of day? write a number, such as the seconds since midnight"
	}
	if m := unit.FindStringSubmatch(text); m != nil && m[1] != text {
		if _, err := strconv.ParseFloat(m[1], 64); err == nil || localNumber(m[1]) != "" {
			return ": a unit? write the number alone"
		}
	}
	return ""
}

// localNumber is localForm of a decimal comma and separators of thousands.
func localNumber(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil || len(text) > maxQuoted {
		return ""
	}
	point := strings.Replace(text, ",", ".", 1)
	_, err := strconv.ParseFloat(point, 64)
	comma := err == nil && point != text
	m := thousands.FindStringSubmatch(text)
	if m != nil {
		if rest := strings.ReplaceAll(m[4], m[2], ""); strings.ContainsAny(rest, " ,.'’_\u00a0\u202f") {
			m = nil // more than one separator
		}
	}
	switch {
	case comma && m != nil && m[4] == "" && m[5] == "":
		return ": a decimal comma or a separator of thousands? write " + point + " or " + m[1] + m[3]
	case comma:
		return ": decimal comma? write " + point
	case m != nil:
		whole := m[1] + m[3] + strings.ReplaceAll(m[4], m[2], "")
		if m[5] != "" {
			whole += "." + m[5]
		}
		return ": separators of thousands? write " + whole
	}
	return ""
}
