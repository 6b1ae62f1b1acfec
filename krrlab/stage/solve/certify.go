package solve

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// startBounds prepares r.bounds, the error bounds and the stopping rule, for an iteration with the given options, and
// sets options.LambdaMin to the lower bound of the eigenvalues of M⁻¹A, where A = K̃+λI and M is the preconditioner.
// For stop rule labels it draws the sample of rows whose labels are watched. It returns an error if these rows cannot
// be scaled like the training points.
func (r *run) startBounds(ctx context.Context, options *pcg.Options) error {
	bounds := &r.bounds
	bounds.Problem = r.newBasis(r.solutionNorms)
	options.LambdaMin = bounds.Problem.Mu
	bounds.Stop, bounds.Tau = r.Stop, r.Policy.TolFraction*r.Tol
	bounds.Tol, bounds.TolFraction = r.Tol, options.Tol/r.Tol
	bounds.Classes, bounds.Trace, bounds.Stopped = r.Train.Task == datasets.Classification, r.estimateTrace, false
	if r.isRefinement { // a refinement ends by its residual only
		bounds.Stop = bound.Stop{}
	}
	if bounds.Stop.Rule != bound.ByLabels || bounds.Sample != nil {
		return nil
	}
	rows := r.Train.X
	if stopRows := r.StopRows; stopRows != nil {
		scaled, err := r.Train.Scaling.Apply(stopRows)
		if err != nil {
			return fmt.Errorf("krrlab: the rows of stop %v: %w", bounds.Stop, err)
		}
		rows = scaled.X
	}
	var err error
	bounds.Sample, err = bound.NewLabelSample(ctx, r.Kernel, r.Train.X, rows, bounds.Stop.MaxUndecided,
		rng.New(r.Seed).Sub("labels"))
	return err
}

// setTolerance makes tol, which stop rule predictions accepted, the tolerance of the rest of the solve. The rule
// derived tol from the estimate noise.
func (r *run) setTolerance(tol float64, noise *bound.Noise) {
	r.Tol, r.sol.Tol, r.sol.Noise = tol, tol, noise
}

// estimateTrace implements bound.Monitor.Trace. It estimates λ·tr(A⁻¹)/n by Hutchinson's estimator with one probe of
// random signs and at most maxIter preconditioned conjugate gradients. It also returns the number of products with K̃.
// The trace is 1, its upper bound, if the iteration fails.
func (r *run) estimateTrace(ctx context.Context, maxIter int) (trace float64, products int, err error) {
	n, stream := r.Train.Len(), rng.New(r.Seed).Sub("trace")
	probe := mat.NewDense(n, 1, nil)
	for i := range n {
		probe.Set(i, 0, float64(1-2*stream.IntN(uint64(i), 2)))
	}
	result, err := pcg.Solve(ctx, r.A, r.M, probe, &pcg.Options{Tol: 1e-3, MaxIter: maxIter})
	if err != nil {
		return 0, 0, err
	}
	if result.Status > pcg.MaxIterations { // the iteration failed, for example because K̃ is indefinite
		return 1, result.Stats.MulTo.Calls, nil
	}
	decrease := make([]float64, result.Iterations)
	for k, row := range result.History.Decrease {
		decrease[k] = row[0]
	}
	return bound.TraceEstimate(decrease, result.RelRes[0], r.Lambda, n), result.Stats.MulTo.Calls, nil
}

// newBasis returns the properties of the problem that error bounds are based on. Its ProductError is twice the storage
// error ‖K̃−K‖₂, as rounding in a product adds up to as much again. solutionNorms has lower bounds of ‖c_j*‖_A for the
// exact solution c_j*, or is nil. The lower bound Mu of the eigenvalues of M⁻¹A is set only for landmarks and for
// M = I; for other preconditioners it is unknown.
func (r *run) newBasis(solutionNorms []float64) *bound.Problem {
	basis := &bound.Problem{Lambda: r.MinEigenvalue, SolutionNorms: solutionNorms}
	for j := range r.columns() {
		basis.Norms = append(basis.Norms, mat.Norm(r.Y.ColView(j), 2))
	}
	if r.A != nil {
		basis.ProductError = 2 * r.A.Choice().Error
		if r.Landmarks != nil || r.M == nil {
			basis.Mu = bound.LambdaMin(r.Landmarks, basis.Lambda, r.LambdaP, basis.ProductError)
		}
	}
	return basis
}

// residualTol returns the tolerance of the relative residual. For stop rule anorm it is τ√(λ/(λ+tr K)). The relative
// error ‖e‖_A/‖c*‖_A, e = c−c*, is then certainly at most τ, since ‖e‖_A ≤ ‖r‖₂/√λ for the residual r of c, and
// ‖c*‖_A ≥ ‖y‖₂/√(λ+tr K). For other rules it is τ.
func (r *run) residualTol() float64 {
	if r.Stop.Rule != bound.ByANorm {
		return r.Tol
	}
	return r.Tol * math.Sqrt(r.Lambda/(r.Lambda+r.A.Trace()))
}

// errorBounds returns the error bounds of the coefficients c that follow from their residuals, or nil if the residuals
// or their error are unknown. The bounds are certain if the rounding of the residuals is bounded, not estimated from
// sampled rows of K, and K is proved to be positive semi-definite.
func (r *run) errorBounds(c *mat.Dense) *bound.Errors {
	sol := r.sol
	answer := &bound.Answer{C: c, Y: r.Y, Residuals: sol.ColumnTrueResiduals, Rounding: sol.ColumnRoundings,
		PCG:     sol.Result,
		Certain: sol.ColumnRoundings != nil && r.ProvedSemidefinite}
	if answer.Residuals == nil || answer.Rounding == nil && sol.ColumnStorageResiduals == nil {
		return nil // the storage error is unknown
	}
	if answer.Rounding == nil {
		answer.Rounding = make([]float64, r.columns())
		for j, storageResidual := range sol.ColumnStorageResiduals {
			answer.Rounding[j] = bound.SamplingFactor(r.Train.Len()) * storageResidual
		}
	}
	return r.newBasis(nil).AnswerErrors(answer)
}

// certify sets, in r.sol, the error bounds of the coefficients c, the criterion that they meet, and, for stop rule
// labels on the training rows, the number of labels that may still change. The status pcg.Undecided counts as meeting
// the tolerance of the residual.
func (r *run) certify(ctx context.Context, c *mat.Dense) error {
	sol := r.sol
	if sol.Converged() || sol.Status == pcg.Undecided {
		met := bound.Stop{Rule: bound.ByResidual}
		if sol.Noise != nil {
			met = r.Stop
		}
		sol.Criterion = met.String()
	}
	if sol.Error = r.errorBounds(c); sol.Error == nil {
		return nil
	}
	basis := r.newBasis(nil)
	if r.Landmarks != nil {
		if err := sol.Error.TightenCertain(ctx, basis, r.M, r.Landmarks, r.LambdaP, r.residuals,
			sol.ColumnRoundings); err != nil {
			return err
		}
	}
	labelsMet, err := r.bounds.LabelsHold(ctx, c, sol.Error.Decisions())
	switch {
	case err != nil:
		return err
	case r.Stop.Rule == bound.ByANorm && sol.Error.Relative <= sol.Tol:
		sol.Criterion = "anorm"
	case labelsMet:
		sol.Criterion = "labels"
	}
	if r.Stop.Rule == bound.ByLabels && r.StopRows == nil && r.residuals != nil {
		var fitted mat.Dense // the fitted values KC = Y − R − λC
		fitted.Scale(-r.Lambda, c)
		fitted.Add(&fitted, r.Y)
		fitted.Sub(&fitted, r.residuals)
		sol.CheckedLabels, sol.UndecidedLabels = r.Train.Len(),
			bound.UndecidedRows(&fitted, bound.DiagonalRoots(r.Kernel, r.Train.X), sol.Error.Decisions())
	}
	return nil
}
