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

// ADMMOptions are the options of ADMM. Zero values, and nil, mean the defaults.
type ADMMOptions struct {
	Options
	Loss   Loss // default Square
	Blocks int  // number C ≥ 1 of blocks of columns of Z; default ⌈s/2048⌉
	// RhoGrid is the grid of values ρ > 0 to choose from. The value of ρ determines the speed of convergence, but not
	// the solution. Each value gets TrialIterations iterations that start from zero, and the one with the smallest
	// objective is chosen. Default: 1.
	RhoGrid []float64
	// TrialIterations is the number of iterations for each ρ of the grid; default 30.
	TrialIterations int
	// Tol is the relative tolerance τ of the stopping test
	//
	//	‖z₁−z₂‖ ≤ τ·max(‖z₁‖, ‖z₂‖)  and  ‖z₂−z₂'‖ ≤ τ‖u‖.
	//
	// Here z₁ and z₂ are all variables after the proximal and after the averaging step, z₂' is the z₂ of the previous
	// iteration, and u are the scaled duals. Default 1e-4.
	Tol     float64
	MaxIter int // largest number of iterations; default 1000
}

const (
	// blockFeatures is the largest number of features in a block by default. Larger blocks need more work and memory
	// for the inverses.
	blockFeatures = 2048
	// passTasks is the number of parallel tasks of a pass over Z. It is constant, so that the result does not depend on
	// the number of threads.
	passTasks = 16
	// passEntries is the number of entries of Z that a task reads at a time and uses for both products: 512 KiB.
	passEntries = 1 << 17
	// inverseRows is the number of rows of an inverse in one parallel task.
	inverseRows = 128
)

// admm is the problem that ADMM solves, with the inverses for the projection, which do not depend on ρ. Vectors over
// the features are stored by blocks, each a t×s_j matrix. Vectors over the rows are t×n matrices.
type admm struct {
	ADMMOptions
	lambda     float64         // ridge λ
	z          *points.Dense32 // features Z, n×s
	targets    []float64       // the targets Yᵀ, t×n
	n, s, t    int             // numbers of points, of features and of targets per point
	blockStart []int           // first column of each block, and s
	inverse    [][]float64     // the inverses (I+Z_jᵀZ_j)⁻¹, s_j×s_j
	strips     []strip         // parallel tasks of a product with all inverses
	tasks      int             // number of parallel tasks of a pass over Z, each for a range of rows
	panel      int             // number of rows of Z that a task processes at a time
}

// strip is a parallel task: inverseRows rows of the inverse of a block, from firstRow on.
type strip struct{ block, firstRow int }

// ADMM minimizes, by block ADMM on the random features φ = m of the points,
//
//	F(W) = Σ_i Σ_c loss(y_ic, (ZW)_ic) + (λ/2)‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ,
//
// with Z in C blocks of columns Z_j. See the package documentation for the method. The targets of Hinge must be ±1. A
// nil o means the defaults. The result is bit-identical for any number of threads.
//
// Work: forming Z; n·(s/C)² + 4/3·(s/C)³ flops for each block; and 4nst + 2s²t/C flops per iteration, which reads Z
// once. Memory: 4ns bytes for Z, 8s²/C bytes for the inverses, and (C+2)nt + 23st numbers.
//
// It returns an error if the loss is unknown, the features are not finite, the memory limit is too small, or ctx ends.
// Status reports whether the iteration converged. It panics if the shapes do not fit, an option is negative, a ρ is not
// positive, or there are more blocks than columns.
func ADMM(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense,
	o *ADMMOptions) (*Result, error) {
	n, s, t := dimensions(m, x, y)
	a := &admm{ADMMOptions: *cmp.Or(o, &ADMMOptions{}), lambda: lambda, n: int(n), s: int(s), t: int(t),
		targets: transposed(y)}
	a.setDefaults()
	if a.Loss != Square && a.Loss != Hinge {
		return nil, fmt.Errorf("baseline: unknown loss %q: want %s or %s", a.Loss, Square, Hinge)
	}
	result := &Result{Map: m, Bytes: a.memory()}
	var err error
	method := fmt.Sprintf("block ADMM with n = %d, s = %d, %d blocks", n, s, a.Blocks)
	a.z, err = result.formFeatures(ctx, x, &a.Options, method)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := a.formInverses(ctx); err != nil {
		return nil, err
	}
	result.Seconds.Factor = stage.Lap(&start)
	if err := a.chooseRho(ctx, result); err != nil {
		return nil, err
	}
	result.Seconds.Rho = stage.Lap(&start)
	err = a.solve(ctx, result)
	result.Seconds.Solve = stage.Lap(&start)
	return result, err
}

// setDefaults replaces zero options by their defaults, and divides the work into blocks and tasks. It panics if an
// option is invalid.
func (a *admm) setDefaults() {
	a.Blocks = cmp.Or(a.Blocks, (a.s+blockFeatures-1)/blockFeatures)
	if a.RhoGrid == nil {
		a.RhoGrid = []float64{1}
	}
	if a.Blocks < 1 || a.Blocks > a.s || len(a.RhoGrid) == 0 || !(slices.Min(a.RhoGrid) > 0) || !(a.Tol >= 0) ||
		a.MaxIter < 0 || a.TrialIterations < 0 {
		panic(fmt.Sprintf("baseline: %d blocks of %d features, ρ = %v, %d iterations each, tolerance %v, %d iterations",
			a.Blocks, a.s, a.RhoGrid, a.TrialIterations, a.Tol, a.MaxIter))
	}
	a.Loss, a.TrialIterations = cmp.Or(a.Loss, Square), cmp.Or(a.TrialIterations, 30)
	a.Tol, a.MaxIter = cmp.Or(a.Tol, 1e-4), cmp.Or(a.MaxIter, 1000)
	for j := range a.Blocks + 1 {
		a.blockStart = append(a.blockStart, j*a.s/a.Blocks)
	}
	a.panel = max(8, min(passEntries/a.s, 96)&^7) // a multiple of 8
	a.tasks = max(1, min(passTasks, a.n/a.panel))
}

// memory returns the bytes that the problem and its solution need.
func (a *admm) memory() int64 {
	n, s, t, blocks := int64(a.n), int64(a.s), int64(a.t), int64(a.Blocks)
	bytes := 4*n*s + 8*(n*t*(blocks+3)+s*t*int64(7+a.tasks)) +
		8*(s+blocks)/blocks*max(1024, 2*(s+blocks)/blocks) // temporary memory for forming one inverse
	for j := range a.Blocks {
		bytes += 8 * int64(a.blockWidth(j)*a.blockWidth(j))
	}
	return bytes
}

// blockWidth returns s_j, the number of columns of block j.
func (a *admm) blockWidth(j int) int { return a.blockStart[j+1] - a.blockStart[j] }

// blockPart returns the part of a vector over the features that belongs to block j.
func (a *admm) blockPart(v []float64, j int) []float64 {
	return v[a.t*a.blockStart[j] : a.t*a.blockStart[j+1]]
}

// block returns the rows r0 to r1−1 of Z_j.
func (a *admm) block(j, r0, r1 int) *points.Dense32 {
	return &points.Dense32{N: r1 - r0, D: a.blockWidth(j), Stride: a.z.Stride,
		Data: a.z.Data[r0*a.z.Stride+a.blockStart[j]:]}
}

// formInverses computes (I + Z_jᵀZ_j)⁻¹ = L⁻ᵀL⁻¹ for every block. The products are in float64, because an error in the
// projection would change the limit of the iteration.
func (a *admm) formInverses(ctx context.Context) error {
	for j := range a.Blocks {
		width := a.blockWidth(j)
		var g precond.Gram
		if err := g.Grow(ctx, nil, a.block(j, 0, a.n)); err != nil {
			return err
		}
		factor := g.TakeShifted(1) // I + Z_jᵀZ_j, then L, then L⁻¹
		if !accel.Dpotrf(width, factor, width) || !accel.Dtrtri(width, factor, width) {
			return fmt.Errorf("baseline: I+ZᵀZ of block %d of Z, of %d columns, is not positive definite in float64: "+
				"scale the kernel down", j, width)
		}
		inv := blas64.Symmetric{N: width, Stride: width, Data: make([]float64, width*width), Uplo: blas.Lower}
		blas64.Syrk(blas.Trans, 1, blas64.General{Rows: width, Cols: width, Stride: width, Data: factor}, 0, inv)
		for row := range width {
			for column := range row {
				inv.Data[column*width+row] = inv.Data[row*width+column]
			}
		}
		a.inverse = append(a.inverse, inv.Data)
		for r0 := 0; r0 < width; r0 += inverseRows {
			a.strips = append(a.strips, strip{j, r0})
		}
		a.report("factor", j+1, a.Blocks)
	}
	return nil
}

// chooseRho runs the same number of iterations with each ρ of the grid, and sets res.Rho to the one with the smallest
// objective.
func (a *admm) chooseRho(ctx context.Context, res *Result) error {
	res.Rho = a.RhoGrid[0]
	if len(a.RhoGrid) == 1 {
		return nil
	}
	for i, rho := range a.RhoGrid {
		state := a.newIteration(rho)
		for range a.TrialIterations {
			if err := state.iterate(ctx); err != nil {
				return err
			}
		}
		if err := state.measure(ctx, res); err != nil {
			return err
		}
		res.RhoObjectives = append(res.RhoObjectives, res.Objective)
		a.report("rho", i+1, len(a.RhoGrid))
	}
	res.Rho = a.RhoGrid[floats.MinIdx(res.RhoObjectives)]
	return nil
}

// solve iterates with res.Rho until the stopping test is met or MaxIter is reached, and sets res.W.
func (a *admm) solve(ctx context.Context, res *Result) error {
	state := a.newIteration(res.Rho)
	res.Status = pcg.MaxIterations
	for res.Iterations < a.MaxIter && res.Status != pcg.Converged {
		if err := state.iterate(ctx); err != nil {
			return err
		}
		res.Iterations++
		sums, tolSq := &state.total, a.Tol*a.Tol
		if sums.primal <= tolSq*max(sums.z1, sums.z2) && sums.change <= tolSq*sums.dual {
			res.Status = pcg.Converged
		}
		a.report("solve", res.Iterations, a.MaxIter)
	}
	res.W = mat.NewDense(a.s, a.t, nil)
	for j := range a.Blocks {
		for k, x := range a.blockPart(state.x, j) {
			res.W.Set(a.blockStart[j]+k%a.blockWidth(j), k/a.blockWidth(j), x)
		}
	}
	return state.measure(ctx, res)
}
