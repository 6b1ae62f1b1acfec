package solve

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// run is a solve under way.
type run struct {
	*System
	Matrices // the last ones made
	source   Source
	sol      *Solution
	saved    *checkpoints // nil without
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

// iterate solves by (block) PCG or CG.
func (s *run) iterate(ctx context.Context) (c *mat.Dense, err error) {
	var as *gram.Choice
	if s.saved, as, err = openCheckpoints(ctx, s.System, s.sol); err != nil {
		return nil, err
	}
	defer s.saved.close()
	if s.Matrices, err = s.source(ctx, as, s.sol); err != nil {
		return nil, err
	}
	if c := s.saved.answer(); c != nil {
		return s.refine(ctx, c)
	}
	o := new(pcg.Options)
	finer, kind, tol, err := s.finer(ctx, false)
	if err != nil {
		return nil, err
	}
	o.Tol = tol
	s.saved.begin(s.sol, s.A.Choice(), nil, o)
	c, err = s.pcg(ctx, o, finer, kind)
	if c == nil || err != nil {
		return c, err
	}
	if !s.UsesExactResidual(s.A) {
		if err := s.checkRows(ctx, c); err != nil {
			return c, err
		}
	}
	switch {
	case s.sol.Status == pcg.Stopped && s.bounds.Ended: // by its recurrence
		if err := s.certify(ctx, c); err != nil || s.sol.Reached() {
			return c, err
		}
	case finer != nil || !s.refinable() || s.within(s.Tol):
		return c, nil
	}
	return s.refine(ctx, c)
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
	start := time.Now()
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
