package pcg

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
)

// Solve solves AX = B, where A is n×n and B is n×t, by conjugate gradients. They are preconditioned with M, or
// unpreconditioned if m is nil. See the package documentation for the method, the stopping test and the meaning of the
// true residual. Each iteration takes one product with A and one solve with M. The true residual takes one additional
// product. Memory: 4nt numbers.
//
// Failure to converge is reported by the Status of the result, not by an error. Solve returns an error, and a nil
// Result, if B or o.InitX has entries that are not finite, or if the largest entry of a column of B is neither 0 nor
// between 1e-100 and 1e100. In three other cases it returns an error and a Result with the current iterate: if the
// context ends (with the context's error), if o.Monitor returns an error other than ErrStop (with that error), or if an
// operator returns an error. Solve panics if shapes do not match or an option is negative. B, o and o.InitX are not
// changed.
func Solve(ctx context.Context, a Operator, m Preconditioner, b *mat.Dense, o *Options) (*Result, error) {
	s, err := newSolver(a, m, b, o)
	if err != nil {
		return nil, err
	}
	rows := s.initialHistoryRows()
	s.alphas, s.betas = newTable(s.t, rows), newTable(s.t, rows)
	s.bounds = newBounds(s.opt.LambdaMin, s.t, s.t, rows)
	s.method = s
	return s.run(ctx)
}

// run starts, iterates, verifies, restarts and finishes a solve.
func (s *solver) run(ctx context.Context) (*Result, error) {
	startTime := time.Now()
	var err error
	if s.opt.Resume != nil {
		if err := s.restore(); err != nil {
			return nil, err
		}
	} else {
		err = s.start(ctx)
	}
	for err == nil {
		if err = s.iterate(ctx); err == nil {
			err = s.verify(ctx)
		}
		if err != nil || !s.restart() {
			break
		}
	}
	res, err := s.finish(ctx, err)
	res.Stats.Seconds = time.Since(startTime).Seconds()
	return res, err
}

// method is the part of an iteration in which Solve and SolveBlock differ: the directions P and the step along them.
// The method of Solve is the solver itself, and that of SolveBlock is a block.
type method interface {
	// firstDirections sets P from the residuals R, and starts the error bounds.
	firstDirections(ctx context.Context) error
	// step updates X and R, given W = AP, and the statuses and error bounds of the columns.
	step()
	// nextDirections sets the P of the next iteration, and advances the error bounds.
	nextDirections(ctx context.Context) error
}

// iterate processes the columns s.cols, whose residuals are in R, until all have ended or the maximum number of
// iterations is reached.
func (s *solver) iterate(ctx context.Context) error {
	if len(s.cols) == 0 {
		return nil
	}
	if !s.resumed {
		s.startSmoothing()
		if err := s.method.firstDirections(ctx); err != nil {
			return err
		}
		s.smooth.bounds = append(s.smooth.bounds[:0], s.bounds.history.lastRow()...)
	}
	s.resumed = false
	for s.isActive() {
		if err := s.multiply(ctx); err != nil { // W = AP
			return err
		}
		s.startIteration()
		s.method.step()
		if err := s.callMonitor(); err != nil {
			return err
		}
		s.removeEnded()
		if !s.isActive() || s.res.Iterations == s.opt.MaxIter {
			return nil
		}
		if err := s.method.nextDirections(ctx); err != nil {
			return err
		}
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isActive reports whether columns are still iterating. In a block they end together, or are removed from s.cols.
func (s *solver) isActive() bool {
	return len(s.cols) > 0 && s.res.Columns[s.cols[0]].Status == Active
}

// firstDirections implements method for Solve. Blocks contain only the active columns, and vectors only their entries:
// position j stands for column s.cols[j].
func (s *solver) firstDirections(ctx context.Context) error {
	if err := s.precondition(ctx); err != nil { // z_j = M⁻¹r_j
		return err
	}
	s.dots(s.rho, s.r, s.z) // ρ_j = r_jᵀz_j
	s.checkRho(s.rho)
	s.p.Copy(s.z) // p_j = z_j
	s.startErrorBounds()
	return nil
}

// step implements method for Solve. It sets rSquares, xSquares and stepSquares to ‖r_j‖₂², ‖x_j‖₂² and
// ‖α_jp_j‖₂².
func (s *solver) step() {
	s.dots(s.pAp, s.p, s.w)      // π_j = p_jᵀAp_j
	s.stepLengths()              // α_j = ρ_j / π_j
	s.runStep((*stepRows)(s), 0) // x_j ← x_j + α_jp_j,  r_j ← r_j − α_jw_j
	s.updateErrorBounds()
	s.smoothStep()
	s.checkConvergence() // ‖r_j‖₂ ≤ τ‖y_j‖₂: column j has converged
}

// nextDirections implements method for Solve.
func (s *solver) nextDirections(ctx context.Context) error {
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
	s.advanceGamma()
	s.updateDirections() // p_j ← z_j + β_jp_j
	return nil
}

// stepLengths sets α_j = ρ_j/π_j. If π_j = p_jᵀAp_j shows that A is not positive definite, the column ends with
// α_j = 0, so its x_j is unchanged.
func (s *solver) stepLengths() {
	s.alphaRow, s.betaRow = s.alphas.addRow(), s.betas.addRow()
	for j, c := range s.cols {
		s.alpha[j] = 0
		switch curvature := s.pAp[j]; {
		case !finite(curvature):
			s.endColumn(c, Breakdown, curvatureA, curvature)
		case curvature <= 0:
			s.endColumn(c, Indefinite, curvatureA, curvature)
		case !finite(s.rho[j] / curvature):
			s.endColumn(c, Breakdown, "rᵀM⁻¹r/pᵀAp", s.rho[j]/curvature)
		default:
			s.alpha[j] = s.rho[j] / curvature // α_j = ρ_j / π_j
		}
		s.alphaRow[c] = s.alpha[j]
	}
}

// runStep runs a task, with scratch memory of t numbers per row, and sets rSquares, xSquares and stepSquares of the
// active columns to its sums.
func (s *solver) runStep(task rowTask, t int) {
	active := len(s.cols)
	sums := s.stepSums[:3*active]
	s.sweep.run(sums, s.n, t, task)
	s.rSquares, s.xSquares, s.stepSquares = sums[:active], sums[active:2*active], sums[2*active:]
}

// stepRows is a solver as the rowTask of step. rows updates rows i0 to i1−1 of X and R, and adds the squares of these
// rows of R, X and the steps α_jp_j to sum, which holds rSquares, xSquares and stepSquares one after the other.
type stepRows solver

// rows implements rowTask.
func (s *stepRows) rows(i0, i1 int, sum, _ []float64) {
	k, t := len(s.cols), s.t
	x, r, p, w := s.x.RawMatrix().Data, s.r.RawMatrix().Data, s.p.RawMatrix().Data, s.w.RawMatrix().Data
	rSquares, xSquares, stepSquares := sum[:k], sum[k:2*k], sum[2*k:]
	for i := i0; i < i1; i++ {
		xRow, rRow, pRow, wRow := x[i*t:(i+1)*t], r[i*k:(i+1)*k], p[i*k:(i+1)*k], w[i*k:(i+1)*k]
		for j, c := range s.cols {
			alpha := s.alpha[j]
			if alpha == 0 { // the column has ended: p_j or w_j may hold NaN
				continue
			}
			step := alpha * pRow[j]
			xRow[c] += step            // x_j ← x_j + α_jp_j
			rRow[j] -= alpha * wRow[j] // r_j ← r_j − α_jAp_j
			rSquares[j] += rRow[j] * rRow[j]
			xSquares[j] += xRow[c] * xRow[c]
			stepSquares[j] += step * step
		}
	}
}

// checkConvergence ends the columns that have converged or stagnated.
func (s *solver) checkConvergence() {
	for j, c := range s.cols {
		if s.res.Columns[c].Status != Active {
			continue
		}
		relRes := math.Sqrt(s.rSquares[j]) / s.yNorm[c]
		if !finite(relRes) {
			s.endColumn(c, Breakdown, relativeResidual, relRes)
			continue
		}
		if !finite(s.xSquares[j]) {
			s.endColumn(c, Breakdown, "‖x‖₂²", s.xSquares[j])
			continue
		}
		s.res.RelRes[c], s.xNorm[c] = relRes, math.Sqrt(s.xSquares[j])
		if math.Sqrt(s.stepSquares[j]) <= unitRoundoff*s.xNorm[c] {
			s.stagnantSteps[c]++
		} else {
			s.stagnantSteps[c] = 0
		}
		switch {
		case relRes <= s.target[c]: // ‖r_j‖₂ ≤ τ‖y_j‖₂
			s.res.Columns[c].Status = Converged
		case s.stagnantSteps[c] >= maxStagnantSteps:
			s.res.Columns[c].Status = Stagnated
		}
	}
}

// checkRho ends the columns whose ρ_j = r_jᵀM⁻¹r_j shows that M is not positive definite, or that M⁻¹r_j is not
// finite.
func (s *solver) checkRho(rho []float64) {
	for j, c := range s.cols {
		switch curvature := rho[j]; {
		case !finite(curvature):
			s.endColumn(c, Breakdown, curvatureM, curvature)
		case curvature <= 0:
			s.endColumn(c, IndefinitePreconditioner, curvatureM, curvature)
		}
	}
	s.removeEnded()
}

// These constants are the values of Column.Quantity.
const (
	curvatureA       = "pᵀAp"
	curvatureM       = "rᵀM⁻¹r"
	relativeResidual = "‖r‖₂/‖y‖₂"
)

// endColumn ends column c with the given status, and records the quantity and the value that caused the end.
func (s *solver) endColumn(c int, status Status, quantity string, value float64) {
	column := &s.res.Columns[c]
	column.Status, column.Quantity, column.Value = status, quantity, value
}

// finite reports whether v is neither infinite nor NaN.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
