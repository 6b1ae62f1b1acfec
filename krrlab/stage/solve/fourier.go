package solve

import (
	"context"
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
	// fourierInnerTol is the relative residual to which conjugate gradients solve for the modes in each round.
	fourierInnerTol = 1e-12
)

// fourierRun solves with the Fourier series K̃ = ΦΦᵀ of K, where Φ (n×modes) has the values of the modes at the points;
// with weights W it is W^½ΦΦᵀW^½. K is never stored. As with a stored K, the answer is judged by its true residual with
// K in float64 if UsesExactResidual, and by a sample of rows of K in float64 otherwise.
type fourierRun struct {
	*run
	series  *fourier.Series
	factor  *fourier.Factor
	x       points.Points // points without their weights
	roots   []float64     // √w_i; nil without weights
	weights []float64     // w_i; nil without weights
}

// solveFourier solves (K̃+λI)C = Y for points in one to three dimensions (package fourier). It returns an error if the
// kernel has no series or needs too many modes.
func (s *run) solveFourier(ctx context.Context) (*mat.Dense, error) {
	start, sol := time.Now(), s.sol
	f := &fourierRun{run: s}
	_, f.roots = points.SplitFactors(s.Train.X)
	f.x, f.weights = points.SplitWeights(s.Train.X)
	s.notify(ctx, stage.Event{Stage: stage.Kernel, Remaining: -1})
	var err error
	if f.series, err = fourier.New(s.Kernel, fourier.Options{Comm: s.Comm}, f.x); err != nil {
		return nil, fmt.Errorf("krrlab: solver fourier: %w", err)
	}
	if k := s.Checkpoint; k != nil && k.Note != nil {
		k.Note(fmt.Sprintf("the solver fourier writes no checkpoint into %s: after an interruption it starts again",
			k.Dir))
	}
	sol.KBytes = f.series.Work(s.Train.Len(), s.columns(), s.Lambda).Bytes
	need := cost.SeriesBytes(sol.KBytes, s.Train.Len(), s.Train.Dim(), s.columns())
	if err := s.Memory.Check(need, fmt.Sprintf("krrlab: solver fourier: %d modes and %d points", f.series.Modes(),
		s.Train.Len()), ""); err != nil {
		return nil, err
	}
	normal, b, err := f.series.NormalEquations(ctx, f.x, f.weights, points.ScaleRows(f.roots, s.Y))
	if err != nil {
		return nil, err
	}
	sol.Seconds.Kernel = time.Since(start).Seconds()
	start = time.Now()
	if f.factor, err = normal.Factor(ctx, s.Lambda); err != nil {
		return nil, fmt.Errorf("krrlab: solver fourier: %w", err)
	}
	sol.Seconds.Factor = time.Since(start).Seconds()
	stored := f.storageDescription()
	sol.Storage, sol.KBound = "Fourier series", stage.Number(stored.Error)
	sol.StorageReason = fmt.Sprintf("a Fourier series of %d modes, each entry within %.2g, ‖K̃−K‖₂ at most %.2g",
		f.series.Modes(), f.series.EntryError(), stored.Error)
	start = time.Now()
	c, err := f.refine(ctx, b)
	sol.Seconds.Solve = time.Since(start).Seconds()
	if err != nil {
		return nil, err
	}
	if !s.UsesExactResidual(nil) {
		return c, s.checkRowsOf(ctx, stored, c)
	}
	return c, stage.Timed(&sol.Seconds.Residual, func() error {
		exact, err := gram.NewExact(s.Kernel, s.Train.X, s.Lambda, s.RecomputedErrorBound(), s.Comm)
		if err == nil {
			err = s.trueResidual(ctx, exact, c)
		}
		if err != nil { // the true residuals remain those with K̃
			return err
		}
		if sol.ResidualKind = ResidualInFloat64; sol.Converged() && !(floats.Max(sol.TrueResiduals) <= s.Tol) {
			sol.Status = pcg.Inaccurate
		}
		return nil
	})
}

// storageDescription describes K̃ as if it were a stored K.
func (f *fourierRun) storageDescription() gram.Choice {
	n := f.Train.Len()
	return gram.Choice{N: n, Storage: gram.Float64, Error: stage.SeriesError(f.series, n, f.weights)}
}

// refine solves with K̃ and refines the answer until its residual with K̃ is at most Policy.ToleranceShare·Tol, or
// after fourierRefinements rounds. b is ΦᵀW^½Y. It sets the residuals, the history and the status of the solution.
func (f *fourierRun) refine(ctx context.Context, b *mat.Dense) (*mat.Dense, error) {
	sol := f.sol
	n, t := f.Y.Dims()
	c, r := mat.NewDense(n, t, nil), mat.DenseCopyOf(f.Y)
	for round := 0; ; round++ {
		beta, iterations, err := f.factor.Solve(ctx, b, fourierInnerTol)
		sol.Iterations += iterations
		if err == nil { // C + (K̃+λI)⁻¹R, where the second term is (R − W^½Φβ)/λ
			b, err = f.series.EvalProject(ctx, f.x, beta, func(i, j int, value float64) float64 {
				root := f.root(i)
				v := c.At(i, j) + (r.At(i, j)-root*value)/f.Lambda
				c.Set(i, j, v)
				return root * v
			})
		}
		if err != nil {
			return nil, err
		}
		if r, err = f.residual(ctx, c, b); err != nil {
			return nil, err
		}
		sol.TrueResiduals = make([]float64, t)
		for j := range t {
			sol.TrueResiduals[j] = mat.Norm(r.ColView(j), 2) / mat.Norm(f.Y.ColView(j), 2)
			if math.IsNaN(sol.TrueResiduals[j]) { // y = 0
				sol.TrueResiduals[j] = 0
			}
		}
		largest := floats.Max(sol.TrueResiduals)
		sol.History = append(sol.History, HistRow{Iteration: round, Residual: largest, Columns: sol.TrueResiduals,
			Bound: stage.Unknown})
		if largest <= f.Policy.ToleranceShare*f.Tol || round == fourierRefinements {
			f.residuals, sol.ResidualKind = r, ResidualInStored
			if sol.Status = pcg.Converged; largest > f.Tol {
				sol.Status = pcg.Inaccurate
			}
			return c, nil
		}
		if b, err = f.series.Project(ctx, f.x, points.ScaleRows(f.roots, r)); err != nil {
			return nil, err
		}
	}
}

// residual returns Y − (K̃+λI)C, given b = ΦᵀW^½C.
func (f *fourierRun) residual(ctx context.Context, c, b *mat.Dense) (*mat.Dense, error) {
	r, err := f.series.Eval(ctx, f.x, b)
	if err == nil {
		r.Apply(func(i, j int, value float64) float64 { return f.Y.At(i, j) - f.root(i)*value - f.Lambda*c.At(i, j) }, r)
	}
	return r, err
}

// root returns √w_i, which is 1 without weights.
func (f *fourierRun) root(i int) float64 {
	if f.roots == nil {
		return 1
	}
	return f.roots[i]
}
