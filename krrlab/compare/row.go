package compare

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// Levels are the relative residuals that iterations are counted to.
var Levels = []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}

// Row is what is known of one preconditioner of one draw.
type Row struct {
	Name    string     `json:"preconditioner"`
	Draw    int        `json:"draw"`     // 0, 1, …, Options.Seeds−1
	S       int        `json:"features"` // rank
	LambdaP float64    `json:"lambda_p"` // 0: it has none
	Why     string     `json:"why,omitempty"`
	Status  pcg.Status `json:"status"`
	Bytes   int64      `json:"bytes"`         // of M
	Build   float64    `json:"build_seconds"` // of making M, without K
	Solve   float64    `json:"solve_seconds"` // of M⁻¹R for all right-hand sides
	// flops of making M and of M⁻¹r, to the first order; 0 where they are not known
	BuildFlops float64 `json:"build_flops"`
	ApplyFlops float64 `json:"apply_flops"`

	Iterations int       `json:"iterations"`
	Reached    []int     `json:"iterations_to"`       // Levels[i], as far as they were met
	Residuals  []float64 `json:"residuals,omitempty"` // ‖r_k‖₂/‖b‖₂ by recurrence, k = 0, 1, …
	Bounds     []float64 `json:"bounds,omitempty"`    // of ‖x−x_k‖_A/‖b‖₂ from above, if known

	Ritz  [2]float64        `json:"ritz"`  // the least and the largest Ritz value of conjugate gradients
	Steps int               `json:"steps"` // of the Lanczos process, 0 for none
	Kappa estimate.Interval `json:"kappa"` // κ(M⁻¹A); from below only where M cannot draw
	Min   estimate.Interval `json:"lambda_min"`
	Max   estimate.Interval `json:"lambda_max"`
	// of the Lanczos process, ascending, and the share of M⁻¹A's eigenvalues that each stands for in its quadrature
	Nodes   []float64 `json:"nodes,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
	// estimated by the quadrature of one process: tr(M⁻¹A)/n, ln det(M⁻¹A), and Kaporin's number
	Trace   stage.Number `json:"trace_mean"`
	LogDet  stage.Number `json:"log_det"`
	Kaporin stage.Number `json:"kaporin"`
}

// nearly is what a step is counted by, for rounding, as in package pcg.
const nearly = 1 - 0x1p-20

// take takes what column j of a solve tells, where 0 < μ ≤ λ_min(M⁻¹A) and 0 < least ≤ λ_min(A), 0 if none is known,
// and ‖K_stored−K‖₂ ≤ eλ.
func (r *Row) take(res *pcg.Result, j int, mu, least, e float64) {
	col, h := res.Columns[j], &res.History
	rows := h.RelRes
	if len(h.Restarts) > 0 { // another Krylov space: what others need, not this column
		rows = rows[:h.Restarts[0]+1]
	}
	r.Iterations, r.Status, r.Why = min(col.Iterations, len(rows)-1), col.Status, ""
	if rows[len(rows)-1][j] <= res.Tol { // by recurrence: none is recomputed
		r.Status = pcg.Converged
	}
	if col.Status >= pcg.Stagnated && col.Status < pcg.Canceled {
		r.Why = "conjugate gradients end: " + col.Status.String()
	}
	r.Reached = []int{}
	gamma := 1 / mu
	for k, row := range rows[:r.Iterations+1] {
		r.Residuals = append(r.Residuals, row[j])
		for len(r.Reached) < len(Levels) && row[j] <= Levels[len(r.Reached)] {
			r.Reached = append(r.Reached, k)
		}
		if least == 0 {
			continue
		}
		most := row[j] / math.Sqrt(least) // ‖e‖_A ≤ ‖r‖₂/√λ_min(A)
		if k > 0 && mu > 0 {              // ‖e_k‖_A² ≤ (γ_{k−1}−α_{k−1})ρ_{k−1}, α_kρ_k = Decrease
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
	}
	if ritz := res.Ritz(j); len(ritz) > 0 {
		r.Ritz = [2]float64{ritz[0], ritz[len(ritz)-1]}
	}
	const how = "Ritz values of PCG: one-sided, in exact arithmetic"
	r.Kappa, r.Min, r.Max = lanczos.Known(
		estimate.Interval{Value: r.Ritz[0], Hi: r.Ritz[0], Confidence: 1, Method: how},
		estimate.Interval{Value: r.Ritz[1], Lo: r.Ritz[1], Hi: math.Inf(1), Confidence: 1, Method: how}).Allowing(e)
	r.Trace, r.LogDet, r.Kaporin = stage.Unknown, stage.Unknown, stage.Unknown
}

// bracket takes what a Lanczos process tells, where ‖K_stored−K‖₂ ≤ eλ.
func (r *Row) bracket(l *lanczos.Result, e float64) {
	r.Steps = l.Steps
	r.Kappa, r.Min, r.Max = l.Allowing(e)
	if l.Indefinite() {
		r.Why = "A as stored is indefinite"
		return
	}
	k := l.Steps
	t := mat.NewSymDense(k, nil)
	for i := range k {
		t.SetSym(i, i, l.Alpha[i])
		if i+1 < k {
			t.SetSym(i, i+1, l.Beta[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, true) {
		return
	}
	var v mat.Dense
	eigen.VectorsTo(&v)
	var trace, logs float64
	for i, theta := range eigen.Values(nil) {
		w := v.At(0, i) * v.At(0, i)
		r.Nodes, r.Weights = append(r.Nodes, theta), append(r.Weights, w)
		trace += w * theta
		logs += w * math.Log(theta)
	}
	n := float64(l.N)
	r.Trace, r.LogDet, r.Kaporin = stage.Number(trace), stage.Number(n*logs), stage.Number(n*(math.Log(trace)-logs))
}
