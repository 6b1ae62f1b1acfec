package baseline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// ADMMOptions of ADMM. Zero values, and nil, mean the defaults.
type ADMMOptions struct {
	Options
	Loss   Loss // default Square
	Blocks int  // C ≥ 1 blocks of columns of Z. Default ⌈s/2048⌉
	// Rho is the grid that ρ > 0 is chosen from, which the speed depends on and the answer does not: each is given
	// Trial iterations (default 30) from zero, and the one of the least objective is taken. Default: 1.
	Rho   []float64
	Trial int
	// Tol is τ of the stopping test, on residuals relative to what they are residuals of:
	//
	//	‖z₁−z₂‖ ≤ τ·max(‖z₁‖, ‖z₂‖)  and  ‖z₂−z₂'‖ ≤ τ‖u‖,
	//
	// z₁ and z₂ being all variables after the proximal and the averaging step, z₂' those of
	// the iteration before and u the scaled duals. Default 1e-4.
	Tol     float64
	MaxIter int // iterations at most. Default 1000
}

const (
	blockFeatures = 2048    // most features of a block by default
	passTasks     = 16      // tasks aimed at in a pass over Z, whatever the number of threads
	passEntries   = 1 << 17 // entries of Z that a task multiplies both ways: 512 KiB
	inverseRows   = 128     // rows of an inverse in a task
)

// admm is the problem that ADMM solves, with the inverses that it needs, whatever ρ is. Vectors over the features lie
// by blocks, each t×s_j, those over the rows are t×n.
type admm struct {
	ADMMOptions
	lambda  float64
	z       *points.Dense32
	targets []float64 // t×n
	n, s, t int
	colAt   []int       // bounds of the blocks
	inverse [][]float64 // (I+Z_jᵀZ_j)⁻¹, s_j×s_j
	strips  []strip     // tasks of a product with all of them
	tasks   int         // of a pass, each a range of rows
	panel   int         // rows of Z that a task takes together
}

// strip is the rows of the inverse j from r0 on.
type strip struct{ j, r0 int }

// ADMM minimizes by block ADMM on the random features φ = m of the points
//
//	F(W) = Σ_i Σ_c loss(y_ic, (ZW)_ic) + (λ/2)‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ,
//
// with Z in C blocks of columns Z_j; see the package doc for the method. Targets of Hinge are ±1. A nil o means the
// defaults. The result has the same bits for any number of threads.
//
// Work: Z, for each block n·(s/C)² + 4/3·(s/C)³ flops, and 4nst + 2s²t/C an iteration, which reads Z once. Memory: Z,
// 4ns bytes, the inverses, 8s²/C, and (C+2)nt + 23st numbers.
//
// It returns an error if the loss is unknown, the features are not finite, the memory allowed is too little, or ctx
// ends. Not converging is a Status. It panics if shapes do not fit, an option is negative, a ρ is not positive, or
// there are more blocks than columns.
func ADMM(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense,
	o *ADMMOptions) (*Result, error) {
	n, s, t := shape(m, x, y)
	a := &admm{ADMMOptions: *cmp.Or(o, &ADMMOptions{}), lambda: lambda, n: int(n), s: int(s), t: int(t),
		targets: byCols(y)}
	a.settle()
	if a.Loss != Square && a.Loss != Hinge {
		return nil, fmt.Errorf("baseline: unknown loss %q: want %s or %s", a.Loss, Square, Hinge)
	}
	res := &Result{Map: m, Bytes: a.bytes()}
	var err error
	a.z, err = res.form(ctx, x, &a.Options, fmt.Sprintf("block ADMM with n = %d, s = %d, %d blocks", n, s, a.Blocks))
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := a.invert(ctx); err != nil {
		return nil, err
	}
	res.Seconds.Factor = stage.Lap(&start)
	if err := a.tune(ctx, res); err != nil {
		return nil, err
	}
	res.Seconds.Rho = stage.Lap(&start)
	err = a.solve(ctx, res)
	res.Seconds.Solve = stage.Lap(&start)
	return res, err
}

// settle replaces zeros by the defaults, and divides the work.
func (a *admm) settle() {
	a.Blocks = cmp.Or(a.Blocks, (a.s+blockFeatures-1)/blockFeatures)
	if a.Rho == nil {
		a.Rho = []float64{1}
	}
	if a.Blocks < 1 || a.Blocks > a.s || len(a.Rho) == 0 || !(slices.Min(a.Rho) > 0) || !(a.Tol >= 0) ||
		a.MaxIter < 0 || a.Trial < 0 {
		panic(fmt.Sprintf("baseline: %d blocks of %d features, ρ = %v, %d iterations each, tolerance %v, %d iterations",
			a.Blocks, a.s, a.Rho, a.Trial, a.Tol, a.MaxIter))
	}
	a.Loss, a.Trial, a.Tol, a.MaxIter = cmp.Or(a.Loss, Square), cmp.Or(a.Trial, 30), cmp.Or(a.Tol, 1e-4),
		cmp.Or(a.MaxIter, 1000)
	for j := range a.Blocks + 1 {
		a.colAt = append(a.colAt, j*a.s/a.Blocks)
	}
	a.panel = max(8, min(passEntries/a.s, 96)&^7)
	a.tasks = max(1, min(passTasks, a.n/a.panel))
}

// bytes returns what the problem and its solve take.
func (a *admm) bytes() int64 {
	n, s, t, c := int64(a.n), int64(a.s), int64(a.t), int64(a.Blocks)
	b := 4*n*s + 8*(n*t*(c+3)+s*t*int64(7+a.tasks)) + 8*(s+c)/c*max(1024, 2*(s+c)/c) // of a block on the way
	for j := range a.Blocks {
		b += 8 * int64(a.order(j)*a.order(j))
	}
	return b
}

// order returns s_j, cols the part of a vector over the features that belongs to block j.
func (a *admm) order(j int) int                   { return a.colAt[j+1] - a.colAt[j] }
func (a *admm) cols(v []float64, j int) []float64 { return v[a.t*a.colAt[j] : a.t*a.colAt[j+1]] }

// block returns Z_j from row r0 to r1.
func (a *admm) block(j, r0, r1 int) *points.Dense32 {
	return &points.Dense32{N: r1 - r0, D: a.order(j), Stride: a.z.Stride, Data: a.z.Data[r0*a.z.Stride+a.colAt[j]:]}
}

// invert forms (I + Z_jᵀZ_j)⁻¹ = L⁻ᵀL⁻¹ of every block. The products are in float64: an error of the projection would
// shift the point that the iteration converges to.
func (a *admm) invert(ctx context.Context) error {
	for j := range a.Blocks {
		k := a.order(j)
		var g precond.Gram
		if err := g.Grow(ctx, nil, a.block(j, 0, a.n)); err != nil {
			return err
		}
		l := g.TakeShifted(1) // I + Z_jᵀZ_j, then L, then L⁻¹
		if !accel.Dpotrf(k, l, k) || !accel.Dtrtri(k, l, k) {
			return fmt.Errorf("baseline: I+ZᵀZ of block %d of Z, of %d columns, is not positive definite in float64: "+
				"scale the kernel down", j, k)
		}
		inv := blas64.Symmetric{N: k, Stride: k, Data: make([]float64, k*k), Uplo: blas.Lower}
		blas64.Syrk(blas.Trans, 1, blas64.General{Rows: k, Cols: k, Stride: k, Data: l}, 0, inv)
		for r := range k {
			for c := range r {
				inv.Data[c*k+r] = inv.Data[r*k+c]
			}
		}
		a.inverse = append(a.inverse, inv.Data)
		for r0 := 0; r0 < k; r0 += inverseRows {
			a.strips = append(a.strips, strip{j, r0})
		}
		a.tell("factor", j+1, a.Blocks)
	}
	return nil
}

// tune chooses ρ: all of the grid have the same iterations.
func (a *admm) tune(ctx context.Context, res *Result) error {
	res.Rho = a.Rho[0]
	if len(a.Rho) == 1 {
		return nil
	}
	for i, rho := range a.Rho {
		s := a.start(rho)
		for range a.Trial {
			if err := s.iterate(ctx); err != nil {
				return err
			}
		}
		if err := s.measure(ctx, res); err != nil {
			return err
		}
		res.Tried = append(res.Tried, res.Objective)
		a.tell("rho", i+1, len(a.Rho))
	}
	res.Rho = a.Rho[floats.MinIdx(res.Tried)]
	return nil
}

// solve iterates until the tests are met or the iterations are used up.
func (a *admm) solve(ctx context.Context, res *Result) error {
	s := a.start(res.Rho)
	res.Status = pcg.MaxIterations
	for res.Iterations < a.MaxIter && res.Status != pcg.Converged {
		if err := s.iterate(ctx); err != nil {
			return err
		}
		res.Iterations++
		if r := &s.total; r.primal <= a.Tol*a.Tol*max(r.z1, r.z2) && r.change <= a.Tol*a.Tol*r.dual {
			res.Status = pcg.Converged
		}
		a.tell("solve", res.Iterations, a.MaxIter)
	}
	res.W = mat.NewDense(a.s, a.t, nil)
	for j := range a.Blocks {
		for k, x := range a.cols(s.x, j) {
			res.W.Set(a.colAt[j]+k%a.order(j), k/a.order(j), x)
		}
	}
	return s.measure(ctx, res)
}
