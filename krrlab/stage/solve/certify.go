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

// startBounds prepares s.bounds, the error bounds and the stopping rule, for an iteration with the options o, and sets
// o.LambdaMin to the lower bound of the eigenvalues of M⁻¹A. For stop rule labels it draws the sample of rows whose
// labels are watched. It returns an error if these rows cannot be scaled like the training points.
func (s *run) startBounds(ctx context.Context, o *pcg.Options) error {
	b := &s.bounds
	b.Problem = s.newBasis(s.solutionNorms)
	o.LambdaMin = b.Problem.Mu
	b.Stop, b.Tau, b.Tol, b.TolFraction = s.Stop, s.Policy.TolFraction*s.Tol, s.Tol, o.Tol/s.Tol
	b.Classes, b.Trace, b.Stopped = s.Train.Task == datasets.Classification, s.estimateTrace, false
	if s.refining { // a refinement ends by its residual only
		b.Stop = bound.Stop{}
	}
	if b.Stop.Rule != bound.ByLabels || b.Sample != nil {
		return nil
	}
	rows := s.Train.X
	if stopRows := s.StopRows; stopRows != nil {
		scaled, err := s.Train.Scaling.Apply(stopRows)
		if err != nil {
			return fmt.Errorf("krrlab: the rows of stop %v: %w", b.Stop, err)
		}
		rows = scaled.X
	}
	var err error
	b.Sample, err = bound.NewLabelSample(ctx, s.Kernel, s.Train.X, rows, b.Stop.MaxUndecided,
		rng.New(s.Seed).Sub("labels"))
	return err
}

// setTolerance makes tol, which stop rule predictions accepted, the tolerance of the rest of the solve. noise is the
// estimate from which the rule derived it.
func (s *run) setTolerance(tol float64, noise *bound.Noise) {
	s.Tol, s.sol.Tol, s.sol.Noise = tol, tol, noise
}

// estimateTrace implements bound.Monitor.Trace: it estimates λ·tr(A⁻¹)/n from one probe z of random signs, by conjugate
// gradients with K̃ and the preconditioner of the solve. It also returns the number of products with K̃. The trace is
// 1, its upper bound, if conjugate gradients fail.
func (s *run) estimateTrace(ctx context.Context, iterations int) (trace float64, products int, err error) {
	n, g := s.Train.Len(), rng.New(s.Seed).Sub("trace")
	z := mat.NewDense(n, 1, nil)
	for i := range n {
		z.Set(i, 0, float64(1-2*g.IntN(uint64(i), 2)))
	}
	res, err := pcg.Solve(ctx, s.A, s.M, z, &pcg.Options{Tol: 1e-3, MaxIter: iterations})
	if err != nil {
		return 0, 0, err
	}
	if res.Status > pcg.MaxIterations { // for example K̃ is not positive semi-definite
		return 1, res.Stats.MulTo.Calls, nil
	}
	decrease := make([]float64, res.Iterations)
	for k, row := range res.History.Decrease {
		decrease[k] = row[0]
	}
	return bound.TraceEstimate(decrease, res.RelRes[0], s.Lambda, n), res.Stats.MulTo.Calls, nil
}

// newBasis returns the properties of the problem that error bounds are based on. Products with K̃ are assumed to have
// an error of up to twice the storage error, as their rounding adds up to as much again. solutionNorms has lower bounds
// of ‖c_j*‖_A for the exact solution c_j*, or is nil. The bound Mu of the eigenvalues of M⁻¹A is known for landmarks
// and for M = I only.
func (s *run) newBasis(solutionNorms []float64) *bound.Problem {
	b := &bound.Problem{Lambda: s.MinEigenvalue, SolutionNorms: solutionNorms}
	for j := range s.columns() {
		b.Norms = append(b.Norms, mat.Norm(s.Y.ColView(j), 2))
	}
	if s.A != nil {
		b.ProductError = 2 * s.A.Choice().Error
		if s.Landmarks != nil || s.M == nil {
			b.Mu = bound.LambdaMin(s.Landmarks, b.Lambda, s.LambdaP, b.ProductError)
		}
	}
	return b
}

// residualTol returns the tolerance of the residual. It is τ, except for stop rule anorm: there it is the value at
// which the relative error in the A-norm is certainly at most τ, since ‖e‖_A ≤ ‖r‖₂/√λ and ‖c*‖_A ≥ ‖y‖₂/√(λ+tr K).
func (s *run) residualTol() float64 {
	if s.Stop.Rule != bound.ByANorm {
		return s.Tol
	}
	return s.Tol * math.Sqrt(s.Lambda/(s.Lambda+s.A.Trace()))
}

// errorBounds returns the error bounds of the answer c that follow from its residuals, or nil if the residuals or their
// error are unknown. The bounds are certain if the rounding of the residuals is bounded, not estimated from checked
// rows, and K is proved to be positive semi-definite.
func (s *run) errorBounds(c *mat.Dense) *bound.Errors {
	sol := s.sol
	input := &bound.Answer{C: c, Y: s.Y, Residuals: sol.ColumnTrueResiduals, Rounding: sol.ColumnRoundings,
		PCG:     sol.Result,
		Certain: sol.ColumnRoundings != nil && s.ProvedSemidefinite}
	if input.Residuals == nil || input.Rounding == nil && sol.ColumnStorageResiduals == nil {
		return nil // the storage error is unknown
	}
	if input.Rounding == nil {
		input.Rounding = make([]float64, s.columns())
		for j, v := range sol.ColumnStorageResiduals {
			input.Rounding[j] = bound.SamplingFactor(s.Train.Len()) * v
		}
	}
	return s.newBasis(nil).AnswerErrors(input)
}

// certify sets the error bounds of the answer c, the criterion that it meets, and, for stop rule labels on the training
// rows, the number of labels that may still change. Undecided counts as met for the criterion "residual".
func (s *run) certify(ctx context.Context, c *mat.Dense) error {
	sol := s.sol
	if sol.Converged() || sol.Status == pcg.Undecided {
		met := bound.Stop{Rule: bound.ByResidual}
		if sol.Noise != nil {
			met = s.Stop
		}
		sol.Criterion = met.String()
	}
	if sol.Error = s.errorBounds(c); sol.Error == nil {
		return nil
	}
	basis := s.newBasis(nil)
	if s.Landmarks != nil {
		if err := sol.Error.TightenCertain(ctx, basis, s.M, s.Landmarks, s.LambdaP, s.residuals,
			sol.ColumnRoundings); err != nil {
			return err
		}
	}
	labelsMet, err := s.bounds.LabelsHold(ctx, c, sol.Error.Decisions())
	switch {
	case err != nil:
		return err
	case s.Stop.Rule == bound.ByANorm && sol.Error.Relative <= sol.Tol:
		sol.Criterion = "anorm"
	case labelsMet:
		sol.Criterion = "labels"
	}
	if s.Stop.Rule == bound.ByLabels && s.StopRows == nil && s.residuals != nil {
		var f mat.Dense // K c = y − r − λc
		f.Scale(-s.Lambda, c)
		f.Add(&f, s.Y)
		f.Sub(&f, s.residuals)
		sol.LabelsCounted, sol.LabelsOpen = s.Train.Len(),
			bound.UndecidedRows(&f, bound.DiagonalRoots(s.Kernel, s.Train.X), sol.Error.Decisions())
	}
	return nil
}
