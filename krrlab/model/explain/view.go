package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// maxBars is the largest number of columns in the picture and the report; more would be too small to read.
const maxBars = 12

// unit returns the factor and the unit of an increase of the loss in reports: percentage points for shares.
func (e *Explanation) unit() (factor float64, unit string) {
	if e.Metric == model.ErrorRate || e.Metric == model.BalancedError {
		return 100, " %"
	}
	return 1, ""
}

// change names the effect of a permutation on the metric.
func (e *Explanation) change() string {
	if e.Metric == model.AUC || e.Metric == model.F1 {
		return "decrease of the " + e.Metric.Name()
	}
	return "increase of the " + e.Metric.Name()
}

func (e *Explanation) String() string {
	var b stage.Lines
	rows := plural.Count(e.Rows, "row")
	if e.Rows < e.Of {
		rows += fmt.Sprintf(" of %d, drawn at random", e.Of)
	}
	b.Add("rows", "%s, %s: %s", e.Data, rows, e.Metric.Text(e.Loss))
	if e.FittedRows == e.Of {
		b.Add("note", "these rows are of the fit: the importance is that for rows that the model has learned")
	} else if e.FittedRows > 0 {
		b.Add("note", "%d of %d rows are of the fit: the model has learned them, and their importance differs from that of new rows",
			e.FittedRows, e.Of)
	}
	b.Add("importance", "%s if a column is permuted, mean of %d permutations ± standard error", e.change(), e.Permutations)
	factor, unit := e.unit()
	width := 0
	for _, c := range e.Columns[:min(len(e.Columns), maxBars)] {
		width = max(width, len([]rune(shortName(c.Column))))
	}
	for _, c := range e.Columns[:min(len(e.Columns), maxBars)] {
		name, se := shortName(c.Column), "not known"
		if c.StandardError.Known() {
			se = outward.Plain(factor*float64(c.StandardError), 2)
		}
		b.Add("", "%s%s  %s ± %s%s", name, strings.Repeat(" ", width-len([]rune(name))), outward.Plain(factor*c.Mean, 3), se, unit)
	}
	if hidden := len(e.Columns) - maxBars; hidden > 0 {
		b.Add("", "%s less important", plural.Count(hidden, "other column"))
	}
	b.Took(e.Seconds)
	return b.String()
}

// Table returns a table with a row for each column, the most important first.
func (e *Explanation) Table() *plots.Table {
	t := &plots.Table{Columns: plots.Heads("column", "importance", "standard error", "deviation")}
	for _, c := range e.Columns {
		t.Add(c.Column, c.Mean, float64(c.StandardError), c.Deviation)
	}
	return t
}

// Plot draws the importance of the columns as bars with ± one standard error, and the partial dependence on the leading
// columns with bands of ± two standard errors.
func (e *Explanation) Plot() *plots.Figure {
	factor, unit := e.unit()
	bars := plots.Series{Style: plots.Bars}
	y := plots.Axis{}
	for k := min(len(e.Columns), maxBars) - 1; k >= 0; k-- { // the ticks ascend
		c, tick := e.Columns[k], float64(-k)
		se := factor * float64(c.StandardError)
		bars.AddBand(factor*c.Mean, tick, factor*c.Mean-se, factor*c.Mean+se)
		y.Ticks, y.Names = append(y.Ticks, tick), append(y.Names, shortName(c.Column))
	}
	label := e.change()
	if unit != "" {
		label += " (%)"
	}
	f := &plots.Figure{Columns: 2, Title: fmt.Sprintf("%s: %s on %s", e.Data, e.Metric.Text(e.Loss), plural.Count(e.Rows, "row")),
		Caption: fmt.Sprintf("Importance by %d permutations of each column, ± one standard error. Partial dependence: mean %s "+
			"of the rows if all have the same value of a column, ± two standard errors of that mean for a single curve.", e.Permutations,
			cmp.Or(e.Quantity, "prediction")),
		Panels: []plots.Figure{{Title: "Importance", X: plots.Axis{Label: label}, Y: y, Series: []plots.Series{bars}}}}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, d := range e.Dependence {
		if len(d.Curves) == 0 {
			continue
		}
		panel := e.dependencePanel(&d)
		for _, s := range panel.Series {
			lo, hi = min(lo, slices.Min(s.Lo)), max(hi, slices.Max(s.Hi))
		}
		f.Panels = append(f.Panels, panel)
	}
	f.Height = 0.4 + 2.9*float64((len(f.Panels)+1)/2) // the names of maxBars columns need it
	for k := range f.Panels[1:] {                     // one y axis shows which dependence is large
		f.Panels[k+1].Y.Min, f.Panels[k+1].Y.Max = lo-0.03*(hi-lo), hi+0.03*(hi-lo)
	}
	return f
}

func (e *Explanation) dependencePanel(d *Dependence) plots.Figure {
	x := plots.Axis{Label: d.Column}
	if d.First != "" {
		x.Label += " (days from " + d.First + ")"
	}
	for k, word := range d.Words {
		x.Ticks, x.Names = append(x.Ticks, float64(k)), append(x.Names, shortName(word))
	}
	y := "mean " + e.Quantity
	if len(d.Curves) == 1 && d.Curves[0].Class != "" {
		y += " of " + shortName(d.Curves[0].Class)
	}
	f := plots.Figure{X: x, Y: plots.Axis{Label: y}}
	for _, c := range d.Curves {
		s := plots.Series{}
		if d.Words != nil || d.First != "" { // between two dates there are other hours and weekdays
			s.Style = plots.Points
		}
		if len(d.Curves) > 1 {
			s.Name = shortName(c.Class)
		}
		for k, v := range c.Mean {
			position := float64(k)
			if d.Words == nil {
				position = d.Values[k]
			}
			se := 2 * c.StandardError[k]
			if len(d.Curves) > 1 { // bands would hide one another
				se = 0
			}
			s.AddBand(position, v, v-se, v+se)
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// HTML returns the result as text, figure and table, for a notebook.
func (e *Explanation) HTML() string { return stage.HTML(e) }
