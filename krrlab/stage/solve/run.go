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

// run is a solve in progress.
type run struct {
	*System
	Matrices      // K̃, M and their properties
	buildMatrices MatrixBuilder
	sol           *Solution
	checkpoints   *checkpoints  // nil if none are configured
	residuals     *mat.Dense    // residuals of the answer, whose norms are the true residuals; nil if unknown
	stopError     error         // error that stopped the iteration: of the Monitor, or ErrLate; nil for pcg.ErrStop
	solutionNorms []float64     // lower bounds of ‖c_j*‖_A for an iteration that starts with an answer; nil: unknown
	bounds        bound.Monitor // error bounds and stopping rule of the iteration
	refining      bool          // the iteration improves an answer of this solve
}

// Run solves the system t with the matrices that build makes. It returns the coefficients C, n×t, and sets the
// properties of the answer in sol, except for its model. The fields of sol that describe the request must be set.
//
// C is nil if there is no answer. If ctx ended or the Monitor stopped the iteration, Run may return the last iterate
// together with the error. A planned solve that takes too long returns ErrLate and no answer.
func Run(ctx context.Context, t *System, build MatrixBuilder, sol *Solution) (*mat.Dense, error) {
	s := &run{System: t, buildMatrices: build, sol: sol}
	sol.System = t
	solver := s.iterate
	switch t.Solver {
	case Direct:
		solver = s.direct
	case Fourier:
		solver = s.solveFourier
	}
	c, err := solver(ctx)
	if err == nil && s.stopError == ErrLate {
		return nil, s.stopError
	}
	if c == nil || err != nil && ctx.Err() == nil {
		return nil, err
	}
	switch {
	case err != nil:
		sol.Status = statusOf(ctx)
	case sol.Status == pcg.Stopped:
		err = s.stopError
	}
	s.correctStatus()
	sol.residuals = s.residuals
	sol.finish()
	if e := s.certify(ctx, c); e != nil && err == nil && ctx.Err() == nil {
		return nil, e
	}
	return c, err
}

// statusOf returns the status of a solve that ended because ctx did.
func statusOf(ctx context.Context) pcg.Status {
	if stage.StoppedByMonitor(ctx) {
		return pcg.Stopped
	}
	return pcg.Canceled
}

// iterate solves by conjugate gradients with or without a preconditioner, or by block conjugate gradients. It resumes
// from a checkpoint if there is one, and refines the answer if it misses the tolerance for K itself.
func (s *run) iterate(ctx context.Context) (c *mat.Dense, err error) {
	var saved *gram.Choice
	if s.checkpoints, saved, err = openCheckpoints(ctx, s.System, s.sol); err != nil {
		return nil, err
	}
	defer s.checkpoints.close()
	s.checkpoints.restore(s)
	if s.Matrices, err = s.buildMatrices(ctx, saved, s.sol); err != nil {
		return nil, err
	}
	if c := s.checkpoints.answer(); c != nil {
		return s.refine(ctx, c)
	}
	o := new(pcg.Options)
	if s.Start != nil && s.Stop.Rule != bound.ByANorm {
		o.InitX, s.solutionNorms = s.Start, make([]float64, s.columns()) // the lower bounds 0
		o.Smooth = s.checkpoints == nil
		if s.StartTrace > 0 && s.bounds.Noise == nil {
			s.bounds.Noise = &bound.Noise{Trace: s.StartTrace}
		}
	}
	exact, kind, tol, err := s.residualMatrix(ctx, false)
	if err != nil {
		return nil, err
	}
	o.Tol = tol
	s.checkpoints.configure(s.sol, s.A.Choice(), nil, o)
	c, err = s.pcg(ctx, o, exact, kind)
	if c == nil || err != nil {
		return c, err
	}
	if !s.UsesExactResidual(s.A) {
		if err := s.checkRows(ctx, c); err != nil {
			return c, err
		}
	}
	switch {
	case s.sol.Status == pcg.Stopped && s.bounds.Stopped: // the recursive residual met the stopping rule: certify that
		if err := s.certify(ctx, c); err != nil || s.sol.CriterionMet() {
			return c, err
		}
	case exact != nil || !s.finished() || s.rowsMeet(s.Tol):
		return c, nil
	}
	return s.refine(ctx, c)
}

// pcg runs (preconditioned, block) conjugate gradients on AC = Y from C = o.InitX, where nil means 0, and adds the
// result to the solution. If exact is not nil, the true residual is computed with it, and if K̃ is too inaccurate for
// the tolerance, the restarts of package pcg refine C. kind describes exact in the report. pcg returns nil if there is
// no iterate, and the last iterate together with the error if ctx ended.
func (s *run) pcg(ctx context.Context, o *pcg.Options, exact *gram.Matrix, kind string) (*mat.Dense, error) {
	sol := s.sol
	if err := s.startBounds(ctx, o); err != nil {
		return nil, err
	}
	s.setTolFraction(o, s.A, exact)
	o.MaxIter, o.Monitor = s.MaxIter, s.watch(ctx, sol.Iterations, s.bounds.Check, s.bounds.ExpectedTol)
	if sol.ResidualKind = ResidualInStored; exact != nil {
		sol.ResidualKind = kind
	}
	start := time.Now()
	solve := pcg.Solve
	if s.Solver == BlockPCG {
		solve = pcg.SolveBlock
	}
	res, err := solve(ctx, s.A, s.M, s.Y, o)
	if res == nil || res.Status == pcg.Failed {
		return nil, err
	}
	if res.Status == pcg.Stopped {
		s.stopError, err = err, ctx.Err()
	}
	s.residuals = res.R
	if exact != nil && o.Exact.(*residualOperator).usedStored() {
		sol.ResidualKind = ResidualInStored64
	}
	if res.Tol > o.Tol { // stop rule predictions accepted a larger tolerance, in this run or in the one that it resumes
		s.setTolerance(res.Tol/s.bounds.TolFraction, s.bounds.Noise)
	}
	sol.addIterations(res, s.bounds.Problem.History(res), time.Since(start).Seconds())
	if err != nil || res.Status == pcg.Stopped && math.IsNaN(res.MaxTrueRelRes()) {
		sol.ColumnTrueResiduals, sol.ColumnRoundings, sol.ResidualKind = nil, nil, ResidualRecursive
	}
	if err != nil && sol.Iterations == 0 {
		return nil, err
	}
	return res.X, err
}
