package parquet

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

type readOptions = datasets.ReadOptions

// reading is a file and the expected result of reading it with the options. If want begins with "!", the rest of want is
// a part of the error. Otherwise want is a part of the rows, targets, labels, classes and columns, followed by the read
// report.
type reading struct {
	name, file string
	options    readOptions
	want       string
}

// checkReadings reads each file and compares the result with the expected one.
func checkReadings(t *testing.T, cases []reading) {
	t.Helper()
	for _, c := range cases {
		d, err := datasets.Read(strings.NewReader(c.file), "f", &c.options)
		want, isError := strings.CutPrefix(c.want, "!")
		got := fmt.Sprint(err)
		if err == nil {
			rows := make([][]float64, d.Len())
			for i := range rows {
				rows[i] = make([]float64, d.Dim())
				d.X.RowTo(rows[i], i)
			}
			got = fmt.Sprintln(rows, d.Target, d.Labels, d.Class, d.Columns, d.ReadReport)
		}
		if isError != (err != nil) || !strings.Contains(got, want) {
			t.Errorf("%s: %.2000s, want %s", c.name, got, c.want)
		}
	}
}

// must returns v and panics on an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// gzipText returns the text packed by gzip.
func gzipText(text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(text))
	w.Close()
	return packed.String()
}

// house is a row with a column of every type that can be read.
type house struct {
	Index int64         `parquet:"__index_level_0__"`
	Age   int32         `parquet:"age"`
	Rooms *float64      `parquet:"rooms,optional"`
	Area  float32       `parquet:"area"`
	Town  *string       `parquet:"town,optional,dict"`
	Sold  bool          `parquet:"sold"`
	Cost  int64         `parquet:"cost,decimal(2:18)"`
	Id    uint64        `parquet:"id"`
	When  time.Time     `parquet:"when,timestamp(millisecond)"`
	Daily time.Duration `parquet:"daily,time(microsecond)"`
	Tags  []string      `parquet:"tags"`
	Price float64       `parquet:"price"`
}

// parquetFile returns a Parquet file of rows.
func parquetFile[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var content bytes.Buffer
	w := parquet.NewGenericWriter[T](&content, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

// houses returns twelve rows. The number of rooms and the town of row 4 are missing.
func houses() (rows []house) {
	for i := range 12 {
		h := house{Index: int64(i), Age: int32(i%4 + 1), Area: float32(i) / 2, Sold: i%2 == 0, Cost: int64(-150 + 7*i),
			Id: 1<<63 + uint64(i%2), Tags: []string{"a"}, Price: float64(i) + 0.25}
		if i != 4 {
			rooms, town := float64(i%3), []string{"Ulm", "Köln"}[i%2]
			h.Rooms, h.Town = &rooms, &town
		}
		h.When = time.Date(2020, 1, 1+i, 0, 0, 0, 0, time.UTC)
		rows = append(rows, h)
	}
	return rows
}

// TestParquet checks the features, the target and the labels that are read from Parquet files with several layouts
// and options.
func TestParquet(t *testing.T) {
	drop := func(more ...string) []string { return append([]string{"when", "daily", "tags"}, more...) }
	table := parquetFile(t, houses())
	numbersOnly := readOptions{Drop: drop("rooms", "town", "id")}
	for _, c := range []struct {
		name, file string
		options    readOptions
		want       string // columns, row 5, its target, labels
	}{
		{"numbers", table, numbersOnly, "[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"compressed", parquetFile(t, houses(), parquet.Compression(&parquet.Zstd)), numbersOnly,
			"[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"groups", parquetFile(t, houses(), parquet.MaxRowsPerRowGroup(5)), numbersOnly,
			"[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"packed", gzipText(table), numbersOnly, "[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"missing", table, readOptions{Drop: drop("town", "id", "sold", "cost"), KeepMissing: true},
			"[age rooms area] [2 2 2.5] 5.25 []"},
		{"words", table, readOptions{Drop: drop("rooms", "id", "sold", "cost"),
			ColumnCodings: []datasets.ColumnCoding{{Column: "town"}}},
			"[age area town= town=Köln town=Ulm] [2 2.5 0 1 0] 5.25 []"},
		{"booleans as words", table, readOptions{Drop: drop("rooms", "id", "town", "cost"),
			ColumnCodings: []datasets.ColumnCoding{{Column: "sold"}}},
			"[age area sold=False sold=True] [2 2.5 1 0] 5.25 []"},
		{"another target", table, readOptions{Drop: drop("rooms", "town", "id"), Target: "cost"},
			"[age area sold price] [2 2.5 0 5.25] -1.15 []"},
		{"labels", table, readOptions{Drop: drop("rooms", "town"), Target: "id"},
			"[age area sold cost price] [2 2.5 0 -1.15 5.25] 1 [9223372036854775808 9223372036854775809]"},
		{"by name", table, readOptions{Columns: []string{"cost", "age"}, Dim: 2, TargetOptional: true},
			"[cost age] [-1.15 2]-[]"},
		{"rows", table, readOptions{Drop: drop("rooms", "town", "id"), MaxRows: 6},
			"[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := must(datasets.Read(strings.NewReader(c.file), "houses.parquet", &c.options))
			row, answer := make([]float64, d.Dim()), any("-")
			if d.X.RowTo(row, 5); d.Target != nil {
				answer = d.Target[5]
			} else if d.Class != nil {
				answer = d.Class[5]
			}
			if got := fmt.Sprint(d.Columns, row, answer, d.Labels); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if !strings.Contains(d.ReadReport.String(), "parquet; header yes (the columns have names)") {
				t.Errorf("read %v", d.ReadReport)
			}
		})
	}
}

// TestParquetFaults checks that damaged files and columns that cannot be read are refused with a remedy.
func TestParquetFaults(t *testing.T) {
	complete := parquetFile(t, houses())
	checkReadings(t, []reading{
		{"all at once", complete, readOptions{Drop: []string{"tags"}},
			`!"when" has dates or times (--drop when leaves them out), "daily" has dates or times`},
		{"remedy", complete, readOptions{Drop: []string{"tags", "id"}},
			`!rooms: the cell is empty; fill in or remove missing values; add --categorical town --dates when,daily --impute median`},
		{"lists", complete, readOptions{}, `!lists, groups or times of 96 bits are in "tags"; add --drop tags`},
		{"no target", complete, readOptions{Target: "value"}, `!no column is named "value"`},
		{"no rows", parquetFile(t, []house{}), readOptions{Drop: []string{"tags"}}, "!the file is empty: no rows"},
		{"cut", complete[:len(complete)/2], readOptions{}, "!damaged Parquet data"},
		{"page", complete[:4] + strings.Repeat("\xff", 40) + complete[44:], readOptions{Target: "__index_level_0__",
			Drop: []string{"tags"}},
			"!damaged Parquet data"},
		{"no footer", "PAR1PAR1", readOptions{Format: "parquet"}, "!damaged Parquet data"},
		{"text", "a,b\n1,2\n", readOptions{Format: "parquet"}, "!damaged Parquet data"},
		{"memory", parquetFile(t, make([]house, 20000)), readOptions{Drop: []string{"tags", "when", "rooms", "town"},
			Memory: 1 << 20}, "!read fewer rows by --n, or allow more by --memory"},
	})
}

// float16Type is a column type that the Parquet library does not have.
type float16Type struct{ parquet.Type }

// LogicalType implements parquet.Type.
func (float16Type) LogicalType() *format.LogicalType {
	return &format.LogicalType{Value: new(format.Float16Type)}
}

// fileOfTypes returns a Parquet file of three rows whose columns are in the order of their names.
func fileOfTypes(t testing.TB, options ...parquet.WriterOption) string {
	t.Helper()
	fixedLength := func(n int) parquet.Type { return parquet.FixedLenByteArrayType(n) }
	schema := parquet.NewSchema("t", parquet.Group{
		"a1": parquet.Leaf(float16Type{fixedLength(2)}), "a2": parquet.Leaf(parquet.BooleanType), "b": parquet.UUID(),
		"c": parquet.Leaf(fixedLength(3)), "d": parquet.Leaf(parquet.ByteArrayType), "e": parquet.String(),
		"f": parquet.Optional(parquet.Leaf(parquet.DoubleType)), "g": parquet.String(), "y": parquet.Leaf(parquet.DoubleType)})
	var content bytes.Buffer
	w := parquet.NewWriter(&content, append(options, schema)...)
	for i := range 3 {
		row := parquet.Row{}
		for j, v := range []any{[]byte{0, byte(60 + i)}, i == 1, []byte("0123456789abcde" + string(rune('0'+i))), []byte("\x1b\x00z"),
			[]byte("\x07[2J"), []byte("00" + string(rune('7'+i))), nil, []byte("ab\x1b\nc"), float64(i) + .5} {
			value := parquet.ValueOf(v)
			definition := 0
			if j == 6 && v != nil { // a value of the optional column f
				definition = 1
			}
			row = append(row, value.Level(0, definition, j))
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

// TestParquetTypes checks less common column types, the index of a data frame, and columns with the same name, which
// are distinguished by their places.
func TestParquetTypes(t *testing.T) {
	file := fileOfTypes(t)
	otherColumns := []string{"b", "c", "d", "f", "g"}
	index := func(columns string) string {
		return fileOfTypes(t, parquet.KeyValueMetadata("pandas",
			`{"index_columns": [`+columns+`, {"kind": "range", "start": 0}]}`))
	}
	sameNames := strings.ReplaceAll(file, "a2", "a1")
	checkReadings(t, []reading{
		{"float16, booleans, digits", file, readOptions{Drop: otherColumns},
			"[[1 0 7] [1.25 1 8] [1.5 0 9]] [0.5 1.5 2.5] [] [] [a1 a2 e]"},
		{"digits are noted", file, readOptions{Drop: otherColumns},
			`texts are read as numbers in "e" (--categorical e reads`},
		{"no value", file, readOptions{Drop: []string{"b", "c", "d", "e", "g"}}, `!"f" has no value; add --drop f`},
		{"bytes", file, readOptions{Drop: []string{"e", "f"}}, `!"c" has words (1, such as "\\x1b007a")`},
		{"index", index(`"a2", "e"`), readOptions{Drop: otherColumns},
			`left out "a2", "b", "c", "d", "e", "f", "g"; index of the data ` +
				`frame: "a2", "e" (reset_index() in pandas makes it a feature)`},
		{"index as the target", index(`"a2"`), readOptions{Drop: otherColumns, Target: "a2"},
			"[[1 7 0.5] [1.25 8 1.5] [1.5 9 2.5]] [] [False True]"},
		{"index of the model", index(`"a1"`), readOptions{Columns: []string{"a1"}, Dim: 1, TargetOptional: true},
			"[[1] [1.25] [1.5]]"},
		{"twins", sameNames, readOptions{Drop: append(otherColumns, "e", "0")},
			"[[0] [1] [0]] [0.5 1.5 2.5] [] [] [a1]"},
		{"twins are noted", sameNames, readOptions{Drop: append(otherColumns, "e")},
			`several columns are named "a1": rename them`},
		{"twins by name", sameNames, readOptions{Columns: []string{"a1"}, Dim: 1}, `!several columns are named "a1"`},
	})
	d := must(datasets.Read(strings.NewReader(file), "f", &readOptions{Drop: otherColumns, Keep: append(otherColumns,
		"a1")}))
	got := ""
	for _, column := range d.CopiedColumns {
		got += fmt.Sprintf("%q ", column[1])
	}
	if want := `"30313233-3435-3637-3839-616263646530" "\\x1b007a" "\\x075b324a" "" "ab\\x1b\nc" "1" `; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
}

// TestParquetMemory checks that the memory of a page with its values is counted before the page is unpacked, only for
// the columns that are read, and that a page that is longer than its header says is detected.
func TestParquetMemory(t *testing.T) {
	type row struct {
		A, Y float64
		B    *float64 `parquet:",optional,dict"`
	}
	zero := 0.0
	rows := slices.Repeat([]row{{Y: 2, B: &zero}}, 1<<19)
	small := parquetFile(t, rows, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(1<<16))
	large := parquetFile(t, rows, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(1<<30))
	checkReadings(t, []reading{
		{"plain", large, readOptions{Memory: 30 << 20, Drop: []string{"B"}, Target: "Y", MaxRows: 9},
			"!f: unpacking the pages of row group 0 would take 33.6 MB of memory, and 31.5 MB of 31.5 MB are free: allow more by --memory"},
		{"dictionary", large, readOptions{Memory: 24 << 20, Drop: []string{"A"}, MaxRows: 9},
			"!unpacking the pages of row group 0 would take"},
		{"room", large, readOptions{Memory: 40 << 20, Drop: []string{"B"}, Target: "Y", MaxRows: 3},
			"[[0] [0] [0]] [2 2 2]"},
		{"small pages", small, readOptions{Memory: 17 << 20, MaxRows: 3}, "[[0 2] [0 2] [0 2]] [0 0 0]"},
	})
	for _, codec := range []compress.Codec{&parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Snappy} {
		page := must(codec.Encode(nil, make([]byte, 1<<16)))
		isTooLong := !unpacksWithin(codec.CompressionCodec(), bytes.NewReader(page), 1<<15)
		if fits := unpacksWithin(codec.CompressionCodec(), bytes.NewReader(page), 1<<16); !fits ||
			isTooLong != (codec != &parquet.Snappy) {
			t.Errorf("%v: a page fits %v, a longer one is found %v", codec, fits, isTooLong)
		}
	}
}

// TestDates checks that columns of dates and times are read with ReadOptions.ColumnCodings.
func TestDates(t *testing.T) {
	checkReadings(t, []reading{{"", parquetFile(t, houses()), readOptions{Drop: []string{"tags", "id", "town", "rooms"},
		ColumnCodings: []datasets.ColumnCoding{{Column: "when", Dates: &datasets.DateCoding{}}, {Column: "daily",
			Dates: &datasets.DateCoding{}}}},
		`"when": dates from 2020-01-01 to 2020-01-12`}})
}

// FuzzParquet checks that no file makes the reader panic or accept numbers that are not finite.
func FuzzParquet(f *testing.F) {
	f.Add([]byte(parquetFile(f, houses()[:2])))
	f.Add([]byte(parquetFile(f, []struct{ A, B float64 }{{1, 2}, {3, 4}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := datasets.Read(bytes.NewReader(b), "file", &readOptions{Format: "parquet", Memory: 1 << 20})
		if err == nil {
			if err := points.CheckFinite(d.X); err != nil {
				t.Fatal(err)
			}
		}
	})
}
