package pencil

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// spectrum returns the eigenvalues of M⁻¹A, ascending, and a bound of their rounding error, for A = K+λI: with
// M⁻¹ = LLᵀ as it is applied those of LᵀAL, all in float64. k holds K, n×n, and is overwritten; m is nil for M = I. It
// takes n columns with M⁻¹, 1/3+2+4/3 n³ multiply-adds and 16n² bytes beside k. The last third runs on one thread, so
// that the bits do not depend on their number. ok is false where M⁻¹ as applied is not positive definite in float64.
func spectrum(ctx context.Context, k *mat.Dense, lambda float64, m pcg.Preconditioner) (values []float64,
	slack float64, ok bool, err error) {
	raw := k.RawMatrix()
	n := raw.Rows
	var size float64 // ‖A‖_∞ ≥ ‖A‖₂
	for i := range n {
		raw.Data[i*raw.Stride+i] += lambda
		size = max(size, blas64.Asum(blas64.Vector{N: n, Inc: 1, Data: raw.Data[i*raw.Stride:]}))
	}
	norm, skew := 1., 0. // ‖M⁻¹‖_∞, ‖M⁻¹−M⁻ᵀ‖_∞
	if m != nil {
		if norm, skew, ok, err = reduce(ctx, raw, m); err != nil || !ok {
			return nil, 0, false, err
		}
	}
	values, err = accel.Eigen(ctx, lapack.EVNone,
		blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: raw.Stride, Data: raw.Data})
	return values, (float64(n)*0x1p-53*norm + skew) * size, err == nil, err
}

// width is the columns of a block.
const width = 64

// reduce overwrites A by LᵀAL, M⁻¹ = LLᵀ.
func reduce(ctx context.Context, a blas64.General, m pcg.Preconditioner) (norm, skew float64, ok bool, err error) {
	n := a.Rows
	l := mat.NewDense(n, n, nil)
	for j := 0; j < n; j += width {
		k := min(j+width, n)
		unit, to := mat.NewDense(n, k-j, nil), mat.NewDense(n, k-j, nil)
		for i := j; i < k; i++ {
			unit.Set(i, i-j, 1)
		}
		if err := m.SolveTo(ctx, to, unit); err != nil {
			return 0, 0, false, err
		}
		l.Slice(0, n, j, k).(*mat.Dense).Copy(to)
	}
	for i := range n {
		var sum, off float64
		for j := range n {
			sum, off = sum+math.Abs(l.At(i, j)), off+math.Abs(l.At(i, j)-l.At(j, i))
		}
		norm, skew = max(norm, sum), max(skew, off)
	}
	low := l.RawMatrix()
	if !accel.Dpotrf(n, low.Data, n) {
		return 0, 0, false, nil
	}
	t := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: low.Data}
	blocks := (n + width - 1) / width
	err = accel.ForEach(ctx, blocks, func(_, b int) { // A ← LᵀA, by columns
		j := b * width
		blas64.Trmm(blas.Left, blas.Trans, 1, t,
			blas64.General{Rows: n, Cols: min(width, n-j), Stride: a.Stride, Data: a.Data[j:]})
	})
	if err == nil {
		err = accel.ForEach(ctx, blocks, func(_, b int) { // A ← AL, by rows
			i := b * width
			blas64.Trmm(blas.Right, blas.NoTrans, 1, t,
				blas64.General{Rows: min(width, n-i), Cols: n, Stride: a.Stride, Data: a.Data[i*a.Stride:]})
		})
	}
	return norm, skew, err == nil, err
}
