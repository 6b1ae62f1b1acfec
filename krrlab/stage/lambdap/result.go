package lambdap

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is a sweep of the ridge λ_p of the preconditioner M = ZZᵀ+λ_pI, or a map over (s, λ_p) for several numbers s
// of columns of Z.
type Result struct {
	stage.Header
	Features string   `json:"features"` // description of the features or landmarks of Z
	Sweeps   []*Sweep `json:"sweeps"`   // a sweep for each s, ascending

	BestS       int     `json:"best_s"`             // s of the least predicted time; 0 if no time is known
	BestLambdaP float64 `json:"best_lambda_p"`      // λ_p of the least predicted time; 0 if no time is known
	KError      float64 `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	Seconds     float64 `json:"seconds"`            // total time, including that for K and Z
}

// addSweep adds a sweep, and sets BestS and BestLambdaP to the point of least predicted time of all sweeps.
func (r *Result) addSweep(added *Sweep) {
	r.Sweeps = append(r.Sweeps, added)
	lowestSeconds := math.Inf(1)
	for _, sweep := range r.Sweeps {
		if sweep.Best >= 0 && sweep.Points[sweep.Best].Seconds < lowestSeconds {
			lowestSeconds = sweep.Points[sweep.Best].Seconds
			r.BestS, r.BestLambdaP = sweep.S, sweep.Points[sweep.Best].LambdaP
		}
	}
}

// String returns the result as lines of text.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddProblem(&r.Header)
	lines.AddText("Z", r.Features)
	for _, sweep := range r.Sweeps {
		lines.Add("η = ‖K−ZZᵀ‖₂", "%s (s = %d)", stage.IntervalText(sweep.Eta), sweep.S)
		lines.Add("", "an iteration takes %.3g s, the set-up %.3g s; %s of λ_p", sweep.IterationSeconds,
			sweep.SetUpSeconds, plural.Count(len(sweep.Points), "value"))
		if sweep.Best >= 0 {
			lines.AddText("  best", sweep.Points[sweep.Best].summary(r.Tol))
		}
		if point := sweep.At(r.Lambda); point != nil {
			lines.AddText("  λ_p = λ", point.summary(r.Tol))
		}
	}
	if r.BestS > 0 && len(r.Sweeps) > 1 {
		lines.Add("choice", "s = %d, λ_p = %.4g", r.BestS, r.BestLambdaP)
	}
	lines.AddSeconds(r.Seconds)
	return lines.String()
}

// summary describes the point on one line; tol is τ.
func (p *Point) summary(tol float64) string { return p.Name + ": " + p.Text(tol, p.Seconds) }

// Table returns a table with one row per s and λ_p.
func (r *Result) Table() *plots.Table {
	var rows []*pencil.Row
	var points []*Point
	for _, sweep := range r.Sweeps {
		for i := range sweep.Points {
			rows, points = append(rows, &sweep.Points[i].Row), append(points, &sweep.Points[i])
		}
	}
	table := pencil.Table("λ_p: "+r.Dataset, rows, r.Tol, func(row *pencil.Row) float64 {
		return points[slices.Index(rows, row)].Seconds
	})
	table.Columns = append(table.Columns, plots.Column{Name: "bound by η", Format: "%.4g"})
	for i, point := range points { // The name of a row is its λ_p, which has a column. The features replace it.
		table.Rows[i][0] = plots.Text(r.Features)
		table.Rows[i] = append(table.Rows[i], plots.AtMost(point.Bound))
	}
	return table
}

// Plot draws κ with its interval and the bound by η against λ_p, and the iterations in a second panel. λ, 10λ and λ+η
// are marked, and the choice has a ring. For several sweeps it draws two heat maps over λ_p and s, of κ and of the
// predicted time.
func (r *Result) Plot() *plots.Figure {
	if len(r.Sweeps) > 1 {
		return r.plotMap()
	}
	sweep := r.Sweeps[0]
	kappa, bound, iterations := plotSeries(sweep)
	marks := []plots.RefLine{{At: r.Lambda, Label: "λ"}, {At: 10 * r.Lambda, Label: "10λ"},
		{At: r.Lambda + sweep.Eta.Value, Label: "λ+η"}}
	panels := []*plots.Figure{plots.Sweep("", "λ_p", "κ(M⁻¹A)", marks, kappa, bound)}
	if slices.ContainsFunc(iterations.Y, func(v float64) bool { return v > 0 }) {
		panels = append(panels, plots.Sweep("", "λ_p", "iterations", marks, iterations))
	}
	figure := plots.Grid(fmt.Sprintf("%s, λ = %g: the preconditioner's ridge", r.Dataset, r.Lambda), 1, panels...)
	figure.ShareX = true
	figure.Caption = fmt.Sprintf("M = ZZᵀ+λ_pI, %s, s = %d. Band: κ with %.3g %% confidence at each λ_p.",
		r.Kernel.InProse(r.Features), sweep.S, 100*sweep.Points[0].Kappa.Confidence)
	figure.Controls = r.controls()
	if sweep.Best >= 0 {
		point := &sweep.Points[sweep.Best]
		figure.Panels[0].Marks = []plots.Mark{{X: point.LambdaP, Y: point.Kappa.Value, Label: "least time"}}
	}
	var largestKappa float64
	for _, point := range sweep.Points {
		largestKappa = max(largestKappa, point.Kappa.Value)
	}
	if largestKappa > 1 && !math.IsInf(largestKappa, 1) { // The bound and the upper ends may be far above κ.
		figure.Panels[0].Y.Min, figure.Panels[0].Y.Max = 1, 30*largestKappa
	}
	return figure
}

// plotMap draws heat maps of κ and of the predicted time over λ_p and s.
func (r *Result) plotMap() *plots.Figure {
	var grid, sizes []float64
	for _, point := range r.Sweeps[0].Points {
		grid = append(grid, point.LambdaP)
	}
	for _, sweep := range r.Sweeps {
		sizes = append(sizes, float64(sweep.S))
	}
	panel := func(quantity string, value func(point *Point) float64) *plots.Figure {
		var values [][]float64
		for _, sweep := range r.Sweeps {
			row := make([]float64, len(grid))
			for j, lambdaP := range grid {
				if point := sweep.At(lambdaP); point != nil {
					row[j] = value(point)
				}
				if row[j] == 0 { // not measured
					row[j] = math.NaN()
				}
			}
			values = append(values, row)
		}
		figure := plots.Map("", "λ_p", "s", quantity, grid, sizes, values)
		figure.Y.Ticks = sizes
		figure.VLines = []plots.RefLine{{At: r.Lambda, Label: "λ"}, {At: 10 * r.Lambda, Label: "10λ"}}
		if r.BestS > 0 {
			figure.Marks = []plots.Mark{{X: r.BestLambdaP, Y: float64(r.BestS), Label: "least time"}}
		}
		return figure
	}
	figure := plots.Grid(fmt.Sprintf("%s, λ = %g: features and ridge of the preconditioner", r.Dataset, r.Lambda), 1,
		panel("κ(M⁻¹A)", func(point *Point) float64 { return point.Kappa.Value }),
		panel("time (s)", func(point *Point) float64 { return point.Seconds }))
	figure.ShareX, figure.Controls = true, r.controls()
	figure.Caption = fmt.Sprintf("M = ZZᵀ+λ_pI, %s. Time: predicted, set-up and iterations to τ = %g for t = %d "+
		"right-hand sides.", r.Kernel.InProse(r.Features), r.Tol, r.T)
	return figure
}

// plotSeries returns the series of κ with its interval, of its bound by η, and of the iterations. These are the counted
// ones if any were counted, else the predicted ones.
func plotSeries(sweep *Sweep) (kappa, bound, iterations plots.Series) {
	kappa.Name, bound.Name, iterations.Name = "κ", "bound of κ by η", "predicted iterations"
	counted := slices.ContainsFunc(sweep.Points, func(point Point) bool { return point.Iterations != nil })
	if counted {
		iterations.Name = "PCG iterations"
	}
	for _, point := range sweep.Points {
		kappa.AddInterval(point.LambdaP, point.Kappa)
		bound.Add(point.LambdaP, point.Bound)
		iterationCount := math.NaN()
		switch {
		case counted && point.Iterations != nil && point.Status == pcg.Converged:
			iterationCount = float64(*point.Iterations)
		case !counted && point.Predicted > 0:
			iterationCount = float64(point.Predicted)
		}
		iterations.Add(point.LambdaP, iterationCount)
	}
	return kappa, bound, iterations
}

// HTML returns the result as text, figure and table.
func (r *Result) HTML() string { return stage.HTML(r) }

// subdivisions is the number of steps of the slider between adjacent measured values of λ_p.
const subdivisions = 8

// controls returns sliders over λ_p, τ and, if there are several sweeps, s. It returns nil if the first sweep has fewer
// than two points, or no Lanczos steps.
func (r *Result) controls() *plots.Controls {
	var sweeps [][]map[string]any
	var sizes []float64
	for _, sweep := range r.Sweeps {
		var points []map[string]any
		for i := range sweep.Points {
			points = append(points, sweep.Points[i].ExploreData(sweep.Points[i].LambdaP))
		}
		sweeps, sizes = append(sweeps, points), append(sizes, float64(sweep.S))
	}
	firstSweep := r.Sweeps[0]
	if len(firstSweep.Points) < 2 || firstSweep.Points[0].Steps == 0 {
		return nil
	}
	points := firstSweep.Points
	slider := plots.Slider{Name: "λ_p", Value: points[0].LambdaP}
	if firstSweep.At(r.Lambda) != nil {
		slider.Value = r.Lambda
	}
	for step := range subdivisions*(len(points)-1) + 1 {
		lower, upper := points[step/subdivisions].LambdaP, points[min(step/subdivisions+1, len(points)-1)].LambdaP
		slider.Values = append(slider.Values, lower*math.Pow(upper/lower, float64(step%subdivisions)/subdivisions))
	}
	sliders := []plots.Slider{slider}
	data := map[string]any{"sweeps": sweeps}
	if len(r.Sweeps) > 1 {
		data["sizes"] = sizes
		value := sizes[0]
		if r.BestS > 0 {
			value = float64(r.BestS)
		}
		sliders = append(sliders, plots.Slider{Name: "s", Value: value, Values: sizes})
	}
	return pencil.ExploreControls(data, firstSweep.Points[0].Kappa.Confidence, r.Tol, sliders...)
}
