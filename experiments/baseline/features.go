package baseline

import (
	"cmp"
	"context"
	"fmt"
	"time"

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

// Options of RandomFeatures and ADMM. Zero values, and nil, mean the defaults.
type Options struct {
	Memory int64 // bytes that may be taken, 0 for no limit
	// Progress, if not nil, is called with the progress of each stage: "features" (points), "factor" (blocks), "rho"
	// (of the grid) and "solve" (iterations).
	Progress func(part string, done, total int)
}

// tell reports progress, if anybody wants it.
func (o *Options) tell(part string, done, total int) {
	if o.Progress != nil {
		o.Progress(part, done, total)
	}
}

// Seconds are those that a method spent.
type Seconds struct {
	Features float64 // forming Z
	Factor   float64 // ZᵀZ or Z_jᵀZ_j, and what is made of it
	Rho      float64 // choosing ρ
	Solve    float64
}

// Result is the model f(x) = φ(x)ᵀW that a method has fitted.
type Result struct {
	W          *mat.Dense  // s×t
	Map        feature.Map // φ
	Status     pcg.Status
	Iterations int
	Objective  float64 // what the method minimizes, of W
	Residual   float64 // RandomFeatures: the largest ‖y_j−(ZZᵀ+λI)c_j‖₂/‖y_j‖₂, W = ZᵀC

	// Of ADMM: the ρ taken, what each of the grid had reached, a lower bound of all objectives from the duals, and
	// (Objective−Dual)/Objective, at most 1.
	Rho       float64
	Tried     []float64
	Dual, Gap float64

	Bytes   int64 // at most taken, but for some 20 MB a thread
	Seconds Seconds
}

// RandomFeatures solves kernel ridge regression in the span of the features φ = m of the points,
//
//	min_W ‖ZW−Y‖_F² + λ‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ, Y n×t,
//
// (Rahimi and Recht 2007; the paper's "sketch-and-solve"). λ is that of K+λI: as ZZᵀ → K, f tends to that of the exact
// method. With W = ZᵀC it is (ZZᵀ+λI)C = Y, which PCG solves with its inverse by the Cholesky factor of ZᵀZ+λI
// (package precond). That is formed in float32 products where their error is at most λ/10, and the iteration, with
// products by Z in float64, removes what they leave.
//
// Work: ns² + s³/3 flops, and 8nst for each of some six iterations. Memory: 4ns + 8s² bytes and blocks of t columns.
// The result has the same bits for any number of threads.
//
// It returns an error if the features are not finite, the memory allowed is too little, the matrix is not positive
// definite in float64, or ctx ends. A residual above 10⁻⁹ is a Status. It panics if shapes do not fit.
func RandomFeatures(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense,
	o *Options) (*Result, error) {
	opt := *cmp.Or(o, &Options{})
	n, s, t := shape(m, x, y)
	res := &Result{Map: m, Bytes: 4*n*s + 8*s*s + 8*t*(8*n+6*s)}
	z, err := res.form(ctx, x, &opt, fmt.Sprintf("random features with n = %d, s = %d", n, s))
	if err != nil {
		return nil, err
	}
	start := time.Now()
	w, err := precond.New(ctx, z, lambda, &precond.Options{Form: precond.FormL, Fast: true})
	if err != nil {
		return nil, fmt.Errorf("baseline: random features: %w", err)
	}
	res.Seconds.Factor = stage.Lap(&start)
	sol, err := pcg.Solve(ctx, w, w, y, &pcg.Options{Tol: 1e-9, MaxIter: 50})
	if err != nil {
		return nil, err
	}
	c, wt := byCols(sol.X), make([]float64, s*t)
	err = accel.ForEach(ctx, int(s+productCols-1)/productCols, func(_, b int) {
		c0 := b * productCols
		simd.Backward(z.N, min(productCols, z.D-c0), z.Data[c0:], z.Stride, wt[c0:], z.D, c, z.N, int(t),
			new(simd.Workspace)) // W = ZᵀC
	})
	res.W, res.Status, res.Iterations, res.Residual = fromCols(wt, z.D, int(t)), sol.Status, sol.Iterations,
		sol.MaxTrueRelRes()
	sol.R.Apply(func(i, j int, r float64) float64 { return r + lambda*sol.X.At(i, j) }, sol.R) // Y−ZW
	e := mat.Norm(sol.R, 2)
	res.Objective = e*e + lambda*floats.Dot(wt, wt)
	res.Seconds.Solve = stage.Lap(&start)
	return res, err
}

// shape returns the dimensions of a problem. It panics if its parts do not fit.
func shape(m feature.Map, x points.Points, y *mat.Dense) (n, s, t int64) {
	rows, dim := x.Dims()
	d, features := m.Dims()
	ry, cols := y.Dims()
	if dim != d || ry != rows {
		panic(fmt.Sprintf("baseline: %d points of dimension %d, features of R^%d, %d rows of targets", rows, dim, d,
			ry))
	}
	return int64(rows), int64(features), int64(cols)
}

// form returns Z, or an error if what the method takes is more than the memory allowed.
func (r *Result) form(ctx context.Context, x points.Points, o *Options, what string) (*points.Dense32, error) {
	if o.Memory > 0 && r.Bytes > o.Memory {
		return nil, fmt.Errorf("baseline: %s needs %s, %s is allowed; take fewer features", what, accel.Bytes(r.Bytes),
			accel.Bytes(o.Memory))
	}
	start := time.Now()
	z, err := feature.Matrix(ctx, r.Map, x, func(done, total int) { o.tell("features", done, total) })
	r.Seconds.Features = stage.Lap(&start)
	return z, err
}

const (
	productCols  = 256  // columns of Z in a task of ZᵀC
	productRows  = 64   // rows of Z in a task of ZW
	predictPanel = 4096 // rows of Z that a prediction holds
)

// Predict returns f(x) = φ(x)ᵀW for all points, p×t: 2ps flops for each column beside the features, which are formed
// by panels. It returns an error if there are no points, or have features that are not finite, and ctx's. It panics if
// the points are not of φ's dimension.
func (r *Result) Predict(ctx context.Context, x points.Points) (*mat.Dense, error) {
	n, _ := x.Dims()
	if n == 0 {
		return nil, fmt.Errorf("baseline: no points to predict")
	}
	s, t := r.W.Dims()
	w, f := byCols(r.W), make([]float64, n*t)
	for p0 := 0; p0 < n; p0 += predictPanel {
		z, err := feature.Matrix(ctx, r.Map, x.Slice(p0, min(p0+predictPanel, n)), nil)
		if err == nil {
			err = accel.ForEach(ctx, (z.N+productRows-1)/productRows, func(_, b int) {
				i := b * productRows
				simd.Forward(min(productRows, z.N-i), s, z.Data[i*z.Stride:], z.Stride, w, s, f[p0+i:], n, t)
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return fromCols(f, n, t), nil
}

// byCols returns y as t×n: column j of y in row j.
func byCols(y *mat.Dense) []float64 { return mat.DenseCopyOf(y.T()).RawMatrix().Data }

// fromCols is the inverse of byCols.
func fromCols(v []float64, n, t int) *mat.Dense { return mat.DenseCopyOf(mat.NewDense(t, n, v).T()) }
