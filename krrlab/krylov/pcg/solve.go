package pcg

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
)

// Solve solves AX = B, A n×n and B n×t, by conjugate gradients preconditioned with
// M, or plain ones if m is nil. See the package doc for the method, the stopping test
// and the meaning of the true residual. Work: one product with A and one solve with M
// an iteration, and one product more for the true residual. Memory: 4nt numbers.
//
// Not converging is a Status of the result. An error is returned if B or o.InitX has
// numbers that are not finite, or the largest of a column of B is not 0 and outside
// 1e-100 to 1e100 (with a nil Result), if the context ends (with its
// error), if o.Monitor returns one but ErrStop (that one), or if an operator does. In these last
// three cases the Result holds what was reached. Solve panics if shapes do not fit or
// an option is negative. B, o and o.InitX are not changed.
func Solve(ctx context.Context, a Operator, m Preconditioner, b *mat.Dense, o *Options) (*Result, error) {
	s, err := newSolver(a, m, b, o)
	if err != nil {
		return nil, err
	}
	rows := s.historyRows()
	s.alphas, s.betas = newTable(s.t, rows), newTable(s.t, rows)
	s.bounds = newBounds(s.opt.LambdaMin, s.t, s.t, rows)
	return s.run(ctx, s.iterate)
}

// run starts, iterates, verifies, restarts and finishes a solve. iterate takes the
// columns s.cols, whose residuals are in R, to their ends.
func (s *solver) run(ctx context.Context, iterate func(context.Context) error) (*Result, error) {
	began := time.Now()
	var err error
	if s.opt.Resume != nil {
		if err := s.restore(); err != nil {
			return nil, err
		}
	} else {
		err = s.start(ctx)
	}
	if err == nil {
		err = iterate(ctx)
	}
	for err == nil {
		if err = s.verify(ctx); err != nil || !s.restart() {
			break
		}
		err = iterate(ctx)
	}
	res, err := s.finish(ctx, err)
	res.Stats.Seconds = time.Since(began).Seconds()
	return res, err
}

// iterate runs the columns s.cols, whose residuals are in R, until all have ended
// or the iterations are used up. Blocks hold the active columns only, and vectors
// their numbers: position j stands for column s.cols[j].
func (s *solver) iterate(ctx context.Context) error {
	if len(s.cols) == 0 {
		return nil
	}
	if !s.resumed {
		if err := s.precondition(ctx); err != nil { // z_j = M⁻¹r_j
			return err
		}
		s.dots(s.rho, s.r, s.z) // ρ_j = r_jᵀz_j
		s.checkRho(s.rho)
		s.p.Copy(s.z) // p_j = z_j
		s.beginErrors()
	}
	s.resumed = false
	for len(s.cols) > 0 {
		if err := s.multiply(ctx); err != nil { // w_j = Ap_j
			return err
		}
		s.advance()
		s.dots(s.pAp, s.p, s.w) // π_j = p_jᵀAp_j
		s.stepLengths()         // α_j = ρ_j / π_j
		s.step()                // x_j ← x_j + α_jp_j,  r_j ← r_j − α_jw_j
		s.stepErrors()
		s.judge() // ‖r_j‖₂ ≤ τ‖y_j‖₂: column j has converged
		if err := s.report(); err != nil {
			return err
		}
		s.drop()
		if len(s.cols) == 0 || s.res.Iterations == s.opt.MaxIter {
			return nil
		}
		if err := s.precondition(ctx); err != nil { // z_j = M⁻¹r_j
			return err
		}
		s.dots(s.rhoNew, s.r, s.z) // ρ'_j = r_jᵀz_j
		s.checkRho(s.rhoNew)
		for j, c := range s.cols {
			s.beta[j] = s.rhoNew[j] / s.rho[j] // β_j = ρ'_j / ρ_j
			s.rho[j] = s.rhoNew[j]             // ρ_j ← ρ'_j
			s.betaRow[c] = s.beta[j]
		}
		s.turnErrors()
		s.turn() // p_j ← z_j + β_jp_j
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stepLengths sets α_j = ρ_j/π_j. A column whose π_j = p_jᵀAp_j shows that A is not
// positive definite ends with α_j = 0, that is, with the x_j it had.
func (s *solver) stepLengths() {
	s.alphaRow, s.betaRow = s.alphas.add(), s.betas.add()
	for j, c := range s.cols {
		col := &s.res.Columns[c]
		col.Iterations++
		s.alpha[j] = 0
		switch pi := s.pAp[j]; {
		case !finite(pi):
			s.end(c, Breakdown, pi)
		case pi <= 0:
			s.end(c, Indefinite, pi)
		case !finite(s.rho[j] / pi):
			s.end(c, Breakdown, pi)
		default:
			s.alpha[j] = s.rho[j] / pi // α_j = ρ_j / π_j
		}
		s.alphaRow[c] = s.alpha[j]
	}
}

// step moves x_j and r_j and sets rr_j = ‖r_j‖², xx_j = ‖x_j‖², dx_j = ‖α_jp_j‖².
func (s *solver) step() { s.move((*stepRows)(s), 0) }

// move runs a task whose sums are rr, xx and dx of the active columns, with scratch of t numbers a row.
func (s *solver) move(task rowTask, t int) {
	a := len(s.cols)
	sums := s.moved[:3*a]
	s.sweep.run(sums, s.n, t, task)
	for i, v := range [][]float64{s.rr, s.xx, s.dx} {
		clear(v)
		copy(v, sums[i*a:(i+1)*a])
	}
}

type stepRows solver

func (s *stepRows) rows(i0, i1 int, sum, _ []float64) {
	k, t := len(s.cols), s.t
	x, r, p, w := s.x.RawMatrix().Data, s.r.RawMatrix().Data, s.p.RawMatrix().Data, s.w.RawMatrix().Data
	rr, xx, dx := sum[:k], sum[k:2*k], sum[2*k:]
	for i := i0; i < i1; i++ {
		xi, ri, pi, wi := x[i*t:(i+1)*t], r[i*k:(i+1)*k], p[i*k:(i+1)*k], w[i*k:(i+1)*k]
		for j, c := range s.cols {
			a := s.alpha[j]
			if a == 0 { // the column has ended: p_j or w_j may hold NaN
				continue
			}
			d := a * pi[j]
			xi[c] += d         // x_j ← x_j + α_jp_j
			ri[j] -= a * wi[j] // r_j ← r_j − α_jAp_j
			rr[j] += ri[j] * ri[j]
			xx[j] += xi[c] * xi[c]
			dx[j] += d * d
		}
	}
}

// judge ends the columns that have converged or stagnate.
func (s *solver) judge() {
	for j, c := range s.cols {
		if s.res.Columns[c].Status != Active {
			continue
		}
		rel := math.Sqrt(s.rr[j]) / s.ynorm[c]
		if !finite(rel) || !finite(s.xx[j]) {
			s.end(c, Breakdown, s.pAp[j])
			continue
		}
		s.res.RelRes[c] = rel
		if math.Sqrt(s.dx[j]) <= unit*math.Sqrt(s.xx[j]) {
			s.still[c]++
		} else {
			s.still[c] = 0
		}
		switch {
		case rel <= s.target[c]: // ‖r_j‖₂ ≤ τ‖y_j‖₂
			s.res.Columns[c].Status = Converged
		case s.still[c] >= stagnantSteps:
			s.res.Columns[c].Status = Stagnated
		}
	}
}

// checkRho ends the columns whose ρ_j = r_jᵀM⁻¹r_j shows that M is not positive
// definite, or that M⁻¹r_j is not finite.
func (s *solver) checkRho(rho []float64) {
	for j, c := range s.cols {
		switch v := rho[j]; {
		case !finite(v):
			s.end(c, Breakdown, v)
		case v <= 0:
			s.end(c, IndefinitePreconditioner, v)
		}
	}
	s.drop()
}

// end ends column c with the curvature that did it.
func (s *solver) end(c int, status Status, curvature float64) {
	s.res.Columns[c].Status, s.res.Columns[c].Curvature = status, curvature
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
