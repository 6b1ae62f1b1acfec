package pencil

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// residualLevels are the relative residuals for which iterations are counted.
var residualLevels = []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}

// Row contains the results for one preconditioner of one draw.
type Row struct {
	Name    string  `json:"preconditioner"`
	Draw    int     `json:"draw"`        // number of the random draw, from 0
	S       int     `json:"s,omitempty"` // rank of ZZᵀ or FFᵀ
	LambdaP float64 `json:"lambda_p"`    // λ_p of M = ZZᵀ+λ_pI; 0 for other M
	// FailureReason says why there are no results for M; it is empty if M succeeded.
	FailureReason string `json:"why,omitempty"`
	Cost
	Iteration
	Spectrum
	Determinant

	energyBounds [2]float64 // lower and upper bound of yᵀ(K+λI)⁻¹y/‖y‖₂², with the stored K
}

// Cost has the bytes, seconds and operations of M.
type Cost struct {
	Bytes int64   `json:"bytes"`         // size of M in bytes
	Build float64 `json:"build_seconds"` // time to construct M, without K
	Solve float64 `json:"solve_seconds"` // time of M⁻¹R for all right-hand sides
	// BuildFlops and ApplyFlops are the operations of constructing M and of M⁻¹r, to first order; 0 if not known.
	BuildFlops float64 `json:"build_flops"`
	ApplyFlops float64 `json:"apply_flops"`
}

// Iteration is the course of conjugate gradients with M, as measured and as predicted.
type Iteration struct {
	// Iterations is the number of iterations of conjugate gradients, the maximum over all columns. It is nil if
	// conjugate gradients did not run or did not end.
	Iterations  *int       `json:"iterations"`
	Status      pcg.Status `json:"status"`              // the most severe status of the columns
	Reached     []int      `json:"iterations_to"`       // iterations until the residual reached residualLevels[i]
	Residuals   []float64  `json:"residuals,omitempty"` // largest recursive ‖r_k‖₂/‖b‖₂ after k iterations
	ErrorBounds []float64  `json:"bounds,omitempty"`    // upper bounds of ‖x−x_k‖_A/‖b‖₂ of a single column
	Ritz        [2]float64 `json:"ritz"`                // smallest and largest Ritz value of conjugate gradients
	// Predicted is the predicted number of iterations to τ for a random right-hand side (lanczos.RitzIterations).
	// IterationBound is ⌈(√κ/2)ln(2/τ)⌉ for the upper end of Kappa, the number of iterations to an A-norm error of τ.
	// Both are 0 if unknown.
	Predicted      int `json:"iterations_predicted"`
	IterationBound int `json:"iterations_bound"`
}

// Spectrum has the intervals and nodes of the eigenvalues of M⁻¹A.
type Spectrum struct {
	// Kappa, Min and Max are the intervals of κ(M⁻¹A), λ_min and λ_max for the exact K. They include the predicted
	// storage error of K; the confidence does not cover the prediction itself. The failure probability of Kappa is
	// split between its two ends. If M cannot draw vectors of covariance M, the intervals are one-sided and follow from
	// Ritz values, which lie inside the spectrum in exact arithmetic; rounding errors are not bounded.
	Kappa        estimate.Interval `json:"kappa"`
	Min          estimate.Interval `json:"lambda_min"`
	Max          estimate.Interval `json:"lambda_max"`
	Steps        int               `json:"steps"`         // steps of the Lanczos process, 0 if there was none
	WidthReached bool              `json:"width_reached"` // the interval of κ became as narrow as requested
	// Alpha and Beta are the tridiagonal matrix of the Lanczos process, and Slack bounds the error of inaccurate
	// products.
	Alpha []float64 `json:"alpha,omitempty"`
	Beta  []float64 `json:"beta,omitempty"`
	Slack float64   `json:"slack,omitempty"`
	// Indefinite reports that K+λI with the stored K has a negative eigenvalue. This proves ‖K_stored−K‖₂ > λ, contrary
	// to any prediction, so κ is unknown.
	Indefinite bool `json:"stored_indefinite,omitempty"`
	// APriori is an a-priori bound, valid for every spectrum with the confidence of one end, for the error of λ_max
	// relative to λ_max, and of λ_min relative to λ_max, after the same number of steps.
	APriori stage.Number `json:"a_priori_error"`
	// Exact is κ from all eigenvalues, with its rounding error. It is nil if they were not computed. NotDefinite
	// reports that they could not be computed because the computed M⁻¹ is not positive definite in float64.
	Exact       *estimate.Interval `json:"kappa_exact"`
	NotDefinite bool               `json:"inverse_indefinite,omitempty"`
	// KappaUpperBound is a proved upper bound of κ, for preconditioners with landmarks. It covers the rounding errors
	// of K's columns, of the factorization and of F, and does not depend on the storage of K. KappaUpperBound is 0 for
	// other preconditioners and for user-defined kernels, and if these rounding errors exceed λ.
	KappaUpperBound float64 `json:"kappa_certain,omitempty"`
	// Nodes are all eigenvalues of M⁻¹A if Exact is known, and otherwise the Ritz values, ascending. Weights are the
	// quadrature weights of the Lanczos process: the fraction of all eigenvalues that each node represents.
	Nodes   []float64 `json:"nodes,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
}

// Determinant has numbers that combine all eigenvalues of M⁻¹A.
type Determinant struct {
	// Trace is tr(M⁻¹A)/n, LogDet is ln det(M⁻¹A), and Kaporin is the logarithm of Kaporin's condition number,
	// n·ln Trace − LogDet. All are computed from Nodes and Weights.
	Trace   stage.Number `json:"trace_mean"`
	LogDet  stage.Number `json:"log_det"`
	Kaporin stage.Number `json:"kaporin"`
	// LogDetA is ln det(K+λI). Likelihood is −2 ln p(y) = yᵀ(K+λI)⁻¹y + ln det(K+λI) + n·ln 2π for y ~ N(0, K+λI),
	// where y is the only right-hand side. With weights W, the likelihood is that of y ~ N(0, K+λW⁻¹), before K and y
	// are multiplied by W^½, which subtracts ln det W. Both are nil if M has no LogDet, or if ErrorBounds is empty.
	// These intervals are proved in the sense of lanczos.LogDet, and they include the storage error of K.
	LogDetA    *estimate.Interval `json:"log_det_a,omitempty"`
	Likelihood *estimate.Interval `json:"minus_2_log_likelihood,omitempty"`
	// LogDetEstimate and LikelihoodEstimate are Student's intervals of the same quantities, from at least two
	// processes.
	LogDetEstimate     *estimate.Interval `json:"log_det_a_estimate,omitempty"`
	LikelihoodEstimate *estimate.Interval `json:"minus_2_log_likelihood_estimate,omitempty"`
}

// NewRow returns a row without results.
func NewRow(name string) Row {
	unknown := estimate.Interval{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}
	r := Row{Name: name, Iteration: Iteration{Reached: []int{}},
		Spectrum: Spectrum{Kappa: unknown, Min: unknown, Max: unknown}}
	stage.SetUnknown(&r)
	return r
}

// decreaseFactor multiplies the step length α_{k−1} in the bound of boundErrors, to allow for rounding errors of α. A
// smaller factor makes the bound larger. Package pcg uses the same factor.
const decreaseFactor = 1 - 0x1p-20

// setSolve sets the results of row c from the t columns of a solve with M_c.
func (s *Set) setSolve(res *pcg.Result, c, t int) {
	row, history := s.Rows[c], &res.History
	rows := history.RelRes
	if len(history.Restarts) > 0 { // a restart starts a new Krylov space
		rows = rows[:history.Restarts[0]+1]
	}
	iterations, status, ritz := 0, pcg.Active, []float64(nil)
	for j := c * t; j < (c+1)*t; j++ {
		column := res.Columns[j]
		if (s.RecursiveResiduals || column.Status == pcg.Canceled) && rows[len(rows)-1][j] <= res.Tol {
			column.Status = pcg.Converged
		}
		iterations, status = max(iterations, column.Iterations), max(status, column.Status)
		if values := res.Ritz(j); len(values) > 0 &&
			(ritz == nil || values[len(values)-1]/values[0] > ritz[len(ritz)-1]/ritz[0]) {
			ritz = values
		}
	}
	if len(ritz) > 0 {
		row.Ritz = [2]float64{ritz[0], ritz[len(ritz)-1]}
	}
	if row.Steps == 0 {
		s.setRitzBounds(row)
		row.Nodes = ritz
	}
	for k := range min(iterations+1, len(rows)) {
		residual := slices.Max(rows[k][c*t : (c+1)*t])
		row.Residuals = append(row.Residuals, residual)
		for len(row.Reached) < len(residualLevels) && residual <= residualLevels[len(row.Reached)] {
			row.Reached = append(row.Reached, k)
		}
	}
	if t == 1 && s.LambdaMinA > 0 {
		row.boundErrors(history, c, s.lowerBound(c), s.LambdaMinA)
	}
	if row.Status = status; status >= pcg.Canceled {
		return
	}
	if row.Iterations = &iterations; row.FailureReason == NotReached {
		row.FailureReason = ""
	}
	if status >= pcg.Stagnated && row.FailureReason == "" {
		row.FailureReason = "conjugate gradients end: " + status.String()
	}
}

// boundErrors bounds the errors of column j, where 0 < minEigA ≤ λ_min(A), and 0 < mu ≤ λ_min(M⁻¹A) or mu = 0 if
// unknown. It uses the Gauss–Radau rule as package pcg does, with γ_0 = 1/μ (see the documentation of pcg). It also
// sets energyBounds.
func (r *Row) boundErrors(history *pcg.History, j int, mu, minEigA float64) {
	gamma, totalDecrease := 1/mu, 0.
	for k, residual := range r.Residuals {
		errorBound := residual / math.Sqrt(minEigA) // ‖e‖_A ≤ ‖r‖₂/√λ_min(A)
		if k > 0 {
			totalDecrease += history.Decrease[k-1][j]
		}
		if k > 0 && mu > 0 { // ‖e_k‖_A² ≤ (γ_{k−1}−α_{k−1})ρ_{k−1}, α_kρ_k = Decrease
			alpha := history.Alpha[k-1][j]
			remaining := gamma - decreaseFactor*alpha
			if alpha > 0 && remaining > 0 {
				errorBound = min(errorBound, math.Sqrt(remaining*history.Decrease[k-1][j]/alpha))
			}
			if gamma = remaining / (mu*remaining + history.Beta[k-1][j]); !(remaining > 0) {
				mu = 0 // mu is not a lower bound of the spectrum
			}
		}
		r.ErrorBounds = append(r.ErrorBounds, errorBound)
		// ‖x‖_A² = Σ_k α_kρ_k + ‖e_k‖_A², as x_0 = 0.
		r.energyBounds = [2]float64{totalDecrease, totalDecrease + errorBound*errorBound}
	}
}

// setRitzBounds sets one-sided intervals of κ, λ_min and λ_max from the Ritz values of conjugate gradients.
func (s *Set) setRitzBounds(r *Row) {
	const method = "Ritz values of PCG: one-sided, in exact arithmetic"
	smallest, largest := r.Ritz[0], r.Ritz[1]
	r.Kappa, r.Min, r.Max = lanczos.FromIntervals(
		estimate.Interval{Value: smallest, Hi: smallest, Confidence: 1, Method: method},
		estimate.Interval{Value: largest, Lo: largest, Hi: math.Inf(1), Confidence: 1, Method: method},
	).PerturbedIntervals(s.StorageError)
}

// setLanczos sets the results of row r from a Lanczos process.
func (s *Set) setLanczos(row *Row, result *lanczos.Result, tau float64) {
	row.Steps, row.WidthReached, row.Alpha, row.Beta, row.Slack, row.Indefinite = result.Steps, result.Converged,
		result.Alpha, result.Beta, result.Slack,
		result.Indefinite()
	row.Kappa, row.Min, row.Max = result.PerturbedIntervals(s.StorageError)
	row.APriori = stage.Number(lanczos.APrioriError(result.N, result.Steps, 1-result.Max.Confidence))
	if !math.IsInf(row.Kappa.Hi, 1) {
		row.IterationBound = pcg.IterationBound(row.Kappa.Hi, tau)
	}
	if iterations := lanczos.RitzIterations(result.Alpha, result.Beta, tau,
		row.Kappa.Value); iterations < math.MaxInt32 {
		row.Predicted = int(iterations)
	}
	if row.Indefinite {
		row.FailureReason = "A as stored is indefinite"
		return
	}
	if nodes, weights := lanczos.Quadrature(result.Alpha, result.Beta); nodes != nil {
		row.setSpectrum(result.N, nodes, weights)
	}
}

// ClipByEta narrows the intervals to the range that follows from η ≥ ‖K−ZZᵀ‖₂ for M = ZZᵀ+λ_pI,
//
//	1/max(1, (λ_p+η)/λ) ≤ λ_min(M⁻¹A),  λ_max(M⁻¹A) ≤ max(1, (λ+η)/λ_p),
//
// because M ≼ K+(λ_p+η)I and A ≼ ZZᵀ+(λ+η)I. It does nothing for rows that failed: K may then be too inaccurate for η.
func (r *Row) ClipByEta(lambda, eta float64) {
	if r.FailureReason != "" {
		return
	}
	r.Min.Lo = min(r.Min.Hi, max(r.Min.Lo, 1/max(1, (r.LambdaP+eta)/lambda)))
	r.Max.Hi = max(r.Max.Lo, min(r.Max.Hi, max(1, (lambda+eta)/r.LambdaP)))
	r.Kappa.Hi = max(r.Kappa.Lo, r.Max.Hi/r.Min.Lo)
}

// setSpectrum sets Nodes, Weights, Trace, LogDet and Kaporin for a spectrum of n eigenvalues. If the nodes are all
// eigenvalues, weights is nil, and r.Exact must be set already (NodeWeight).
func (r *Row) setSpectrum(n int, nodes, weights []float64) {
	r.Nodes, r.Weights = nodes, weights
	var mean, meanLog float64
	for i, node := range nodes {
		mean += r.NodeWeight(i) * node
		meanLog += r.NodeWeight(i) * math.Log(node)
	}
	r.Trace, r.LogDet = stage.Number(mean), stage.Number(float64(n)*meanLog)
	r.Kaporin = stage.Number(float64(n) * (math.Log(mean) - meanLog))
}

// NodeWeight returns the fraction of all eigenvalues that Nodes[i] represents, or 0 if it is unknown.
func (r *Row) NodeWeight(i int) float64 {
	switch {
	case r.Weights != nil:
		return r.Weights[i]
	case r.Exact != nil:
		return 1 / float64(len(r.Nodes))
	}
	return 0
}

// Text summarizes the results of M in one line, for iterations to the relative residual tol and a total time in
// seconds, which is omitted if it is 0.
func (r *Row) Text(tol, seconds float64) string {
	if r.FailureReason != "" {
		return "left out: " + r.FailureReason
	}
	text := "iterations unknown"
	switch {
	case r.Iterations != nil && r.Status == pcg.Converged:
		text = fmt.Sprintf("%s to %.0e", plural.Count(*r.Iterations, "iteration"), tol)
	case r.Iterations != nil:
		text = fmt.Sprintf("%v after %s", r.Status, plural.Count(*r.Iterations, "iteration"))
		if n := len(r.Reached); n > 0 {
			text += fmt.Sprintf(" (%d to %.0e)", r.Reached[n-1], residualLevels[n-1])
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
		text += " and " + accel.FormatBytes(r.Bytes)
	}
	text += "; κ " + stage.IntervalText(r.Kappa)
	if r.Exact != nil {
		return text + ", by all eigenvalues " + stage.EndsText(*r.Exact, 6)
	}
	if math.IsInf(r.Kappa.Hi, 1) && r.Steps > 0 {
		text += fmt.Sprintf(" within %d steps (--steps)", r.Steps)
	}
	return text
}

// AddLogDetLines adds lines with the narrowest intervals of ln det(K+λI) and of the likelihood, if there are any: first
// the estimated intervals, then the proved ones.
func AddLogDetLines(lines *stage.Lines, rows ...*Row) {
	name := "ln det(K+λI)"
	addNarrowest := func(write func(estimate.Interval) string, kind string,
		get func(row *Row) (logDet, likelihood *estimate.Interval)) {
		text, narrowest := "", math.Inf(1)
		for _, row := range rows {
			if logDet, likelihood := get(row); logDet != nil && logDet.Hi-logDet.Lo < narrowest {
				narrowest, text = logDet.Hi-logDet.Lo, write(*logDet)
				if likelihood != nil {
					text += "; −2 ln p(y) = " + write(*likelihood)
				}
				text += ", " + kind + " by " + row.Name
			}
		}
		if text != "" {
			lines.AddText(name, text)
			name = ""
		}
	}
	addNarrowest(formatEstimated, "estimated",
		func(row *Row) (_, _ *estimate.Interval) { return row.LogDetEstimate, row.LikelihoodEstimate })
	addNarrowest(stage.IntervalText, "proved",
		func(row *Row) (_, _ *estimate.Interval) { return row.LogDetA, row.Likelihood })
}

// formatEstimated formats an interval with as many digits as its width justifies: two digits of half the width, and at
// most maxDecimals decimals.
func formatEstimated(interval estimate.Interval) string {
	const maxDecimals = 17 // as many as distinguish all float64 numbers from 0.1 to 1
	halfWidth := max(interval.Hi-interval.Value, interval.Value-interval.Lo)
	decimals := 0
	switch {
	case halfWidth == 0:
		decimals = maxDecimals
	case halfWidth < 10: // false for NaN
		decimals = min(maxDecimals, 1-int(math.Floor(math.Log10(halfWidth))))
	}
	return fmt.Sprintf("%.*f ± %s with %.3g %% (%s)", decimals, interval.Value, outward.Up(halfWidth, 2),
		100*interval.Confidence, interval.Method)
}

// Table returns the results of rows that were iterated to the residual tol. The function seconds returns the total time
// of a row, or 0 if the time is unknown. The column κ contains the exact value if it is known.
func Table(title string, rows []*Row, tol float64, seconds func(*Row) float64) *plots.Table {
	t := &plots.Table{Title: title,
		Columns: plots.ParseColumns("preconditioner", "draw", "s", "λ_p %.4g", "iterations", "status")}
	levels := residualLevels
	for i, level := range residualLevels {
		if level < tol*(1-1e-12) {
			levels = residualLevels[:i]
			break
		}
		t.Columns = append(t.Columns, plots.Column{Name: fmt.Sprintf("to %.0e", level)})
	}
	t.Columns = append(t.Columns, plots.ParseColumns("κ, at least %.4g", "κ, at most %.4g", "κ %.4g",
		"κ, certainly at most %.4g", "λ_min, at least %.4g", "λ_max, at most %.4g", "predicted iterations %.4g",
		"tr/n %.4g", "ln det %.4g", "Kaporin %.4g", "M (s) %.4g", "M⁻¹R (s) %.4g", "in all (s) %.4g", "bytes",
		"note")...)
	for _, row := range rows {
		cells := []any{row.Name, row.Draw, row.S, nil, nil, nil}
		if row.LambdaP > 0 {
			cells[3] = row.LambdaP
		}
		if row.Iterations != nil {
			cells[4], cells[5] = *row.Iterations, row.Status
		}
		for i := range levels {
			var iterations any
			if i < len(row.Reached) {
				iterations = row.Reached[i]
			}
			cells = append(cells, iterations)
		}
		kappa := row.Kappa.Value
		if row.Exact != nil {
			kappa = row.Exact.Value
		}
		number := plots.Number
		for _, cell := range []plots.Cell{plots.AtLeast(row.Kappa.Lo), plots.AtMost(row.Kappa.Hi), number(kappa),
			plots.AtMost(row.KappaUpperBound), plots.AtLeast(row.Min.Lo), plots.AtMost(row.Max.Hi),
			number(float64(row.Predicted)),
			number(float64(row.Trace)), number(float64(row.LogDet)), number(float64(row.Kaporin)), number(row.Build),
			number(row.Solve), number(seconds(row)), number(float64(row.Bytes))} {
			// A number that is 0, NaN or infinite is unknown.
			if value, _ := cell.Float(); value == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
				cell = plots.Blank()
			}
			cells = append(cells, cell)
		}
		t.Add(append(cells, row.FailureReason)...)
	}
	return t
}
