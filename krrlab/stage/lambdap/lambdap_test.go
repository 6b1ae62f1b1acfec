package lambdap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// ridgeOperator is the operator K+λI with a dense matrix K.
type ridgeOperator struct {
	k      *mat.SymDense
	lambda float64
}

func (a ridgeOperator) Dim() int        { return a.k.SymmetricDim() }
func (a ridgeOperator) Lambda() float64 { return a.lambda }

// KMulTo forms the product on one BLAS thread. The bits of a BLAS product may depend on the number of threads, and the
// tests compare bits. Products of package gram have the same bits for any number of threads.
func (a ridgeOperator) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return accel.ForEach(ctx, 1, func(_, _ int) { dst.Mul(a.k, src) })
}

func (a ridgeOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	err := a.KMulTo(ctx, dst, src)
	dst.Apply(func(i, j int, v float64) float64 { return v + a.lambda*src.At(i, j) }, dst)
	return err
}

// measureSweep completes the options with their defaults and measures a sweep. zSeconds is the time to form Z.
func measureSweep(ctx context.Context, a stage.Operator, z *points.Dense32, y *mat.Dense, zSeconds float64,
	options *Options) (*Sweep, error) {
	err := schema.Complete(options)
	if options.tol, options.comm = 1e-3, comm.OrAlone(options.comm); options.Columns == 0 && !options.NoSolve {
		options.Columns = 1
	}
	if options.notify == nil {
		options.notify = func(context.Context, stage.Event) {}
	}
	if err != nil {
		return nil, err
	}
	return measure(ctx, a, z, y, zSeconds, options)
}

// newTestProblem returns the Gaussian kernel matrix of n random points, and a Z of s random Fourier features, so that
// ZZᵀ ≈ K. It draws the features itself.
func newTestProblem(n, s int, lambda float64, seed uint64) (ridgeOperator, *points.Dense32) {
	const d = 3
	x := points.NewDense(n, d, nil)
	rng.New(seed).Sub("x").Normals(x.Data, 0)
	z := points.NewDense32(n, s, nil)
	frequencies := make([]float64, s*d)
	rng.New(seed).Sub("w").Normals(frequencies, 0)
	for i := range n {
		for j := range s {
			phase := 2 * math.Pi * rng.New(seed).Sub("b").Float64(uint64(j))
			for coordinate := range d {
				phase += frequencies[j*d+coordinate] * x.Row(i)[coordinate]
			}
			z.Data[i*s+j] = float32(math.Sqrt(2/float64(s)) * math.Cos(phase))
		}
	}
	return ridgeOperator{testkit.KernelMatrix(kernel.Gaussian{Sigma: 1}, x), lambda}, z
}

// outerProduct returns ZZᵀ in float64.
func outerProduct(z *points.Dense32) *mat.SymDense {
	z64 := mat.NewDense(z.N, z.D, nil)
	points.RowsTo(z, z64.RawMatrix().Data, z.D)
	var zz mat.SymDense
	zz.SymOuterK(1, z64)
	return &zz
}

// errorNorm returns η = ‖K−ZZᵀ‖₂.
func errorNorm(t *testing.T, a ridgeOperator, zz *mat.SymDense) float64 {
	var difference mat.Dense
	difference.Sub(a.k, zz)
	eigenvalues := testkit.Eigenvalues(t, testkit.Symmetric(&difference))
	return max(-eigenvalues[0], eigenvalues[len(eigenvalues)-1])
}

// pencilEigenvalues returns the eigenvalues of M⁻¹(K+λI) in ascending order, M = ZZᵀ+λ_pI.
func pencilEigenvalues(t *testing.T, a ridgeOperator, zz *mat.SymDense, lambdaP float64) []float64 {
	return testkit.PencilEigenvalues(t, testkit.AddRidge(a.k, a.lambda), testkit.AddRidge(zz, lambdaP))
}

// TestBound checks that the bound holds for every λ_p of the grid, its values for λ = 0.1 and η = 1, and that arguments
// with a wrong sign panic.
func TestBound(t *testing.T) {
	const n, lambda = 80, 0.1
	a, z := newTestProblem(n, 30, lambda, 2)
	zz := outerProduct(z)
	eta := errorNorm(t, a, zz)
	for _, lambdaP := range defaultGrid(lambda, eta, 9) {
		eigenvalues := pencilEigenvalues(t, a, zz, lambdaP)
		if kappa, bound := eigenvalues[n-1]/eigenvalues[0], Bound(lambda, lambdaP, eta); kappa > bound*(1+1e-9) {
			t.Errorf("λ_p = %g: κ = %g beyond the bound %g", lambdaP, kappa, bound)
		}
	}
	// The wanted values are (1+η/λ)·(1+η/λ_p) for λ_p ≤ λ+η. The first factor is attained by K = diag(η, 0) with Z = 0,
	// and the second by K = 0 with ZZᵀ = diag(0, η).
	for _, test := range []struct{ lambdaP, want float64 }{{0.02, 11 * 51}, {0.5, 11 * 3}, {50, 510},
		{1e-3, 11 * 1001}} {
		testkit.Near(t, Bound(0.1, test.lambdaP, 1), test.want, 1e-9*test.want, test.lambdaP)
	}
	testkit.Equal(t, Bound(0.1, 0.1, 0), 1)
	testkit.Panics(t, map[string]func(){
		"λ = 0": func() { Bound(0, 1, 1) }, "λ_p = 0": func() { Bound(1, 0, 1) },
		"η = -1e-300": func() { Bound(1, 1, -1e-300) },
	})
}

// TestGrid checks that the default grid of λ_p is ascending from λ/100 to 100·(λ+η), contains λ, 10λ and λ+η, and has
// at most three points more than requested.
func TestGrid(t *testing.T) {
	const lambda, eta = 0.02, 7.0
	grid := defaultGrid(lambda, eta, 13)
	if !slices.IsSorted(grid) || math.Abs(grid[0]/(lambda/100)-1) > 1e-12 ||
		math.Abs(grid[len(grid)-1]/(100*(lambda+eta))-1) > 1e-12 {
		t.Errorf("the grid %v is not sorted from λ/100 to 100·(λ+η)", grid)
	}
	for _, value := range []float64{lambda, 10 * lambda, lambda + eta} {
		if !slices.Contains(grid, value) {
			t.Errorf("%g is not in %v", value, grid)
		}
	}
	if len(grid) < 13 || len(grid) > 16 {
		t.Errorf("%d points, want 13 to 16", len(grid))
	}
}

// TestSweep compares a sweep with dense linear algebra: η, κ for each λ_p, and the iterations of PCG for each λ_p
// alone.
func TestSweep(t *testing.T) {
	const n, lambda = 200, 0.01
	a, z := newTestProblem(n, 50, lambda, 3)
	y := testkit.RandomMatrix(4, n, 3)
	reported := map[stage.Name]bool{}
	sweep := testkit.Must(measureSweep(t.Context(), a, z, y, 0.5, &Options{Points: 7, Columns: 2, stream: rng.New(5),
		notify: func(_ context.Context, e stage.Event) { reported[e.Stage] = true }}))
	zz := outerProduct(z)
	if eta := errorNorm(t, a, zz); !sweep.Eta.Contains(eta) || sweep.Eta.RelativeWidth() > 0.05 {
		t.Errorf("η = %v, is %g", sweep.Eta, eta)
	}
	for _, p := range sweep.Points {
		// The intervals are clipped by the bounds that η gives. They hold if both the interval of η and the Lanczos
		// process hold, so their confidence is at most 0.95.
		if p.Min.Confidence > 0.95 || p.Max.Confidence > 0.95 || p.Kappa.Confidence != 0.95 {
			t.Errorf("λ_p = %g: λ_min %v, λ_max %v, κ %v; want a confidence of 95 %%", p.LambdaP, p.Min, p.Max, p.Kappa)
		}
		eigenvalues := pencilEigenvalues(t, a, zz, p.LambdaP)
		kappa := eigenvalues[n-1] / eigenvalues[0]
		if !p.Kappa.Contains(kappa*(1+1e-8)) && !p.Kappa.Contains(kappa*(1-1e-8)) || p.Bound < kappa {
			t.Errorf("λ_p = %g: κ %v, bound %g, is %g", p.LambdaP, p.Kappa, p.Bound, kappa)
		}
		preconditioner := testkit.Must(precond.New(t.Context(), z, p.LambdaP,
			&precond.Options{Form: precond.FormEigen}))
		solved := testkit.Must(pcg.Solve(t.Context(), a, preconditioner, mat.DenseCopyOf(y.Slice(0, n, 0, 2)),
			&pcg.Options{MaxIter: 200, TolFraction: stage.TolFraction}))
		// The preconditioner of the sweep and that of the solve alone round differently, which changes a residual by
		// less than a factor of two. The numbers of iterations may differ by those that halve the error.
		if p.Iterations == nil || math.Abs(float64(*p.Iterations-solved.Iterations)) > float64(pcg.IterationBound(kappa,
			0.5)) || p.Status != solved.Status {
			t.Errorf("λ_p = %g: %s, alone %v after %d", p.LambdaP, fmt.Sprint(p), solved.Status, solved.Iterations)
		}
		if best := sweep.Points[sweep.Best]; p.Status == pcg.Converged && *p.Iterations < *best.Iterations {
			t.Errorf("λ_p = %g takes %d iterations, the choice %g takes %d", p.LambdaP, *p.Iterations, best.LambdaP,
				*best.Iterations)
		}
	}
	if sweep.SetUpSeconds < 0.5 || !(sweep.IterationSeconds > 0) || !maps.Equal(reported,
		map[stage.Name]bool{"eta": true, "lanczos": true, "solve": true}) {
		t.Errorf("set-up %g s, an iteration %g s, progress %v", sweep.SetUpSeconds, sweep.IterationSeconds, reported)
	}
}

// TestSweepStorageError checks that the intervals allow for the storage error E = 0.4λ·I of K.
func TestSweepStorageError(t *testing.T) {
	const n, lambda, e = 200, 0.01, 0.4 * 0.01
	a, z := newTestProblem(n, 50, lambda, 3)
	stored := ridgeOperator{testkit.AddRidge(a.k, e), lambda}
	y := testkit.RandomMatrix(4, n, 1)
	sweep := testkit.Must(measureSweep(t.Context(), stored, z, y, 0.5, &Options{Points: 5, kError: e}))
	zz := outerProduct(z)
	if eta := errorNorm(t, a, zz); !sweep.Eta.Contains(eta) {
		t.Errorf("η = %v, is %g", sweep.Eta, eta)
	}
	for _, p := range sweep.Points {
		eigenvalues := pencilEigenvalues(t, a, zz, p.LambdaP)
		if !p.Kappa.Contains(eigenvalues[n-1] / eigenvalues[0]) {
			t.Errorf("λ_p = %g: κ %v, is %g", p.LambdaP, p.Kappa, eigenvalues[n-1]/eigenvalues[0])
		}
		if !(p.Min.Lo <= eigenvalues[0]*(1+1e-8) && eigenvalues[0]*(1-1e-8) <= p.Min.Hi &&
			p.Max.Lo <= eigenvalues[n-1]*(1+1e-8) && eigenvalues[n-1]*(1-1e-8) <= p.Max.Hi) {
			t.Errorf("λ_p = %g: λ_min %v, is %g; λ_max %v, is %g", p.LambdaP, p.Min, eigenvalues[0], p.Max,
				eigenvalues[n-1])
		}
	}
}

// TestCanceledSweep checks that a canceled sweep returns the points measured so far, with valid intervals, and the
// iterations of the solves that had ended.
func TestCanceledSweep(t *testing.T) {
	const n = 200
	a, z := newTestProblem(n, 50, 0.01, 3)
	y := testkit.RandomMatrix(4, n, 1)
	// Each part is canceled in its fourth Lanczos step, or in iteration 76, when only some of the solves have ended.
	for part, event := range map[stage.Name]int{"lanczos": 4, "solve": 76} {
		ctx, cancel := context.WithCancel(t.Context())
		sweep, err := measureSweep(ctx, a, z, y, 0, &Options{Points: 7, notify: func(_ context.Context, e stage.Event) {
			if e.Stage == part && max(e.Done, e.Iteration) == event {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) || sweep == nil || len(sweep.Points) < 7 {
			t.Fatalf("%s: %v, %v", part, sweep, err)
		}
		solved := 0
		for _, p := range sweep.Points {
			eigenvalues := pencilEigenvalues(t, a, outerProduct(z), p.LambdaP)
			kappa := eigenvalues[n-1] / eigenvalues[0]
			if !p.Kappa.Contains(kappa) && math.Abs(p.Kappa.Value/kappa-1) > 1e-6 {
				t.Errorf("%s: λ_p = %g: κ %v, is %g", part, p.LambdaP, p.Kappa, kappa)
			}
			if p.Iterations != nil {
				solved++
			}
		}
		if part == "lanczos" && solved > 0 || part == "solve" && (solved == 0 || solved == len(sweep.Points)) {
			t.Errorf("canceled in %s: %d of %d points have iterations", part, solved, len(sweep.Points))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sweep, err := measureSweep(ctx, a, z, y, 0, &Options{}); err == nil || sweep != nil {
		t.Errorf("a context that is canceled at the start: %v, %v", sweep, err)
	}
}

// TestRanksChoose checks that ranks with different clocks predict the same times and choose the same λ_p.
func TestRanksChoose(t *testing.T) {
	const n = 60
	a, z := newTestProblem(n, 12, 0.1, 1)
	y := testkit.RandomMatrix(2, n, 2)
	sweeps := make([]*Sweep, 2)
	var wg sync.WaitGroup
	for rank, communicator := range comm.Local(2, 0) {
		wg.Go(func() {
			lo, hi := comm.RowRange(n, precond.RankRows, rank, 2)
			options := &Options{Grid: []float64{0.1, 1, 10}, Steps: 10, NoSolve: true, stream: rng.New(3),
				comm: communicator}
			var err error
			if sweeps[rank], err = measureSweep(t.Context(), a, z.Slice(lo, hi).(*points.Dense32), y, float64(rank),
				options); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	first, second := sweeps[0], sweeps[1]
	if first.Best < 0 || first.Best != second.Best || first.SetUpSeconds != second.SetUpSeconds ||
		first.IterationSeconds != second.IterationSeconds || first.EigenSeconds != second.EigenSeconds {
		t.Errorf("rank 0: %+v\nrank 1: %+v", first, second)
	}
	for i, p := range first.Points {
		if pointOfRank1 := second.Points[i]; p.Seconds != pointOfRank1.Seconds {
			t.Errorf("λ_p = %g: %g s predicted by rank 0, %g s by rank 1", p.LambdaP, p.Seconds, pointOfRank1.Seconds)
		}
	}
}

// columnCounter is an operator that counts the columns of its widest product.
type columnCounter struct {
	ridgeOperator
	widest int
}

func (c *columnCounter) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	c.widest = max(c.widest, src.RawMatrix().Cols)
	return c.ridgeOperator.MulTo(ctx, dst, src)
}

// TestManyPoints checks that a grid of more than maxColumns λ_p is measured in sets of at most maxColumns, with the
// numbers that each λ_p has alone, and that a canceled context ends it after the first set.
func TestManyPoints(t *testing.T) {
	a, z := newTestProblem(20, 8, 0.1, 3)
	y := testkit.RandomMatrix(4, 20, 1)
	grid := make([]float64, maxColumns+5)
	for i := range grid {
		grid[i] = 0.01 * math.Pow(1.03, float64(i))
	}
	for _, cancels := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		counter := &columnCounter{ridgeOperator: a}
		sweep, err := measureSweep(ctx, counter, z, y, 0, &Options{Grid: slices.Clone(grid), Columns: 1, Steps: 6,
			notify: func(_ context.Context, e stage.Event) {
				if cancels && e.Stage == stage.Lanczos && e.Done == 3 {
					cancel()
				}
			}})
		cancel()
		switch {
		case cancels && (!errors.Is(err, context.Canceled) || sweep == nil || len(sweep.Points) != maxColumns):
			t.Fatalf("%v, %v", sweep, err)
		case counter.widest != maxColumns:
			t.Errorf("a product had %d columns", counter.widest)
		case !cancels && (err != nil || len(sweep.Points) != len(grid)):
			t.Fatalf("%v, %v", sweep, err)
		}
		for i := 0; i < len(sweep.Points) && !cancels; i += maxColumns {
			p := sweep.Points[i]
			alone := testkit.Must(measureSweep(t.Context(), a, z, y, 0, &Options{Grid: []float64{grid[i]}, Columns: 1,
				Steps: 6})).Points[0]
			if p.LambdaP != grid[i] || *p.Iterations != *alone.Iterations ||
				math.Abs(p.Kappa.Value/alone.Kappa.Value-1) > 1e-9 {
				t.Errorf("λ_p = %g: κ %v in %d iterations, alone %v in %d", p.LambdaP, p.Kappa, *p.Iterations,
					alone.Kappa, *alone.Iterations)
			}
		}
	}
}
