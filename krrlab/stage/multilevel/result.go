package multilevel

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result describes the quality of each level of Algorithm 2 (section 4 of Avron, Clarkson and Woodruff),
//
//	Z_1 = φ₁(X),  Z_{k+1} = Z_k·S_{k+1}ᵀ,  M_k = Z_kZ_kᵀ + λ_pI,
//
// where φ₁ are random features and S_{k+1} is a sketch, and of features alone of the same widths.
type Result struct {
	stage.Header
	LambdaP float64 `json:"lambda_p"` // ridge λ_p of every M_k

	Levels        feature.Levels `json:"levels"`             // the requested chain
	Features      string         `json:"features"`           // distribution of φ₁
	Confidence    float64        `json:"confidence"`         // probability that both intervals of a level hold
	KError        stage.Number   `json:"kernel_error_bound"` // predicted ‖K̃−K‖₂, included in the intervals
	Chain         []LevelResult  `json:"chain"`              // the levels, without those that were not reached
	FeaturesAlone []LevelResult  `json:"one_level"`          // features alone, at the widths of later levels
	Seconds       float64        `json:"seconds"`            // total time, without that of K
}

// String returns the result as a table of text, with a line for each level.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddProblem(&r.Header)
	lines.Add("chain", "%s of %s, λ_p = %g, τ = %g", r.Levels.String(), r.Features, r.LambdaP, r.Tol)
	lines.Add("", "%-11s %5s  %-23s  %-23s %5s  %s", "map", "s_k", "‖Z_kZ_kᵀ−K‖₂", "κ(M_k⁻¹A)", "steps",
		"seconds: form+factor+solve")
	row := func(name string, level *LevelResult) {
		errorText := stage.PlainIntervalText(level.Error)
		if level.SkipReason != "" {
			lines.Add(name, "%-11s %5d  %-23s  no preconditioner: %s", level.Sketch, level.Width, errorText,
				level.SkipReason)
			return
		}
		kappaText := stage.PlainIntervalText(*level.Kappa)
		note := ""
		if !level.Converged {
			note = ", " + level.Status.String()
		}
		if level.Indefinite {
			note += "; the stored K+λI is indefinite, so its error exceeds λ: use float64 storage or a larger λ"
		}
		seconds := level.Seconds
		lines.Add(name, "%-11s %5d  %-23s  %-23s %5d  %.1f = %.1f + %.1f + %.1f%s", level.Sketch, level.Width,
			errorText, kappaText, level.Iterations, level.Seconds.fitTotal(), seconds.Form, seconds.Factor,
			seconds.Solve, note)
	}
	for i := range r.Chain {
		row(fmt.Sprintf("level %d", r.Chain[i].Index), &r.Chain[i])
	}
	for i := range r.FeaturesAlone {
		row("one level", &r.FeaturesAlone[i])
	}
	if r.KError.Known() {
		lines.Add("allowed", "‖K̃−K‖₂ ≤ %.2g, which is predicted and not part of the confidence", r.KError)
	}
	lines.Add("confidence", "%g that both intervals of a level hold; %.1f seconds in all, without K", r.Confidence,
		r.Seconds)
	return lines.String()
}

// Table returns a table with one row per level, and one per width for features alone.
func (r *Result) Table() *plots.Table {
	table := &plots.Table{
		Title: fmt.Sprintf("Algorithm 2 on %s, n = %d, %s, λ = %g", r.Dataset, r.N, r.Kernel.Prose(), r.Lambda),
		Caption: fmt.Sprintf("λ_p = %g, τ = %g; the two intervals of a level hold with probability %g; form is "+
			"the time of Z_k with all levels before it.", r.LambdaP, r.Tol, r.Confidence),
		Columns: plots.ParseColumns("level", "map", "s_k", "‖Z_kZ_kᵀ−K‖₂", "at least", "at most", "κ(M_k⁻¹A)",
			"at least",
			"at most", "iterations", "form (s) %.2f", "factor (s) %.2f", "solve (s) %.2f", "in all (s) %.2f"),
	}
	addRow := func(name string, level *LevelResult) {
		if seconds := level.Seconds; level.Kappa == nil {
			table.Add(name, level.Sketch, level.Width, level.Error, nil, nil, nil, nil, seconds.Form)
		} else {
			table.Add(name, level.Sketch, level.Width, level.Error, *level.Kappa, level.Iterations, seconds.Form,
				seconds.Factor, seconds.Solve, seconds.fitTotal())
		}
	}
	for i := range r.Chain {
		addRow(fmt.Sprint(r.Chain[i].Index), &r.Chain[i])
	}
	for i := range r.FeaturesAlone {
		addRow("one", &r.FeaturesAlone[i])
	}
	return table
}

// Plot draws four panels against the width s_k, for the levels of the chain and for features alone: κ(M_k⁻¹A) and
// ‖Z_kZ_kᵀ−K‖₂ with their intervals, the iterations of the solve, and the seconds of a fit without K. Panels without
// data are omitted.
func (r *Result) Plot() *plots.Figure {
	figure := plots.Grid(fmt.Sprintf("%s, n = %d: %s, λ = %g", r.Dataset, r.N, r.Kernel.Prose(), r.Lambda), 2)
	figure.ShareX = true
	figure.Caption = fmt.Sprintf("The levels of the chain %s, to be read from right to left, beside features alone of "+
		"the same widths; "+
		"the two intervals of a level hold with probability %g.", r.Levels.String(), r.Confidence)
	for _, panel := range []plots.Figure{
		r.panel("κ(M_k⁻¹A)", func(series *plots.Series, x float64, level *LevelResult) {
			if level.Kappa != nil {
				series.AddInterval(x, level.Kappa)
			}
		}),
		r.panel("iterations", func(series *plots.Series, x float64, level *LevelResult) {
			if level.Kappa != nil {
				series.Add(x, float64(level.Iterations))
			}
		}),
		r.panel("‖Z_{k}Z_{k}ᵀ−K‖₂", func(series *plots.Series, x float64, level *LevelResult) {
			series.AddInterval(x, level.Error)
		}),
		r.panel("seconds of a fit, without K", func(series *plots.Series, x float64, level *LevelResult) {
			if level.Kappa != nil {
				series.Add(x, level.Seconds.fitTotal())
			}
		}),
	} {
		if len(panel.Series) > 0 {
			figure.Panels = append(figure.Panels, panel)
		}
	}
	return figure
}

// panel draws a quantity against the width. addTo adds the quantity of a level at the width x to a series, or nothing
// if the level does not have it.
func (r *Result) panel(label string, addTo func(series *plots.Series, x float64, level *LevelResult)) plots.Figure {
	panel := plots.Figure{Title: label, X: plots.Axis{Label: "width s_k", Log: true, Ticks: r.widths()},
		Y: plots.Axis{Log: true}}
	for _, line := range []struct {
		name   string
		levels []LevelResult
	}{{"levels of the chain", r.Chain}, {"features alone", r.allFeatureLevels()}} {
		series := plots.Series{Name: line.name}
		for i := range line.levels {
			addTo(&series, float64(line.levels[i].Width), &line.levels[i])
		}
		if len(series.X) > 0 {
			panel.Series = append(panel.Series, series)
		}
	}
	return panel
}

// allFeatureLevels returns the results of features alone of all widths, which include the first level of the chain.
func (r *Result) allFeatureLevels() []LevelResult {
	if len(r.Chain) > 0 && r.Chain[0].Index == 1 {
		return append([]LevelResult{r.Chain[0]}, r.FeaturesAlone...)
	}
	return r.FeaturesAlone
}

// widths returns the widths of the levels in ascending order.
func (r *Result) widths() []float64 {
	var widths []float64
	for _, level := range r.Levels {
		widths = append(widths, float64(level.Width))
	}
	slices.Sort(widths)
	return slices.Compact(widths)
}

// HTML returns the result as text, figure and table.
func (r *Result) HTML() string { return stage.HTML(r) }
