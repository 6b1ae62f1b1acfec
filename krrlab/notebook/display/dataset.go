package display

import (
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/plots"
)

// How much of a data set its table shows.
const (
	shownRows    = 5
	shownColumns = 8
)

// dataset shows what a data set is, and its first points.
func dataset(text string, first *datasets.Dataset, d *Data) {
	d.Data[MIMETypeText] = text
	d.Data[MIMETypeHTML] = plots.PreHTML(text)
	if first != nil && first.X != nil {
		d.Data[MIMETypeHTML] = plots.PreHTML(text) + firstPoints(first).HTML()
	}
}

// firstPoints is a table of the first points and their answers.
func firstPoints(d *datasets.Dataset) *plots.Table {
	t := &plots.Table{}
	if d.X == nil {
		return t
	}
	n, dim := d.X.Dims()
	rows, columns := min(n, shownRows), min(dim, shownColumns)
	for j := range columns {
		name := fmt.Sprintf("x%d", j)
		if j < len(d.Columns) {
			name = d.Columns[j]
		}
		t.Columns = append(t.Columns, plots.Column{Name: name})
	}
	if columns < dim {
		t.Columns = append(t.Columns, plots.Column{Name: "…"})
	}
	if d.HasAnswers() {
		t.Columns = append(t.Columns, plots.Column{Name: "y"})
	}
	row := make([]float64, dim)
	for i := range rows {
		d.X.RowTo(row, i)
		var cells []any
		for _, v := range row[:columns] {
			cells = append(cells, v)
		}
		if columns < dim {
			cells = append(cells, "…")
		}
		switch {
		case d.Target != nil:
			cells = append(cells, d.Target[i])
		case d.Class != nil:
			cells = append(cells, d.Labels[d.Class[i]])
		}
		t.Add(cells...)
	}
	if rows < n || columns < dim {
		t.Caption = fmt.Sprintf("The first %d of %d points, %d of %d features.", rows, n, columns, dim)
	}
	return t
}
