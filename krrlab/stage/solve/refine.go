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
func (r *run) refine(ctx context.Context, c *mat.Dense) (*mat.Dense, error) {
	sol := r.sol
	if !r.UsesExactResidual(r.A) && sol.ColumnSampledResiduals == nil { // a resumed solve has not checked rows yet
		if err := r.trueResidual(ctx, r.A, c); err != nil {
			return c, err
		}
		if err := r.checkRows(ctx, c); err != nil {
			return c, err
		}
	}

	r.isRefinement = true
	residual, storedSuffices, err := residualChoice{kind: ResidualInStored}, false, error(nil)
	if !r.UsesExactResidual(r.A) {
		residual.tol, storedSuffices = r.refineTol(r.residualTol(), bound.SamplingFactor(r.Train.Len()),
			slices.Max(sol.ColumnStorageResiduals))
	}
	if !storedSuffices {
		residual, err = r.chooseResidual(ctx)
		mustContinue := sol.Status == pcg.Stopped || r.checkpoints.answer() != nil
		if err != nil || residual.matrix == nil && !mustContinue {
			return c, err
		}
	}

	options := &pcg.Options{InitX: c}
	r.checkpoints.configure(sol, r.A.Choice(), c, options)
	if bounds := r.errorBounds(c); bounds != nil {
		r.solutionNorms = bounds.SolutionNormBounds
	}
	c, err = r.conjugateGradients(ctx, options, residual)
	if err != nil || residual.matrix != nil && residual.matrix.Choice().Certain { // no rows of the new c are checked
		sol.ColumnSampledResiduals, sol.ColumnStorageResiduals, sol.SampledRows = nil, nil, 0
		return c, err
	}
	return c, r.checkRows(ctx, c)
}

// residualChoice says how an iteration computes its true residuals.
type residualChoice struct {
	matrix *gram.Matrix // matrix that the residuals are computed with; nil: K̃+λI as stored
	kind   string       // description of the matrix for Solution.ResidualKind
	tol    float64      // tolerance of the iteration
}

// chooseResidual returns how the next iteration computes its true residuals. They are computed with K in float64 if
// that is affordable (UsesExactResidual), or if the iteration refines an answer that missed the tolerance and the work
// is allowed for a refinement. For 16-bit tiles with AutoResidual they are computed with a recomputed K, in the fastest
// arithmetic whose error is at most PreferredError, or, if that takes long, at most gram's default, λ/10. Otherwise
// they are computed with K̃.
func (r *run) chooseResidual(ctx context.Context) (residualChoice, error) {
	tau, auto16 := r.residualTol(), r.Residual == AutoResidual && r.A.Storage() == gram.Fixed16
	switch {
	case r.UsesExactResidual(r.A) || r.isRefinement && !auto16 && r.refinesByExact(r.A):
		return residualChoice{r.A.Exact(r.RecomputedErrorBound()), ResidualInFloat64, tau}, nil
	case !auto16:
		return residualChoice{nil, ResidualInStored, tau}, nil
	}
	options := &gram.Options{Storage: gram.Recompute, Tiles: r.Tiles, Comm: r.Comm}
	if r.refinesByExact(r.A) {
		options.Accuracy = r.PreferredError()
	}
	recomputed, err := gram.New(ctx, r.Kernel, r.Train.X, r.Lambda, options)
	if err != nil {
		return residualChoice{}, err
	}
	if !recomputed.Choice().Certain {
		tau = r.recomputedTol(tau, recomputed)
	}
	return residualChoice{recomputed, recomputedIn(recomputed.Choice().Arithmetic), tau}, nil
}

// residualOperator is the operator K+λI with which package pcg computes true residuals. It uses the stored matrix for
// an iterate x for which the proved error of that matrix is negligible, and otherwise Matrix.
type residualOperator struct {
	*gram.Matrix
	stored       *gram.Matrix                  // K̃ in float64 with a proved error; nil: K̃ is stored otherwise
	isNegligible func(rounding []float64) bool // reports whether the errors ‖fl(Ac_j)−Ac_j‖₂ are negligible
	// usedMatrices are the matrices of the products so far; the matrix of the last product is the last one. Rounding
	// accounts for all of them, because a solve may compute the residuals of some columns again and keep the others.
	usedMatrices []*gram.Matrix
}

// residualOperator returns the operator for true residuals that uses the stored matrix a where it can, and otherwise
// exact. The error of a is negligible if it is at most the share 1/Policy.RecomputedErrorDivisor of the tolerance.
func (r *run) residualOperator(a, exact *gram.Matrix) *residualOperator {
	return &residualOperator{Matrix: exact, stored: a.Certified(), isNegligible: func(rounding []float64) bool {
		for j, v := range rounding {
			if !(v <= r.bounds.Tol*r.bounds.TolFraction/r.Policy.RecomputedErrorDivisor*mat.Norm(r.Y.ColView(j), 2)) {
				return false
			}
		}
		return true
	}}
}

// matrixFor returns the matrix for the residual of x.
func (o *residualOperator) matrixFor(x *mat.Dense) *gram.Matrix {
	if o.stored != nil && o.isNegligible(o.stored.Rounding(x)) {
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

// Rounding implements pcg.Bounded. For each column x_j it returns a bound of the error ‖fl(Ax_j)−Ax_j‖₂ that holds for
// every matrix that was used, or nil if one of them has no bound.
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

// lastUsedStored reports whether the last product was taken with the stored matrix.
func (o *residualOperator) lastUsedStored() bool {
	return len(o.usedMatrices) > 0 && o.usedMatrices[len(o.usedMatrices)-1] == o.stored
}

// trueResidual sets the true residuals Y − Ac of c, their relative norms and bounds of their rounding errors, computed
// with the matrix A = a.
func (r *run) trueResidual(ctx context.Context, a *gram.Matrix, c *mat.Dense) error {
	residuals := mat.DenseCopyOf(c)
	relative, rounding, err := pcg.TrueResidual(ctx, residuals, a, r.Y, c)
	if err == nil {
		r.residuals, r.sol.ColumnTrueResiduals, r.sol.ColumnRoundings = residuals, relative, rounding
	}
	return err
}

// checkRows sets ColumnSampledResiduals, ColumnStorageResiduals and SampledRows of the solution: estimates of the true
// residuals of c, and of the error of those computed with K̃, from rows of K in float64 (bound.ResidualRows).
// r.residuals must be the residuals of c.
func (r *run) checkRows(ctx context.Context, c *mat.Dense) error {
	return r.checkRowsOf(ctx, r.A.Choice(), c)
}

// checkRowsOf is checkRows for a kernel matrix K̃ that is stored as described.
func (r *run) checkRowsOf(ctx context.Context, stored gram.Choice, c *mat.Dense) error {
	return stage.Timed(&r.sol.Seconds.Residual, func() error {
		rows := bound.NewResidualRows(r.Kernel, r.Train.X, r.Lambda, r.Tol, stored,
			rng.New(r.Seed).Sub("residual rows"))
		residual, storageError, err := rows.Estimate(ctx, r.Comm, r.Y, c, r.residuals)
		if err == nil {
			r.sol.SampledRows, r.sol.ColumnSampledResiduals, r.sol.ColumnStorageResiduals = rows.Len(), residual,
				storageError
		}
		return err
	})
}

// checkedRowsMeet reports whether every residual is at most tau according to the checked rows. It accepts the smaller
// of two bounds: the sampled residual, or the residual with K̃ plus the storage residual, which is estimated from the
// rows. The numbers from the rows are multiplied by bound.SamplingFactor.
func (r *run) checkedRowsMeet(tau float64) bool {
	samplingFactor := bound.SamplingFactor(r.Train.Len())
	for j, v := range r.sol.ColumnTrueResiduals {
		withStored := v + samplingFactor*r.sol.ColumnStorageResiduals[j]
		if !(min(withStored, samplingFactor*r.sol.ColumnSampledResiduals[j]) <= tau) {
			return false
		}
	}
	return true
}

// correctStatus sets the status of an answer from its true residuals. If rows were checked, they decide whether the
// answer converged, even if the iteration missed its own tolerance: that may be below τ, to leave room for the error
// that the rows reveal (recomputedTol).
//
// If residuals in float64 meet τ, and only the certain bound of their rounding keeps them from being proved to meet it,
// the status changes from Inaccurate to Undecided. The test uses the rounding bound divided by √n, the size that
// independent rounding errors have.
func (r *run) correctStatus() {
	sol := r.sol
	switch {
	case !r.convergedOrStalled() && sol.Status != pcg.MaxIterations:
	case sol.ColumnStorageResiduals != nil && r.checkedRowsMeet(r.residualTol()):
		sol.Status = pcg.Converged
	case sol.ColumnStorageResiduals != nil:
		if sol.Converged() && !r.checkedRowsMeet(r.Tol) {
			sol.Status = pcg.Inaccurate
		}
	case sol.Status == pcg.Inaccurate && sol.ColumnRoundings != nil:
		sol.Status = pcg.Undecided
		for j, v := range sol.ColumnTrueResiduals {
			if !(v+sol.ColumnRoundings[j]/math.Sqrt(float64(r.Train.Len())) <= r.residualTol()) {
				sol.Status = pcg.Inaccurate
			}
		}
	}
}

// convergedOrStalled reports whether the iteration ended at its tolerance or because it made no further progress.
func (r *run) convergedOrStalled() bool {
	return r.sol.Converged() || r.sol.Status == pcg.Inaccurate || r.sol.Status == pcg.Stagnated
}
