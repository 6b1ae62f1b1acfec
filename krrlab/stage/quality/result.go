package quality

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Step is the state after a step of the Lanczos process.
type Step struct {
	Step int               `json:"step"`       // number of the step, from 1
	Min  estimate.Interval `json:"lambda_min"` // λ_min(M⁻¹A)
	Max  estimate.Interval `json:"lambda_max"` // λ_max(M⁻¹A)
}

// Result describes the quality of a preconditioner: an interval of κ(M⁻¹A) that holds with the stated confidence, the
// iterations that follow from it, and those of PCG.
type Result struct {
	stage.Header
	Precond  string `json:"precond"`            // name of the preconditioner
	Features string `json:"features,omitempty"` // description of the features or landmarks of Z, n×s
	// Unplanned is true if the configuration leaves the choice of the preconditioner to a fit. M is then the default
	// for the kernel; a fit may choose another one.
	Unplanned bool    `json:"unplanned,omitempty"`
	Neighbors int     `json:"neighbors,omitempty"` // number k of neighbors per point of a sparse inverse
	Damping   float64 `json:"damping,omitempty"`   // damping ω of a sparse inverse

	pencil.Row         // κ, its interval and the iterations; Row.Iterations are those of PCG on the targets
	KError     float64 `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	Trace      []Step  `json:"trace"`              // state after each step of the Lanczos process
	Seconds    Seconds `json:"seconds"`
}

// Seconds are the wall-clock seconds of the parts of the stage.
type Seconds struct {
	Kernel  float64 `json:"kernel"`  // forming K
	Factor  float64 `json:"factor"`  // forming M
	Lanczos float64 `json:"lanczos"` // Lanczos process
	Solve   float64 `json:"solve"`   // PCG
	Exact   float64 `json:"exact"`   // computing all eigenvalues of M⁻¹A
	Total   float64 `json:"total"`   // whole stage
}

// String returns the result as lines of text.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddText("M", r.metricText())
	if r.Unplanned {
		lines.Add("auto",
			"M is the fixed rule's, a fit takes what the plan chooses: name a preconditioner to judge that")
	}
	lines.AddProblem(&r.Header)
	if r.Indefinite {
		lines.Add("K",
			"K+λI as stored has a negative eigenvalue: ‖K_stored−K‖₂ is above λ = %g (predicted %.2g), and "+
				"nothing is known of κ; take float64 storage or a larger λ", r.Lambda, r.KError)
	}
	lines.AddText("κ(M⁻¹A)", stage.IntervalText(r.Kappa))
	lines.Add("λ_max, λ_min", "%s; %s", stage.IntervalText(r.Max), stage.IntervalText(r.Min))
	if r.KappaUpperBound > 0 {
		lines.Add("certain", "κ ≤ %s from the trace of what the landmarks leave", outward.Up(r.KappaUpperBound, 4))
	}
	if r.NotDefinite {
		lines.Add("exact",
			"no κ by all eigenvalues: M⁻¹ as applied is not positive definite in float64; take a larger λ_p")
	}
	if r.Exact != nil {
		exactText := stage.EndsText(*r.Exact, 6)
		if math.IsInf(r.Exact.Hi, 1) {
			exactText += fmt.Sprintf(", as rounding in float64 may hide the least of them, %.2g", r.Nodes[0])
		}
		lines.Add("exact", "by all %d eigenvalues κ is %s", r.N, exactText)
	}
	pencil.AddLogDetLines(&lines, &r.Row)
	reachedText := "the width asked was reached"
	if !r.WidthReached {
		reachedText = "the width asked was not reached"
		if r.Slack > r.Min.Value {
			reachedText += fmt.Sprintf(", as rounding hides eigenvalues below %.2g: take a larger λ_p or λ", r.Slack)
		}
	}
	if r.APriori.Known() {
		lines.Add("Lanczos", "%s, %s; a priori error ≤ %s", plural.Count(r.Steps, "step"), reachedText,
			outward.Up(float64(r.APriori), 2))
	} else {
		lines.Add("one-sided", "by the Ritz values of %s, in exact arithmetic: M has no NormalTo (lanczos.Metric)",
			plural.Count(*r.Iterations, "iteration"))
	}
	iterationsText := "unbounded"
	if r.IterationBound > 0 {
		iterationsText = fmt.Sprintf("= %d", r.IterationBound)
	}
	if r.Predicted > 0 {
		iterationsText += fmt.Sprintf(", from T %d", r.Predicted)
	}
	if r.Iterations != nil {
		iterationsText += fmt.Sprintf(", PCG %d (%s)", *r.Iterations, r.Status)
	}
	lines.Add("iterations", "⌈(√κ/2)ln(2/τ)⌉ %s for τ = %g", iterationsText, r.Tol)
	seconds := r.Seconds
	lines.AddSeconds(seconds.Total, "kernel", seconds.Kernel, "factor", seconds.Factor, "Lanczos", seconds.Lanczos,
		"solve", seconds.Solve, "exact", seconds.Exact)
	return lines.String()
}

// metricText describes M.
func (r *Result) metricText() string {
	switch {
	case r.Precond == "none":
		return "I (no preconditioner)"
	case r.LambdaP == 0:
		return cmp.Or(r.Features, r.Precond)
	}
	source := cmp.Or(r.Features, r.Precond)
	return fmt.Sprintf("ZZᵀ+λ_pI, s = %d, λ_p = %.6g, %s", r.S, r.LambdaP, source)
}

// Table returns a table with one row.
func (r *Result) Table() *plots.Table {
	return pencil.Table("quality of the preconditioner: "+r.Dataset, []*pencil.Row{&r.Row}, r.Tol,
		func(*pencil.Row) float64 { return r.Seconds.Total })
}

// spectrumTable returns all eigenvalues of M⁻¹A in descending order, or the Ritz values if the eigenvalues were not
// computed.
func (r *Result) spectrumTable() *plots.Table {
	table := &plots.Table{Title: "spectrum of M⁻¹A: " + r.Dataset,
		Columns: []plots.Column{{Name: r.nodeName(), Format: "%.6g"}}}
	for _, node := range slices.Backward(r.Nodes) {
		table.Add(node)
	}
	return table
}

const (
	maxRitzSteps = 12 // maximum number of steps at which the figure shows inner Ritz values
	ritzPerEnd   = 4  // number of inner Ritz values shown at each end of the spectrum
)

// Plot draws the convergence of the extreme eigenvalues of M⁻¹A against the step of the Lanczos process. The Ritz
// values lie inside the spectrum; bands extend from the outermost two to the bounds of the spectrum with the stated
// confidence.
func (r *Result) Plot() *plots.Figure {
	if len(r.Trace) == 0 {
		return r.plotNodes()
	}
	largest := plots.Series{Name: "largest, to the bound of λ_max"}
	smallest := plots.Series{Name: "smallest, to the bound of λ_min"}
	inner := plots.Series{Name: "the next four at each end", Style: plots.Points}
	stride := max(1, (r.Steps+maxRitzSteps-1)/maxRitzSteps)
	for i, step := range r.Trace {
		x := float64(step.Step)
		largest.AddBand(x, step.Max.Value, step.Max.Value, step.Max.Hi)
		smallest.AddBand(x, step.Min.Value, step.Min.Lo, step.Min.Value)
		if stepCount := i + 1; (r.Steps-stepCount)%stride == 0 && stepCount > 2 {
			for j, ritzValue := range lanczos.Ritz(r.Alpha[:stepCount], r.Beta[:stepCount]) {
				if j > 0 && j <= ritzPerEnd || j < stepCount-1 && j >= stepCount-1-ritzPerEnd {
					inner.Add(x, ritzValue)
				}
			}
		}
	}
	figure := &plots.Figure{
		Title: r.Dataset + ": κ(M⁻¹A) " + stage.EndsText(r.Kappa, 3),
		Caption: fmt.Sprintf("Eigenvalues of M⁻¹A, %s, as the Lanczos process finds them. Bands: where the "+
			"spectrum ends with %.3g %% confidence.",
			r.Kernel.InProse(r.metricText()), 100*r.Kappa.Confidence),
		X: plots.Axis{Label: "step of Lanczos (products with K)"},
		Y: plots.Axis{Label: "eigenvalue of M⁻¹A", Log: true},
	}
	figure.Y.Min, figure.Y.Max = r.Min.Value/8, r.Max.Value*8
	figure.Series = []plots.Series{largest, smallest}
	figure.Controls = r.controls()
	if len(inner.X) > 0 {
		figure.Series = append(figure.Series, inner)
	}
	if r.Exact != nil {
		figure.HLines = []plots.RefLine{{At: r.Nodes[r.N-1], Label: "exact λ_max"},
			{At: r.Nodes[0], Label: "exact λ_min"}}
	}
	if !(figure.Y.Min > 0) || math.IsInf(figure.Y.Max, 1) {
		figure.Y.Min, figure.Y.Max = 0, 0
	}
	return figure
}

// plotNodes draws only the Ritz values or eigenvalues, for an M that can be applied only as an inverse.
func (r *Result) plotNodes() *plots.Figure {
	series := plots.Series{Name: r.nodeName() + "s", Style: plots.Points}
	for i, node := range r.Nodes {
		series.Add(float64(i+1), node)
	}
	return &plots.Figure{
		Title: fmt.Sprintf("%s: κ(M⁻¹A) at least %s", r.Dataset, outward.Down(r.Kappa.Lo, 3)),
		Caption: fmt.Sprintf("The %ss of M⁻¹A, %s. Ritz values are of conjugate gradients on the targets; they lie "+
			"inside the spectrum.", r.nodeName(), r.Kernel.InProse(r.metricText())),
		X: plots.Axis{Label: "number, ascending"}, Y: plots.Axis{Label: "eigenvalue of M⁻¹A", Log: true},
		Series: []plots.Series{series},
	}
}

// nodeName returns the name of an entry of Row.Nodes.
func (r *Result) nodeName() string {
	if r.Exact == nil {
		return "Ritz value"
	}
	return "eigenvalue"
}

// HTML returns the result as text, figure and table.
func (r *Result) HTML() string { return stage.HTML(r) }

// controls returns a slider over τ, or nil for an M that can be applied only as an inverse.
func (r *Result) controls() *plots.Controls {
	if r.Steps == 0 || r.Indefinite {
		return nil
	}
	point := r.ExploreData(1)
	if r.LambdaP > 0 {
		point["p"] = r.LambdaP
	}
	return pencil.ExploreControls(map[string]any{"p": point["p"], "sweeps": [][]map[string]any{{point}}},
		r.Kappa.Confidence, r.Tol)
}
