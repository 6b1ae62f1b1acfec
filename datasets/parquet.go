package datasets

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

const (
	parquetStart = "PAR1"
	// parquetRows is how many rows are decoded at once.
	parquetRows = 256
	// pandasIndex is the column in which pandas keeps an index that does not merely count.
	pandasIndex = "__index_level_0__"
)

// parquetRow is a row of a Parquet file, as cells.
type parquetRow struct {
	kind  []format.LogicalTypeValue // of each column; nil for one without
	cells []parquet.Value
}

// text returns strings as they are, booleans as Python writes them, dates and times in ISO 8601, and numbers so that
// no two are one.
func (r *parquetRow) text(j int) string {
	v := r.cells[j]
	if v.IsNull() {
		return ""
	}
	switch k := r.kind[j].(type) {
	case *format.DecimalType:
		return decimalText(v, int(k.Scale))
	case *format.DateType:
		return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly)
	case *format.TimestampType:
		return instant(v, k.Unit).Format("2006-01-02T15:04:05.999999999")
	case *format.TimeType:
		return instant(v, k.Unit).Format("15:04:05.999999999")
	case *format.IntType:
		if !k.IsSigned && v.Kind() == parquet.Int32 {
			return strconv.FormatUint(uint64(v.Uint32()), 10)
		} else if !k.IsSigned {
			return strconv.FormatUint(v.Uint64(), 10)
		}
	}
	switch v.Kind() {
	case parquet.Boolean:
		return map[bool]string{true: "True", false: "False"}[v.Boolean()]
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return strings.TrimSpace(v.String())
}

// instant returns the time so many units after 1970 in UTC, of a time of day after midnight.
func instant(v parquet.Value, unit format.TimeUnit) time.Time {
	d := unit.Value.Duration()
	per := int64(time.Second / d)
	return time.Unix(v.Int64()/per, v.Int64()%per*int64(d)).UTC()
}

// number returns NaN for a missing cell, and 1 and 0 for true and false.
func (r *parquetRow) number(j int) (float64, error) {
	switch v := r.cells[j]; {
	case v.IsNull():
		return math.NaN(), nil
	case v.Kind() == parquet.Boolean:
		return map[bool]float64{true: 1}[v.Boolean()], nil
	case v.Kind() == parquet.Float:
		return float64(v.Float()), nil
	case v.Kind() == parquet.Double:
		return v.Double(), nil
	case r.kind[j] == nil && v.Kind() == parquet.Int64:
		return float64(v.Int64()), nil
	case r.kind[j] == nil && v.Kind() == parquet.Int32:
		return float64(v.Int32()), nil
	}
	return parse(r.text(j))
}

// decimalText returns the decimal number of an integer, or of a big-endian one in bytes, that is to be divided by
// 10^scale.
func decimalText(v parquet.Value, scale int) string {
	i := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		i.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		i.SetInt64(v.Int64())
	default:
		b := v.ByteArray()
		if i.SetBytes(b); len(b) > 0 && b[0] >= 128 {
			i.Sub(i, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	return new(big.Rat).SetFrac(i, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
}

// parquet reads a table whose columns have names and types.
func (s *source) parquet(o *ReadOptions) (d *Dataset, err error) {
	r, size, err := s.random()
	if err != nil {
		return nil, s.failed(0, err)
	}
	defer func() { // the library checks pages as it decodes them
		if p := recover(); p != nil {
			d, err = nil, s.parquetFault(fmt.Errorf("%v", p))
		}
	}()
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, s.parquetFault(err)
	}
	c := s.table(o)
	row, leaf, err := c.parquetColumns(f)
	if err != nil {
		return nil, err
	}
	for _, g := range f.RowGroups() {
		if err := c.parquetRows(g, row, leaf); err != nil {
			return nil, err
		}
	}
	if c.rows == 0 {
		return nil, s.fail(0, 0, "the file has no rows")
	}
	return c.dataset()
}

// parquetFault says in one line what is wrong with the file.
func (s *source) parquetFault(err error) error {
	if ours, ok := errors.AsType[*ParseError](err); ok {
		return ours
	} else if e := s.ctx.Err(); e != nil {
		return e
	}
	return s.fail(0, 0, "damaged Parquet data (%s); get the file again", plain(err.Error()))
}

// parquetColumns finds the columns that are wanted, and returns an empty row and to which column each leaf of the
// schema belongs.
func (c *csvReader) parquetColumns(f *parquet.File) (row *parquetRow, leaf []int, err error) {
	var names []string
	row = &parquetRow{}
	other := map[int]bool{} // columns whose cells are neither numbers nor texts
	for j, field := range f.Schema().Fields() {
		names = append(names, field.Name())
		if !field.Leaf() || field.Repeated() {
			other[j] = true
		}
		var kind format.LogicalTypeValue
		if field.Leaf() {
			other[j] = other[j] || field.Type().Kind() == parquet.Int96
			if t := field.Type().LogicalType(); t != nil {
				kind = t.Value
			}
		}
		row.kind = append(row.kind, kind)
	}
	for _, path := range f.Schema().Columns() {
		leaf = append(leaf, slices.Index(names, path[0]))
	}
	row.cells = make([]parquet.Value, len(names))
	c.o.Header = "yes"
	if slices.Contains(names, pandasIndex) && !slices.Contains(c.o.Drop, pandasIndex) {
		c.o.Drop = append(slices.Clip(c.o.Drop), pandasIndex)
	}
	if _, err := c.begin(names, 0); err != nil {
		return nil, nil, err
	}
	c.read.Header = "yes (the columns have names)"
	for j := range names {
		if other[j] && (slices.Contains(c.keep, j) || slices.Contains(c.more, j) || j == c.target || j == c.weight) {
			return nil, nil, c.s.fail(0, j+1, "%s has lists, groups or times of 96 bits: leave it out by --drop",
				quote(names[j]))
		}
	}
	return row, leaf, nil
}

// parquetRows reads the rows of a group, no more than are wanted.
func (c *csvReader) parquetRows(g parquet.RowGroup, row *parquetRow, leaf []int) error {
	rows := g.Rows()
	defer rows.Close()
	buf := make([]parquet.Row, parquetRows)
	for {
		if err := c.s.ctx.Err(); err != nil {
			return err
		}
		n, err := rows.ReadRows(buf)
		for _, values := range buf[:n] {
			if c.o.MaxRows > 0 && c.rows == c.o.MaxRows {
				return nil
			}
			clear(row.cells)
			for _, v := range values {
				row.cells[leaf[v.Column()]] = v
			}
			if err := c.row(row, c.rows+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return c.s.parquetFault(err)
		}
	}
}
