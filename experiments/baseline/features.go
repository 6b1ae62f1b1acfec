package baseline

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// Options are the options of RandomFeatures and ADMM. Zero values, and nil, mean the defaults.
type Options struct {
	Memory accel.Budget // memory budget of the method
	// Progress, if not nil, is called with the progress of each stage: "features" (counted in points), "factor"
	// (blocks), "rho" (values of the grid) and "solve" (iterations).
	Progress func(stage string, completed, total int)
}

// report calls o.Progress, if it is not nil.
func (o *Options) report(stage string, completed, total int) {
	if o.Progress != nil {
		o.Progress(stage, completed, total)
	}
}

// Seconds is the time that a method spent, by stage.
type Seconds struct {
	Features float64 // time of forming Z
	Factor   float64 // time of forming ZᵀZ or Z_jᵀZ_j and its factorization or inverse
	Rho      float64 // time of choosing ρ
	Solve    float64 // time of the iteration
}

// Result is the model f(x) = φ(x)ᵀW that a method has fitted.
type Result struct {
	W          *mat.Dense  // weights, s×t
	Map        feature.Map // feature map φ
	Status     pcg.Status  // how the iteration ended
	Iterations int         // number of iterations
	Objective  float64     // value at W of the function that the method minimizes
	Residual   float64     // for RandomFeatures: the largest ‖y_j−(ZZᵀ+λI)c_j‖₂/‖y_j‖₂, with W = ZᵀC

	Rho           float64   // for ADMM: the chosen ρ
	RhoObjectives []float64 // for ADMM: the objective that each ρ of the grid reached in the trial iterations
	Dual          float64   // for ADMM: a lower bound on the minimum of the objective, from the duals
	Gap           float64   // for ADMM: (Objective−Dual)/Objective, at most 1

	Bytes   int64   // predicted peak memory of the method, without about 20 MB per thread
	Seconds Seconds // time by stage
}

// RandomFeatures solves kernel ridge regression in the span of the features φ = m of the points,
//
//	min_W ‖ZW−Y‖_F² + λ‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ, Y n×t,
//
// (Rahimi and Recht 2007; the paper's "sketch-and-solve"). λ is the ridge of K+λI: as ZZᵀ → K, f converges to the
// result of the exact method. With W = ZᵀC the problem is (ZZᵀ+λI)C = Y. PCG solves it with the inverse of ZZᵀ+λI from
// the Cholesky factor of ZᵀZ+λI (package precond) as the preconditioner. The factor is computed with float32 products
// if their error is at most λ/10. The iteration uses float64 products with Z and removes the remaining error.
//
// Work: ns² + s³/3 flops, and 8nst for each of about six iterations. Memory: 4ns + 8s² bytes and blocks of t columns.
// The result is bit-identical for any number of threads.
//
// It returns an error if the features are not finite, the memory limit is too small, the matrix is not positive
// definite in float64, or ctx ends. A residual above 10⁻⁹ is reported by Status. It panics if the shapes do not fit.
func RandomFeatures(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense,
	o *Options) (*Result, error) {
	opt := *cmp.Or(o, &Options{})
	n, s, t := dimensions(m, x, y)
	result := &Result{Map: m, Bytes: 4*n*s + 8*s*s + 8*t*(8*n+6*s)}
	z, err := result.formFeatures(ctx, x, &opt, fmt.Sprintf("random features with n = %d, s = %d", n, s))
	if err != nil {
		return nil, err
	}
	start := time.Now()
	// shifted is ZZᵀ+λI. It multiplies by this matrix, and as a preconditioner by the inverse.
	shifted, err := precond.New(ctx, z, lambda, &precond.Options{Form: precond.FormL, Fast: true})
	if err != nil {
		return nil, fmt.Errorf("baseline: random features: %w", err)
	}
	result.Seconds.Factor = stage.Lap(&start)
	sol, err := pcg.Solve(ctx, shifted, shifted, y, &pcg.Options{Tol: 1e-9, MaxIter: 50})
	if err != nil {
		return nil, err
	}
	c, wt := transposed(sol.X), make([]float64, s*t)
	err = accel.ForEach(ctx, int(s+productCols-1)/productCols, func(_, task int) {
		c0 := task * productCols
		simd.AddTransposeProduct(z.Data[c0:], z.Stride, // W = ZᵀC
			blas64.General{Rows: int(t), Cols: min(productCols, z.D-c0), Stride: z.D, Data: wt[c0:]},
			blas64.General{Rows: int(t), Cols: z.N, Stride: z.N, Data: c}, new(simd.Workspace))
	})
	result.W, result.Status = fromTransposed(wt, z.D, int(t)), sol.Status
	result.Iterations, result.Residual = sol.Iterations, sol.MaxTrueRelRes()
	sol.R.Apply(func(i, j int, r float64) float64 { return r + lambda*sol.X.At(i, j) }, sol.R) // Y−ZW
	residualNorm := mat.Norm(sol.R, 2)
	result.Objective = residualNorm*residualNorm + lambda*floats.Dot(wt, wt)
	result.Seconds.Solve = stage.Lap(&start)
	return result, err
}

// dimensions returns the number of points, of features and of targets per point. It panics if the shapes do not fit.
func dimensions(m feature.Map, x points.Points, y *mat.Dense) (n, s, t int64) {
	rows, dim := x.Dims()
	d, features := m.Dims()
	targetRows, cols := y.Dims()
	if dim != d || targetRows != rows {
		panic(fmt.Sprintf("baseline: %d points of dimension %d, features of R^%d, %d rows of targets", rows, dim, d,
			targetRows))
	}
	return int64(rows), int64(features), int64(cols)
}

// formFeatures returns Z. It returns an error, which names the method, if r.Bytes exceeds the memory limit.
func (r *Result) formFeatures(ctx context.Context, x points.Points, o *Options,
	method string) (*points.Dense32, error) {
	if err := o.Memory.Check(r.Bytes, "baseline: "+method, "take fewer features"); err != nil {
		return nil, err
	}
	start := time.Now()
	z, err := feature.Matrix(ctx, r.Map, x, func(completed, total int) {
		o.report("features", completed, total)
	})
	r.Seconds.Features = stage.Lap(&start)
	return z, err
}

const (
	productCols  = 256  // number of columns of Z in one parallel task of ZᵀC
	productRows  = 64   // number of rows of Z in one parallel task of ZW
	predictPanel = 4096 // number of rows of Z that Predict forms at a time; more rows need more memory
)

// Predict returns the p×t matrix of the values f(x) = φ(x)ᵀW for the p points of x. It forms the features in panels of
// points, and needs 2ps additional flops for each column. It returns an error if there are no points, if a feature is
// not finite, or if ctx ends. It panics if the points do not have the dimension of φ.
func (r *Result) Predict(ctx context.Context, x points.Points) (*mat.Dense, error) {
	n, _ := x.Dims()
	if n == 0 {
		return nil, fmt.Errorf("baseline: no points to predict")
	}
	s, t := r.W.Dims()
	weights, values := transposed(r.W), make([]float64, n*t)
	for p0 := 0; p0 < n; p0 += predictPanel {
		z, err := feature.Matrix(ctx, r.Map, x.Slice(p0, min(p0+predictPanel, n)), nil)
		if err == nil {
			err = accel.ForEach(ctx, (z.N+productRows-1)/productRows, func(_, task int) {
				i := task * productRows
				simd.AddProduct(z.Data[i*z.Stride:], z.Stride,
					blas64.General{Rows: t, Cols: s, Stride: s, Data: weights},
					blas64.General{Rows: t, Cols: min(productRows, z.N-i), Stride: n, Data: values[p0+i:]})
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return fromTransposed(values, n, t), nil
}

// transposed returns the entries of yᵀ by rows: first column 0 of y, then column 1, and so on.
func transposed(y *mat.Dense) []float64 { return mat.DenseCopyOf(y.T()).RawMatrix().Data }

// fromTransposed is the inverse of transposed. It returns the n×t matrix.
func fromTransposed(v []float64, n, t int) *mat.Dense {
	return mat.DenseCopyOf(mat.NewDense(t, n, v).T())
}
