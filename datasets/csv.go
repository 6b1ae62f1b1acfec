package datasets

import (
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

// csvColumns is the number of columns that are handed to gota together: its time grows
// with their square.
const csvColumns = 128

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
// header if it has the target's name or no number. Blank lines and lines that start with
// # are skipped. Points are dense.
func (s *source) csv(o *ReadOptions) (*Dataset, error) {
	c := &csvReader{s: s, o: o}
	if err := c.open(); err != nil {
		return nil, err
	}
	for o.MaxRows == 0 || len(c.lines) < o.MaxRows {
		record, err := c.r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.failed(err)
		}
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
	switch {
	case n == 0 && c.header != nil:
		return nil, s.fail(0, 0, oneLine)
	case n == 0:
		return nil, s.fail(0, 0, "the file is empty: no rows")
	}
	d := &Dataset{X: points.NewDense(n, len(c.data)/n, c.data), Columns: c.columns()}
	if c.target < 0 {
		return d, nil
	}
	return d, d.setAnswers(s, c.answers, c.lines, o.Task)
}

// convert turns the block into numbers.
func (c *csvReader) convert() error {
	rows := len(c.block)
	if rows == 0 {
		return nil
	}
	d := c.width
	if c.target >= 0 {
		d--
	}
	at := len(c.data)
	c.data = append(c.data, make([]float64, rows*d)...)
	for j := 0; j < c.width; j += csvColumns {
		if err := c.convertColumns(c.data[at:], d, j, min(j+csvColumns, c.width)); err != nil {
			return err
		}
	}
	if c.target >= 0 {
		for _, record := range c.block {
			c.answers = append(c.answers, strings.TrimSpace(record[c.target]))
		}
	}
	c.block, c.first = c.block[:0], c.first+rows
	return nil
}

// convertColumns turns columns from, …, to-1 of the block into numbers: features of the
// rows of data, d in each.
func (c *csvReader) convertColumns(data []float64, d, from, to int) error {
	part := make([][]string, len(c.block))
	for i, record := range c.block {
		part[i] = record[from:to]
	}
	names := make([]string, to-from)
	types := map[string]series.Type{}
	for j := range names {
		names[j] = strconv.Itoa(from + j)
		if from+j == c.target {
			types[names[j]] = series.String
		}
	}
	df := dataframe.LoadRecords(part, dataframe.HasHeader(false), dataframe.Names(names...),
		dataframe.DetectTypes(false), dataframe.DefaultType(series.Float), dataframe.WithTypes(types), dataframe.NaNValues(nil))
	if df.Err != nil {
		return c.s.fail(c.lines[c.first], 0, "%v", df.Err)
	}
	k := from // the feature that the column is
	if c.target >= 0 && c.target < from {
		k--
	}
	for j, name := range names {
		if from+j == c.target {
			continue
		}
		for i, v := range df.Col(name).Float() {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				var err error
				if v, err = number(strings.TrimSpace(part[i][j])); err != nil {
					return c.cellFault(i, from+j, err)
				}
			}
			data[i*d+k] = v
		}
		k++
	}
	return nil
}

// cellFault says what is wrong with cell j of row i of the block, by the header's name
// where there is one.
func (c *csvReader) cellFault(i, j int, err error) error {
	if c.header != nil {
		err = fmt.Errorf("%s: %w", c.header[j], err)
	}
	return c.s.fail(c.lines[c.first+i], j+1, "%v", err)
}

// columns returns the names of the features, as UTF-8, so that a model file keeps them as
// they are; nil if there is no header.
func (c *csvReader) columns() []string {
	if c.header == nil {
		return nil
	}
	names := slices.Clone(c.header)
	if c.target >= 0 {
		names = slices.Delete(names, c.target, c.target+1)
	}
	for j, name := range names {
		names[j] = strings.ToValidUTF8(name, "\uFFFD")
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
	var pe *csv.ParseError
	if !errors.As(err, &pe) {
		return c.s.failed(0, err)
	}
	return c.s.fail(pe.Line, 0, "%v", pe.Err)
}
