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

// unit returns the factor and the unit in which reports show an increase of the loss: percentage points if the metric
// is a share of rows, and 1 and "" otherwise.
func (e *Explanation) unit() (factor float64, unit string) {
	if e.Metric == model.ErrorRate || e.Metric == model.BalancedError {
		return 100, " %"
	}
	return 1, ""
}

// effectName names the effect of a permutation on the metric, as "decrease of the AUC".
func (e *Explanation) effectName() string {
	if e.Metric == model.AUC || e.Metric == model.F1 {
		return "decrease of the " + e.Metric.Name()
	}
	return "increase of the " + e.Metric.Name()
}

// String returns the result as text, with the importance of at most maxBars columns.
func (e *Explanation) String() string {
	var lines stage.Lines
	lines.Add("rows", "%s, %s: %s", e.Data, RowsText(e.Rows, e.TotalRows, e.FittedRows), e.Metric.Text(e.Loss))
	if e.FittedRows > 0 {
		lines.Add("note",
			"the model has learned the rows of the fit, and their importance differs from that of new rows")
	}
	if e.RepeatedRows > 0 {
		lines.AddText("repeats", e.Repeats+"; a group counts once in the standard errors")
	}
	lines.Add("importance", "%s if a column is permuted, mean of %d permutations ± standard error", e.effectName(),
		e.Permutations)
	factor, unit := e.unit()
	width, shown := 0, e.Columns[:min(len(e.Columns), maxBars)]
	for _, c := range shown {
		width = max(width, len([]rune(shortName(c.Column))))
	}
	for _, c := range shown {
		name, se := shortName(c.Column), "not known"
		if c.StandardError.Known() {
			se = outward.Plain(factor*float64(c.StandardError), 2)
		}
		lines.Add("", "%s%s  %s ± %s%s", name, strings.Repeat(" ", width-len([]rune(name))),
			outward.Plain(factor*c.Mean, 3), se, unit)
	}
	if hidden := len(e.Columns) - maxBars; hidden > 0 {
		lines.Add("", "%s less important", plural.Count(hidden, "other column"))
	}
	lines.AddSeconds(e.Seconds)
	return lines.String()
}

// Table returns a table with a row for each column, the most important first.
func (e *Explanation) Table() *plots.Table {
	table := &plots.Table{Columns: plots.ParseColumns("column", "importance", "standard error", "deviation")}
	for _, column := range e.Columns {
		table.Add(column.Column, column.Mean, float64(column.StandardError), column.Deviation)
	}
	return table
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
	label := e.effectName() + " by permutation"
	if unit != "" {
		label += " (%)"
	}
	f := &plots.Figure{Columns: 2, Title: fmt.Sprintf("%s: %s on %s", e.Data, e.Metric.Text(e.Loss),
		RowsText(e.Rows, e.TotalRows, e.FittedRows)),
		Caption: fmt.Sprintf("Importance by %d permutations of each column, ± one standard error. Partial "+
			"dependence: mean %s of the rows if all have the same value of a column, ± two standard errors of that "+
			"mean for a single curve.", e.Permutations,
			cmp.Or(e.Quantity, "prediction")),
		Panels: []plots.Figure{{Title: "Importance, ± standard error", X: plots.Axis{Label: label}, Y: y,
			Series: []plots.Series{bars}}}}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, d := range e.Dependence {
		if len(d.Curves) == 0 {
			continue
		}
		panel := e.dependencePanel(&d)
		if len(f.Panels) == 1 {
			panel.Title = "Partial dependence"
		}
		for _, s := range panel.Series {
			lo, hi = min(lo, slices.Min(s.Lo)), max(hi, slices.Max(s.Hi))
		}
		f.Panels = append(f.Panels, panel)
	}
	// The title takes 0.4 inches. A row of panels takes 2.9 inches, which the names of maxBars columns need.
	f.Height = 0.4 + 2.9*float64((len(f.Panels)+1)/2)
	for k := range f.Panels[1:] { // a common range of y shows which dependence is large
		y := &f.Panels[k+1].Y
		y.Min, y.Max = lo-0.03*(hi-lo), hi+0.03*(hi-lo)
	}
	return f
}

// RowsText describes a random sample of sampleSize of n rows, or all rows if sampleSize is n. The model was fitted to
// fittedRows of the n rows.
func RowsText(sampleSize, n, fittedRows int) string {
	text := fmt.Sprintf("%d rows, of which %d are of the fit, with smaller errors", n, fittedRows)
	switch fittedRows {
	case 0:
		text = fmt.Sprintf("%d test points", n)
	case n:
		text = fmt.Sprintf("%d training points", n)
	}
	if sampleSize < n {
		text = fmt.Sprintf("%d, drawn at random, of %s", sampleSize, text)
	}
	return text
}

// dependencePanel draws the partial dependence on one column. It draws points for words and dates, since nothing is
// known between them, and otherwise a line.
func (e *Explanation) dependencePanel(d *Dependence) plots.Figure {
	x := plots.Axis{Label: d.Column}
	if d.FirstDay != "" {
		x.Label += " (days from " + d.FirstDay + ")"
	}
	style, values := plots.Line, d.Values
	for k, word := range d.Words {
		values, x.Names = append(values, float64(k)), append(x.Names, shortName(word))
	}
	n := len(values)
	if d.Words != nil || d.FirstDay != "" || n == 2 { // a line would hide the hours and weekdays between dates
		style = plots.Points
	}
	isFraction := func(v float64) bool { return v != math.Trunc(v) }
	if d.FirstDay == "" && (style == plots.Points || n <= maxBars && !slices.ContainsFunc(values, isFraction)) {
		pad := cmp.Or(values[n-1]-values[0], 1) / float64(2*n)
		x.Ticks, x.Min, x.Max = values, values[0]-pad, values[n-1]+pad
	}
	yLabel := "mean " + e.Quantity
	if len(d.Curves) == 1 && d.Curves[0].Class != "" {
		yLabel += " of " + shortName(d.Curves[0].Class)
	}
	f := plots.Figure{X: x, Y: plots.Axis{Label: yLabel}}
	for _, curve := range d.Curves {
		series := plots.Series{Style: style}
		if len(d.Curves) > 1 {
			series.Name = shortName(curve.Class)
		}
		for k, v := range curve.Mean {
			se := 2 * curve.StandardError[k]
			if len(d.Curves) > 1 { // bands would hide one another
				se = 0
			}
			series.AddBand(values[k], v, v-se, v+se)
		}
		f.Series = append(f.Series, series)
	}
	return f
}

// HTML returns the result as text, figure and table, for a notebook.
func (e *Explanation) HTML() string { return stage.HTML(e) }
