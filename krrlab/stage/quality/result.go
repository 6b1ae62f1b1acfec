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

// Step is the state after a step of Lanczos.
type Step struct {
	Step int               `json:"step"`
	Min  estimate.Interval `json:"lambda_min"`
	Max  estimate.Interval `json:"lambda_max"`
}

// Result describes the quality of a preconditioner: an interval of κ(M⁻¹A) that holds with the stated confidence, the
// iterations that follow from it, and those of PCG.
type Result struct {
	stage.Header
	Precond  string `json:"precond"`            // name of the preconditioner
	Features string `json:"features,omitempty"` // features or landmarks of Z, n×s
	// Unplanned is set if the configuration leaves the preconditioner to the plan of a fit. M is then the default for
	// the kernel, which the plan may not choose.
	Unplanned bool    `json:"unplanned,omitempty"`
	Neighbors int     `json:"neighbors,omitempty"` // k of a sparse inverse
	Damping   float64 `json:"damping,omitempty"`   // ω of a sparse inverse

	pencil.Row         // κ, its interval and the iterations; Row.Iterations are those of PCG on the targets
	KError     float64 `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	Trace      []Step  `json:"trace"`              // state after each step of Lanczos
	Seconds    Seconds `json:"seconds"`
}

// Seconds are the wall-clock seconds of the parts of the stage.
type Seconds struct {
	Kernel  float64 `json:"kernel"`
	Factor  float64 `json:"factor"`
	Lanczos float64 `json:"lanczos"`
	Solve   float64 `json:"solve"`
	Exact   float64 `json:"exact"`
	Total   float64 `json:"total"`
}

func (q *Result) String() string {
	var b stage.Lines
	b.AddText("M", q.metricText())
	if q.Unplanned {
		b.Add("auto", "M is the fixed rule's, a fit takes what the plan chooses: name a preconditioner to judge that")
	}
	b.AddProblem(&q.Header)
	if q.Indefinite {
		b.Add("K",
			"K+λI as stored has a negative eigenvalue: ‖K_stored−K‖₂ is above λ = %g (predicted %.2g), and "+
				"nothing is known of κ; take float64 storage or a larger λ", q.Lambda, q.KError)
	}
	b.AddText("κ(M⁻¹A)", stage.IntervalText(q.Kappa))
	b.Add("λ_max, λ_min", "%s; %s", stage.IntervalText(q.Max), stage.IntervalText(q.Min))
	if q.KappaUpperBound > 0 {
		b.Add("certain", "κ ≤ %s from the trace of what the landmarks leave", outward.Up(q.KappaUpperBound, 4))
	}
	if q.NotDefinite {
		b.Add("exact", "no κ by all eigenvalues: M⁻¹ as applied is not positive definite in float64; take a larger λ_p")
	}
	if q.Exact != nil {
		text := stage.EndsText(*q.Exact, 6)
		if math.IsInf(q.Exact.Hi, 1) {
			text += fmt.Sprintf(", as rounding in float64 may hide the least of them, %.2g", q.Nodes[0])
		}
		b.Add("exact", "by all %d eigenvalues κ is %s", q.N, text)
	}
	pencil.AddLogDetLines(&b, &q.Row)
	reached := "the width asked was reached"
	if !q.WidthReached {
		reached = "the width asked was not reached"
		if q.Slack > q.Min.Value {
			reached += fmt.Sprintf(", as rounding hides eigenvalues below %.2g: take a larger λ_p or λ", q.Slack)
		}
	}
	if q.APriori.Known() {
		b.Add("Lanczos", "%s, %s; a priori error ≤ %s", plural.Count(q.Steps, "step"), reached,
			outward.Up(float64(q.APriori), 2))
	} else {
		b.Add("one-sided", "by the Ritz values of %s, in exact arithmetic: M has no NormalTo (lanczos.Metric)",
			plural.Count(*q.Iterations, "iteration"))
	}
	iterations := "unbounded"
	if q.IterationBound > 0 {
		iterations = fmt.Sprintf("= %d", q.IterationBound)
	}
	if q.Predicted > 0 {
		iterations += fmt.Sprintf(", from T %d", q.Predicted)
	}
	if q.Iterations != nil {
		iterations += fmt.Sprintf(", PCG %d (%s)", *q.Iterations, q.Status)
	}
	b.Add("iterations", "⌈(√κ/2)ln(2/τ)⌉ %s for τ = %g", iterations, q.Tol)
	s := q.Seconds
	b.AddSeconds(s.Total, "kernel", s.Kernel, "factor", s.Factor, "Lanczos", s.Lanczos,
		"solve", s.Solve, "exact", s.Exact)
	return b.String()
}

// metricText describes M.
func (q *Result) metricText() string {
	switch {
	case q.Precond == "none":
		return "I (no preconditioner)"
	case q.LambdaP == 0:
		return cmp.Or(q.Features, q.Precond)
	}
	source := cmp.Or(q.Features, q.Precond)
	return fmt.Sprintf("ZZᵀ+λ_pI, s = %d, λ_p = %.6g, %s", q.S, q.LambdaP, source)
}

// Table returns a table with one row.
func (q *Result) Table() *plots.Table {
	return pencil.Table("quality of the preconditioner: "+q.Dataset, []*pencil.Row{&q.Row}, q.Tol,
		func(*pencil.Row) float64 { return q.Seconds.Total })
}

// spectrumTable returns all eigenvalues of M⁻¹A in descending order, or the Ritz values if the eigenvalues were not
// computed.
func (q *Result) spectrumTable() *plots.Table {
	t := &plots.Table{Title: "spectrum of M⁻¹A: " + q.Dataset,
		Columns: []plots.Column{{Name: q.nodeName(), Format: "%.6g"}}}
	for _, v := range slices.Backward(q.Nodes) {
		t.Add(v)
	}
	return t
}

const (
	maxRitzSteps = 12 // maximum number of steps at which the figure shows inner Ritz values
	ritzPerEnd   = 4  // number of inner Ritz values shown at each end of the spectrum
)

// Plot draws the convergence of the ends of the spectrum of M⁻¹A against the step. The Ritz values lie inside the
// spectrum; bands extend from the outermost two to the bounds of the spectrum with the stated confidence.
func (q *Result) Plot() *plots.Figure {
	if len(q.Trace) == 0 {
		return q.plotNodes()
	}
	top := plots.Series{Name: "largest, to the bound of λ_max"}
	bottom := plots.Series{Name: "smallest, to the bound of λ_min"}
	inner := plots.Series{Name: "the next four at each end", Style: plots.Points}
	stride := max(1, (q.Steps+maxRitzSteps-1)/maxRitzSteps)
	for i, s := range q.Trace {
		x := float64(s.Step)
		top.AddBand(x, s.Max.Value, s.Max.Value, s.Max.Hi)
		bottom.AddBand(x, s.Min.Value, s.Min.Lo, s.Min.Value)
		if k := i + 1; (q.Steps-k)%stride == 0 && k > 2 {
			for j, r := range lanczos.Ritz(q.Alpha[:k], q.Beta[:k]) {
				if j > 0 && j <= ritzPerEnd || j < k-1 && j >= k-1-ritzPerEnd {
					inner.Add(x, r)
				}
			}
		}
	}
	f := &plots.Figure{
		Title: q.Dataset + ": κ(M⁻¹A) " + stage.EndsText(q.Kappa, 3),
		Caption: fmt.Sprintf("Eigenvalues of M⁻¹A, %s, as the Lanczos process finds them. Bands: where the "+
			"spectrum ends with %.3g %% confidence.",
			q.Kernel.InProse(q.metricText()), 100*q.Kappa.Confidence),
		X: plots.Axis{Label: "step of Lanczos (products with K)"},
		Y: plots.Axis{Label: "eigenvalue of M⁻¹A", Log: true},
	}
	f.Y.Min, f.Y.Max = q.Min.Value/8, q.Max.Value*8
	f.Series = []plots.Series{top, bottom}
	f.Controls = q.controls()
	if len(inner.X) > 0 {
		f.Series = append(f.Series, inner)
	}
	if q.Exact != nil {
		f.HLines = []plots.RefLine{{At: q.Nodes[q.N-1], Label: "exact λ_max"}, {At: q.Nodes[0], Label: "exact λ_min"}}
	}
	if !(f.Y.Min > 0) || math.IsInf(f.Y.Max, 1) {
		f.Y.Min, f.Y.Max = 0, 0
	}
	return f
}

// plotNodes draws only the Ritz values or eigenvalues, for an M that can be applied only as an inverse.
func (q *Result) plotNodes() *plots.Figure {
	s := plots.Series{Name: q.nodeName() + "s", Style: plots.Points}
	for i, v := range q.Nodes {
		s.Add(float64(i+1), v)
	}
	return &plots.Figure{
		Title: fmt.Sprintf("%s: κ(M⁻¹A) at least %s", q.Dataset, outward.Down(q.Kappa.Lo, 3)),
		Caption: fmt.Sprintf("The %ss of M⁻¹A, %s. Ritz values are of conjugate gradients on the targets; they lie "+
			"inside the spectrum.", q.nodeName(), q.Kernel.InProse(q.metricText())),
		X: plots.Axis{Label: "number, ascending"}, Y: plots.Axis{Label: "eigenvalue of M⁻¹A", Log: true},
		Series: []plots.Series{s},
	}
}

// nodeName returns the name of an entry of Nodes.
func (q *Result) nodeName() string {
	if q.Exact == nil {
		return "Ritz value"
	}
	return "eigenvalue"
}

// HTML returns the result as text, figure and table.
func (q *Result) HTML() string { return stage.HTML(q) }

// controls returns a slider over τ, or nil for an M that can be applied only as an inverse.
func (q *Result) controls() *plots.Controls {
	if q.Steps == 0 || q.Indefinite {
		return nil
	}
	point := q.ExploreData(1)
	if q.LambdaP > 0 {
		point["p"] = q.LambdaP
	}
	return pencil.ExploreControls(map[string]any{"p": point["p"], "sweeps": [][]map[string]any{{point}}},
		q.Kappa.Confidence, q.Tol)
}
