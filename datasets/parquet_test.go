package datasets

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
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
		{"all at once", whole, ReadOptions{Drop: []string{"tags"}}, `!"when" has dates or times, "daily" has dates or times`},
		{"remedy", whole, ReadOptions{Drop: []string{"tags", "id"}},
			`!rooms: the cell is empty; fill in or remove missing values; add --categorical town --dates when,daily --impute median`},
		{"lists", whole, ReadOptions{}, `!"tags" has lists, groups or times of 96 bits: leave it out by --drop`},
		{"no target", whole, ReadOptions{Target: "value"}, `!no column is named "value"`},
		{"no rows", tableOf(t, []house{}), ReadOptions{Drop: []string{"tags"}}, "!the file has no rows"},
		{"cut", whole[:len(whole)/2], ReadOptions{}, "!damaged Parquet data"},
		{"page", whole[:4] + strings.Repeat("\xff", 40) + whole[44:], ReadOptions{Drop: []string{"tags"}},
			"!damaged Parquet data"},
		{"no footer", "PAR1PAR1", ReadOptions{Format: "parquet"}, "!damaged Parquet data"},
		{"text", "a,b\n1,2\n", ReadOptions{Format: "parquet"}, "!damaged Parquet data"},
		{"memory", tableOf(t, make([]house, 20000)), ReadOptions{Drop: []string{"tags", "when", "rooms", "town"},
			Memory: 1 << 20}, "!the memory there is for it"},
	})
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(tableOf(f, houses()[:2])))
	f.Add([]byte(tableOf(f, []struct{ A, B float64 }{{1, 2}, {3, 4}})))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, &ReadOptions{Format: "parquet", Memory: 1 << 20}) })
}
