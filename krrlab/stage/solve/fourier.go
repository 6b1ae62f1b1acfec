package solve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

const (
	// fourierRefinements is the largest number of rounds of iterative refinement after the first solve. Each takes
	// three passes over the points.
	fourierRefinements = 3
	// fourierInnerTol is the relative residual to which conjugate gradients solve for the modes in each round. It is
	// so small that a round is limited by rounding and not by this tolerance.
	fourierInnerTol = 1e-12
)

// fourierRun solves with the Fourier series K̃ = ΦΦᵀ of K, where Φ (n×modes) has the values of the modes at the points;
// with weights W it is W^½ΦΦᵀW^½. K is never stored. As with a stored K, the answer is judged by its true residual with
// K in float64 if UsesExactResidual, and by a sample of rows of K in float64 otherwise.
//
// Multiplied by Φᵀ, the system becomes one for the modes, with the normal matrix ΦᵀWΦ; its right-hand sides are
// ΦᵀW^½R for the residuals R (n×t).
type fourierRun struct {
	*run
	series      *fourier.Series
	factor      *fourier.Factor // solver for the modes, with the matrix ΦᵀWΦ+λI
	x           points.Points   // points without their weights
	sqrtWeights []float64       // √w_i; nil without weights
	weights     []float64       // w_i; nil without weights
	moments     []float64       // moments of ΦᵀWΦ, for checkpoints
}

// solveFourier solves (K̃+λI)C = Y for points in one to three dimensions (package fourier). It resumes from a
// checkpoint if there is one. It returns an error if the kernel has no series or needs too many modes. If a plan has a
// fallback, another solver, which cannot resume from checkpoints of a series, solveFourier then removes the
// checkpoints.
func (r *run) solveFourier(ctx context.Context) (c *mat.Dense, err error) {
	if r.checkpoints, _, err = openCheckpoints(ctx, r.System, r.sol); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && ctx.Err() == nil && r.Plan != nil && r.Plan.Fallback != nil {
			err = errors.Join(err, r.checkpoints.clear())
		}
		r.checkpoints.close()
	}()
	start, sol := time.Now(), r.sol
	f := &fourierRun{run: r}
	_, f.sqrtWeights = points.SplitFactors(r.Train.X)
	f.x, f.weights = points.SplitWeights(r.Train.X)
	r.notify(ctx, stage.Event{Stage: stage.Kernel, Remaining: -1})
	if f.series, err = fourier.New(r.Kernel, fourier.Options{Comm: r.Comm}, f.x); err != nil {
		if space := r.Train.Space; space != nil && r.Train.Dim() > len(space.Columns) {
			err = fmt.Errorf("%w; longitude and latitude of a large region are x, y and z on a sphere", err)
		}
		return nil, fmt.Errorf("krrlab: solver fourier: %w", err)
	}
	sol.KBytes = f.series.Work(r.Train.Len(), r.columns(), r.Lambda).Bytes
	need := cost.SeriesBytes(sol.KBytes, r.Train.Len(), r.Train.Dim(), r.columns())
	if err := r.Memory.Check(need, fmt.Sprintf("krrlab: solver fourier: %d modes and %d points", f.series.Modes(),
		r.Train.Len()), ""); err != nil {
		return nil, err
	}
	normal, state, err := f.normalEquations(ctx)
	if err != nil {
		return nil, err
	}
	sol.Seconds.Kernel = time.Since(start).Seconds()
	start = time.Now()
	if f.factor, err = normal.Factor(ctx, r.Lambda); err != nil {
		return nil, fmt.Errorf("krrlab: solver fourier: %w", err)
	}
	sol.Seconds.Factor = time.Since(start).Seconds()
	stored := f.storageDescription()
	sol.Storage, sol.KernelErrorBound = "Fourier series", stage.Number(stored.Error)
	sol.StorageReason = fmt.Sprintf("a Fourier series of %d modes, each entry within %.2g, ‖K̃−K‖₂ at most %.2g",
		f.series.Modes(), f.series.EntryError(), stored.Error)
	start = time.Now()
	c, err = f.refine(ctx, state)
	sol.Seconds.Solve = time.Since(start).Seconds()
	if err != nil {
		return nil, err
	}
	if !r.UsesExactResidual(nil) {
		return c, r.checkRowsOf(ctx, stored, c)
	}
	return c, stage.Timed(&sol.Seconds.Residual, func() error { return f.useExactResidual(ctx, c) })
}

// useExactResidual replaces the true residuals with K̃ by those with K, which is recomputed in float64. If that fails,
// they stay those with K̃.
func (f *fourierRun) useExactResidual(ctx context.Context, c *mat.Dense) error {
	exact, err := gram.NewExact(f.Kernel, f.Train.X, f.Lambda, f.RecomputedErrorBound(), f.Comm)
	if err == nil {
		err = f.trueResidual(ctx, exact, c)
	}
	if err != nil {
		return err
	}
	sol := f.sol
	if sol.ResidualKind = ResidualInFloat64; sol.Converged() && !(floats.Max(sol.ColumnTrueResiduals) <= f.Tol) {
		sol.Status = pcg.Inaccurate
	}
	return nil
}

// normalEquations returns ΦᵀWΦ and the state before the first round of refinement, in one pass over the points. If a
// checkpoint is resumed, it returns the matrix and the state of the checkpoint.
func (f *fourierRun) normalEquations(ctx context.Context) (*fourier.NormalMatrix, *refinement, error) {
	n, t := f.Y.Dims()
	if saved := f.checkpoints.savedSeries(f.sol); saved != nil {
		normal, err := f.series.NormalMatrixOf(saved.Moments, n)
		if err != nil {
			return nil, nil, fmt.Errorf("krrlab: the checkpoint in %s: %w", f.Checkpoint.Dir, err)
		}
		f.moments = saved.Moments
		state := &refinement{b: mat.NewDense(len(saved.B)/t, t, saved.B), c: mat.NewDense(n, t, nil), r: f.Y}
		if saved.C != nil {
			state.c, state.r = mat.NewDense(n, t, saved.C), mat.NewDense(n, t, saved.R)
		}
		return normal, state, nil
	}
	normal, b, err := f.series.NormalEquations(ctx, f.x, f.weights, points.ScaleRows(f.sqrtWeights, f.Y))
	if err != nil {
		return nil, nil, err
	}
	f.moments = normal.Moments()
	return normal, &refinement{b: b, c: mat.NewDense(n, t, nil), r: f.Y},
		f.checkpoints.saveSeries(ctx, f.sol, &seriesProgress{Moments: f.moments, B: b.RawMatrix().Data})
}

// refinement is the state before a round of refinement.
type refinement struct {
	b *mat.Dense // ΦᵀW^½R, modes×t: the right-hand sides of the next solve for the modes
	c *mat.Dense // coefficients C, n×t
	r *mat.Dense // residuals R = Y − (K̃+λI)C, n×t
}

// storageDescription describes the error of the series K̃ as if it were that of a stored matrix.
func (f *fourierRun) storageDescription() gram.Choice {
	n := f.Train.Len()
	return gram.Choice{N: n, Storage: gram.Float64, Error: stage.SeriesError(f.series, n, f.weights)}
}

// refine solves with K̃ and refines the answer until its residual with K̃ is at most Policy.TolFraction·Tol, or
// after fourierRefinements rounds. It sets the residuals, the history and the status of the solution.
func (f *fourierRun) refine(ctx context.Context, state *refinement) (*mat.Dense, error) {
	sol := f.sol
	_, t := f.Y.Dims()
	b, c, r := state.b, state.c, state.r
	for round := len(sol.History); ; round++ {
		beta, iterations, err := f.factor.Solve(ctx, b, fourierInnerTol)
		sol.Iterations += iterations
		if err == nil { // C + (K̃+λI)⁻¹R, where the second term is (R − W^½Φβ)/λ
			b, err = f.series.EvalProject(ctx, f.x, beta, func(i, j int, value float64) float64 {
				sqrtWeight := f.sqrtWeight(i)
				v := c.At(i, j) + (r.At(i, j)-sqrtWeight*value)/f.Lambda
				c.Set(i, j, v)
				return sqrtWeight * v
			})
		}
		if err != nil {
			return nil, err
		}
		if r, err = f.residual(ctx, c, b); err != nil {
			return nil, err
		}
		sol.ColumnTrueResiduals = make([]float64, t)
		for j := range t {
			sol.ColumnTrueResiduals[j] = mat.Norm(r.ColView(j), 2) / mat.Norm(f.Y.ColView(j), 2)
			if math.IsNaN(sol.ColumnTrueResiduals[j]) { // 0/0, since y_j = 0 has the solution 0
				sol.ColumnTrueResiduals[j] = 0
			}
		}
		largest := floats.Max(sol.ColumnTrueResiduals)
		sol.History = append(sol.History, HistoryRow{Iteration: round, Residual: largest,
			Columns: sol.ColumnTrueResiduals,
			Bound:   stage.Unknown})
		if largest <= f.Policy.TolFraction*f.Tol || round == fourierRefinements {
			f.residuals, sol.ResidualKind = r, ResidualInStored
			if sol.Status = pcg.Converged; largest > f.Tol {
				sol.Status = pcg.Inaccurate
			}
			return c, nil
		}
		if b, err = f.series.Project(ctx, f.x, points.ScaleRows(f.sqrtWeights, r)); err != nil {
			return nil, err
		}
		if err := f.checkpoints.saveSeries(ctx, sol, &seriesProgress{Moments: f.moments, B: b.RawMatrix().Data,
			C: c.RawMatrix().Data, R: r.RawMatrix().Data}); err != nil {
			return nil, err
		}
	}
}

// residual returns Y − (K̃+λI)C, given b = ΦᵀW^½C.
func (f *fourierRun) residual(ctx context.Context, c, b *mat.Dense) (*mat.Dense, error) {
	r, err := f.series.Eval(ctx, f.x, b)
	if err == nil {
		r.Apply(func(i, j int, value float64) float64 {
			return f.Y.At(i, j) - f.sqrtWeight(i)*value - f.Lambda*c.At(i, j)
		}, r)
	}
	return r, err
}

// sqrtWeight returns √w_i, which is 1 without weights.
func (f *fourierRun) sqrtWeight(i int) float64 {
	if f.sqrtWeights == nil {
		return 1
	}
	return f.sqrtWeights[i]
}
