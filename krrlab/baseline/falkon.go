package baseline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// FalkonOptions of Falkon. Zero values, and nil, mean the defaults.
type FalkonOptions struct {
	// Indices of the centres among the points, in place of a uniform draw.
	Indices []int
	// Tol is τ: column j has converged when ‖Bᵀ(b_j−Hα_j)‖₂ ≤ τ‖Bᵀb_j‖₂. Default 1e-4.
	Tol float64
	// MaxIter is the most iterations. Default 100.
	MaxIter int
	// Float64 forms K_nm in float64. Default false: float32, half the memory and the time.
	Float64 bool
	// Stream forms K_nm anew for every product, even if it could be kept.
	Stream bool
	// Memory is the number of bytes that may be taken, 0 for no limit; then K_nm is kept if it
	// takes at most half of what the machine has left.
	Memory int64
	// Monitor, if not nil, is called after each iteration, with Objective NaN. If it returns an
	// error, Falkon ends with Status Stopped and that error.
	Monitor func(FalkonStep) error
	// Progress, if not nil, is told how many rows of K_nm of all are formed: stage "tiles".
	Progress func(stage string, done, total int)
}

// FalkonStep is the state after an iteration.
type FalkonStep struct {
	Iteration int
	Seconds   float64 // since Falkon began
	Objective float64 // ‖K_nmα−Y‖_F²+λ tr αᵀ(K_mm+νD)α by recurrence
	RelRes    float64 // the largest ‖Bᵀ(b_j−Hα_j)‖₂/‖Bᵀb_j‖₂ by recurrence
}

// FalkonSeconds are the seconds that Falkon spent.
type FalkonSeconds struct {
	Centres  float64 // drawing them, and the error of tiles
	Factor   float64 // K_mm, L, C and their inverses
	Tiles    float64 // forming K_nm, if it is kept
	Products float64 // with K_nm and K_nmᵀ, and forming it if it is not kept
	Precond  float64 // with L⁻¹, C⁻¹ and their transposes
	Total    float64
}

// FalkonResult is the answer of Falkon.
type FalkonResult struct {
	Alpha       *mat.Dense    // m×t
	Centres     points.Points // m points
	Indices     []int         // of the centres among the points
	Kernel      kernel.Kernel
	N, M, T     int // points, centres, columns
	Lambda, Tol float64
	Jitter      float64 // ν, relative to the diagonal of K_mm
	Status      Status
	Iterations  int
	Objective   float64   // ‖K̃_nmα−Y‖_F²+λ tr αᵀK_mmα, K̃ the tiles used; NaN if it was not measured
	RelRes      []float64 // ‖Bᵀ(b_j−Hα_j)‖₂/‖Bᵀb_j‖₂, recomputed from α
	Rounding    float64   // ‖(K̃−K)α‖_F/‖Kα‖_F on 128 rows, the 32 of largest norm and others drawn at random: Objective is off in proportion
	Cond        float64   // an estimate of κ(BᵀHB), from below
	Float64     bool      // precision of the tiles
	Kept        bool      // K_nm was kept
	History     []FalkonStep
	Bytes       int64
	Seconds     FalkonSeconds
}

// MaxRelRes returns the largest relative residual.
func (r *FalkonResult) MaxRelRes() float64 { return worst(r.RelRes) }

// String says in one line how it ended.
func (r *FalkonResult) String() string {
	entries := "float32"
	if r.Float64 {
		entries = "float64"
	}
	return fmt.Sprintf("restricted KRR, n = %d, m = %d centres, t = %d, K_nm in %s: %v after %d iterations, residual %.3g (asked %.3g), objective %.6g, rounding %.2g, ν = %.2g, κ ≥ %.3g; factor %.3g s, tiles %.3g s, products %.3g s, preconditioner %.3g s",
		r.N, r.M, r.T, entries, r.Status, r.Iterations, r.MaxRelRes(), r.Tol, r.Objective, r.Rounding, r.Jitter, r.Cond,
		r.Seconds.Factor, r.Seconds.Tiles, r.Seconds.Products, r.Seconds.Precond)
}

// Predict returns f(x) = Σ_j α_j k(c_j, x) for all points, p×t, as model.Model.Decision.
func (r *FalkonResult) Predict(ctx context.Context, x points.Points) (*mat.Dense, error) {
	m := &model.Model{Kernel: r.Kernel, Lambda: r.Lambda, X: r.Centres, C: r.Alpha}
	return m.Decision(ctx, x, &model.Options{Accuracy: model.AccuracyFor(r.Tol), Float64: r.Float64})
}

// Falkon solves kernel ridge regression restricted to the span of m of the n points, the
// centres c_j (Nyström),
//
//	min_α ‖K_nmα−Y‖_F² + λ tr αᵀK_mmα,  (K_nmᵀK_nm + λK_mm)α = K_nmᵀY,
//
// by conjugate gradients with the preconditioner of Rudi, Carratino and Rosasco (2017),
// Algorithm 1. f(x) = Σ_j α_j k(c_j, x). λ is that of K+λI: with all points as centres it is the
// exact method. In that paper the loss is a mean and λ stands for λ/n here.
//
// The centres are given, or the first m of the permutation g.Sub("centres").Perm(n): uniform
// without replacement. With H = K_nmᵀK_nm + λ(K_mm+νD), D the diagonal of K_mm, and
//
//	LLᵀ = K_mm+νD,  CCᵀ = (n/m)LᵀL+λI,  B = L⁻ᵀC⁻ᵀ,
//
// conjugate gradients run on BᵀHBβ = BᵀK_nmᵀY, α = Bβ, where the residual tells the objective J:
// what is left of it is at most ‖Bᵀ(b−Hα)‖_F²/λ_min(BᵀHB), with λ_min about ½.
//
// The shift ν stands where Rudi et al. have machine epsilon times m: it keeps H definite where centres
// are doubled or K_mm is singular to rounding, and holds back what the rounding of tiles adds to
// K_nm, which L⁻¹ enlarges: ν = 2⁻⁵²m, and where tiles are in float32 at least 2r√m/max k, the norm of
// a matrix of independent errors on K_mm, r being the root mean square of K̃−K measured on 128
// rows. It is raised tenfold while K_mm+νD is not positive definite, up to 1e-4. Directions of K_mm with
// eigenvalues below ν are cut by it; they could explain at most the share νn/(mλ) of ‖Y‖². On
// 2,000 points and 300 centres the objective of α is within 1e-6 of its minimum in float32 too
// (TestFalkon2000).
//
// Work: nm kernel values; 5/3·m³ flops for the factors; for each iteration 4nmt flops, reading K_nm
// once (or forming it: 2nmd flops), and 4m²t. Memory: K_nm if it is kept, 4nm bytes (Float64: 8nm),
// and 16m². The result has the same bits for any number of threads.
//
// Not converging is a Status; so is, as Inaccurate, a Rounding above the tolerance. It returns an
// error if the kernel is not valid, λ is not positive, the targets or kernel values are not
// finite, the memory allowed is too little (a *LimitError), K_mm is not positive semidefinite or
// ctx ends; once it iterates, the result so far comes with the error of ctx or Monitor. It panics if
// shapes do not fit, m is not in [1, n], an index is out of range or an option is negative.
func Falkon(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense, centres int, g rng.Stream, o *FalkonOptions) (*FalkonResult, error) {
	f, err := newFalkon(k, x, lambda, y, centres, g, o)
	if err != nil {
		return nil, err
	}
	if err := f.setup(ctx); err != nil {
		return nil, err
	}
	b, err := f.right(ctx)
	if err != nil {
		return nil, err
	}
	return f.iterate(ctx, b)
}

// falkon is the state of one Falkon, and the operator BᵀHB.
type falkon struct {
	k      kernel.Kernel
	x, c   points.Points // points and centres, as tiles have them
	y      *mat.Dense
	cols   []float64 // Y by columns
	lambda float64
	opt    FalkonOptions
	keep   bool
	kx     cross
	wide   kernel.Arithmetic // of float64 tiles
	arith  kernel.Arithmetic // of float32 tiles
	sample points.Points     // of which their error is measured
	random int               // how many of them, the first, were drawn at random
	exact  []float64         // K of it and the centres
	white  *whitening
	began  time.Time
	res    *FalkonResult

	z, u, a, h []float64 // blocks of t×m
}

func newFalkon(k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense, m int, g rng.Stream, o *FalkonOptions) (*falkon, error) {
	f := &falkon{k: k, x: x, y: y, lambda: lambda, began: time.Now()}
	if o != nil {
		f.opt = *o
	}
	opt := &f.opt
	n, _ := x.Dims()
	_, t := y.Dims()
	if opt.Indices != nil {
		m = len(opt.Indices)
		for _, i := range opt.Indices {
			if i < 0 || i >= n {
				panic(fmt.Sprintf("baseline: center %d of %d points", i, n))
			}
		}
	}
	if m < 1 || m > n || !(opt.Tol >= 0) || opt.MaxIter < 0 || opt.Memory < 0 {
		panic(fmt.Sprintf("baseline: %d centers of %d points, tolerance %v, %d iterations, memory %d", m, n, opt.Tol, opt.MaxIter, opt.Memory))
	}
	if err := checkTargets(n, y); err != nil {
		return nil, err
	}
	if err := checkLambda(lambda); err != nil {
		return nil, err
	}
	if err := kernel.Validate(k); err != nil {
		return nil, err
	}
	if err := points.CheckFinite(x); err != nil {
		return nil, err
	}
	opt.Tol, opt.MaxIter = cmp.Or(opt.Tol, 1e-4), cmp.Or(opt.MaxIter, 100)
	need := func(keep bool) int64 { return FalkonNeed(n, m, t, opt.Float64, keep) }
	f.keep = !opt.Stream
	if opt.Memory > 0 {
		f.keep = f.keep && need(true) <= opt.Memory
	} else {
		f.keep = f.keep && keepable(need(true))
	}
	idx := slices.Clone(opt.Indices)
	if idx == nil {
		idx = g.Sub("centres").Perm(n)[:m]
	}
	f.res = &FalkonResult{
		Indices: idx, Centres: points.Gather(x, idx), Kernel: k, N: n, M: m, T: t, Lambda: lambda, Tol: opt.Tol,
		Float64: opt.Float64, Kept: f.keep, Bytes: need(f.keep),
	}
	f.c = f.res.Centres
	var move []float64
	if f.x, f.wide, move = kernel.AccuratePoints(k, x, tileError/100); move != nil {
		f.c = points.Shift(f.c, move)
	}
	return f, fits("restricted KRR", fmt.Sprintf("n = %d, m = %d", n, m), f.res.Bytes, opt.Memory, "take fewer centres")
}

// FalkonNeed returns the bytes that Falkon takes for n points, m centres and t columns: 16m² for the
// factors, K_nm (or panels of it), and the blocks of t columns.
func FalkonNeed(n, m, t int, wide, keep bool) int64 {
	nn, mm, tt := int64(n), int64(m), int64(t)
	size := int64(4)
	if wide {
		size = 8
	}
	entries := nn * mm
	if !keep {
		entries = crossRows * mm * int64(accel.Threads())
	}
	return 16*mm*mm + size*entries + 8*tt*((passTasks+12)*mm+2*nn)
}
