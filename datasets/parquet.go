package datasets

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
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

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/safe"
)

const (
	parquetStart = "PAR1"
	// parquetBatch is the number of values of a column that are decoded at once.
	parquetBatch = 256
)

// parquetRow is the current row of a Parquet file, as cells.
type parquetRow []*parquetColumn

// parquetColumn is a column of a Parquet file with its value in the current row.
type parquetColumn struct {
	*parquet.Column
	kind   format.LogicalTypeValue // nil for none
	cell   parquet.Value
	pages  parquet.Pages // of a row group
	page   parquet.Page
	values parquet.ValueReader // of the page
	batch  []parquet.Value     // values that follow the cell
	buffer [parquetBatch]parquet.Value
}

// text returns strings as they are, booleans as Python writes them, dates and times in ISO 8601, UUIDs in their usual
// form, other bytes in hexadecimal as PostgreSQL does, and numbers so that no two are one.
func (r parquetRow) text(j int) string {
	v := r[j].cell
	if v.IsNull() {
		return ""
	}
	switch k := r[j].kind.(type) {
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
	case *format.Float16Type:
		return strconv.FormatFloat(float64(npy.Half(binary.LittleEndian.Uint16(v.ByteArray()))), 'g', -1, 32)
	case *format.UUIDType:
		b := v.ByteArray()
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	switch v.Kind() {
	case parquet.Boolean:
		return map[bool]string{true: "True", false: "False"}[v.Boolean()]
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		if text := string(v.ByteArray()); !r[j].isText() && (r[j].kind != nil || v.Kind() != parquet.ByteArray ||
			safe.Line(text) != text) {
			return fmt.Sprintf(`\x%x`, text)
		}
	}
	return strings.TrimSpace(v.String())
}

// isPlain reports whether the cells of the column are numbers, texts or bytes.
func (c *parquetColumn) isPlain() bool {
	return c.Leaf() && !c.Repeated() && c.Type().Kind() != parquet.Int96
}

// isText reports whether the file says that the column is one of texts.
func (c *parquetColumn) isText() bool {
	switch c.kind.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return true
	}
	return false
}

// instant returns the time so many units after 1970 in UTC, of a time of day after midnight.
func instant(v parquet.Value, unit format.TimeUnit) time.Time {
	d := unit.Value.Duration()
	per := int64(time.Second / d)
	return time.Unix(v.Int64()/per, v.Int64()%per*int64(d)).UTC()
}

// number returns NaN for a missing cell, and 1 and 0 for true and false.
func (r parquetRow) number(j int) (float64, error) {
	switch v := r[j].cell; {
	case v.IsNull():
		return math.NaN(), nil
	case v.Kind() == parquet.Boolean:
		return map[bool]float64{true: 1}[v.Boolean()], nil
	case v.Kind() == parquet.Float:
		return float64(v.Float()), nil
	case v.Kind() == parquet.Double:
		return v.Double(), nil
	case r[j].kind == nil && v.Kind() == parquet.Int64:
		return float64(v.Int64()), nil
	case r[j].kind == nil && v.Kind() == parquet.Int32:
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
	row, err := c.parquetColumns(f)
	if err != nil {
		return nil, err
	}
	for g := range f.RowGroups() {
		if err := c.parquetRows(f, g, row); err != nil {
			return nil, err
		}
	}
	if c.rows == 0 {
		return nil, s.refuse("the file has no rows")
	}
	return c.dataset()
}

// parquetFault says in one line what is wrong with the file.
func (s *source) parquetFault(err error) error {
	if _, ours := errors.AsType[*ParseError](err); !ours {
		err = s.refuse("damaged Parquet data (%s); get the file again", plain(err.Error()))
	}
	return cmp.Or(s.ctx.Err(), err)
}

// parquetColumns finds the columns that are wanted, and returns an empty row.
func (c *csvReader) parquetColumns(f *parquet.File) (row parquetRow, err error) {
	var names []string
	leaves := slices.DeleteFunc(slices.Clone(f.Metadata().Schema), func(e format.SchemaElement) bool {
		return e.NumChildren.V > 0
	})
	for _, column := range f.Root().Columns() {
		k := &parquetColumn{Column: column}
		if column.Leaf() && column.Type().LogicalType() != nil {
			k.kind = column.Type().LogicalType().Value
		} else if column.Leaf() { // the library does not have float16
			k.kind = leaves[column.Index()].LogicalType.Value
		}
		row, names = append(row, k), append(names, column.Name())
	}
	c.o.Header = "yes"
	c.dropIndex(f, names)
	if _, err := c.begin(names, 0); err != nil {
		return nil, err
	}
	c.read.Header = "yes (the columns have names)"
	var digits, opaque, reasons []string
	for j, k := range row {
		if !k.isPlain() {
			delete(c.unused, j) // copies of a record are told by the other columns
		}
		switch {
		case !k.isPlain() && c.reads(j):
			opaque, reasons = append(opaque, c.flagName(j)), append(reasons, c.name(j))
		case k.isText() && c.words[j] == nil && slices.Contains(c.keep, j):
			digits = append(digits, c.flagName(j))
		}
	}
	if opaque != nil {
		pe := &ParseError{File: c.s.name, Reason: "lists, groups or times of 96 bits are in " + listed(reasons)}
		pe.add("--drop", opaque)
		return nil, pe
	}
	if digits != nil {
		c.read.note("texts are read as numbers in %s (--categorical %s reads them as words)", nameList(digits),
			safe.Shell(joinNames(digits)))
	}
	return row, nil
}

// reads reports whether the cells of column j are read.
func (c *csvReader) reads(j int) bool {
	return j == c.target || j == c.weight || j == c.group || slices.Contains(c.keep, j) || slices.Contains(c.more, j) ||
		slices.Contains(c.copied, j)
}

// dropIndex leaves out the columns that pandas names as the index of the data frame, unless an option names them.
func (c *csvReader) dropIndex(f *parquet.File, names []string) {
	var pandas struct {
		Index []any `json:"index_columns"` // names, and objects for an index that counts
	}
	text, _ := f.Lookup("pandas")
	_ = json.Unmarshal([]byte(text), &pandas) // without it there is no index but by name
	wanted := slices.Concat([]string{c.o.Target, c.o.Weights}, c.o.More, c.o.Columns)
	for _, k := range c.o.Categorical {
		wanted = append(wanted, k.Column)
	}
	var index []string
	for j, name := range names {
		isLevel := strings.HasPrefix(name, "__index_level_")
		if !isLevel && !slices.Contains(pandas.Index, any(name)) || slices.Contains(wanted, name) {
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

// parquetRows reads the rows of group g, no more than are wanted.
func (c *csvReader) parquetRows(f *parquet.File, g int, row parquetRow) error {
	rows := f.RowGroups()[g].NumRows()
	if c.o.MaxRows > 0 {
		rows = min(rows, int64(c.o.MaxRows-c.rows))
	}
	var columns []*parquetColumn
	memory, limit := int64(0), c.s.memory() // of the pages
	tooLarge := func(bytes int64) bool { return limit > 0 && bytes > small && c.s.held+bytes > limit }
	for _, isUsed := range []bool{true, false} {
		for j, k := range row {
			if c.reads(j) != isUsed || !isUsed && c.unused[j] == nil {
				continue
			}
			bytes, err := pageMemory(f, &f.Metadata().RowGroups[g].Columns[k.Index()].MetaData, rows, limit)
			switch {
			case err != nil && isUsed:
				return c.s.parquetFault(err)
			case err != nil || !isUsed && tooLarge(memory+bytes):
				delete(c.unused, j)
				c.read.note("%s is not compared to tell copies of a record: it takes too much memory", c.name(j))
			default:
				columns, memory = append(columns, k), memory+bytes
			}
		}
	}
	if tooLarge(memory) {
		return c.s.refuse("unpacking the pages of row group %d takes %s, of %s that reading may take: allow more by "+
			"--memory, leave columns out by --drop, or write smaller pages, as by to_parquet(…, row_group_size=10000) in "+
			"pandas", g, accel.Bytes(memory), accel.Bytes(limit))
	}
	for _, k := range columns {
		k.pages, k.batch = f.RowGroups()[g].ColumnChunks()[k.Index()].Pages(), nil
		defer k.close()
	}
	for i := range rows {
		if i%parquetBatch == 0 && c.s.ctx.Err() != nil {
			return c.s.ctx.Err()
		}
		for _, k := range columns {
			if err := k.next(); err != nil {
				return c.s.parquetFault(err)
			}
		}
		if err := c.row(row, c.rows+1); err != nil {
			return err
		}
	}
	return nil
}

// next reads the next value of the column, which is valid until the next call.
func (c *parquetColumn) next() error {
	for len(c.batch) == 0 {
		n, err := 0, io.EOF
		if c.values != nil {
			n, err = c.values.ReadValues(c.buffer[:])
		}
		if c.batch = c.buffer[:n]; n > 0 {
			break
		} else if !errors.Is(err, io.EOF) {
			return cmp.Or(err, io.ErrNoProgress)
		}
		parquet.Release(c.page)
		if c.page, err = c.pages.ReadPage(); err != nil {
			return fmt.Errorf("column %q: %w", c.Name(), err)
		}
		c.values = c.page.Values()
	}
	c.cell, c.batch = c.batch[0], c.batch[1:]
	return nil
}

func (c *parquetColumn) close() {
	parquet.Release(c.page)
	c.pages.Close()
	c.page, c.values, c.cell = nil, nil, parquet.Value{}
}
