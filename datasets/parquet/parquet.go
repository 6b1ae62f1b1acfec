// Package parquet registers the file format Parquet with package datasets. A program that reads such files imports it:
//
//	import _ "github.com/krrlab/lab/datasets/parquet"
//
// It is a separate package because of its dependencies: some eighty packages of compression and encoding, which
// programs that read other files do not need.
package parquet

import (
	"bytes"
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

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/safe"
)

func init() {
	if err := datasets.RegisterFormat(datasets.Format{Name: "parquet", Endings: []string{".parquet"}, Read: read,
		Recognize: func(s *datasets.Source) (reason string, ok bool) {
			return "", bytes.HasPrefix(s.Head(), []byte("PAR1"))
		}}); err != nil {
		panic(err)
	}
}

// batchSize is the number of values of a column that are decoded at once.
const batchSize = 256

// row is the current row of a Parquet file, one cell for each column. It implements datasets.Cells.
type row []*column

// column is a column of a Parquet file, with its value in the current row.
type column struct {
	*parquet.Column
	logicalType   format.LogicalTypeValue // logical type of the values; nil if the file declares none
	cell          parquet.Value           // value in the current row
	pages         parquet.Pages           // pages of the current row group
	page          parquet.Page            // current page
	values        parquet.ValueReader     // reader of the values of the current page
	pendingValues []parquet.Value         // decoded values of the following rows, a part of buffer
	buffer        [batchSize]parquet.Value
}

// Text returns the value of column j as text: strings unchanged, booleans as in Python, dates and times in ISO 8601,
// UUIDs in their usual form, other bytes in hexadecimal as in PostgreSQL, and numbers so that distinct numbers have
// distinct texts.
func (r row) Text(j int) string {
	v := r[j].cell
	if v.IsNull() {
		return ""
	}
	switch logical := r[j].logicalType.(type) {
	case *format.DecimalType:
		return decimalText(v, int(logical.Scale))
	case *format.DateType:
		return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly)
	case *format.TimestampType:
		return timeOf(v, logical.Unit).Format("2006-01-02T15:04:05.999999999")
	case *format.TimeType:
		return timeOf(v, logical.Unit).Format("15:04:05.999999999")
	case *format.IntType:
		if !logical.IsSigned && v.Kind() == parquet.Int32 {
			return strconv.FormatUint(uint64(v.Uint32()), 10)
		} else if !logical.IsSigned {
			return strconv.FormatUint(v.Uint64(), 10)
		}
	case *format.Float16Type:
		number := npy.Float16ToFloat32(binary.LittleEndian.Uint16(v.ByteArray()))
		return strconv.FormatFloat(float64(number), 'g', -1, 32)
	case *format.UUIDType:
		b := v.ByteArray()
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	switch v.Kind() {
	case parquet.Boolean:
		return map[bool]string{true: "True", false: "False"}[v.Boolean()]
	case parquet.ByteArray, parquet.FixedLenByteArray:
		if text := string(v.ByteArray()); !r[j].isText() && (r[j].logicalType != nil || v.Kind() != parquet.ByteArray ||
			safe.Line(text) != text) {
			return fmt.Sprintf(`\x%x`, text)
		}
	}
	return strings.TrimSpace(v.String())
}

// isReadable reports whether the cells of the column are booleans, numbers, texts or bytes.
func (c *column) isReadable() bool {
	return c.Leaf() && !c.Repeated() && c.Type().Kind() != parquet.Int96
}

// isText reports whether the file declares the column as texts.
func (c *column) isText() bool {
	switch c.logicalType.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return true
	}
	return false
}

// timeOf returns the time that is v units after 1970 in UTC. For a time of day v counts from midnight.
func timeOf(v parquet.Value, unit format.TimeUnit) time.Time {
	d := unit.Value.Duration()
	unitsPerSecond := int64(time.Second / d)
	return time.Unix(v.Int64()/unitsPerSecond, v.Int64()%unitsPerSecond*int64(d)).UTC()
}

// Number returns the number in column j: NaN for a missing cell, and 1 and 0 for true and false. ok is false if the
// number has to be parsed from the text.
func (r row) Number(j int) (v float64, ok bool) {
	switch v := r[j].cell; {
	case v.IsNull():
		return math.NaN(), true
	case v.Kind() == parquet.Boolean:
		return map[bool]float64{true: 1}[v.Boolean()], true
	case v.Kind() == parquet.Float:
		return float64(v.Float()), true
	case v.Kind() == parquet.Double:
		return v.Double(), true
	case r[j].logicalType == nil && v.Kind() == parquet.Int64:
		return float64(v.Int64()), true
	case r[j].logicalType == nil && v.Kind() == parquet.Int32:
		return float64(v.Int32()), true
	}
	return 0, false
}

// decimalText returns the decimal number v/10^scale, where v is an integer, or a big-endian integer in two's complement
// in bytes.
func decimalText(v parquet.Value, scale int) string {
	integer := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		integer.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		integer.SetInt64(v.Int64())
	default:
		b := v.ByteArray()
		if integer.SetBytes(b); len(b) > 0 && b[0] >= 128 {
			integer.Sub(integer, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	return new(big.Rat).SetFrac(integer, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)),
		nil)).FloatString(scale)
}

// read reads the rows of a Parquet file into a table, whose columns have the names and types that the file declares.
func read(s *datasets.Source, options *datasets.ReadOptions) (d *datasets.Dataset, err error) {
	content, size, err := s.ReaderAt()
	if err != nil {
		return nil, err
	}
	defer func() { // the library checks pages as it decodes them
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			d, err = nil, s.DamageError("Parquet", err)
		}
	}()
	file, err := parquet.OpenFile(content, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	columns, descriptions := listColumns(file)
	table, err := s.Table(descriptions, options)
	if err != nil {
		return nil, err
	}
	rows := &rowReader{source: s, file: file, table: table, columns: columns, maxRows: options.MaxRows}
	for g := range file.RowGroups() {
		if err := rows.addRowGroup(g); err != nil {
			return nil, err
		}
	}
	return table.Dataset()
}

// listColumns returns the columns of a file, and their descriptions for datasets.Table.
func listColumns(file *parquet.File) (columns row, descriptions []datasets.Column) {
	leaves := slices.DeleteFunc(slices.Clone(file.Metadata().Schema), func(e format.SchemaElement) bool {
		return e.NumChildren.V > 0
	})
	var pandas struct {
		Index []any `json:"index_columns"` // names of columns, and objects for an index that counts the rows
	}
	text, _ := file.Lookup("pandas")
	_ = json.Unmarshal([]byte(text), &pandas) // if it fails, an index is recognized by its name only
	for _, root := range file.Root().Columns() {
		c, name := &column{Column: root}, root.Name()
		if root.Leaf() && root.Type().LogicalType() != nil {
			c.logicalType = root.Type().LogicalType().Value
		} else if root.Leaf() { // the library does not support float16
			c.logicalType = leaves[root.Index()].LogicalType.Value
		}
		description := datasets.Column{Name: name, IsText: c.isText(),
			IsIndex: strings.HasPrefix(name, "__index_level_") || slices.Contains(pandas.Index, any(name))}
		if !c.isReadable() {
			description.Unreadable = "lists, groups or times of 96 bits"
		}
		columns, descriptions = append(columns, c), append(descriptions, description)
	}
	return columns, descriptions
}

// rowReader adds the rows of a file to a table.
type rowReader struct {
	source    *datasets.Source
	file      *parquet.File
	table     *datasets.Table
	columns   row
	addedRows int // number of rows added so far
	maxRows   int // number of rows to add at most
}

// addRowGroup adds the rows of row group g, up to maxRows rows in total.
func (r *rowReader) addRowGroup(g int) error {
	rows := min(int64(r.maxRows-r.addedRows), r.file.RowGroups()[g].NumRows())
	if rows == 0 {
		return nil
	}
	columns, err := r.chooseColumns(g, rows)
	if err != nil {
		return err
	}
	for _, column := range columns {
		column.pages, column.pendingValues = r.file.RowGroups()[g].ColumnChunks()[column.Index()].Pages(), nil
		defer column.close()
	}
	for range rows {
		for _, column := range columns {
			if err := column.readNext(); err != nil {
				return err
			}
		}
		r.addedRows++
		if err := r.table.Add(r.columns, r.addedRows); err != nil {
			return err
		}
	}
	return nil
}

// chooseColumns returns the columns of row group g to decode: all that the table reads, and those that it only compares
// if the memory budget suffices. It returns an error if the budget does not suffice for the columns that the table
// reads.
func (r *rowReader) chooseColumns(g int, rows int64) (columns []*column, err error) {
	memory := int64(0) // of the pages of the chosen columns, in bytes
	budget := r.source.Memory()
	free := budget.Free()
	for _, isRead := range []bool{true, false} {
		for j, column := range r.columns {
			if r.table.Reads(j) != isRead || !isRead && !r.table.Compares(j) {
				continue
			}
			pageBytes, err := pageMemory(r.file, &r.file.Metadata().RowGroups[g].Columns[column.Index()].MetaData, rows,
				free)
			switch {
			case err != nil && isRead:
				return nil, err
			case err != nil || !isRead && memory+pageBytes > free:
				r.table.ExcludeFromComparison(j)
			default:
				columns, memory = append(columns, column), memory+pageBytes
			}
		}
	}
	if err := budget.Check(memory, fmt.Sprintf("unpacking the pages of row group %d", g), "allow more by --memory, "+
		"leave columns out by --drop, or write smaller pages, as by to_parquet(…, row_group_size=10000) in "+
		"pandas"); err != nil {
		return nil, r.source.Fault(0, 0, "%v", err)
	}
	return columns, nil
}

// readNext sets c.cell to the next value of the column, which is valid until the next call.
func (c *column) readNext() error {
	for len(c.pendingValues) == 0 {
		n, err := 0, io.EOF
		if c.values != nil {
			n, err = c.values.ReadValues(c.buffer[:])
		}
		if c.pendingValues = c.buffer[:n]; n > 0 {
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
	c.cell, c.pendingValues = c.pendingValues[0], c.pendingValues[1:]
	return nil
}

// close releases the memory of the current row group.
func (c *column) close() {
	parquet.Release(c.page)
	c.pages.Close()
	c.page, c.values, c.cell = nil, nil, parquet.Value{}
}
