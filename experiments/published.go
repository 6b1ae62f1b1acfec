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

// tableFiles contains the paper's tables, and rows.csv with the rows of our tables at each scale. At scale Paper these
// are the rows of the paper's tables.
//
//go:embed paper/*.csv rows.csv
var tableFiles embed.FS

// must returns v, and panics if err is not nil. It is for files and names that are part of this program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// readCSV returns the records of a file in tableFiles. It panics if there is no such file or if it is malformed.
func readCSV(name string) [][]string {
	return must(csv.NewReader(bytes.NewReader(must(tableFiles.ReadFile(name)))).ReadAll())
}

// paperTitles are the titles of the tables in the paper.
var paperTitles = map[string]string{
	"table1": "Running time and resources on EC2",
	"table2": "Running time and resources on EC2 when using different λ in the preconditioner",
	"table3": "Comparison to high-performance random features solver based on block ADMM",
	"table4": "Comparison to CG without preconditioning",
	"table5": "Comparison between setting tolerance to 10⁻² and 10⁻³",
}

// Published returns a table of the paper, "table1" to "table5", as it was printed. See the package documentation for
// the conventions. The first column is the name of the data set. The caller may change the table. Published returns an
// error for any other id.
func Published(id string) (*plots.Table, error) {
	title, ok := paperTitles[id]
	if !ok {
		return nil, fmt.Errorf("experiments: the paper has no table %q; there are table1 to table%d", id,
			len(paperTitles))
	}
	rows := readCSV("paper/" + id + ".csv")
	t := &plots.Table{Title: title, Caption: "As published by Avron, Clarkson and Woodruff (2017)."}
	for _, name := range rows[0] {
		column := plots.Column{Name: name}
		if base, ok := strings.CutSuffix(name, "time_s"); ok {
			column = plots.Column{Name: base + "time", Unit: "s"}
		}
		t.Columns = append(t.Columns, column)
	}
	for _, row := range rows[1:] {
		var cells []plots.Cell
		for _, text := range row {
			cell := plots.Text(text)
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				cell = plots.Number(v)
			} else if text == "" {
				cell = plots.Blank()
			}
			cells = append(cells, cell)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t, nil
}

// publishedRow identifies a row of a published table by the table's id and the name of the data set.
type publishedRow struct{ table, row string }

// cell returns the cell in a column, blank if there is none. Columns have the names in the files under paper without
// the unit, such as "s", "iterations", "time" or "error_rate".
func (p publishedRow) cell(column string) plots.Cell {
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

// number returns the number in a column; NaN if the cell is blank, a word, or missing.
func (p publishedRow) number(column string) float64 {
	if v, ok := p.cell(column).Float(); ok {
		return v
	}
	return math.NaN()
}

// publishedErrorCell returns the published error in a column, in the format of the function errorCell: in percent, or
// as ‖ŷ−y‖/‖y‖ for YEARMSD, the regression. The cell is blank if there is no number.
func (p publishedRow) publishedErrorCell(column string) plots.Cell {
	v := p.number(column)
	switch {
	case math.IsNaN(v):
		return plots.Blank()
	case p.row == "YEARMSD":
		return cellWithText(v, fmt.Sprintf("%.3g", v))
	}
	return cellWithText(v, percentText(v))
}

// trainingPoints returns the number of training points of a row of the published tables. The row must be in a table;
// otherwise the result is undefined.
func (p publishedRow) trainingPoints() int {
	switch p.row { // they are only in tables 4 and 5, which do not print n
	case "MNIST-200K":
		return 200000
	case "MNIST-300K":
		return 300000
	}
	return int(publishedRow{"table1", p.row}.number("n"))
}
