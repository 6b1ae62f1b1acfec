package pcg

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// computeResidual sets R = B − a·X, n×t, and rel_j = ‖r_j‖₂/‖y_j‖₂, with 0 for y_j = 0.
func (s *solver) computeResidual(ctx context.Context, a Operator, counter *OpStats, rel []float64) error {
	s.resize(s.t)
	err := s.timed(ctx, counter, "the product for the residual", func() error { return a.MulTo(ctx, s.w, s.x) })
	if err != nil {
		return err
	}
	s.r.Sub(s.b, s.w)
	squares := s.stepSums[:s.t] // ‖r_j‖₂²
	s.dots(squares, s.r, s.r)
	for c, yNorm := range s.yNorm {
		rel[c] = 0
		if yNorm > 0 {
			rel[c] = math.Sqrt(squares[c]) / yNorm
		}
	}
	return nil
}

// residualRounding bounds the error of the computed ‖y−Ax‖₂/‖y‖₂, rel, given norms, which has ‖y‖₂ of every column. The
// bound adds the rounding error of the product and (2n+8)·2⁻⁵³·rel for the difference and the norms. It is 0 for y = 0.
// The result is nil if A has no bound for its products.
func residualRounding(a Operator, x *mat.Dense, norms, rel []float64) (rounding []float64) {
	if bounded, ok := a.(Bounded); ok {
		rounding = bounded.Rounding(x)
	}
	n, _ := x.Dims()
	for j, bound := range rounding {
		if rounding[j] = 0; norms[j] > 0 {
			rounding[j] = bound/norms[j] + float64(2*n+8)*unitRoundoff*rel[j]
		}
	}
	return rounding
}

// TrueResidual sets R = Y − AC, n×t, and returns ‖r_j‖₂/‖y_j‖₂ of every column, with 0 if both norms are zero. It also
// returns bounds of their rounding errors if A is Bounded, and nil otherwise.
func TrueResidual(ctx context.Context, r *mat.Dense, a Operator, y, c *mat.Dense) (rel, rounding []float64, err error) {
	if err := a.MulTo(ctx, r, c); err != nil {
		return nil, nil, err
	}
	r.Sub(y, r)
	_, t := r.Dims()
	rel, norms := make([]float64, t), make([]float64, t)
	for j := range rel {
		norms[j] = mat.Norm(y.ColView(j), 2)
		if norm := mat.Norm(r.ColView(j), 2); norm != 0 {
			rel[j] = norm / norms[j]
		}
	}
	return rel, residualRounding(a, c, norms, rel), nil
}

// verify sets R to the true residual, and updates the statuses of the columns: Converged only if the true residual,
// with the bound of its rounding error if there is one, is at most Tol, and otherwise Inaccurate.
func (s *solver) verify(ctx context.Context) error {
	for _, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.res.Columns[c].Status = MaxIterations
		}
	}
	s.copySmoothed(s.x, s.cols)
	s.saveEndResiduals()
	counter := &s.res.Stats.MulTo
	if s.opt.Exact != nil {
		counter = &s.res.Stats.Exact
	}
	if !slices.ContainsFunc(s.yNorm, func(norm float64) bool { return norm > 0 }) {
		clear(s.res.TrueRelRes) // B = 0
		s.setRounding()
		return nil
	}
	if err := s.computeResidual(ctx, s.exact, counter, s.res.TrueRelRes); err != nil {
		return err
	}
	s.setRounding()
	s.setGap()
	for c, relRes := range s.res.TrueRelRes {
		column := &s.res.Columns[c]
		switch isWithinTol := relRes+s.roundingBound(c) <= s.opt.Tol; {
		case column.Status == Converged && !finite(relRes):
			s.endColumn(c, Breakdown, relativeResidual, relRes)
		case column.Status == Converged && !isWithinTol:
			column.Status = Inaccurate
		case isWithinTol && (column.Status == MaxIterations || column.Status == Stagnated):
			column.Status = Converged
		}
	}
	return nil
}

// setRounding sets Result.Rounding if Options.Exact is Bounded.
func (s *solver) setRounding() {
	s.res.Rounding = residualRounding(s.opt.Exact, s.x, s.yNorm, s.res.TrueRelRes)
}

// roundingBound returns the rounding error bound of the true residual of column c, or 0 if none is known.
func (s *solver) roundingBound(c int) float64 {
	if s.res.Rounding == nil {
		return 0
	}
	return s.res.Rounding[c]
}

// restart restarts the inaccurate columns from their true residuals, and reports whether there are any. It first undoes
// restarts that made a residual larger, except for columns that have converged because the rounding error bound
// decreased by more.
func (s *solver) restart() bool {
	s.cols = s.cols[:0]
	exhausted := len(s.res.History.Restarts) == maxRestarts || s.res.Iterations == s.opt.MaxIter
	for c, relRes := range s.res.TrueRelRes {
		if s.restartResidual[c] > 0 && !(relRes <= s.restartResidual[c]) && s.res.Columns[c].Status != Converged {
			s.undoRestart(c)
		}
		if s.res.Columns[c].Status != Inaccurate || exhausted || !s.restartHelps(c, relRes) {
			if s.res.Columns[c].Status == Inaccurate && s.target[c] > s.opt.Tol && s.res.Iterations == s.opt.MaxIter {
				s.res.Columns[c].Status = MaxIterations // the column was still refining
			}
			continue
		}
		s.cols = append(s.cols, c)
		s.res.Columns[c].Status = Active
		s.saveColumn(c)
		s.target[c] = s.reachableTarget(s.nextGoal(c, relRes), relRes)
		s.restartResidual[c], s.stagnantSteps[c] = relRes, 0
	}
	if len(s.cols) == 0 {
		return false
	}
	s.res.History.Restarts = append(s.res.History.Restarts, s.res.Iterations)
	s.packActive()
	return true
}

// nearTolerance reports whether a true residual misses the tolerance by so little that a smaller target can compensate.
func (s *solver) nearTolerance(rel float64) bool { return rel <= 2*s.opt.Tol }

// restartHelps reports whether another restart of column c, with true residual rel, can be useful. Near the tolerance
// it is useful as long as there is a smaller target. Otherwise, products with A limit the accuracy, and a restart is
// useful if the last restart at least halved the true residual.
func (s *solver) restartHelps(c int, rel float64) bool {
	switch {
	case s.restartResidual[c] == noMoreRestarts:
		return false
	case rel <= s.opt.Tol && s.roundingBound(c) >= s.opt.Tol: // no residual can prove convergence
		return false
	case s.nearTolerance(rel):
		return s.nextGoal(c, rel) < s.target[c]
	}
	return s.restartResidual[c] == 0 || rel <= s.restartResidual[c]/2
}

// nextGoal returns the next residual goal of column c, with true residual rel: the first of restartTargets below the
// current target. If rel is far from the tolerance, the goal stays the same.
func (s *solver) nextGoal(c int, rel float64) float64 {
	goal := s.target[c]
	for _, fraction := range restartTargets {
		if goal = min(goal, fraction*s.opt.Tol); goal < s.target[c] || !s.nearTolerance(rel) {
			break
		}
	}
	return goal
}

// reachableTarget returns the target of a column with relative residual rel: the goal, or the residual that products
// with A can reach if that is more than ten times the goal.
func (s *solver) reachableTarget(goal, rel float64) float64 {
	if reachable := s.opt.ReachableReduction * rel; reachable > 10*goal {
		return reachable
	}
	return goal
}

// saveColumn saves x_c for undoRestart.
func (s *solver) saveColumn(c int) {
	if s.xAtRestart == nil {
		s.xAtRestart = mat.NewDense(s.n, s.t, nil)
	}
	s.xAtRestart.SetCol(c, mat.Col(nil, c, s.x))
}

// undoRestart sets x_c to its value before the last restart, and prevents further restarts of the column.
func (s *solver) undoRestart(c int) {
	s.x.SetCol(c, mat.Col(nil, c, s.xAtRestart))
	s.res.TrueRelRes[c], s.restartResidual[c] = s.restartResidual[c], noMoreRestarts
	if s.endResiduals != nil {
		s.res.Gap[c] = math.NaN()
	}
	s.setRounding()
}

// finish completes the result of a solve that ended with err.
func (s *solver) finish(ctx context.Context, err error) (*Result, error) {
	res := s.res
	if err != nil && s.monitorErr == nil { // after an error of the monitor, verify copies them
		s.copySmoothed(s.x, s.cols)
	}
	switch {
	case err == nil:
	case s.monitorErr != nil:
		res.Status, err = Stopped, s.monitorErr
		if verifyErr := s.verify(ctx); verifyErr != nil {
			s.invalidateResiduals()
		}
	case ctx.Err() != nil:
		res.Status = Canceled
		s.invalidateResiduals()
	default:
		res.Status = Failed
		s.invalidateResiduals()
	}
	for c := range res.Columns {
		column := &res.Columns[c]
		if column.Status == Active || err != nil && column.Status == MaxIterations {
			column.Status = res.Status // the solve was ended by the context, the monitor or an error
		}
		if res.Status < Canceled {
			res.Status = max(res.Status, column.Status)
		}
	}
	if errors.Is(err, ErrStop) {
		err = nil
	}
	if !math.IsNaN(res.MaxTrueRelRes()) && !slices.Contains(s.restartResidual, noMoreRestarts) {
		res.R = s.r
	}
	res.History.RelRes, res.History.Alpha, res.History.Beta = s.relRes.rows(), s.alphas.rows(), s.betas.rows()
	res.History.Decrease, res.History.ErrorBounds = s.decreases.rows(), s.bounds.history.rows()
	return res, err
}

// invalidateResiduals sets true residuals to NaN, and resets the statuses and gaps that depend on them.
func (s *solver) invalidateResiduals() {
	for c := range s.res.TrueRelRes {
		s.res.TrueRelRes[c] = math.NaN()
		if s.endResiduals != nil {
			s.res.Gap[c] = math.NaN()
		}
		if status := s.res.Columns[c].Status; (status == Converged || status == Inaccurate) && s.yNorm[c] > 0 {
			s.res.Columns[c].Status = Active
		}
	}
}
