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
	three := &plots.Table{Columns: []plots.Column{{Name: "n"}, {Name: "how"}, {Name: "v", Format: "%.2g"}}}
	three.Add(3, "exact", 1.0/3)
	three.Add(4, nil, math.Pi)
	three.Add(5)
	single := &plots.Table{Columns: []plots.Column{{Name: "eigenvalue"}}}
	single.Add(2.5)
	single.Add(0x1p-40)
	nan := math.NaN() // a word or an empty cell
	for name, c := range map[string]struct {
		table *plots.Table
		shape []int
		want  []float64
	}{
		"three columns": {three, []int{3, 3}, []float64{3, nan, 1.0 / 3, 4, nan, math.Pi, 5, nan, nan}},
		"one column":    {single, []int{2}, []float64{2.5, 0x1p-40}},
	} {
		dir := t.TempDir()
		npyFile, csvFile := filepath.Join(dir, "t.npy"), filepath.Join(dir, "t.csv")
		for _, file := range []string{npyFile, csvFile} {
			testkit.OK(t, writeTable(file, c.table))
		}
		file := testkit.Must(os.Open(npyFile))
		header, data, err := npy.Read(file, 1<<20)
		file.Close()
		got, ok := data.([]float64)
		if err != nil || !ok || len(header.Shape) != len(c.shape) || header.Shape[0] != c.shape[0] ||
			len(got) != len(c.want) {
			t.Fatalf("%s: an array of the shape %v, want %v, and the type %T: error %v", name, header.Shape, c.shape,
				data, err)
		}
		content := readFile(t, csvFile)
		rows, err := csv.NewReader(strings.NewReader(string(content))).ReadAll()
		if err != nil || len(rows) != c.shape[0]+1 {
			t.Fatalf("%s: the csv file is %q: error %v", name, content, err)
		}
		for i, v := range c.want {
			cell := rows[1+i/len(rows[0])][i%len(rows[0])]
			number, err := strconv.ParseFloat(cell, 64)
			if math.IsNaN(v) != math.IsNaN(got[i]) || !math.IsNaN(v) && (got[i] != v || err != nil || number != v) {
				t.Errorf("%s: number %d is %v and %q, want %v", name, i, got[i], cell, v)
			}
		}
	}
}
