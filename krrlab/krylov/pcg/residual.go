package pcg

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// residual sets R = B − a·X, n×t, and rel_j = ‖r_j‖₂/‖y_j‖₂, 0 for y_j = 0.
func (s *solver) residual(ctx context.Context, a Operator, op *Op, rel []float64) error {
	s.resize(s.t)
	err := s.timed(ctx, op, "the product for the residual", func() error { return a.MulTo(ctx, s.w, s.x) })
	if err != nil {
		return err
	}
	s.r.Sub(s.b, s.w)
	s.dots(s.rr, s.r, s.r)
	for c, y := range s.ynorm {
		rel[c] = 0
		if y > 0 {
			rel[c] = math.Sqrt(s.rr[c]) / y
		}
	}
	return nil
}

// residualRounding bounds the error of the ‖y−Ax‖₂/‖y‖₂ computed, rel, given ‖y‖₂: the product's, and what the
// difference and the norms add, (2n+8)·2⁻⁵³ of the value itself; 0 where y = 0, nil where A knows none.
func residualRounding(a Operator, x *mat.Dense, norms, rel []float64) (rounding []float64) {
	if b, ok := a.(Bounded); ok {
		rounding = b.Rounding(x)
	}
	n, _ := x.Dims()
	for j, v := range rounding {
		if rounding[j] = 0; norms[j] > 0 {
			rounding[j] = v/norms[j] + float64(2*n+8)*unit*rel[j]
		}
	}
	return rounding
}

// TrueResidual sets R = Y − AC, n×t, and returns ‖r_j‖₂/‖y_j‖₂ of every column, 0 where both are zero, with bounds of
// their rounding where A knows that of its products (Bounded), else nil.
func TrueResidual(ctx context.Context, r *mat.Dense, a Operator, y, c *mat.Dense) (rel, rounding []float64, err error) {
	if err := a.MulTo(ctx, r, c); err != nil {
		return nil, nil, err
	}
	r.Sub(y, r)
	_, t := r.Dims()
	rel, norms := make([]float64, t), make([]float64, t)
	for j := range rel {
		norms[j] = mat.Norm(y.ColView(j), 2)
		if v := mat.Norm(r.ColView(j), 2); v != 0 {
			rel[j] = v / norms[j]
		}
	}
	return rel, residualRounding(a, c, norms, rel), nil
}

// verify recomputes the residual from X and settles what the columns' statuses say
// about it.
func (s *solver) verify(ctx context.Context) error {
	for _, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.res.Columns[c].Status = MaxIterations
		}
	}
	s.keepResiduals(true)
	op := &s.res.Stats.MulTo
	if s.opt.Exact != nil {
		op = &s.res.Stats.Exact
	}
	if !slices.ContainsFunc(s.ynorm, func(y float64) bool { return y > 0 }) {
		clear(s.res.TrueRelRes) // B = 0
		s.bound()
		return nil
	}
	if err := s.residual(ctx, s.exact, op, s.res.TrueRelRes); err != nil {
		return err
	}
	s.bound()
	s.setGap()
	for c, rel := range s.res.TrueRelRes {
		col := &s.res.Columns[c]
		switch small := rel+s.rounding(c) <= s.opt.Tol; {
		case col.Status == Converged && !finite(rel):
			s.end(c, Breakdown, rel)
		case col.Status == Converged && !small:
			col.Status = Inaccurate
		case small && (col.Status == MaxIterations || col.Status == Stagnated):
			col.Status = Converged
		}
	}
	return nil
}

// bound sets Result.Rounding where Options.Exact knows it.
func (s *solver) bound() {
	s.res.Rounding = residualRounding(s.opt.Exact, s.x, s.ynorm, s.res.TrueRelRes)
}

// rounding returns the bound of column c, 0 where none is known.
func (s *solver) rounding(c int) float64 {
	if s.res.Rounding == nil {
		return 0
	}
	return s.res.Rounding[c]
}

// restart takes up the inaccurate columns again, from their true residual, and
// reports whether there are any. A restart that made a residual larger is taken back, unless the
// rounding is so much less that the column has converged.
func (s *solver) restart() bool {
	s.cols = s.cols[:0]
	over := len(s.res.History.Restarts) == maxRestarts || s.res.Iterations == s.opt.MaxIter
	for c, rel := range s.res.TrueRelRes {
		if s.before[c] > 0 && !(rel <= s.before[c]) && s.res.Columns[c].Status != Converged {
			s.takeBack(c)
		}
		if s.res.Columns[c].Status != Inaccurate || over || !s.helps(c, rel) {
			if s.res.Columns[c].Status == Inaccurate && s.target[c] > s.opt.Tol && s.res.Iterations == s.opt.MaxIter {
				s.res.Columns[c].Status = MaxIterations // on the way
			}
			continue
		}
		s.cols = append(s.cols, c)
		s.res.Columns[c].Status = Active
		s.keepColumn(c)
		s.target[c] = s.aim(s.goal(c, rel), rel)
		s.before[c], s.still[c] = rel, 0
	}
	if len(s.cols) == 0 {
		return false
	}
	s.res.History.Restarts = append(s.res.History.Restarts, s.res.Iterations)
	s.take()
	return true
}

// near reports whether a true residual misses the tolerance by little, so that a smaller target makes up for it.
func (s *solver) near(rel float64) bool { return rel <= 2*s.opt.Tol }

// helps reports whether another restart of column c, of true residual rel, may do: near the tolerance as long as
// there is a smaller target, and else, where products with A are what keeps it from its target, if the last
// restart halved its true residual at least.
func (s *solver) helps(c int, rel float64) bool {
	switch {
	case s.before[c] == givenUp:
		return false
	case rel <= s.opt.Tol && s.rounding(c) >= s.opt.Tol: // nothing proves it
		return false
	case s.near(rel):
		return s.goal(c, rel) < s.target[c]
	}
	return s.before[c] == 0 || rel <= s.before[c]/2
}

// goal returns what column c, of true residual rel, is to come to next: the first of restartTarget below what it
// has aimed at, but far from the tolerance the same again.
func (s *solver) goal(c int, rel float64) float64 {
	goal := s.target[c]
	for _, share := range restartTarget {
		if goal = min(goal, share*s.opt.Tol); goal < s.target[c] || !s.near(rel) {
			break
		}
	}
	return goal
}

// aim returns the target of a column of relative residual rel that is to come to goal: no less than
// products with A can reach, unless that is near.
func (s *solver) aim(goal, rel float64) float64 {
	if reach := s.opt.Refine * rel; reach > 10*goal {
		return reach
	}
	return goal
}

// keepColumn keeps x_c, for takeBack.
func (s *solver) keepColumn(c int) {
	if s.kept == nil {
		s.kept = mat.NewDense(s.n, s.t, nil)
	}
	s.kept.SetCol(c, mat.Col(nil, c, s.x))
}

// takeBack sets x_c to what it was before its last restart, and restarts it no more.
func (s *solver) takeBack(c int) {
	s.x.SetCol(c, mat.Col(nil, c, s.kept))
	s.res.TrueRelRes[c], s.before[c] = s.before[c], givenUp
	if s.last != nil {
		s.res.Gap[c] = math.NaN()
	}
	s.bound()
}

// finish settles the result of a solve that ended with err.
func (s *solver) finish(ctx context.Context, err error) (*Result, error) {
	res := s.res
	switch {
	case err == nil:
	case s.stopped != nil:
		res.Status, err = Stopped, s.stopped
		if e := s.verify(ctx); e != nil {
			s.forgetResiduals()
		}
	case ctx.Err() != nil:
		res.Status = Canceled
		s.forgetResiduals()
	default:
		res.Status = Failed
		s.forgetResiduals()
	}
	for c := range res.Columns {
		col := &res.Columns[c]
		if col.Status == Active || err != nil && col.Status == MaxIterations {
			col.Status = res.Status // ended from outside
		}
		if res.Status < Canceled {
			res.Status = max(res.Status, col.Status)
		}
	}
	if errors.Is(err, ErrStop) {
		err = nil
	}
	if !math.IsNaN(res.MaxTrueRelRes()) && !slices.Contains(s.before, givenUp) {
		res.R = s.r
	}
	res.History.RelRes, res.History.Alpha, res.History.Beta = s.relres.rows(), s.alphas.rows(), s.betas.rows()
	res.History.Decrease, res.History.Error = s.decreases.rows(), s.bounds.all.rows()
	return res, err
}

// forgetResiduals marks true residuals as unknown, and what rests on them.
func (s *solver) forgetResiduals() {
	for c := range s.res.TrueRelRes {
		s.res.TrueRelRes[c] = math.NaN()
		if s.last != nil {
			s.res.Gap[c] = math.NaN()
		}
		if st := s.res.Columns[c].Status; (st == Converged || st == Inaccurate) && s.ynorm[c] > 0 {
			s.res.Columns[c].Status = Active
		}
	}
}
