package quality

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// spectrum returns the eigenvalues of M⁻¹A, ascending, and a bound of their rounding
// error, for A = K+λI and M = ZZᵀ+λ_pI, or M = I where z is nil: with M = LLᵀ, those of
//
//	L⁻¹(K+λI)L⁻ᵀ,
//
// all in float64. k holds K, n×n, and is overwritten. Work: (n²s +) 1/3+2+4/3 n³
// multiply-adds; memory: 8n² bytes beside k. The last third runs on one thread, so that the bits
// do not depend on their number. It returns an error if ctx ends between the steps or M
// is not positive definite in float64, and panics if the orders differ.
func spectrum(ctx context.Context, k *mat.Dense, lambda float64, z *points.Dense32, lambdaP float64) (values []float64,
	slack float64, err error) {
	raw := k.RawMatrix()
	n := raw.Rows
	if raw.Cols != n || z != nil && z.N != n {
		panic(fmt.Sprintf("quality: the spectrum of a %d×%d matrix", n, raw.Cols))
	}
	var trace float64
	for i := range n {
		raw.Data[i*raw.Stride+i] += lambda
		trace += raw.Data[i*raw.Stride+i]
	}
	slack = float64(n) * 0x1p-53 * trace
	if z != nil {
		if err := reduce(ctx, raw, z, lambdaP); err != nil {
			return nil, 0, err
		}
		slack = float64(n) * 0x1p-53 * trace / lambdaP // n·u·‖A‖₂‖M⁻¹‖₂, at most
	}
	values, err = ascending(ctx, raw)
	return values, slack, err
}

// spectrumBy is spectrum for an M of which the inverse is there: with M⁻¹ = LLᵀ, the eigenvalues of Lᵀ(K+λI)L. It
// takes n columns with M⁻¹, and 16n² bytes beside k. ok is false where M⁻¹ as applied is not positive definite in
// float64.
func spectrumBy(ctx context.Context, k *mat.Dense, lambda float64, m pcg.Preconditioner) (values []float64,
	slack float64, ok bool, err error) {
	raw := k.RawMatrix()
	n := raw.Rows
	l, size := mat.NewDense(n, n, nil), 0. // size = ‖A‖_∞ ≥ ‖A‖₂
	for i := range n {
		raw.Data[i*raw.Stride+i] += lambda
		l.Set(i, i, 1)
		size = max(size, blas64.Asum(blas64.Vector{N: n, Inc: 1, Data: raw.Data[i*raw.Stride:]}))
	}
	if err := m.SolveTo(ctx, l, l); err != nil {
		return nil, 0, false, err
	}
	var norm, skew float64 // ‖M⁻¹‖_∞, ‖M⁻¹−M⁻ᵀ‖_∞
	for i := range n {
		var sum, off float64
		for j := range n {
			sum, off = sum+math.Abs(l.At(i, j)), off+math.Abs(l.At(i, j)-l.At(j, i))
		}
		norm, skew = max(norm, sum), max(skew, off)
	}
	low := l.RawMatrix()
	if !accel.Dpotrf(n, low.Data, n) {
		return nil, 0, false, nil
	}
	t := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: low.Data}
	err = byBlocks(ctx, raw, func(columns blas64.General) { blas64.Trmm(blas.Left, blas.Trans, 1, t, columns) },
		func(rows blas64.General) { blas64.Trmm(blas.Right, blas.NoTrans, 1, t, rows) }) // A ← LᵀA, A ← AL
	if err == nil {
		values, err = ascending(ctx, raw)
	}
	return values, (float64(n)*0x1p-53*norm + skew) * size, err == nil, err
}

// ascending returns the eigenvalues of the symmetric matrix with this lower triangle, which is overwritten.
func ascending(ctx context.Context, raw blas64.General) ([]float64, error) {
	return accel.Eigen(ctx, lapack.EVNone,
		blas64.Symmetric{Uplo: blas.Lower, N: raw.Rows, Stride: raw.Stride, Data: raw.Data})
}

// reduce overwrites A by L⁻¹AL⁻ᵀ, LLᵀ = ZZᵀ+λ_pI.
func reduce(ctx context.Context, a blas64.General, z *points.Dense32, lambdaP float64) error {
	n, s := z.N, z.D
	wide := blas64.General{Rows: n, Cols: s, Stride: s, Data: make([]float64, n*s)}
	for i := range n {
		z.RowTo(wide.Data[i*s:(i+1)*s], i)
	}
	m := make([]float64, n*n)
	err := accel.ForEach(ctx, 1, func(_, _ int) { // one thread: the same bits for any number
		blas64.Syrk(blas.NoTrans, 1, wide, 0, blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n, Data: m}) // ZZᵀ
	})
	if err != nil {
		return err
	}
	for i := range n {
		m[i*n+i] += lambdaP
	}
	if !accel.Dpotrf(n, m, n) { // M = LLᵀ
		return fmt.Errorf("quality: ZZᵀ+λ_pI is not positive definite in float64 at λ_p = %g", lambdaP)
	}
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: m}
	return byBlocks(ctx, a, func(columns blas64.General) { blas64.Trsm(blas.Left, blas.NoTrans, 1, l, columns) },
		func(rows blas64.General) { blas64.Trsm(blas.Right, blas.Trans, 1, l, rows) }) // A ← L⁻¹A, A ← AL⁻ᵀ
}

// byBlocks gives a to left in blocks of columns, and then to right in blocks of rows, on all threads.
func byBlocks(ctx context.Context, a blas64.General, left, right func(blas64.General)) error {
	const width = 64
	n := a.Rows
	blocks := (n + width - 1) / width
	err := accel.ForEach(ctx, blocks, func(_, b int) {
		j := b * width
		left(blas64.General{Rows: n, Cols: min(width, n-j), Stride: a.Stride, Data: a.Data[j:]})
	})
	if err != nil {
		return err
	}
	return accel.ForEach(ctx, blocks, func(_, b int) {
		i := b * width
		right(blas64.General{Rows: min(width, n-i), Cols: n, Stride: a.Stride, Data: a.Data[i*a.Stride:]})
	})
}

// below bounds the ends of the spectrum of M⁻¹A from inside, for an M of which no more than the inverse is known: by
// the Ritz values that conjugate gradients with M give for a random right-hand side drawn from g, in exact
// arithmetic, within steps iterations. Monitor, if not nil, is called after each.
func below(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, g rng.Stream, steps int,
	monitor func(*pcg.Iteration) error) (*lanczos.Result, error) {
	start := time.Now()
	b := mat.NewDense(a.Dim(), 1, nil)
	g.Normals(b.RawMatrix().Data, 0)
	res, err := pcg.Solve(ctx, a, m, b, &pcg.Options{Tol: 1e-8, MaxIter: steps, Monitor: monitor})
	if err != nil {
		return nil, err
	}
	ritz := res.Ritz(0)
	if len(ritz) == 0 || !(ritz[0] > 0) {
		return nil, fmt.Errorf("PCG ends %v after %s, without a bound of κ", res.Status,
			plural.Count(res.Iterations, "iteration"))
	}
	const how = "Ritz values of PCG: one-sided, in exact arithmetic"
	least, most := ritz[0], ritz[len(ritz)-1]
	r := lanczos.Known(estimate.Interval{Value: least, Hi: least, Confidence: 1, Method: how},
		estimate.Interval{Value: most, Lo: most, Hi: math.Inf(1), Confidence: 1, Method: how})
	r.Steps, r.Ritz, r.Seconds = res.Iterations, ritz, time.Since(start).Seconds()
	return r, nil
}
