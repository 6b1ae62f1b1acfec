package pencil

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Levels are the relative residuals that iterations are counted to.
var Levels = []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}

// Row is what is known of one preconditioner of one draw.
type Row struct {
	Name    string  `json:"preconditioner"`
	Draw    int     `json:"draw"`        // 0, 1, …
	S       int     `json:"s,omitempty"` // rank
	LambdaP float64 `json:"lambda_p"`    // 0: it has none
	Why     string  `json:"why,omitempty"`
	Bytes   int64   `json:"bytes"`         // of M
	Build   float64 `json:"build_seconds"` // of making M, without K
	Solve   float64 `json:"solve_seconds"` // of M⁻¹R for all right-hand sides
	// flops of making M and of M⁻¹r, to the first order; 0 where they are not known
	BuildFlops float64 `json:"build_flops"`
	ApplyFlops float64 `json:"apply_flops"`

	// Iterations are those of conjugate gradients, the most of all columns; nil where they did not run or had not
	// ended.
	Iterations *int       `json:"iterations"`
	Status     pcg.Status `json:"status"`              // of the worst column
	Reached    []int      `json:"iterations_to"`       // Levels[i], as far as they were met
	Residuals  []float64  `json:"residuals,omitempty"` // the largest ‖r_k‖₂/‖b‖₂ by recurrence, k = 0, 1, …
	Bounds     []float64  `json:"bounds,omitempty"`    // of ‖x−x_k‖_A/‖b‖₂ from above, of one column, if known
	Ritz       [2]float64 `json:"ritz"`                // the least and the largest Ritz value of conjugate gradients

	// Kappa, Min and Max are κ(M⁻¹A), λ_min and λ_max, of K itself and not as it is stored: they allow for its error,
	// whose prediction the confidence does not cover. Kappa's probability of failure is split over both ends. Of an M
	// that cannot draw they are one-sided, by Ritz values, which lie inside the spectrum in exact arithmetic: rounding
	// is not bounded.
	Kappa  estimate.Interval `json:"kappa"`
	Min    estimate.Interval `json:"lambda_min"`
	Max    estimate.Interval `json:"lambda_max"`
	Steps  int               `json:"steps"` // of the Lanczos process, 0 for none
	Narrow bool              `json:"width_reached"`
	// of its tridiagonal, and what is allowed for inaccurate products
	Alpha []float64 `json:"alpha,omitempty"`
	Beta  []float64 `json:"beta,omitempty"`
	Slack float64   `json:"slack,omitempty"`
	// Indefinite says that K+λI as stored has a negative eigenvalue, which proves ‖K_stored−K‖₂ > λ whatever is
	// predicted: then nothing is known of κ.
	Indefinite bool `json:"stored_indefinite,omitempty"`
	// APriori is the relative error of λ_max, and of λ_min as a share of λ_max, that as many steps are sure
	// not to exceed whatever the spectrum, with the confidence of one end.
	APriori stage.Number `json:"a_priori_error"`
	// Predicted are the iterations to τ of a random right-hand side (lanczos.RitzIterations), and Bound is
	// ⌈(√κ/2)ln(2/τ)⌉ for κ's upper end, the iterations to an A-norm error of τ; 0 if unknown.
	Predicted int `json:"iterations_predicted"`
	Bound     int `json:"iterations_bound"`
	// Exact is κ by all eigenvalues, with its rounding error; nil where they were not computed. NotDefinite says that
	// they were not, as M⁻¹ as applied is not positive definite in float64.
	Exact       *estimate.Interval `json:"kappa_exact"`
	NotDefinite bool               `json:"inverse_indefinite,omitempty"`
	// Certain is an upper bound of κ without any probability, with landmarks; 0 otherwise. It
	// covers the rounding of K's columns, of the factorization and of F, and does not depend on how
	// K is stored; 0 too where that rounding is above λ, and for user-defined kernels.
	Certain float64 `json:"kappa_certain,omitempty"`
	// all eigenvalues of M⁻¹A where Exact is known, or else the Ritz values, ascending, and of a Lanczos process the
	// share of all eigenvalues that each stands for in its quadrature
	Nodes   []float64 `json:"nodes,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
	// by these: tr(M⁻¹A)/n, ln det(M⁻¹A), and Kaporin's number
	Trace   stage.Number `json:"trace_mean"`
	LogDet  stage.Number `json:"log_det"`
	Kaporin stage.Number `json:"kaporin"`
	// LogDetA is ln det(K+λI), and Likelihood −2 ln p(y) = yᵀ(K+λI)⁻¹y + ln det(K+λI) + n·ln 2π of y ~ N(0, K+λI), the
	// one column that is solved for; nil where M has no LogDet, or no Bounds. lanczos.LogDet says what is proved of
	// them, and what is estimated; they allow for K as stored.
	LogDetA    *estimate.Interval `json:"log_det_a,omitempty"`
	Likelihood *estimate.Interval `json:"minus_2_log_likelihood,omitempty"`
	// LogDetEstimate and LikelihoodEstimate are the same by Student's interval, of two processes at least.
	LogDetEstimate     *estimate.Interval `json:"log_det_a_estimate,omitempty"`
	LikelihoodEstimate *estimate.Interval `json:"minus_2_log_likelihood_estimate,omitempty"`

	energy [2]float64 // yᵀ(K+λI)⁻¹y/‖y‖₂² is between these, K as stored
}

// NewRow returns a row of which nothing is known.
func NewRow(name string) Row {
	r := Row{Name: name, Reached: []int{}}
	stage.SetUnknown(&r)
	return r
}

// nearly is what a step is counted by, for rounding, as in package pcg.
const nearly = 1 - 0x1p-20

// take takes what t columns of a solve tell of M_c.
func (s *Set) take(res *pcg.Result, c, t int) {
	r, h := s.Rows[c], &res.History
	rows := h.RelRes
	if len(h.Restarts) > 0 { // another Krylov space
		rows = rows[:h.Restarts[0]+1]
	}
	its, status, ritz := 0, pcg.Active, []float64(nil)
	for j := c * t; j < (c+1)*t; j++ {
		col := res.Columns[j]
		if (s.Recur || col.Status == pcg.Canceled) && rows[len(rows)-1][j] <= res.Tol {
			col.Status = pcg.Converged
		}
		its, status = max(its, col.Iterations), max(status, col.Status)
		if v := res.Ritz(j); len(v) > 0 && (ritz == nil || v[len(v)-1]/v[0] > ritz[len(ritz)-1]/ritz[0]) {
			ritz = v
		}
	}
	if len(ritz) > 0 {
		r.Ritz = [2]float64{ritz[0], ritz[len(ritz)-1]}
	}
	if r.Steps == 0 {
		s.inside(r)
		r.Nodes = ritz
	}
	for k := range min(its+1, len(rows)) {
		v := 0.0
		for _, of := range rows[k][c*t : (c+1)*t] {
			v = math.Max(v, of)
		}
		r.Residuals = append(r.Residuals, v)
		for len(r.Reached) < len(Levels) && v <= Levels[len(r.Reached)] {
			r.Reached = append(r.Reached, k)
		}
	}
	if t == 1 && s.Least > 0 {
		r.bound(h, c, s.Mu[c], s.Least)
	}
	if r.Status = status; status >= pcg.Canceled {
		return
	}
	if r.Iterations = &its; r.Why == Ended {
		r.Why = ""
	}
	if status >= pcg.Stagnated && r.Why == "" {
		r.Why = "conjugate gradients end: " + status.String()
	}
}

// bound bounds the errors of column j, where 0 < μ ≤ λ_min(M⁻¹A), 0 if none is known, and 0 < least ≤ λ_min(A).
func (r *Row) bound(h *pcg.History, j int, mu, least float64) {
	gamma, sum := 1/mu, 0.
	for k, v := range r.Residuals {
		most := v / math.Sqrt(least) // ‖e‖_A ≤ ‖r‖₂/√λ_min(A)
		if k > 0 {
			sum += h.Decrease[k-1][j]
		}
		if k > 0 && mu > 0 { // ‖e_k‖_A² ≤ (γ_{k−1}−α_{k−1})ρ_{k−1}, α_kρ_k = Decrease
			a := h.Alpha[k-1][j]
			left := gamma - nearly*a
			if a > 0 && left > 0 {
				most = min(most, math.Sqrt(left*h.Decrease[k-1][j]/a))
			}
			if gamma = left / (mu*left + h.Beta[k-1][j]); !(left > 0) {
				mu = 0 // no lower bound of the spectrum
			}
		}
		r.Bounds = append(r.Bounds, most)
		r.energy = [2]float64{sum, sum + most*most} // ‖x‖_A² = Σ_k α_kρ_k + ‖e_k‖_A², as x_0 = 0
	}
}

// inside takes the ends of the spectrum from the Ritz values of conjugate gradients.
func (s *Set) inside(r *Row) {
	const how = "Ritz values of PCG: one-sided, in exact arithmetic"
	least, most := r.Ritz[0], r.Ritz[1]
	r.Kappa, r.Min, r.Max = lanczos.Known(estimate.Interval{Value: least, Hi: least, Confidence: 1, Method: how},
		estimate.Interval{Value: most, Lo: most, Hi: math.Inf(1), Confidence: 1, Method: how}).Allowing(s.Off)
}

// bracket takes what a Lanczos process tells.
func (s *Set) bracket(r *Row, l *lanczos.Result, tau float64) {
	r.Steps, r.Narrow, r.Alpha, r.Beta, r.Slack, r.Indefinite = l.Steps, l.Converged, l.Alpha, l.Beta, l.Slack,
		l.Indefinite()
	r.Kappa, r.Min, r.Max = l.Allowing(s.Off)
	r.APriori = stage.Number(lanczos.APriori(l.N, l.Steps, 1-l.Max.Confidence))
	if !math.IsInf(r.Kappa.Hi, 1) {
		r.Bound = pcg.IterationBound(r.Kappa.Hi, tau)
	}
	if k := lanczos.RitzIterations(l.Alpha, l.Beta, tau, r.Kappa.Value); k < math.MaxInt32 {
		r.Predicted = int(k)
	}
	if r.Indefinite {
		r.Why = "A as stored is indefinite"
		return
	}
	if nodes, weights := lanczos.Quadrature(l.Alpha, l.Beta); nodes != nil {
		r.spectrum(l.N, nodes, weights)
	}
}

// Cut cuts the intervals to what η ≥ ‖K−ZZᵀ‖₂ allows for M = ZZᵀ+λ_pI,
//
//	1/max(1, (λ_p+η)/λ) ≤ λ_min(M⁻¹A),  λ_max(M⁻¹A) ≤ max(1, (λ+η)/λ_p),
//
// as M ≼ K+(λ_p+η)I and A ≼ ZZᵀ+(λ+η)I; not where K is known too badly for η either.
func (r *Row) Cut(lambda, eta float64) {
	if r.Why != "" {
		return
	}
	r.Min.Lo = min(r.Min.Hi, max(r.Min.Lo, 1/max(1, (r.LambdaP+eta)/lambda)))
	r.Max.Hi = max(r.Max.Lo, min(r.Max.Hi, max(1, (lambda+eta)/r.LambdaP)))
	r.Kappa.Hi = max(r.Kappa.Lo, r.Max.Hi/r.Min.Lo)
}

// spectrum takes a spectrum of n eigenvalues by nodes and weights, nil for all alike.
func (r *Row) spectrum(n int, nodes, weights []float64) {
	r.Nodes, r.Weights = nodes, weights
	var trace, logs float64
	for i, v := range nodes {
		trace += r.Share(i) * v
		logs += r.Share(i) * math.Log(v)
	}
	r.Trace, r.LogDet = stage.Number(trace), stage.Number(float64(n)*logs)
	r.Kaporin = stage.Number(float64(n) * (math.Log(trace) - logs))
}

// Share returns that of all eigenvalues which Nodes[i] stands for, 0 where it is unknown.
func (r *Row) Share(i int) float64 {
	switch {
	case r.Weights != nil:
		return r.Weights[i]
	case r.Exact != nil:
		return 1 / float64(len(r.Nodes))
	}
	return 0
}

// Text says in a few words how M did to a residual of to, in so many seconds.
func (r *Row) Text(to, seconds float64) string {
	if r.Why != "" {
		return "left out: " + r.Why
	}
	text := "iterations unknown"
	switch {
	case r.Iterations != nil && r.Status == pcg.Converged:
		text = fmt.Sprintf("%s to %.0e", plural.Count(*r.Iterations, "iteration"), to)
	case r.Iterations != nil:
		text = fmt.Sprintf("%v after %s", r.Status, plural.Count(*r.Iterations, "iteration"))
		if n := len(r.Reached); n > 0 {
			text += fmt.Sprintf(" (%d to %.0e)", r.Reached[n-1], Levels[n-1])
		}
	case r.Predicted > 0:
		text = plural.Count(r.Predicted, "iteration") + " predicted"
	}
	if seconds > 0 {
		text += fmt.Sprintf(", %.3g s", seconds)
	}
	if r.Build > 0 {
		text += fmt.Sprintf(", M %.3g s", r.Build)
	}
	if r.Bytes > 0 {
		text += " and " + accel.Bytes(r.Bytes)
	}
	text += "; κ " + stage.Bounds(r.Kappa)
	if r.Exact != nil {
		return text + ", by all eigenvalues " + stage.Range(*r.Exact, 6, "")
	}
	if math.IsInf(r.Kappa.Hi, 1) && r.Steps > 0 {
		text += fmt.Sprintf(" within %d steps (--steps)", r.Steps)
	}
	return text
}

// Evidence adds lines with the narrowest intervals of ln det(K+λI) and of the likelihood, if there are any: the
// estimated ones, and those that are proved.
func Evidence(b *stage.Lines, rows ...*Row) {
	name := "ln det(K+λI)"
	add := func(write func(estimate.Interval) string, how string,
		of func(r *Row) (det, likelihood *estimate.Interval)) {
		text, width := "", math.Inf(1)
		for _, r := range rows {
			if det, likelihood := of(r); det != nil && det.Hi-det.Lo < width {
				width, text = det.Hi-det.Lo, write(*det)
				if likelihood != nil {
					text += "; −2 ln p(y) = " + write(*likelihood)
				}
				text += ", " + how + " by " + r.Name
			}
		}
		if text != "" {
			b.Add(name, "%s", text)
			name = ""
		}
	}
	add(estimated, "estimated",
		func(r *Row) (_, _ *estimate.Interval) { return r.LogDetEstimate, r.LikelihoodEstimate })
	add(stage.Bounds, "proved", func(r *Row) (_, _ *estimate.Interval) { return r.LogDetA, r.Likelihood })
}

// estimated writes an interval with the digits that it settles.
func estimated(e estimate.Interval) string {
	half := max(e.Hi-e.Value, e.Value-e.Lo)
	return fmt.Sprintf("%.*f ± %s with %.3g %% (%s)", max(0, 1-int(math.Floor(math.Log10(half)))), e.Value,
		outward.Up(half, 2), 100*e.Confidence, e.Method)
}

// Table gives the numbers of rows that were iterated to a residual of to, seconds by which are those of each in all, 0
// if unknown. κ is the exact one where that is known.
func Table(title string, rows []*Row, to float64, seconds func(*Row) float64) *plots.Table {
	t := &plots.Table{Title: title,
		Columns: plots.Heads("preconditioner", "draw", "s", "λ_p %.4g", "iterations", "status")}
	levels := Levels
	for i, v := range Levels {
		if v < to*(1-1e-12) {
			levels = Levels[:i]
			break
		}
		t.Columns = append(t.Columns, plots.Column{Name: fmt.Sprintf("to %.0e", v)})
	}
	t.Columns = append(t.Columns, plots.Heads("κ, at least %.4g", "κ, at most %.4g", "κ %.4g",
		"κ, certainly at most %.4g", "λ_min, at least %.4g", "λ_max, at most %.4g", "predicted iterations %.4g",
		"tr/n %.4g", "ln det %.4g", "Kaporin %.4g", "M (s) %.4g", "M⁻¹R (s) %.4g", "in all (s) %.4g", "bytes", "note")...)
	for _, r := range rows {
		cells := []any{r.Name, r.Draw, r.S, nil, nil, nil}
		if r.LambdaP > 0 {
			cells[3] = r.LambdaP
		}
		if r.Iterations != nil {
			cells[4], cells[5] = *r.Iterations, r.Status
		}
		for l := range levels {
			var k any
			if l < len(r.Reached) {
				k = r.Reached[l]
			}
			cells = append(cells, k)
		}
		kappa := r.Kappa.Value
		if r.Exact != nil {
			kappa = r.Exact.Value
		}
		number := plots.Number
		for _, c := range []plots.Cell{plots.AtLeast(r.Kappa.Lo), plots.AtMost(r.Kappa.Hi), number(kappa),
			plots.AtMost(r.Certain), plots.AtLeast(r.Min.Lo), plots.AtMost(r.Max.Hi), number(float64(r.Predicted)),
			number(float64(r.Trace)), number(float64(r.LogDet)), number(float64(r.Kaporin)), number(r.Build),
			number(r.Solve), number(seconds(r)), number(float64(r.Bytes))} {
			if v, _ := c.Float(); v == 0 || math.IsNaN(v) || math.IsInf(v, 0) { // unknown
				c = plots.Blank()
			}
			cells = append(cells, c)
		}
		t.Add(append(cells, r.Why)...)
	}
	return t
}
