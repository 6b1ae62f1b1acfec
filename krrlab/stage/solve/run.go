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
	checkpoints   *checkpointer // nil if none are configured
	residuals     *mat.Dense    // residuals of the answer, whose norms are the true residuals; nil if unknown
	stopError     error         // error that stopped the iteration: of the Monitor, or ErrLate; nil for pcg.ErrStop
	solutionNorms []float64     // lower bounds of ‖c_j*‖_A for an iteration that starts with an answer; nil: unknown
	bounds        bound.Monitor // error bounds and stopping rule of the iteration
	isRefinement  bool          // whether the iteration improves an answer of this solve
}

// Run solves the system with the matrices that buildMatrices makes. It returns the coefficients C, n×t, and sets the
// properties of the answer in sol, except for its model. The fields of sol that describe the request must be set.
//
// C is nil if there is no answer. If ctx ended or the Monitor stopped the iteration, Run may return the last iterate
// together with the error. A planned solve that takes too long returns ErrLate and no answer.
func Run(ctx context.Context, system *System, buildMatrices MatrixBuilder, sol *Solution) (*mat.Dense, error) {
	r := &run{System: system, buildMatrices: buildMatrices, sol: sol}
	sol.System = system
	solve := r.iterate
	switch system.Solver {
	case Direct:
		solve = r.direct
	case Fourier:
		solve = r.solveFourier
	}
	c, err := solve(ctx)
	if err == nil && r.stopError == ErrLate {
		return nil, r.stopError
	}
	if c == nil || err != nil && ctx.Err() == nil {
		return nil, err
	}
	switch {
	case err != nil: // ctx ended
		sol.Status = statusOf(ctx)
	case sol.Status == pcg.Stopped:
		err = r.stopError
	}
	r.correctStatus()
	sol.residuals = r.residuals
	sol.finish()
	if certifyErr := r.certify(ctx, c); certifyErr != nil && err == nil && ctx.Err() == nil {
		return nil, certifyErr
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
func (r *run) iterate(ctx context.Context) (c *mat.Dense, err error) {
	var savedStorage *gram.Choice
	if r.checkpoints, savedStorage, err = openCheckpoints(ctx, r.System, r.sol); err != nil {
		return nil, err
	}
	defer r.checkpoints.close()
	r.checkpoints.restore(r)
	if r.Matrices, err = r.buildMatrices(ctx, savedStorage, r.sol); err != nil {
		return nil, err
	}
	if c := r.checkpoints.answer(); c != nil {
		return r.refine(ctx, c)
	}
	options := new(pcg.Options)
	if r.Start != nil && r.Stop.Rule != bound.ByANorm {
		options.InitX, r.solutionNorms = r.Start, make([]float64, r.columns()) // 0 is a lower bound of every norm
		options.Smooth = r.checkpoints == nil
		if r.StartTrace > 0 && r.bounds.Noise == nil {
			r.bounds.Noise = &bound.Noise{Trace: r.StartTrace}
		}
	}
	residual, err := r.chooseResidual(ctx)
	if err != nil {
		return nil, err
	}
	r.checkpoints.configure(r.sol, r.A.Choice(), nil, options)
	c, err = r.conjugateGradients(ctx, options, residual)
	if c == nil || err != nil {
		return c, err
	}
	if !r.UsesExactResidual(r.A) {
		if err := r.checkRows(ctx, c); err != nil {
			return c, err
		}
	}
	switch {
	case r.sol.Status == pcg.Stopped && r.bounds.Stopped:
		// The recursive residual met the stopping rule. Refine the answer only if its true residual does not.
		if err := r.certify(ctx, c); err != nil || r.sol.CriterionMet() {
			return c, err
		}
	case residual.matrix != nil || !r.convergedOrStalled() || r.checkedRowsMeet(r.Tol):
		return c, nil
	}
	return r.refine(ctx, c)
}

// conjugateGradients solves AC = Y by (preconditioned, block) conjugate gradients to the tolerance residual.tol,
// starting from C = options.InitX, where nil means 0, and adds the result to the solution. If residual.matrix is not
// nil and K̃ is too inaccurate for the tolerance, the restarts of package pcg refine C. conjugateGradients returns nil
// if there is no iterate, and the last iterate together with the error if ctx ended.
func (r *run) conjugateGradients(ctx context.Context, options *pcg.Options, residual residualChoice) (*mat.Dense,
	error) {
	sol := r.sol
	options.Tol = residual.tol
	if err := r.startBounds(ctx, options); err != nil {
		return nil, err
	}
	r.setAccuracy(options, r.A, residual.matrix)
	options.MaxIter, options.Monitor = r.MaxIter, r.watch(ctx, sol.Iterations, r.bounds.Check, r.bounds.ExpectedTol)
	sol.ResidualKind = residual.kind
	start := time.Now()
	solve := pcg.Solve
	if r.Solver == BlockPCG {
		solve = pcg.SolveBlock
	}
	result, err := solve(ctx, r.A, r.M, r.Y, options)
	if result == nil || result.Status == pcg.Failed {
		return nil, err
	}
	if result.Status == pcg.Stopped {
		r.stopError, err = err, ctx.Err()
	}
	r.residuals = result.R
	if residual.matrix != nil && options.Exact.(*residualOperator).lastUsedStored() {
		sol.ResidualKind = ResidualInStored64
	}
	if result.Tol > options.Tol { // stop rule predictions accepted a larger tolerance, perhaps before a resumption
		r.setTolerance(result.Tol/r.bounds.TolFraction, r.bounds.Noise)
	}
	sol.addIterations(result, r.bounds.Problem.History(result), time.Since(start).Seconds())
	if err != nil || result.Status == pcg.Stopped && math.IsNaN(result.MaxTrueRelRes()) {
		sol.ColumnTrueResiduals, sol.ColumnRoundings, sol.ResidualKind = nil, nil, ResidualRecursive
	}
	if err != nil && sol.Iterations == 0 {
		return nil, err
	}
	return result.X, err
}
