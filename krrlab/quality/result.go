package quality

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Step is what was known after a step of Lanczos.
type Step struct {
	Step int               `json:"step"`
	Min  estimate.Interval `json:"lambda_min"`
	Max  estimate.Interval `json:"lambda_max"`
}

// Result says how good a preconditioner is: an interval of κ(M⁻¹A) that holds with the
// stated confidence, and the iterations that follow from it beside those that PCG takes.
type Result struct {
	stage.Header
	Precond  string  `json:"precond"`
	Features string  `json:"features,omitempty"` // what made Z
	S        int     `json:"s,omitempty"`        // its columns
	LambdaP  float64 `json:"lambda_p,omitempty"`
	// Neighbors and Damping are k and ω of a sparse inverse, S then the rank of its factor.
	Neighbors int     `json:"neighbors,omitempty"`
	Damping   float64 `json:"damping,omitempty"`

	// Kappa, Min and Max are κ(M⁻¹A), λ_min and λ_max, of K itself and not as it is stored: they
	// allow for KError, whose prediction the confidence does not cover. Kappa's probability of
	// failure is split over both ends. Of an M of which only the inverse is known they are one-sided,
	// by Ritz values, which lie inside the spectrum in exact arithmetic: rounding is not bounded.
	Kappa estimate.Interval `json:"kappa"`
	Min   estimate.Interval `json:"lambda_min"`
	Max   estimate.Interval `json:"lambda_max"`
	// Certain is an upper bound of κ without any probability, with landmarks; 0 otherwise. It
	// covers the rounding of K's columns, of the factorization and of F, and does not depend on how
	// K is stored; 0 too where that rounding is above λ, and for user-defined kernels.
	Certain float64 `json:"kappa_certain,omitempty"`
	// Indefinite says that K+λI as stored has a negative eigenvalue, which proves ‖K_stored−K‖₂ > λ
	// whatever KError predicts: then nothing is known of κ.
	Indefinite bool `json:"stored_indefinite,omitempty"`
	// APriori is the relative error of λ_max, and of λ_min as a share of λ_max, that as many steps are sure
	// not to exceed whatever the spectrum, with the confidence of one end.
	APriori stage.Number `json:"a_priori_error"`

	Steps    int       `json:"steps"` // of Lanczos
	Reached  bool      `json:"width_reached"`
	Alpha    []float64 `json:"alpha"` // of the tridiagonal
	Beta     []float64 `json:"beta"`
	Ritz     []float64 `json:"ritz"`
	Slack    float64   `json:"slack"`              // allowed for inaccurate products
	KError   float64   `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	Trace    []Step    `json:"trace"`
	Spectrum []float64 `json:"spectrum,omitempty"` // all eigenvalues of M⁻¹A, for small n
	// Exact is their κ with its rounding error; nil where they were not computed.
	Exact *estimate.Interval `json:"kappa_exact"`
	// NotDefinite says that they were not, as M⁻¹ as applied is not positive definite in float64.
	NotDefinite bool `json:"inverse_indefinite,omitempty"`

	// Bound is ⌈(√κ/2)ln(2/τ)⌉ for κ's upper end, the iterations to an A-norm error of τ; 0
	// where that is unbounded. Predicted are the iterations to a residual of τ of a random
	// right-hand side, from T. Actual are those of PCG on the targets; nil without it.
	Bound     int        `json:"iterations_bound"`
	Predicted int        `json:"iterations_predicted"`
	Actual    *int       `json:"iterations"`
	Status    pcg.Status `json:"status,omitempty"` // of PCG

	Seconds Seconds `json:"seconds"`
}

// Seconds are wall-clock seconds.
type Seconds struct {
	Kernel   float64 `json:"kernel"`
	Features float64 `json:"features"`
	Factor   float64 `json:"factor"`
	Lanczos  float64 `json:"lanczos"`
	Solve    float64 `json:"solve"`
	Exact    float64 `json:"exact"`
	Total    float64 `json:"total"`
}

func (q *Result) String() string {
	var b stage.Lines
	b.Add("M", "%s", q.metricText())
	b.Problem(&q.Header)
	if q.Indefinite {
		b.Add("K",
			"K+λI as stored has a negative eigenvalue: ‖K_stored−K‖₂ is above λ = %g (predicted %.2g), and "+
				"nothing is known of κ; take float64 storage or a larger λ", q.Lambda, q.KError)
	}
	b.Add("κ(M⁻¹A)", "%s", stage.Bounds(q.Kappa))
	b.Add("λ_max, λ_min", "%s; %s", stage.Bounds(q.Max), stage.Bounds(q.Min))
	if q.Certain > 0 {
		b.Add("certain", "κ ≤ %s from the trace of what the landmarks leave", outward.Up(q.Certain, 4))
	}
	if q.NotDefinite {
		b.Add("exact", "no κ by all eigenvalues: M⁻¹ as applied is not positive definite in float64; take a larger λ_p")
	}
	if q.Exact != nil {
		b.Add("exact", "by all %d eigenvalues κ is %s", len(q.Spectrum), q.exactText())
	}
	reached := "the width asked was reached"
	if !q.Reached {
		reached = "the width asked was not reached"
	}
	if q.APriori.Known() {
		b.Add("Lanczos", "%s, %s; a priori error ≤ %s", plural.Count(q.Steps, "step"), reached,
			outward.Up(float64(q.APriori), 2))
	} else {
		b.Add("one-sided", "by the Ritz values of %s, in exact arithmetic: M has no NormalTo (lanczos.Metric)",
			plural.Count(q.Steps, "iteration"))
	}
	b.Add("iterations", "%s", q.iterationText())
	s := q.Seconds
	b.Took(s.Total, "kernel", s.Kernel, "features", s.Features, "factor", s.Factor, "Lanczos", s.Lanczos,
		"solve", s.Solve, "exact", s.Exact)
	return b.String()
}

// exactText says what all eigenvalues tell of κ.
func (q *Result) exactText() string {
	if e := q.Exact; math.IsInf(e.Hi, 1) {
		return fmt.Sprintf("%s, as rounding in float64 may hide the least of them, %.2g", stage.Range(*e, 4, ""),
			q.Spectrum[0])
	}
	return stage.Range(*q.Exact, 6, "")
}

func (q *Result) metricText() string {
	switch {
	case q.Precond == "none":
		return "I (no preconditioner)"
	case q.LambdaP == 0:
		return cmp.Or(q.Features, q.Precond)
	}
	made := cmp.Or(q.Features, q.Precond)
	return fmt.Sprintf("ZZᵀ+λ_pI, s = %d, λ_p = %.6g, %s", q.S, q.LambdaP, made)
}

func (q *Result) iterationText() string {
	s := "⌈(√κ/2)ln(2/τ)⌉ "
	if q.Bound > 0 {
		s += fmt.Sprintf("= %d", q.Bound)
	} else {
		s += "unbounded"
	}
	if q.Predicted > 0 {
		s += fmt.Sprintf(", from T %d", q.Predicted)
	}
	if q.Actual != nil {
		s += fmt.Sprintf(", PCG %d (%s)", *q.Actual, q.Status)
	}
	return s + fmt.Sprintf(" for τ = %g", q.Tol)
}

// Table gives a row for each number.
func (q *Result) Table() *plots.Table {
	t := &plots.Table{
		Title: "quality of the preconditioner: " + q.Dataset,
		Columns: []plots.Column{{Name: "quantity"}, {Name: "value", Format: "%.4g"}, {Name: "lower", Format: "%.4g"},
			{Name: "upper", Format: "%.4g"}, {Name: "confidence", Format: "%.4g"}, {Name: "how"}},
	}
	add := func(name string, e estimate.Interval) {
		t.Add(name, e.Value, plots.AtLeast(e.Lo), plots.AtMost(e.Hi), e.Confidence, e.Method)
	}
	add("κ(M⁻¹A)", q.Kappa)
	add("λ_max(M⁻¹A)", q.Max)
	add("λ_min(M⁻¹A)", q.Min)
	if q.Exact != nil {
		add("κ(M⁻¹A)", *q.Exact)
	}
	if q.Certain > 0 {
		t.Add("κ(M⁻¹A)", nil, nil, plots.AtMost(q.Certain), 1.0, "trace of K−ZZᵀ")
	}
	if q.Bound > 0 {
		t.Add("iterations", nil, nil, q.Bound, q.Kappa.Confidence, "⌈(√κ/2)ln(2/τ)⌉ to an A-norm error of τ")
	}
	if q.Predicted > 0 {
		t.Add("iterations", q.Predicted, nil, nil, nil, "from T of Lanczos, random right-hand side")
	}
	if q.Actual != nil {
		t.Add("iterations", *q.Actual, nil, nil, nil, "PCG, "+q.Status.String())
	}
	return t
}

// spectrumTable has the eigenvalues of M⁻¹A in descending order, all of them where they are known, or else the Ritz
// values.
func (q *Result) spectrumTable() *plots.Table {
	name, values := "eigenvalue", slices.Clone(q.Spectrum)
	if len(values) == 0 {
		name, values = "Ritz value", slices.Clone(q.Ritz)
	}
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(b, a) })
	t := &plots.Table{Title: "spectrum of M⁻¹A: " + q.Dataset, Columns: []plots.Column{{Name: name, Format: "%.6g"}}}
	for _, v := range values {
		t.Add(v)
	}
	return t
}

const (
	ritzColumns = 12 // steps that the figure shows more Ritz values of,
	ritzEach    = 4  // shown at each end
)

// Plot draws how the ends of the spectrum of M⁻¹A are closed in on: against the step the Ritz
// values, which lie inside, and the outermost two with bands up to where the spectrum ends
// with the stated confidence.
func (q *Result) Plot() *plots.Figure {
	if len(q.Trace) == 0 {
		return q.plotRitz()
	}
	top := plots.Series{Name: "largest, to the bound of λ_max"}
	bottom := plots.Series{Name: "smallest, to the bound of λ_min"}
	inner := plots.Series{Name: "the next four at each end", Style: plots.Points}
	every := max(1, (q.Steps+ritzColumns-1)/ritzColumns)
	for i, s := range q.Trace {
		x := float64(s.Step)
		top.AddBand(x, s.Max.Value, s.Max.Value, s.Max.Hi)
		bottom.AddBand(x, s.Min.Value, s.Min.Lo, s.Min.Value)
		if k := i + 1; (q.Steps-k)%every == 0 && k > 2 {
			for j, r := range lanczos.Ritz(q.Alpha[:k], q.Beta[:k]) {
				if j > 0 && j <= ritzEach || j < k-1 && j >= k-1-ritzEach {
					inner.Add(x, r)
				}
			}
		}
	}
	f := &plots.Figure{
		Title: q.Dataset + ": κ(M⁻¹A) " + stage.Range(q.Kappa, 3, ""),
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
	if k := len(q.Spectrum); k > 0 {
		f.HLines = []plots.RefLine{{At: q.Spectrum[k-1], Label: "exact λ_max"},
			{At: q.Spectrum[0], Label: "exact λ_min"}}
	}
	if !(f.Y.Min > 0) || math.IsInf(f.Y.Max, 1) {
		f.Y.Min, f.Y.Max = 0, 0
	}
	return f
}

// plotRitz draws the Ritz values alone, where no more than the inverse of M is known.
func (q *Result) plotRitz() *plots.Figure {
	s := plots.Series{Name: "Ritz values", Style: plots.Points}
	for i, v := range q.Ritz {
		s.Add(float64(i+1), v)
	}
	return &plots.Figure{
		Title: fmt.Sprintf("%s: κ(M⁻¹A) at least %s", q.Dataset, outward.Down(q.Kappa.Lo, 3)),
		Caption: fmt.Sprintf("Ritz values of M⁻¹A, %s, by conjugate gradients from a random right-hand side; they "+
			"lie inside the spectrum.", q.Kernel.InProse(q.metricText())),
		X: plots.Axis{Label: "number, ascending"}, Y: plots.Axis{Label: "eigenvalue of M⁻¹A", Log: true},
		Series: []plots.Series{s},
	}
}

// HTML gives the lines, the picture and the numbers.
func (q *Result) HTML() string { return stage.HTML(q) }

// controls returns a slider over τ; nil of an M of which only the inverse is known.
func (q *Result) controls() *plots.Controls {
	res, definite := lanczos.Residuals(q.Alpha, q.Beta)
	if len(res) == 0 || q.Indefinite {
		return nil
	}
	point := stage.Explored(1, q.Kappa, q.Min, q.Max, res, definite)
	if q.LambdaP > 0 {
		point["p"] = q.LambdaP
	}
	return stage.Explore(map[string]any{"p": point["p"], "sweeps": [][]map[string]any{{point}}}, q.Kappa.Confidence,
		q.Tol)
}
