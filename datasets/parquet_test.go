package datasets

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// house is a row with columns of every type that is read.
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

// tableOf returns a Parquet file of rows.
func tableOf[T any](t testing.TB, rows []T, o ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, o...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

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

func TestParquet(t *testing.T) {
	drop := func(more ...string) []string { return append([]string{"when", "daily", "tags"}, more...) }
	whole := tableOf(t, houses())
	small := ReadOptions{Drop: drop("rooms", "town", "id")}
	for _, c := range []struct {
		name, file string
		o          ReadOptions
		want       string // columns, row 5, its target, labels
	}{
		{"numbers", whole, small, "[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"compressed", tableOf(t, houses(), parquet.Compression(&parquet.Zstd)), small,
			"[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"groups", tableOf(t, houses(), parquet.MaxRowsPerRowGroup(5)), small,
			"[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"packed", packed(t, "xz", whole), small, "[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
		{"missing", whole, ReadOptions{Drop: drop("town", "id", "sold", "cost"), KeepMissing: true},
			"[age rooms area] [2 2 2.5] 5.25 []"},
		{"words", whole, ReadOptions{Drop: drop("rooms", "id", "sold", "cost"),
			Categorical: []Category{{Column: "town"}}}, "[age area town= town=Köln town=Ulm] [2 2.5 0 1 0] 5.25 []"},
		{"booleans as words", whole, ReadOptions{Drop: drop("rooms", "id", "town", "cost"),
			Categorical: []Category{{Column: "sold"}}}, "[age area sold=False sold=True] [2 2.5 1 0] 5.25 []"},
		{"another target", whole, ReadOptions{Drop: drop("rooms", "town", "id"), Target: "cost"},
			"[age area sold price] [2 2.5 0 5.25] -1.15 []"},
		{"labels", whole, ReadOptions{Drop: drop("rooms", "town"), Target: "id"},
			"[age area sold cost price] [2 2.5 0 -1.15 5.25] 1 [9223372036854775808 9223372036854775809]"},
		{"by name", whole, ReadOptions{Columns: []string{"cost", "age"}, Dim: 2, TargetOptional: true},
			"[cost age] [-1.15 2]-[]"},
		{"rows", whole, ReadOptions{Drop: drop("rooms", "town", "id"), MaxRows: 6},
			"[age area sold cost] [2 2.5 0 -1.15] 5.25 []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := must(Read(strings.NewReader(c.file), "houses.parquet", &c.o))
			row, answer := make([]float64, d.Dim()), any("-")
			if d.X.RowTo(row, 5); d.Target != nil {
				answer = d.Target[5]
			} else if d.Class != nil {
				answer = d.Class[5]
			}
			if got := fmt.Sprint(d.Columns, row, answer, d.Labels); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if !strings.Contains(d.Read.String(), "parquet; header yes (the columns have names)") {
				t.Errorf("read %v", d.Read)
			}
		})
	}
}

func TestParquetFaults(t *testing.T) {
	whole := tableOf(t, houses())
	checkReadings(t, []reading{
		{"all at once", whole, ReadOptions{Drop: []string{"tags"}}, `!"when" has dates or times (--drop when leaves them out), "daily" has dates or times`},
		{"remedy", whole, ReadOptions{Drop: []string{"tags", "id"}},
			`!rooms: the cell is empty; fill in or remove missing values; add --categorical town --dates when,daily --impute median`},
		{"lists", whole, ReadOptions{}, `!lists, groups or times of 96 bits are in "tags"; add --drop tags`},
		{"no target", whole, ReadOptions{Target: "value"}, `!no column is named "value"`},
		{"no rows", tableOf(t, []house{}), ReadOptions{Drop: []string{"tags"}}, "!the file has no rows"},
		{"cut", whole[:len(whole)/2], ReadOptions{}, "!damaged Parquet data"},
		{"page", whole[:4] + strings.Repeat("\xff", 40) + whole[44:], ReadOptions{Target: "__index_level_0__", Drop: []string{"tags"}},
			"!damaged Parquet data"},
		{"no footer", "PAR1PAR1", ReadOptions{Format: "parquet"}, "!damaged Parquet data"},
		{"text", "a,b\n1,2\n", ReadOptions{Format: "parquet"}, "!damaged Parquet data"},
		{"memory", tableOf(t, make([]house, 20000)), ReadOptions{Drop: []string{"tags", "when", "rooms", "town"},
			Memory: 1 << 20}, "!the memory there is for it"},
	})
}

// float16 is a column type that the library does not have.
type float16 struct{ parquet.Type }

func (float16) LogicalType() *format.LogicalType {
	return &format.LogicalType{Value: new(format.Float16Type)}
}

// typesTable returns a Parquet file of three rows, whose columns are in the order of their names.
func typesTable(t testing.TB, o ...parquet.WriterOption) string {
	t.Helper()
	fixed := func(n int) parquet.Type { return parquet.FixedLenByteArrayType(n) }
	schema := parquet.NewSchema("t", parquet.Group{
		"a1": parquet.Leaf(float16{fixed(2)}), "a2": parquet.Leaf(parquet.BooleanType), "b": parquet.UUID(),
		"c": parquet.Leaf(fixed(3)), "d": parquet.Leaf(parquet.ByteArrayType), "e": parquet.String(),
		"f": parquet.Optional(parquet.Leaf(parquet.DoubleType)), "g": parquet.String(), "y": parquet.Leaf(parquet.DoubleType)})
	var b bytes.Buffer
	w := parquet.NewWriter(&b, append(o, schema)...)
	for i := range 3 {
		row := parquet.Row{}
		for j, v := range []any{[]byte{0, byte(60 + i)}, i == 1, []byte("0123456789abcde" + string(rune('0'+i))), []byte("\x1b\x00z"),
			[]byte("\x07[2J"), []byte("00" + string(rune('7'+i))), nil, []byte("ab\x1b\nc"), float64(i) + .5} {
			value := parquet.ValueOf(v)
			row = append(row, value.Level(0, map[bool]int{true: 1}[j == 6 && v != nil], j))
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestParquetTypes: types, the index of a data frame, and columns of one name, which are told apart by their places.
func TestParquetTypes(t *testing.T) {
	file := typesTable(t)
	rest := []string{"b", "c", "d", "f", "g"}
	index := func(columns string) string {
		return typesTable(t, parquet.KeyValueMetadata("pandas", `{"index_columns": [`+columns+`, {"kind": "range", "start": 0}]}`))
	}
	twins := strings.ReplaceAll(file, "a2", "a1")
	checkReadings(t, []reading{
		{"float16, booleans, digits", file, ReadOptions{Drop: rest}, "[[1 0 7] [1.25 1 8] [1.5 0 9]] [0.5 1.5 2.5] [] [] [a1 a2 e]"},
		{"digits are noted", file, ReadOptions{Drop: rest}, `texts are read as numbers in "e" (--categorical e reads`},
		{"no value", file, ReadOptions{Drop: []string{"b", "c", "d", "e", "g"}}, `!"f" has no value; add --drop f`},
		{"bytes", file, ReadOptions{Drop: []string{"e", "f"}}, `!"c" has words (1, such as "\\x1b007a")`},
		{"index", index(`"a2", "e"`), ReadOptions{Drop: rest}, `left out "a2", "b", "c", "d", "e", "f", "g"; index of the data ` +
			`frame: "a2", "e" (reset_index() in pandas makes it a feature)`},
		{"index as the target", index(`"a2"`), ReadOptions{Drop: rest, Target: "a2"}, "[[1 7 0.5] [1.25 8 1.5] [1.5 9 2.5]] [] [False True]"},
		{"index of the model", index(`"a1"`), ReadOptions{Columns: []string{"a1"}, Dim: 1, TargetOptional: true}, "[[1] [1.25] [1.5]]"},
		{"twins", twins, ReadOptions{Drop: append(rest, "e", "0")}, "[[0] [1] [0]] [0.5 1.5 2.5] [] [] [a1]"},
		{"twins are noted", twins, ReadOptions{Drop: append(rest, "e")}, `several columns are named "a1": rename them`},
		{"twins by name", twins, ReadOptions{Columns: []string{"a1"}, Dim: 1}, `!several columns are named "a1"`},
	})
	d := must(Read(strings.NewReader(file), "f", &ReadOptions{Drop: rest, Keep: append(rest, "a1")}))
	got := ""
	for _, column := range d.Kept {
		got += fmt.Sprintf("%q ", column[1])
	}
	if want := `"30313233-3435-3637-3839-616263646530" "\\x1b007a" "\\x075b324a" "" "ab\\x1b\nc" "1" `; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
}

// TestParquetMemory: a page of a column that is read counts before it is unpacked, with its values, others do not, and
// a page that is longer than its header says is found.
func TestParquetMemory(t *testing.T) {
	type row struct {
		A, Y float64
		B    *float64 `parquet:",optional,dict"`
	}
	zero := 0.0
	rows := slices.Repeat([]row{{Y: 2, B: &zero}}, 1<<19)
	small := tableOf(t, rows, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(1<<16))
	large := tableOf(t, rows, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(1<<30))
	checkReadings(t, []reading{
		{"plain", large, ReadOptions{Memory: 30 << 20, Drop: []string{"B"}, Target: "Y", MaxRows: 9},
			"!f: unpacking the pages of row group 0 takes 33.6 MB, of 31.5 MB that reading may take: allow more by --memory"},
		{"dictionary", large, ReadOptions{Memory: 24 << 20, Drop: []string{"A"}, MaxRows: 9},
			"!unpacking the pages of row group 0 takes"},
		{"room", large, ReadOptions{Memory: 40 << 20, Drop: []string{"B"}, Target: "Y", MaxRows: 3}, "[[0] [0] [0]] [2 2 2]"},
		{"small pages", small, ReadOptions{Memory: 17 << 20, MaxRows: 3}, "[[0 2] [0 2] [0 2]] [0 0 0]"},
	})
	for _, codec := range []compress.Codec{&parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Snappy} {
		page := must(codec.Encode(nil, make([]byte, 1<<16)))
		long := !fits(codec.CompressionCodec(), bytes.NewReader(page), 1<<15)
		if ok := fits(codec.CompressionCodec(), bytes.NewReader(page), 1<<16); !ok || long != (codec != &parquet.Snappy) {
			t.Errorf("%v: a page fits %v, a longer one is found %v", codec, ok, long)
		}
	}
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(tableOf(f, houses()[:2])))
	f.Add([]byte(tableOf(f, []struct{ A, B float64 }{{1, 2}, {3, 4}})))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, &ReadOptions{Format: "parquet", Memory: 1 << 20}) })
}
