package experiments

import (
	"bytes"
	"embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/plots"
)

// kept has the paper's tables, and the rows of ours at each scale: at Paper those printed.
//
//go:embed paper/*.csv rows.csv
var kept embed.FS

// records returns the lines of one of these files. It panics if there is no such file.
func records(name string) [][]string {
	text, err := kept.ReadFile(name)
	if err != nil {
		panic(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		panic(err) // the files are ours
	}
	return lines
}

// captions are the paper's.
var captions = map[string]string{
	"table1": "Running time and resources on EC2",
	"table2": "Running time and resources on EC2 when using different λ in the preconditioner",
	"table3": "Comparison to high-performance random features solver based on block ADMM",
	"table4": "Comparison to CG without preconditioning",
	"table5": "Comparison between setting tolerance to 10⁻² and 10⁻³",
}

// Published returns a table of the paper, "table1" to "table5", as it was printed; see the package
// documentation for the conventions. The first column is the data set. The table is the caller's to change.
func Published(id string) (*plots.Table, error) {
	title, ok := captions[id]
	if !ok {
		return nil, fmt.Errorf("experiments: the paper has no table %q; there are table1 to table%d", id, len(captions))
	}
	rows := records("paper/" + id + ".csv")
	t := &plots.Table{Title: title, Caption: "As published by Avron, Clarkson and Woodruff (2017)."}
	for _, name := range rows[0] {
		c := plots.Column{Name: name}
		if base, ok := strings.CutSuffix(name, "time_s"); ok {
			c = plots.Column{Name: base + "time", Unit: "s"}
		}
		t.Columns = append(t.Columns, c)
	}
	for _, row := range rows[1:] {
		var cells []plots.Cell
		for _, s := range row {
			c := plots.Text(s)
			if v, err := strconv.ParseFloat(s, 64); err == nil {
				c = plots.Number(v)
			} else if s == "" {
				c = plots.Blank()
			}
			cells = append(cells, c)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t, nil
}

// printed is a row of a published table, by its id and the data set's name.
type printed struct{ table, row string }

// cell returns the cell of a column, blank where there is none. Columns are named as in the files under paper,
// without the unit: "s", "iterations", "time", "error_rate".
func (p printed) cell(column string) plots.Cell {
	t, err := Published(p.table)
	if err != nil {
		return plots.Blank()
	}
	j := slices.IndexFunc(t.Columns, func(c plots.Column) bool { return c.Name == column })
	for _, row := range t.Rows {
		if j >= 0 && row[0] == plots.Text(p.row) {
			return row[j]
		}
	}
	return plots.Blank()
}

// number returns the number of a column; NaN where it is blank, a word or not there.
func (p printed) number(column string) float64 {
	if v, ok := p.cell(column).Float(); ok {
		return v
	}
	return math.NaN()
}

// error returns an error as errorText gives ours.
func (p printed) error(column string) plots.Cell {
	v := p.number(column)
	switch {
	case math.IsNaN(v):
		return plots.Blank()
	case p.row == "YEARMSD":
		return shown(v, fmt.Sprintf("%.3g", v))
	}
	return shown(v, percent(v))
}

// points returns the number of training points of a row of the published tables.
func (p printed) points() int {
	switch p.row { // in tables 4 and 5 only, which do not print n
	case "MNIST-200K":
		return 200000
	case "MNIST-300K":
		return 300000
	}
	return int(printed{"table1", p.row}.number("n"))
}
