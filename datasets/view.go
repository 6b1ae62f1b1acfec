package datasets

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/plots"
)

// How much of a data set its table shows.
const (
	shownRows    = 5
	shownColumns = 8
)

// String describes the data set in one line: name, task, n, d, classes, source.
func (d *Dataset) String() string {
	var b strings.Builder
	name := d.Name
	if name == "" {
		name = "data set"
	}
	if d.X == nil {
		return name + ": no points"
	}
	n, dim := d.X.Dims()
	fmt.Fprintf(&b, "%s: %v, n = %d, d = %d", name, d.Task, n, dim)
	switch {
	case !d.HasAnswers():
		b.WriteString(", no answers")
	case d.Class != nil && len(d.Labels) <= 2*shownRows:
		fmt.Fprintf(&b, ", classes %s", strings.Join(d.Labels, ", "))
	case d.Class != nil:
		fmt.Fprintf(&b, ", %d classes", len(d.Labels))
	}
	if d.Source != "" && d.Source != d.Name {
		b.WriteString("; " + d.Source)
	}
	return b.String()
}

// Table gives the first points and their answers.
func (d *Dataset) Table() *plots.Table {
	t := &plots.Table{Title: d.String()}
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

// HTML shows the line and the table, for a notebook.
func (d *Dataset) HTML() string {
	t := d.Table()
	t.Title = ""
	return plots.PreHTML(d.String()) + t.HTML()
}

// String describes both parts and the scaling, a line each.
func (p *Pair) String() string {
	line := func(name string, d *Dataset) string {
		if d == nil {
			return fmt.Sprintf("%-8s none\n", name)
		}
		return fmt.Sprintf("%-8s %v\n", name, d)
	}
	scaling := "none"
	if p.Scaling != nil {
		scaling = p.Scaling.Kind + ", fitted on the training points, applied to both parts"
	}
	out := line("training", p.Train) + line("test", p.Test) + fmt.Sprintf("%-8s %s\n", "scaling", scaling)
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}

// HTML shows both parts and the first training points, for a notebook.
func (p *Pair) HTML() string {
	out := plots.PreHTML(p.String())
	if p.Train != nil {
		_, table, _ := strings.Cut(p.Train.HTML(), "</pre>\n")
		out += table
	}
	return out
}
