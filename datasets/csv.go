package datasets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"

	"github.com/krrlab/lab/krrlab/points"
)

// csvBlock is the number of rows that are handed to gota together: enough to make its
// overhead small, few enough that a large file is never held as text.
const csvBlock = 2048

// csvReader reads a table of numbers with at most one column of answers.
type csvReader struct {
	s      *source
	r      *csv.Reader
	o      *ReadOptions
	header []string // nil if there is none
	width  int
	target int // column of the answers, -1 for none

	data    []float64
	answers []string
	lines   []int
	block   [][]string
	first   int // row of data of block[0]
}

// csv reads cells separated by commas, semicolons, tabs or blanks. Records are split
// by encoding/csv, block by block, and turned into numbers by gota; the first row is a
// header if a cell outside the target column is not a number. Points are dense.
func (s *source) csv(o *ReadOptions) (*Dataset, error) {
	c := &csvReader{s: s, o: o}
	c.open()
	for o.MaxRows == 0 || len(c.lines) < o.MaxRows {
		record, err := c.r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.failed(err, len(record))
		}
		line, _ := c.r.FieldPos(0)
		if c.width == 0 {
			if header, err := c.begin(record, line); err != nil {
				return nil, err
			} else if header {
				continue
			}
		}
		c.block = append(c.block, record)
		c.lines = append(c.lines, line)
		if len(c.block) == csvBlock {
			if err := c.convert(); err != nil {
				return nil, err
			}
		}
	}
	if err := c.convert(); err != nil {
		return nil, err
	}
	n := len(c.lines)
	if n == 0 {
		return nil, s.fail(0, 0, "the file is empty: no rows")
	}
	d := &Dataset{X: points.NewDense(n, len(c.data)/n, c.data)}
	if c.target < 0 {
		return d, nil
	}
	return d, d.setAnswers(s, c.answers, c.lines, o.Task)
}

// open sets up the splitting of records; the separator is the first of comma,
// semicolon and tab that the first line has, and else blanks.
func (c *csvReader) open() {
	head, _ := c.s.r.Peek(1 << 14)
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{'\n'})
	var r io.Reader = c.s.r
	comma := ','
	switch {
	case bytes.IndexByte(line, ',') >= 0:
	case bytes.IndexByte(line, ';') >= 0:
		comma = ';'
	case bytes.IndexByte(line, '\t') >= 0:
		comma = '\t'
	case bytes.ContainsAny(bytes.TrimSpace(line), " "):
		r = &blanks{r: c.s.r}
	}
	c.r = csv.NewReader(r)
	c.r.Comma = comma
	c.r.TrimLeadingSpace = comma != '\t'
}

// blanks turns each run of blanks within a line into a comma and drops those at its ends.
type blanks struct {
	r   io.Reader
	gap bool // blanks are pending
	in  bool // the line has content
}

func (b *blanks) Read(p []byte) (int, error) {
	buf := make([]byte, max(1, len(p)/2)) // a byte becomes two at most
	n, err := b.r.Read(buf)
	k := 0
	for _, c := range buf[:n] {
		switch c {
		case ' ', '\t', '\r':
			b.gap = true
			continue
		case '\n':
			b.gap, b.in = false, false
		default:
			if b.gap && b.in && k < len(p)-1 {
				p[k] = ','
				k++
			}
			b.gap, b.in = false, true
		}
		p[k] = c
		k++
	}
	return k, err
}

// begin looks at the first record and reports whether it is a header.
func (c *csvReader) begin(record []string, line int) (header bool, err error) {
	c.width = len(record)
	named := false
	if c.target, named, err = targetColumn(c.o.Target, record, c.o.Dim); err != nil {
		return false, c.s.fail(line, 0, "%v", err)
	}
	for j, cell := range record {
		if _, err := strconv.ParseFloat(strings.TrimSpace(cell), 64); j != c.target && errors.Is(err, strconv.ErrSyntax) {
			header = true
		}
	}
	if header = header || named; header {
		c.header = slices.Clone(record)
	}
	if c.width == 1 && c.target == 0 {
		return false, c.s.fail(line, 0, "one column only: no features beside the target")
	}
	return header, nil
}

// targetColumn returns the column of the answers, -1 for none, and whether it was found
// by its name.
func targetColumn(target string, first []string, dim int) (col int, named bool, err error) {
	w := len(first)
	switch {
	case target == "none":
		return -1, false, nil
	case target == "" && dim > 0 && w == dim:
		return -1, false, nil
	case target == "":
		return w - 1, false, nil
	}
	if i := slices.IndexFunc(first, func(cell string) bool { return strings.TrimSpace(cell) == target }); i >= 0 {
		if _, err := strconv.Atoi(target); err != nil {
			return i, true, nil
		}
	}
	i, err := strconv.Atoi(target)
	if err != nil {
		return 0, false, fmt.Errorf("no column is named %q in the first row", target)
	}
	if i < -w || i >= w {
		return 0, false, fmt.Errorf("target column %d: the rows have %d columns, 0 to %d", i, w, w-1)
	}
	return (i + w) % w, false, nil
}

// convert turns the block into numbers.
func (c *csvReader) convert() error {
	rows := len(c.block)
	if rows == 0 {
		return nil
	}
	names := make([]string, c.width)
	types := map[string]series.Type{}
	for j := range names {
		names[j] = strconv.Itoa(j)
		if j == c.target {
			types[names[j]] = series.String
		}
	}
	df := dataframe.LoadRecords(c.block, dataframe.HasHeader(false), dataframe.Names(names...),
		dataframe.DetectTypes(false), dataframe.DefaultType(series.Float), dataframe.WithTypes(types), dataframe.NaNValues(nil))
	if df.Err != nil {
		return c.s.fail(c.lines[c.first], 0, "%v", df.Err)
	}
	d := c.width
	if c.target >= 0 {
		d--
	}
	at := len(c.data)
	c.data = append(c.data, make([]float64, rows*d)...)
	k := 0
	for j, name := range names {
		if j == c.target {
			for i := range rows {
				c.answers = append(c.answers, strings.TrimSpace(c.block[i][j]))
			}
			continue
		}
		for i, v := range df.Col(name).Float() {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				if v, err := number(strings.TrimSpace(c.block[i][j])); err != nil {
					return c.s.fail(c.lines[c.first+i], j+1, "%v", err)
				} else {
					c.data[at+i*d+k] = v
				}
				continue
			}
			c.data[at+i*d+k] = v
		}
		k++
	}
	c.block, c.first = c.block[:0], c.first+rows
	return nil
}

// failed turns an error of encoding/csv into one with a place.
func (c *csvReader) failed(err error, cells int) error {
	var pe *csv.ParseError
	if !errors.As(err, &pe) {
		return c.s.failed(0, err)
	}
	if errors.Is(err, csv.ErrFieldCount) {
		first := "the first row"
		if c.header != nil {
			first = "the header"
		}
		return c.s.fail(pe.Line, 0, "the row has %d columns, %s has %d", cells, first, c.width)
	}
	return c.s.fail(pe.Line, 0, "%v", pe.Err)
}
