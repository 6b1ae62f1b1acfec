package solve

import (
	"cmp"
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// run is a solve under way.
type run struct {
	*System
	Matrices // the last ones made
	source   Source
	sol      *Solution
	saved    *checkpoints // nil without
	as       *gram.Choice // how K was kept when the state that is resumed was written; nil if none is
	r        *mat.Dense   // of which the true residuals are the norms
	stop     error        // of the Monitor that stopped the iteration
	known    []float64    // lower bounds of ‖c_j*‖_A, where an iteration begins with an answer
	bounds   bound.Watch
}

// Run solves t with the matrices of from, and fills sol, which says what is asked, with all that is known of the answer
// C, n×t, but for its model. C is nil beside an error if there is none; beside that of ctx or of the Monitor it may be
// what the solve had come to.
func Run(ctx context.Context, t *System, from Source, sol *Solution) (*mat.Dense, error) {
	s := &run{System: t, source: from, sol: sol}
	sol.System = t
	solver := s.iterate
	if t.Solver == Direct {
		solver = s.direct
	}
	c, err := solver(ctx)
	if err == nil && s.stop == ErrLate {
		return nil, s.stop
	}
	if c == nil || err != nil && ctx.Err() == nil {
		return nil, err
	}
	switch {
	case err != nil:
		sol.Status = statusOf(ctx)
	case sol.Status == pcg.Stopped:
		err = s.stop
	}
	s.settleStatus()
	sol.finish()
	if e := s.certify(ctx, c); e != nil && err == nil && ctx.Err() == nil {
		return nil, e
	}
	return c, err
}

// statusOf returns the status of a solve that the end of ctx interrupts.
func statusOf(ctx context.Context) pcg.Status {
	if stage.Stopped(ctx) {
		return pcg.Stopped
	}
	return pcg.Canceled
}

// iterate solves by (block) PCG or CG, once for each preconditioner.
func (s *run) iterate(ctx context.Context) (*mat.Dense, error) {
	var err error
	if s.saved, s.as, err = openCheckpoints(ctx, s.System, s.sol); err != nil {
		return nil, err
	}
	defer s.saved.close()
	var answers []*mat.Dense
	short := pcg.MaxIterations // how one that did not converge ended, as far as is known
	for rep := range s.Repeat {
		c := s.saved.answer(rep)
		if c != nil && rep+1 < s.Repeat { // the last one's M and K are needed all the same
			answers = append(answers, c)
			continue
		}
		finished := *s.sol
		if err := s.source.Matrices(ctx, rep, s.as, s.sol, &s.Matrices); err != nil {
			return s.reached(ctx, answers, nil, &finished, err)
		}
		if c == nil {
			o := &pcg.Options{Tol: s.tol(), InitX: s.Start}
			if err := s.measureStart(ctx); err != nil {
				return s.reached(ctx, answers, nil, &finished, err)
			}
			s.saved.begin(s.sol, s.A.Choice(), rep, answers, o)
			if c, err = s.pcg(ctx, o, s.exactMatrix(), InFloat64); err != nil || s.sol.Status == pcg.Stopped {
				c, err = s.reached(ctx, answers, c, &finished, err)
				if err == nil && s.bounds.Ended {
					return s.ended(ctx, c)
				}
				return c, err
			}
			if !s.sol.Converged() {
				short = s.sol.Status
			}
		}
		answers = append(answers, c)
	}
	if s.saved.refining() {
		return s.refine(ctx, answers, answers[0])
	}
	c := answers[len(answers)-1]
	if len(answers) > 1 {
		median, err := s.median(ctx, answers, short)
		if err != nil {
			return c, err
		}
		c = median
	}
	if s.Exact(s.A) {
		return c, nil
	}
	rounding := s.sol.Converged() || s.sol.Status == pcg.Inaccurate || s.sol.Status == pcg.Stagnated
	if err = s.checkRows(ctx, c); err != nil || !rounding || s.within() {
		return c, err
	}
	return s.refine(ctx, answers, c)
}

// reached returns what there is when the run after those of the given answers is ended from outside at c,
// nil if it has not begun: c if it is the first, or else the median of the answers, or where err says that no
// time is left for it the last one, of which finished is what is known.
func (s *run) reached(ctx context.Context, answers []*mat.Dense, c *mat.Dense, finished *Solution,
	err error) (*mat.Dense, error) {
	if len(answers) > 0 {
		sol := s.sol
		if err == nil {
			c, err = s.median(ctx, answers, pcg.Stopped)
		}
		if err != nil {
			finished.Iterations, finished.History, finished.Seconds = sol.Iterations, sol.History, sol.Seconds
			*sol = *finished
			return answers[len(answers)-1], err
		}
		sol.Status = pcg.Stopped
	}
	if c == nil || err != nil || s.Exact(s.A) {
		return c, err
	}
	return c, s.checkRows(ctx, c)
}

// ended returns the answer c that the rule of Config.Stop ended by its recurrence, or, where its bounds do not meet the
// rule, what its residual leads to.
func (s *run) ended(ctx context.Context, c *mat.Dense) (*mat.Dense, error) {
	if err := s.certify(ctx, c); err != nil || s.sol.Reached() {
		return c, err
	}
	return s.refine(ctx, []*mat.Dense{c}, c)
}

// pcg runs (preconditioned, block) conjugate gradients on AC = Y from C = o.InitX, nil for 0. If
// finer is not nil the true residual is taken with it, and where K as stored is too
// coarse for the tolerance, the restarts of package pcg refine C by it.
func (s *run) pcg(ctx context.Context, o *pcg.Options, finer *gram.Matrix, kind string) (*mat.Dense, error) {
	sol := s.sol
	if err := s.beginBounds(ctx, o); err != nil {
		return nil, err
	}
	s.aim(o, s.A, finer)
	o.MaxIter, o.Monitor = s.MaxIter, s.watch(ctx, sol.Iterations, s.bounds.Enough)
	if sol.ResidualKind = AsStored; finer != nil {
		sol.ResidualKind = kind
	}
	start, count := time.Now(), s.sol.Ranks.counting(&s.Matrices)
	run := pcg.Solve
	if s.Solver == BlockPCG {
		run = pcg.SolveBlock
	}
	res, err := run(ctx, s.A, s.M, s.Y, o)
	if res == nil || res.Status == pcg.Failed {
		return nil, err
	}
	if res.Status == pcg.Stopped {
		s.stop, err = err, ctx.Err()
	}
	count(res)
	s.r = res.R
	sol.takeOn(res, s.bounds.Basis.History(res), time.Since(start).Seconds())
	if err != nil || res.Status == pcg.Stopped && math.IsNaN(res.MaxTrueRelRes()) {
		sol.TrueResiduals, sol.Roundings, sol.ResidualKind = nil, nil, ByRecurrence
	}
	if err != nil && sol.Iterations == 0 {
		return nil, err
	}
	return res.X, err
}

// median picks the answer of least median A-norm distance to the others, column by
// column, and recomputes its residual. short is the status if that is not within τ.
func (s *run) median(ctx context.Context, answers []*mat.Dense, short pcg.Status) (*mat.Dense, error) {
	s.sol.Result = nil // the answer is of several
	c, err := pcg.MedianByNorm(ctx, s.A, answers)
	if err != nil {
		return nil, err
	}
	check := cmp.Or(s.exactMatrix(), s.A)
	if err := s.residual(ctx, check, c); err != nil {
		return nil, err
	}
	s.sol.Status = pcg.Converged
	for j, v := range s.sol.TrueResiduals {
		if s.sol.Roundings != nil {
			v += s.sol.Roundings[j]
		}
		if !(v <= s.Tol) {
			s.sol.Status = short
		}
	}
	return c, nil
}
