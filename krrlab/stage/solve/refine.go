package solve

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// refine improves the answer c until K itself meets the tolerance, and returns the new answer. It refines with K̃ if
// the checked rows leave enough of the tolerance, and otherwise with the matrix for true residuals. If residuals can
// only be computed with K̃, and too little of the tolerance is left, the answer is refined, with K̃, only if a stopping
// rule ended the iteration or if a refinement is resumed; otherwise refine returns c.
func (s *run) refine(ctx context.Context, c *mat.Dense) (*mat.Dense, error) {
	sol := s.sol
	if !s.UsesExactResidual(s.A) && sol.ColumnSampledResiduals == nil { // a resumed solve has no checked rows yet
		if err := s.trueResidual(ctx, s.A, c); err != nil {
			return c, err
		}
		if err := s.checkRows(ctx, c); err != nil {
			return c, err
		}
	}

	o := &pcg.Options{InitX: c}
	s.refining = true
	exact, kind, storedSuffices, err := (*gram.Matrix)(nil), ResidualInStored, false, error(nil)
	if !s.UsesExactResidual(s.A) {
		o.Tol, storedSuffices = s.refineTol(s.residualTol(), bound.SamplingFactor(s.Train.Len()),
			slices.Max(sol.ColumnStorageResiduals))
	}
	if !storedSuffices {
		exact, kind, o.Tol, err = s.residualMatrix(ctx, true)
		mustContinue := sol.Status == pcg.Stopped || s.checkpoints.answer() != nil
		if err != nil || exact == nil && !mustContinue {
			return c, err
		}
	}

	s.checkpoints.configure(sol, s.A.Choice(), c, o)
	if bounds := s.errorBounds(c); bounds != nil {
		s.solutionNorms = bounds.SolutionNormBounds
	}
	c, err = s.pcg(ctx, o, exact, kind)
	if err != nil || exact != nil && exact.Choice().Certain { // no rows of the new answer are checked
		sol.ColumnSampledResiduals, sol.ColumnStorageResiduals, sol.SampledRows = nil, nil, 0
		return c, err
	}
	return c, s.checkRows(ctx, c)
}

// residualMatrix returns the matrix for true residuals, its description for Solution.ResidualKind and the tolerance of
// an iteration with it. The matrix is nil if residuals are computed with K̃. inaccurate tells that the answer for K̃
// misses the tolerance.
//
// It is K in float64 if that is affordable (UsesExactResidual), or if the answer for K̃ is inaccurate and refinement is
// allowed. For 16-bit tiles with AutoResidual it is a recomputed K, in the fastest arithmetic whose error is at most
// PreferredError, or, if that takes long, at most gram's default, λ/10.
func (s *run) residualMatrix(ctx context.Context, inaccurate bool) (*gram.Matrix, string, float64, error) {
	tau, auto16 := s.residualTol(), s.Residual == AutoResidual && s.A.Storage() == gram.Fixed16
	switch {
	case s.UsesExactResidual(s.A) || inaccurate && !auto16 && s.refinesByExact(s.A):
		return s.A.Exact(s.RecomputedErrorBound()), ResidualInFloat64, tau, nil
	case !auto16:
		return nil, ResidualInStored, tau, nil
	}
	o := &gram.Options{Storage: gram.Recompute, Tiles: s.Tiles, Comm: s.Comm}
	if s.refinesByExact(s.A) {
		o.Accuracy = s.PreferredError()
	}
	f, err := gram.New(ctx, s.Kernel, s.Train.X, s.Lambda, o)
	if err != nil {
		return nil, "", 0, err
	}
	if !f.Choice().Certain {
		tau = s.recomputedTol(tau, f)
	}
	return f, recomputedIn(f.Choice().Arithmetic), tau, nil
}

// residualOperator is the K+λI with which pcg computes true residuals: the stored one for an iterate x at which its
// proved error is negligible, and otherwise Matrix.
type residualOperator struct {
	*gram.Matrix
	stored     *gram.Matrix                  // K̃ in float64 with a proved error; nil: K̃ is stored otherwise
	negligible func(rounding []float64) bool // whether errors ‖fl(Ac_j)−Ac_j‖₂ are negligible
	// usedMatrices are the matrices of the products so far, that of the last product at the end. All of them count for
	// Rounding, because a solve may compute the residuals of some columns again and keep those of others.
	usedMatrices []*gram.Matrix
}

// residualOperator returns the operator for true residuals that uses the stored matrix a where it can, and otherwise
// exact. The error of a is negligible if it is at most the share 1/Policy.RecomputedErrorDivisor of the tolerance.
func (s *run) residualOperator(a, exact *gram.Matrix) *residualOperator {
	return &residualOperator{Matrix: exact, stored: a.Certified(), negligible: func(rounding []float64) bool {
		for j, v := range rounding {
			if !(v <= s.bounds.Tol*s.bounds.TolFraction/s.Policy.RecomputedErrorDivisor*mat.Norm(s.Y.ColView(j), 2)) {
				return false
			}
		}
		return true
	}}
}

// matrixFor returns the matrix for the residual of x.
func (o *residualOperator) matrixFor(x *mat.Dense) *gram.Matrix {
	if o.stored != nil && o.negligible(o.stored.Rounding(x)) {
		return o.stored
	}
	return o.Matrix
}

// MulTo implements pcg.Operator.
func (o *residualOperator) MulTo(ctx context.Context, dst, x *mat.Dense) error {
	a := o.matrixFor(x)
	o.usedMatrices = append(slices.DeleteFunc(o.usedMatrices, func(b *gram.Matrix) bool { return a == b }), a)
	return a.MulTo(ctx, dst, x)
}

// Rounding implements pcg.Bounded. It returns bounds for products with x by any matrix that was used, or nil if one of
// them has none.
func (o *residualOperator) Rounding(x *mat.Dense) []float64 {
	if len(o.usedMatrices) == 0 { // Y = 0
		return o.Matrix.Rounding(x)
	}
	var largest []float64
	for _, a := range o.usedMatrices {
		rounding := a.Rounding(x)
		if rounding == nil {
			return nil
		}
		if largest == nil {
			largest = make([]float64, len(rounding))
		}
		for j, v := range rounding {
			largest[j] = max(largest[j], v)
		}
	}
	return largest
}

// usedStored reports whether the last product was taken with the stored matrix.
func (o *residualOperator) usedStored() bool {
	return len(o.usedMatrices) > 0 && o.usedMatrices[len(o.usedMatrices)-1] == o.stored
}

// trueResidual computes the true residuals r = Y − Ac of c with the matrix a.
func (s *run) trueResidual(ctx context.Context, a *gram.Matrix, c *mat.Dense) error {
	r := mat.DenseCopyOf(c)
	rel, rounding, err := pcg.TrueResidual(ctx, r, a, s.Y, c)
	if err == nil {
		s.residuals, s.sol.ColumnTrueResiduals, s.sol.ColumnRoundings = r, rel, rounding
	}
	return err
}

// checkRows sets ColumnSampledResiduals, ColumnStorageResiduals and SampledRows of the solution: estimates of the true
// residuals of c, and of the error of those computed with K̃, from rows of K in float64 (bound.ResidualRows).
// s.residuals must be those of c.
func (s *run) checkRows(ctx context.Context, c *mat.Dense) error {
	return s.checkRowsOf(ctx, s.A.Choice(), c)
}

// checkRowsOf is checkRows for a kernel matrix that is stored as described.
func (s *run) checkRowsOf(ctx context.Context, stored gram.Choice, c *mat.Dense) error {
	return stage.Timed(&s.sol.Seconds.Residual, func() error {
		rows := bound.NewResidualRows(s.Kernel, s.Train.X, s.Lambda, s.Tol, stored,
			rng.New(s.Seed).Sub("residual rows"))
		residual, storageError, err := rows.Estimate(ctx, s.Comm, s.Y, c, s.residuals)
		if err == nil {
			s.sol.SampledRows, s.sol.ColumnSampledResiduals, s.sol.ColumnStorageResiduals = rows.Len(), residual,
				storageError
		}
		return err
	})
}

// rowsMeet reports whether every residual is at most tau according to the checked rows. It accepts the smaller of two
// bounds: the sampled residual, or the residual with K̃ plus the estimated storage residual, each with its sampling
// error.
func (s *run) rowsMeet(tau float64) bool {
	slack := bound.SamplingFactor(s.Train.Len())
	for j, v := range s.sol.ColumnTrueResiduals {
		if !(min(v+slack*s.sol.ColumnStorageResiduals[j], slack*s.sol.ColumnSampledResiduals[j]) <= tau) {
			return false
		}
	}
	return true
}

// correctStatus sets the status of an answer from its true residuals. If rows were checked, they decide, however the
// iteration ended, since it may have aimed lower than τ to leave room for their result (recomputedTol).
//
// If residuals in float64 meet τ, and only the certain bound of their rounding keeps them from being proved to meet it,
// the status changes from Inaccurate to Undecided. The test uses the rounding bound divided by √n, the size that
// independent rounding errors have.
func (s *run) correctStatus() {
	sol := s.sol
	switch {
	case !s.finished() && sol.Status != pcg.MaxIterations:
	case sol.ColumnStorageResiduals != nil && s.rowsMeet(s.residualTol()):
		sol.Status = pcg.Converged
	case sol.ColumnStorageResiduals != nil:
		if sol.Converged() && !s.rowsMeet(s.Tol) {
			sol.Status = pcg.Inaccurate
		}
	case sol.Status == pcg.Inaccurate && sol.ColumnRoundings != nil:
		sol.Status = pcg.Undecided
		for j, v := range sol.ColumnTrueResiduals {
			if !(v+sol.ColumnRoundings[j]/math.Sqrt(float64(s.Train.Len())) <= s.residualTol()) {
				sol.Status = pcg.Inaccurate
			}
		}
	}
}

// finished reports whether the iteration ended at its tolerance or because it made no further progress.
func (s *run) finished() bool {
	return s.sol.Converged() || s.sol.Status == pcg.Inaccurate || s.sol.Status == pcg.Stagnated
}
