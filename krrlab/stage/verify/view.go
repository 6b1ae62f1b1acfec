package verify

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// String returns the result as a few aligned lines.
func (v *Verification) String() string {
	var lines stage.Lines
	lines.Add("model", "%s, n = %d, d = %d, t = %d, kernel %s, λ = %g", v.Model, v.N, v.D, v.T, v.Kernel.Short(),
		v.Lambda)
	lines.AddFiles(v.Read)
	lines.Add("targets", "%s%s%s", v.Targets, v.targetsNote(), stage.CenteringText(v.Mean))
	if v.Residual.Known() {
		claimed := "nothing"
		if v.ClaimedResidual != nil {
			claimed = fmt.Sprintf("%.4e", *v.ClaimedResidual)
		}
		formula := "‖y−(K+λI)c‖/‖y‖"
		if v.Weighted {
			formula = "‖W^½(y−(K+λW⁻¹)c)‖/‖W^½y‖, with the weights of the model,"
		}
		lines.Add("residual", "%s = %.4e ± %.1e of the worst column, in float64; the file says %s, asked %.4g: %s",
			formula, v.Residual, v.Rounding, claimed, v.Tol, v.verdict())
	}
	lines.Add("κ(K+λI)", "in %s, certain; at most 1+n·max k/λ = %s%s", outward.Span(v.Cond.Lo, v.Cond.Hi, 4),
		outward.Up(v.SimpleBound, 4), map[bool]string{true: "; of K without the weights"}[v.Weighted])
	lines.Add("eigenvalues", "λ_max(K) in %s, λ_min(K) in [0, %s], %d passes over K",
		outward.Span(v.Largest.Lo, v.Largest.Hi, 5), outward.Up(v.Smallest.Hi, 3), v.Passes)
	if v.PredictionBound.Known() {
		lines.Add("prediction", "|f(x)−f̃(x)| ≤ √k(x,x)·‖r‖/(2√λ) ≤ %s where k(x,x) is as on the training points",
			outward.Up(float64(v.PredictionBound), 4))
	}
	if v.TestN > 0 {
		lines.AddText("test", v.testText())
		lines.AddClasses(v.Classes)
	}
	lines.Add("κ(M⁻¹A)", "not recomputed: the preconditioner is no part of the model, and the answer does not depend "+
		"on it")
	if v.Kernel.Params != "" {
		k, err := kernel.FromSpec(v.Kernel)
		lines.AddText("not covered", uncheckedProperties(err == nil && kernel.BuiltIn(k)))
	}
	lines.AddSeconds(v.Seconds)
	return lines.String()
}

// uncheckedProperties names the properties that are not checked for a kernel without a formula in this package.
func uncheckedProperties(isBuiltIn bool) string {
	if isBuiltIn {
		return "what Eval of the kernel rounds, as this check has no formula of its own for it"
	}
	return "what Eval of the user-defined kernel rounds, and that it is positive semi-definite"
}

// targetsNote explains the source of the targets.
func (v *Verification) targetsNote() string {
	switch v.Targets {
	case targetsRecovered:
		return ": the labels that this answer solves for; give the training data to compare them with yours"
	case targetsUnknown:
		return ": give the training data for the residual and what follows from it"
	}
	return ", and the points are those of the model"
}

// verdict states whether the residual is proved to meet the tolerance of the fit.
func (v *Verification) verdict() string {
	switch tol := stage.Number(v.Tol); {
	case v.Residual+v.Rounding <= tol:
		return "proved"
	case v.Residual-v.Rounding > tol:
		return "NOT met"
	}
	return "not decided at this rounding"
}

// testText describes the error on the test points, and the share of their labels that are proved.
func (v *Verification) testText() string {
	text := plural.Count(v.TestN, "point")
	if v.TestError.Known() && v.OpenShare.Known() {
		text += fmt.Sprintf(", error %.2f %%", 100*v.TestError)
	} else if v.TestError.Known() {
		text += fmt.Sprintf(", RMSE %s%s", outward.Plain(float64(v.TestError), 4),
			map[bool]string{true: " of all targets together, whatever their units"}[v.T > 1])
	}
	if v.OpenShare.Known() {
		text += fmt.Sprintf("; %.2f %% of the labels are proved those of the exact answer, %.2f %% open at this "+
			"residual", 100*(1-v.OpenShare), 100*v.OpenShare)
	}
	return text
}

// Table returns a table with one row per recomputed quantity.
func (v *Verification) Table() *plots.Table {
	table := &plots.Table{Columns: plots.ParseColumns("quantity", "value", "lower end", "upper end")}
	if v.Residual.Known() {
		table.Add("residual, worst column", float64(v.Residual), plots.AtLeast(float64(max(0, v.Residual-v.Rounding))),
			plots.AtMost(float64(v.Residual+v.Rounding)))
		for j, residual := range v.Residuals {
			table.Add(fmt.Sprintf("residual of column %d", j+1), residual, plots.Blank(), plots.Blank())
		}
		table.Add("prediction bound", plots.AtMost(float64(v.PredictionBound)), 0.0,
			plots.AtMost(float64(v.PredictionBound)))
	}
	table.Add("κ(K+λI)", v.Cond)
	table.Add("λ_max(K)", v.Largest)
	table.Add("λ_min(K)", v.Smallest)
	if v.OpenShare.Known() {
		table.Add("share of test labels open", plots.AtMost(float64(v.OpenShare)), 0.0,
			plots.AtMost(float64(v.OpenShare)))
	}
	return table
}

// Plot draws the residual of each column with the tolerance of the fit, if the residuals are known, and the interval of
// κ(K+λI) with the simple bound 1+n·max k(x, x)/λ.
func (v *Verification) Plot() *plots.Figure {
	kappa := plots.Series{Name: "certain interval of κ", Style: plots.Points}
	kappa.AddInterval(1, v.Cond)
	panels := []*plots.Figure{{Y: plots.Axis{Label: "κ(K+λI)", Log: true}, X: plots.Axis{Ticks: []float64{}},
		Series: []plots.Series{kappa}, HLines: []plots.RefLine{{At: v.SimpleBound, Label: "1+n·max k/λ"}}}}
	if residual := (plots.Series{Name: "residual", Style: plots.Points, Y: v.Residuals}); v.Residual > 0 {
		for j := range v.Residuals {
			residual.X = append(residual.X, float64(j+1))
		}
		residualFigure := plots.Convergence("", v.Tol, residual)
		residualFigure.X = plots.Axis{Label: "column of the targets", Ticks: residual.X}
		panels = append([]*plots.Figure{residualFigure}, panels...)
	}
	return plots.Grid(fmt.Sprintf("Verified: %s, n = %d, λ = %g", v.Model, v.N, v.Lambda), 2, panels...)
}

// HTML returns the result as text, figure and table, for a notebook.
func (v *Verification) HTML() string { return stage.HTML(v) }
