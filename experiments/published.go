package experiments

import (
	"embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/plots"
)

//go:embed paper/*.csv
var paper embed.FS

// published holds the tables in their order, with the paper's captions.
var published = []struct{ id, title string }{
	{"table1", "Running time and resources on EC2"},
	{"table2", "Running time and resources on EC2 when using different λ in the preconditioner"},
	{"table3", "Comparison to high-performance random features solver based on block ADMM"},
	{"table4", "Comparison to CG without preconditioning"},
	{"table5", "Comparison between setting tolerance to 10⁻² and 10⁻³"},
}

// Tables returns the identifiers that Published knows: "table1" to "table5".
func Tables() []string {
	ids := make([]string, len(published))
	for i, p := range published {
		ids[i] = p.id
	}
	return ids
}

// Published returns a table of the paper as it was printed; see the package
// documentation for the conventions. The first column is the data set. Use Lookup for
// a single value. The table is the caller's to change.
func Published(id string) (*plots.Table, error) {
	i := slices.IndexFunc(published, func(p struct{ id, title string }) bool { return p.id == id })
	if i < 0 {
		return nil, fmt.Errorf("experiments: the paper has no table %q; there are %s", id, strings.Join(Tables(), ", "))
	}
	f, err := paper.Open("paper/" + id + ".csv")
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("experiments: %s: %w", id, err)
	}
	t := &plots.Table{Title: published[i].title, Caption: "As published by Avron, Clarkson and Woodruff (2017)."}
	for _, name := range rows[0] {
		t.Columns = append(t.Columns, column(name))
	}
	for _, row := range rows[1:] {
		var cells []plots.Cell
		for _, s := range row {
			cells = append(cells, cell(s))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t, nil
}

// column makes a column of its name in a file; the suffix _s of a time is its unit.
func column(name string) plots.Column {
	if base, ok := strings.CutSuffix(name, "time_s"); ok {
		return plots.Column{Name: base + "time", Unit: "s"}
	}
	return plots.Column{Name: name}
}

// cell reads a field: blank, a number or a word.
func cell(s string) plots.Cell {
	if s == "" {
		return plots.Blank()
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return plots.Number(v)
	}
	return plots.Text(s)
}

// lookup returns the cell of a data set's row in a table's column, both by their
// names, and whether there is one. Columns are named as in the files under paper,
// without the unit: "s", "iterations", "time", "error_rate".
func lookup(t *plots.Table, dataset, name string) (plots.Cell, bool) {
	j := slices.IndexFunc(t.Columns, func(c plots.Column) bool { return c.Name == name })
	for _, row := range t.Rows {
		if j >= 0 && j < len(row) && row[0] == plots.Text(dataset) {
			return row[j], true
		}
	}
	return plots.Cell{}, false
}
