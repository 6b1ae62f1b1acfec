package pcg

import (
	"context"
	"math"
	"slices"
)

// residual sets R = B − a·X, n×t, and rel_j = ‖r_j‖₂/‖y_j‖₂, 0 for y_j = 0.
func (s *solver) residual(ctx context.Context, a Operator, op *Op, rel []float64) error {
	s.resize(s.t)
	err := s.timed(ctx, op, "the product for the residual", func() error { return a.MulTo(ctx, s.w, s.x) })
	if err != nil {
		return err
	}
	subtract(s.r, s.b, s.w, s.scale)
	dots(s.rr, s.r, s.r, s.part[0])
	for c, y := range s.ynorm {
		rel[c] = 0
		if y > 0 {
			rel[c] = math.Sqrt(s.rr[c]) / y
		}
	}
	return nil
}

// verify recomputes the residual from X and settles what the columns' statuses say
// about it.
func (s *solver) verify(ctx context.Context) error {
	for _, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.res.Columns[c].Status = MaxIterations
		}
	}
	op := &s.res.Stats.MulTo
	if s.opt.Exact != nil {
		op = &s.res.Stats.Exact
	}
	if !slices.ContainsFunc(s.ynorm, func(y float64) bool { return y > 0 }) {
		clear(s.res.TrueRelRes) // B = 0
		return nil
	}
	if err := s.residual(ctx, s.exact, op, s.res.TrueRelRes); err != nil {
		return err
	}
	for c, rel := range s.res.TrueRelRes {
		col := &s.res.Columns[c]
		switch small := rel <= s.opt.Tol; {
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

// restart takes up the inaccurate columns again, from their true residual, and
// reports whether there are any. A column is restarted again if its last restart
// halved its true residual at least, or brought it below twice the tolerance.
func (s *solver) restart() bool {
	s.cols = s.cols[:0]
	if s.restarts == maxRestarts || s.res.Iterations == s.opt.MaxIter {
		return false
	}
	for c, rel := range s.res.TrueRelRes {
		if s.res.Columns[c].Status == Inaccurate && (s.before[c] == 0 || rel <= max(s.before[c]/2, 2*s.opt.Tol)) {
			s.cols = append(s.cols, c)
			s.res.Columns[c].Status = Active
			s.before[c], s.still[c] = rel, 0
			s.target[c] = restartTarget[s.restarts] * s.opt.Tol
		}
	}
	if len(s.cols) == 0 {
		return false
	}
	s.restarts++
	s.res.History.Restarts = append(s.res.History.Restarts, s.res.Iterations)
	s.take()
	return true
}

// finish settles the result of a solve that ended with err.
func (s *solver) finish(ctx context.Context, err error) (*Result, error) {
	res := s.res
	switch {
	case err == nil:
	case s.stopped != nil:
		res.Status, err = Stopped, s.stopped
		if e := s.verify(ctx); e != nil {
			s.spoil()
		}
	case ctx.Err() != nil:
		res.Status = Canceled
		s.spoil()
	default:
		res.Status = Failed
		s.spoil()
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
	s.scaleX(true)
	res.History.RelRes, res.History.Alpha, res.History.Beta = s.relres.rows, s.alphas.rows, s.betas.rows
	return res, err
}

// spoil marks true residuals as unknown, and what rests on them.
func (s *solver) spoil() {
	for c := range s.res.TrueRelRes {
		s.res.TrueRelRes[c] = math.NaN()
		if st := s.res.Columns[c].Status; (st == Converged || st == Inaccurate) && s.ynorm[c] > 0 {
			s.res.Columns[c].Status = Active
		}
	}
}

// scaleX multiplies x_j by 2^e, or back, and sets x_j = 0 for y_j = 0.
func (s *solver) scaleX(back bool) {
	raw := s.x.RawMatrix()
	for i := range s.n {
		row := raw.Data[i*raw.Stride : i*raw.Stride+s.t]
		for c := range row {
			switch {
			case s.ynorm[c] == 0:
				row[c] = 0
			case back:
				row[c] /= s.scale[c]
			default:
				row[c] *= s.scale[c]
			}
		}
	}
}
