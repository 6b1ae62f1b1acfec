package cli

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/plots"
)

// TestWriteTable checks that tables in .npy and csv files have all digits, that words and missing cells are NaN in the
// array, and that a table of one column is a vector.
func TestWriteTable(t *testing.T) {
	wide := &plots.Table{Columns: []plots.Column{{Name: "n"}, {Name: "how"}, {Name: "v", Format: "%.2g"}}}
	wide.Add(3, "exact", 1.0/3)
	wide.Add(4, nil, math.Pi)
	wide.Add(5)
	single := &plots.Table{Columns: []plots.Column{{Name: "eigenvalue"}}}
	single.Add(2.5)
	single.Add(0x1p-40)
	nan := math.NaN() // a word or an empty cell
	for name, tableCase := range map[string]struct {
		table *plots.Table
		shape []int
		want  []float64
	}{
		"wide": {wide, []int{3, 3}, []float64{3, nan, 1.0 / 3, 4, nan, math.Pi, 5, nan, nan}},
		"one":  {single, []int{2}, []float64{2.5, 0x1p-40}},
	} {
		dir := t.TempDir()
		array, text := filepath.Join(dir, "t.npy"), filepath.Join(dir, "t.csv")
		for _, f := range []string{array, text} {
			testkit.OK(t, writeTable(f, tableCase.table))
		}
		file := testkit.Must(os.Open(array))
		h, data, err := npy.Read(file, 1<<20)
		file.Close()
		got, ok := data.([]float64)
		if err != nil || !ok || len(h.Shape) != len(tableCase.shape) || h.Shape[0] != tableCase.shape[0] || len(got) != len(tableCase.want) {
			t.Fatalf("%s: %v, %T (%v)", name, h.Shape, data, err)
		}
		content := read(t, text)
		rows, err := csv.NewReader(strings.NewReader(string(content))).ReadAll()
		if err != nil || len(rows) != tableCase.shape[0]+1 {
			t.Fatalf("%s: %q (%v)", name, content, err)
		}
		for i, v := range tableCase.want {
			cell := rows[1+i/len(rows[0])][i%len(rows[0])]
			w, err := strconv.ParseFloat(cell, 64)
			if math.IsNaN(v) != math.IsNaN(got[i]) || !math.IsNaN(v) && (got[i] != v || err != nil || w != v) {
				t.Errorf("%s: number %d is %v and %q, want %v", name, i, got[i], cell, v)
			}
		}
	}
}
