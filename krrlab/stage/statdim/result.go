package statdim

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// CurvePoint is one point of the curve λ ↦ s_λ(K).
type CurvePoint struct {
	Lambda   float64           `json:"lambda"`
	Estimate estimate.Interval `json:"estimate"`
}

// Estimates are an estimate of s_λ(K) with its errors and cost. For a randomized method the half-width of the interval
// is Sampling+Truncation+Storage, before the interval is cut to the bounds that tr K proves.
type Estimates struct {
	Estimate     estimate.Interval `json:"estimate"`
	WidthReached bool              `json:"width_reached"` // whether the interval is as narrow as requested
	// Curve is the estimate at several λ in ascending order, among them the problem's λ. It is nil for a single λ.
	Curve             []CurvePoint `json:"curve,omitempty"`
	Probes            int          `json:"probes,omitempty"`      // number m of random probes
	Steps             int          `json:"steps,omitempty"`       // number of Lanczos steps, or of all iterations
	Products          int          `json:"columns,omitempty"`     // number of vectors multiplied by K
	Sampling          float64      `json:"half_width_sampling"`   // half-width due to the random probes
	Truncation        float64      `json:"half_width_truncation"` // half-width due to ending the iteration early
	Storage           float64      `json:"half_width_storage"`    // half-width due to the stored K
	VarianceExplained float64      `json:"variance_explained"`    // share of variance removed by the control variate
}

// Result is the statistical dimension s_λ(K) = tr(K(K+λI)⁻¹) with an interval. Z (n×s) has the random features, or is
// the landmark factor, of the problem, with ZZᵀ ≈ K. M = ZZᵀ+λ_pI gives the control variate of the randomized methods.
type Result struct {
	stage.Header
	Method Method `json:"method"`
	Why    string `json:"why,omitempty"` // reason for the choice of auto

	Estimates
	RequestedWidth float64 `json:"width_asked"` // requested relative width of the interval

	Precond  string  `json:"preconditioner,omitempty"` // preconditioner that defines Z; "" if Z was not used
	S        int     `json:"s,omitempty"`              // number s of columns of Z
	LambdaP  float64 `json:"lambda_p,omitempty"`       // ridge λ_p of M
	ZStatDim float64 `json:"u_squared,omitempty"`      // s_{λ_p}(ZZᵀ) = ‖U‖_F², where UUᵀ = Z(ZᵀZ+λ_pI)⁻¹Zᵀ
	// ZCurve has s_λ(ZZᵀ) at each λ in ZLambdas.
	ZLambdas []float64 `json:"z_lambdas,omitempty"`
	ZCurve   []float64 `json:"z_curve,omitempty"`

	// KError is the predicted bound of ‖K_stored−K‖₂, where K_stored is the stored kernel matrix, plus a bound of the
	// error of products with K_stored.
	KError  float64 `json:"kernel_error"`
	Seconds float64 `json:"seconds"` // total time, including that for K and Z
}

// String returns the report: the problem, the method, s_λ with its interval, the parts of the half-width and Z.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddProblem(&r.Header)
	reason := ""
	if r.Why != "" {
		reason = " (" + r.Why + ")"
	}
	lines.Add("method", "%s%s", r.Method, reason)
	interval := r.Estimate
	confidence := "certain up to rounding"
	if interval.Confidence < 1 {
		confidence = fmt.Sprintf("%.4g %% confidence", 100*interval.Confidence)
	}
	lines.Add("s_λ(K)", "%.5g at λ = %g", interval.Value, r.Lambda)
	lines.Add("interval", "%s, %s, width %s of the value%s", outward.Span(interval.Lo, interval.Hi, 5), confidence,
		outward.Percent(interval.RelativeWidth(), 2), r.missedWidthNote())
	if r.Probes > 0 {
		lines.Add("half-width", "sampling %.3g, truncation %.3g, K as stored %.3g", r.Sampling, r.Truncation, r.Storage)
		lines.Add("probes", "%d, %s, %s multiplied by K", r.Probes, r.stepText(), plural.Count(r.Products, "vector"))
	}
	if r.S > 0 {
		lines.Add("Z", "%s, s = %d, ‖U‖_F² = s_{λ_p}(ZZᵀ) = %.5g at λ_p = %.6g%s", r.Precond, r.S, r.ZStatDim,
			r.LambdaP, r.varianceNote())
	}
	lines.AddSeconds(r.Seconds)
	return lines.String()
}

// missedWidthNote explains why the requested width was not reached; it is empty if it was.
func (r *Result) missedWidthNote() string {
	switch {
	case r.WidthReached:
		return ""
	case r.Method == Free:
		return fmt.Sprintf(" (asked %s): tr K and this Z prove no narrower interval",
			outward.Percent(r.RequestedWidth, 2))
	case r.Truncation+r.Storage > r.Sampling:
		return fmt.Sprintf(" (asked %s): truncation and storage limit it", outward.Percent(r.RequestedWidth, 2))
	}
	return fmt.Sprintf(" (asked %s)", outward.Percent(r.RequestedWidth, 2))
}

// stepText returns the number of steps of the randomized methods: Lanczos steps, or iterations of solves.
func (r *Result) stepText() string {
	if r.Method == SLQ {
		return fmt.Sprintf("%d Lanczos steps", r.Steps)
	}
	return plural.Count(r.Steps, "iteration")
}

// varianceNote says how much of the variance the control variate removed; it is empty if there was none or it removed
// nothing.
func (r *Result) varianceNote() string {
	if r.VarianceExplained <= 0 {
		return ""
	}
	return fmt.Sprintf("; as control variate it removes %.3g %% of the variance", 100*r.VarianceExplained)
}

// curvePoints returns the curve, or the problem's λ alone if there is no curve.
func (r *Result) curvePoints() []CurvePoint {
	if len(r.Curve) > 0 {
		return r.Curve
	}
	return []CurvePoint{{Lambda: r.Lambda, Estimate: r.Estimate}}
}

// Table returns a table of s_λ against λ.
func (r *Result) Table() *plots.Table {
	table := &plots.Table{Columns: plots.ParseColumns("λ", "s_λ(K)", "lower end", "upper end", "confidence", "width",
		"method")}
	for _, point := range r.curvePoints() {
		interval := point.Estimate
		if point.Lambda == r.Lambda { // Estimate may be from another method than the curve
			interval = r.Estimate
		}
		table.Add(point.Lambda, interval, interval.Confidence, interval.RelativeWidth(), interval.Method)
	}
	return table
}

// Plot draws s_λ against λ with its interval as a band, on log axes, and marks the problem's λ.
func (r *Result) Plot() *plots.Figure {
	figure := &plots.Figure{
		Title: fmt.Sprintf("Statistical dimension: %s, n = %d", r.Dataset, r.N),
		Caption: fmt.Sprintf("s_λ(K) = tr(K(K+λI)⁻¹) against λ, %s; at λ = %g: %v.", r.Kernel.Prose(), r.Lambda,
			r.Estimate),
		X:      plots.Axis{Label: "ridge λ", Log: true},
		Y:      plots.Axis{Label: "statistical dimension s_λ", Log: true},
		VLines: []plots.RefLine{{At: r.Lambda, Label: fmt.Sprintf("λ = %.3g", r.Lambda)}},
	}
	if len(r.Curve) > 0 {
		curve := plots.Series{Name: r.curveName()}
		for _, point := range r.Curve {
			curve.AddInterval(point.Lambda, point.Estimate)
		}
		figure.Series = append(figure.Series, curve)
	}
	if len(r.ZCurve) > 0 && r.Method != Free {
		figure.Series = append(figure.Series, plots.Series{Name: fmt.Sprintf("ZZᵀ, s = %d", r.S), X: r.ZLambdas,
			Y: r.ZCurve})
	}
	chosen := plots.Series{Name: fmt.Sprintf("s_λ = %.4g (%s)", r.Estimate.Value, r.Method), Style: plots.Points}
	chosen.AddInterval(r.Lambda, r.Estimate)
	figure.Series = append(figure.Series, chosen)
	return figure
}

// curveName returns the legend of the curve and its band.
func (r *Result) curveName() string {
	interval := r.Curve[0].Estimate
	if interval.Confidence == 1 {
		return fmt.Sprintf("K, %s", interval.Method)
	}
	return fmt.Sprintf("K, %s, %.3g %%", interval.Method, 100*interval.Confidence)
}

// HTML returns the result as text, figure and table, for a notebook.
func (r *Result) HTML() string { return stage.HTML(r) }
