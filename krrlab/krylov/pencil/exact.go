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

// eigenvalues returns the eigenvalues of M⁻¹A in ascending order, for A = K+λI, and an estimate of the size of their
// rounding errors, (n·u·‖M⁻¹‖_∞ + ‖M⁻¹−M⁻ᵀ‖_∞)·‖A‖_∞ with u = 2⁻⁵³. The eigenvalues are those of LᵀAL, where M⁻¹ = LLᵀ
// is formed by applying M⁻¹; all computations are in float64. The argument k contains K, n×n, and is overwritten; m is
// nil for M = I. The result isDefinite is false if the computed M⁻¹ is not positive definite in float64.
//
// The cost is n columns of M⁻¹ and (1/3 + 2 + 4/3)n³ flops, for the factorization of M⁻¹, the two triangular products
// and the eigenvalues. The memory in addition to k is 8n² bytes for M⁻¹, and two n×64 blocks. The eigenvalues are
// computed on one thread, so that the bits of the result do not depend on the number of threads.
func eigenvalues(ctx context.Context, k *mat.Dense, lambda float64, m pcg.Preconditioner) (values []float64,
	roundingBound float64, isDefinite bool, err error) {
	a := k.RawMatrix()
	n := a.Rows
	var normA float64 // ‖A‖_∞ ≥ ‖A‖₂
	for i := range n {
		a.Data[i*a.Stride+i] += lambda
		normA = max(normA, blas64.Asum(blas64.Vector{N: n, Inc: 1, Data: a.Data[i*a.Stride:]}))
	}
	normInverse, asymmetryNorm := 1., 0. // ‖M⁻¹‖_∞, ‖M⁻¹−M⁻ᵀ‖_∞
	if m != nil {
		if normInverse, asymmetryNorm, isDefinite, err = multiplyByFactor(ctx, a, m); err != nil || !isDefinite {
			return nil, 0, false, err
		}
	}
	values, err = accel.Eigen(ctx, lapack.EVNone,
		blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: a.Stride, Data: a.Data})
	return values, (float64(n)*0x1p-53*normInverse + asymmetryNorm) * normA, err == nil, err
}

// blockColumns is the number of columns that are processed together. More columns need more memory.
const blockColumns = 64

// multiplyByFactor overwrites A by LᵀAL, where M⁻¹ = LLᵀ with a lower triangular L. It returns normInverse = ‖M⁻¹‖_∞
// and asymmetryNorm = ‖M⁻¹−M⁻ᵀ‖_∞. The result isDefinite is false if the computed M⁻¹ is not positive definite.
func multiplyByFactor(ctx context.Context, a blas64.General, m pcg.Preconditioner) (normInverse, asymmetryNorm float64,
	isDefinite bool, err error) {
	n := a.Rows
	l := mat.NewDense(n, n, nil)
	for j := 0; j < n; j += blockColumns {
		k := min(j+blockColumns, n)
		unitCols, inverseCols := mat.NewDense(n, k-j, nil), mat.NewDense(n, k-j, nil)
		for i := j; i < k; i++ {
			unitCols.Set(i, i-j, 1)
		}
		if err := m.SolveTo(ctx, inverseCols, unitCols); err != nil {
			return 0, 0, false, err
		}
		l.Slice(0, n, j, k).(*mat.Dense).Copy(inverseCols)
	}
	for i := range n {
		var sum, asymmetry float64
		for j := range n {
			sum, asymmetry = sum+math.Abs(l.At(i, j)), asymmetry+math.Abs(l.At(i, j)-l.At(j, i))
		}
		normInverse, asymmetryNorm = max(normInverse, sum), max(asymmetryNorm, asymmetry)
	}
	lower := l.RawMatrix()
	if !accel.Dpotrf(n, lower.Data, n) {
		return 0, 0, false, nil
	}
	triangle := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: lower.Data}
	err = accel.ForEachBlock(ctx, n, blockColumns, func(_, j, k int) { // A ← LᵀA, in blocks of columns
		blas64.Trmm(blas.Left, blas.Trans, 1, triangle, blas64.General{Rows: n, Cols: k - j, Stride: a.Stride,
			Data: a.Data[j:]})
	})
	if err == nil {
		err = accel.ForEachBlock(ctx, n, blockColumns, func(_, i, k int) { // A ← AL, in blocks of rows
			blas64.Trmm(blas.Right, blas.NoTrans, 1, triangle,
				blas64.General{Rows: k - i, Cols: n, Stride: a.Stride, Data: a.Data[i*a.Stride:]})
		})
	}
	return normInverse, asymmetryNorm, err == nil, err
}
