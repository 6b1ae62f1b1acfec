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
	WidthReached bool              `json:"width_reached"` // the interval is as narrow as requested
	// Curve is the estimate at several λ in ascending order, among them the problem's λ. It is nil for a single λ.
	Curve             []CurvePoint `json:"curve,omitempty"`
	Probes            int          `json:"probes,omitempty"`      // number m of random probes
	Steps             int          `json:"steps,omitempty"`       // number of Lanczos steps, or of iterations of all solves
	Products          int          `json:"columns,omitempty"`     // number of vectors multiplied by K
	Sampling          float64      `json:"half_width_sampling"`   // half-width due to the random probes
	Truncation        float64      `json:"half_width_truncation"` // half-width due to the end of solves or Lanczos processes
	Storage           float64      `json:"half_width_storage"`    // half-width due to the stored K
	VarianceExplained float64      `json:"variance_explained"`    // share of the variance that the control variate removed
}

// Result is the statistical dimension s_λ(K) = tr(K(K+λI)⁻¹) with an interval. Z (n×s) are the random features or the
// landmark factor of the problem, with ZZᵀ ≈ K; they give the control variate, whose matrix is M = ZZᵀ+λ_pI.
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
	// ZCurve is s_λ(ZZᵀ) at ZLambdas.
	ZLambdas []float64 `json:"z_lambdas,omitempty"`
	ZCurve   []float64 `json:"z_curve,omitempty"`

	// KError is the predicted bound of ‖K_stored−K‖₂, where K_stored is the stored kernel matrix, plus that of the
	// error of products with K_stored.
	KError  float64 `json:"kernel_error"`
	Seconds float64 `json:"seconds"` // total time, including that for K and Z
}

func (s *Result) String() string {
	var b stage.Lines
	b.AddProblem(&s.Header)
	reason := ""
	if s.Why != "" {
		reason = " (" + s.Why + ")"
	}
	b.Add("method", "%s%s", s.Method, reason)
	e := s.Estimate
	confidence := "certain up to rounding"
	if e.Confidence < 1 {
		confidence = fmt.Sprintf("%.4g %% confidence", 100*e.Confidence)
	}
	b.Add("s_λ(K)", "%.5g at λ = %g", e.Value, s.Lambda)
	b.Add("interval", "%s, %s, width %s of the value%s", outward.Span(e.Lo, e.Hi, 5), confidence,
		outward.Percent(e.RelativeWidth(), 2), s.missedWidthNote())
	if s.Probes > 0 {
		b.Add("half-width", "sampling %.3g, truncation %.3g, K as stored %.3g", s.Sampling, s.Truncation, s.Storage)
		b.Add("probes", "%d, %s, %s multiplied by K", s.Probes, s.stepText(), plural.Count(s.Products, "vector"))
	}
	if s.S > 0 {
		b.Add("Z", "%s, s = %d, ‖U‖_F² = s_{λ_p}(ZZᵀ) = %.5g at λ_p = %.6g%s", s.Precond, s.S, s.ZStatDim, s.LambdaP,
			s.varianceNote())
	}
	b.AddSeconds(s.Seconds)
	return b.String()
}

// missedWidthNote explains why the requested width was not reached; it is empty if it was.
func (s *Result) missedWidthNote() string {
	switch {
	case s.WidthReached:
		return ""
	case s.Method == Free:
		return fmt.Sprintf(" (asked %s): tr K and this Z prove no narrower interval",
			outward.Percent(s.RequestedWidth, 2))
	case s.Truncation+s.Storage > s.Sampling:
		return fmt.Sprintf(" (asked %s): truncation and storage limit it", outward.Percent(s.RequestedWidth, 2))
	}
	return fmt.Sprintf(" (asked %s)", outward.Percent(s.RequestedWidth, 2))
}

// stepText returns the number of steps of the randomized methods: Lanczos steps, or iterations of solves.
func (s *Result) stepText() string {
	if s.Method == SLQ {
		return fmt.Sprintf("%d Lanczos steps", s.Steps)
	}
	return plural.Count(s.Steps, "iteration")
}

// varianceNote says how much of the variance the control variate removed; it is empty if there was none or it removed
// nothing.
func (s *Result) varianceNote() string {
	if s.VarianceExplained <= 0 {
		return ""
	}
	return fmt.Sprintf("; as control variate it removes %.3g %% of the variance", 100*s.VarianceExplained)
}

// curvePoints returns the curve, or the problem's λ alone if there is no curve.
func (s *Result) curvePoints() []CurvePoint {
	if len(s.Curve) > 0 {
		return s.Curve
	}
	return []CurvePoint{{Lambda: s.Lambda, Estimate: s.Estimate}}
}

// Table returns a table of s_λ against λ.
func (s *Result) Table() *plots.Table {
	t := &plots.Table{Columns: plots.ParseColumns("λ", "s_λ(K)", "lower end", "upper end", "confidence", "width",
		"method")}
	for _, p := range s.curvePoints() {
		e := p.Estimate
		if p.Lambda == s.Lambda { // the curve may be that of another method
			e = s.Estimate
		}
		t.Add(p.Lambda, e, e.Confidence, e.RelativeWidth(), e.Method)
	}
	return t
}

// Plot draws s_λ against λ with its interval as a band, on log axes, and marks the problem's λ.
func (s *Result) Plot() *plots.Figure {
	f := &plots.Figure{
		Title: fmt.Sprintf("Statistical dimension: %s, n = %d", s.Dataset, s.N),
		Caption: fmt.Sprintf("s_λ(K) = tr(K(K+λI)⁻¹) against λ, %s; at λ = %g: %v.", s.Kernel.Prose(), s.Lambda,
			s.Estimate),
		X:      plots.Axis{Label: "ridge λ", Log: true},
		Y:      plots.Axis{Label: "statistical dimension s_λ", Log: true},
		VLines: []plots.RefLine{{At: s.Lambda, Label: fmt.Sprintf("λ = %.3g", s.Lambda)}},
	}
	if len(s.Curve) > 0 {
		curve := plots.Series{Name: s.curveName()}
		for _, p := range s.Curve {
			curve.AddInterval(p.Lambda, p.Estimate)
		}
		f.Series = append(f.Series, curve)
	}
	if len(s.ZCurve) > 0 && s.Method != Free {
		f.Series = append(f.Series, plots.Series{Name: fmt.Sprintf("ZZᵀ, s = %d", s.S), X: s.ZLambdas, Y: s.ZCurve})
	}
	chosen := plots.Series{Name: fmt.Sprintf("s_λ = %.4g (%s)", s.Estimate.Value, s.Method), Style: plots.Points}
	chosen.AddInterval(s.Lambda, s.Estimate)
	f.Series = append(f.Series, chosen)
	return f
}

// curveName returns the legend of the curve and its band.
func (s *Result) curveName() string {
	e := s.Curve[0].Estimate
	if e.Confidence == 1 {
		return fmt.Sprintf("K, %s", e.Method)
	}
	return fmt.Sprintf("K, %s, %.3g %%", e.Method, 100*e.Confidence)
}

// HTML returns the result as text, figure and table, for a notebook.
func (s *Result) HTML() string { return stage.HTML(s) }
