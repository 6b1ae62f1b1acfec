package precond

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// SpectralTransform returns the matrix T, s×s and row-major, that turns λ_p into a spectral ridge, and the smallest
// eigenvalue σ_s² of ZᵀZ = VΣ²Vᵀ, where Z = UΣVᵀ is n×s:
//
//	T = V·diag(√(1−σ_s²/σ_j²)),  ZT(ZT)ᵀ + (λ+σ_s²)I = U(Σ²+λI)Uᵀ + (σ_s²+λ)(I−UUᵀ).
//
// The right-hand side is the preconditioner of Frangella, Tropp and Udell (SIAM J. Matrix Anal. Appl. 44, 2023, section
// 5). It assumes that K has the eigenvalue σ_s² instead of 0 on the complement of the range of Z. The left-hand side
// expresses it by the features ZT and the ridge λ_p = λ+σ_s². ‖T‖₂ ≤ 1 holds in spite of rounding, so that ZT(ZT)ᵀ ≼
// ZZᵀ. Each rank of c passes its rows of Z. The cost is ns²+10s³ flops.
func SpectralTransform(ctx context.Context, c comm.Comm, z *points.Dense32) (transform []float64,
	smallest float64, err error) {
	var g Gram
	if err := g.Grow(ctx, c, z); err != nil {
		return nil, 0, err
	}
	s := z.D
	transform = g.TakeShifted(0)
	sigma2, err := accel.Eigen(ctx, lapack.EVCompute,
		blas64.Symmetric{Uplo: blas.Lower, N: s, Stride: s, Data: transform})
	if err != nil {
		return nil, 0, fmt.Errorf("precond: ZᵀZ: %w", err)
	}
	if err := comm.BroadcastFloats(ctx, c, sigma2, 0); err != nil {
		return nil, 0, err
	}
	smallest = max(0, sigma2[0])
	norm, err := normBound(ctx, blas64.General{Rows: s, Cols: s, Stride: s, Data: transform})
	for j, v := range sigma2 {
		factor := 0.0
		if v > smallest {
			factor = math.Sqrt(1-smallest/v) / norm
		}
		for i := range s {
			transform[i*s+j] *= factor
		}
	}
	if err = comm.Agree(ctx, c, err); err == nil {
		// All ranks take T of rank 0, because the bits of eigenvectors may differ.
		err = comm.BroadcastFloats(ctx, c, transform, 0)
	}
	return transform, smallest, err
}

// normBound returns an upper bound of ‖V‖₂ for V, s×s, with columns of norm 1: √(‖VᵀV‖₁ + s²·2⁻⁵¹), where the second
// term bounds the rounding errors of the s inner products in a column of VᵀV.
func normBound(ctx context.Context, v blas64.General) (float64, error) {
	s := v.Cols
	const normCols = 128
	columnSums := make([]float64, s) // ‖·‖₁ of the columns of VᵀV
	err := accel.ForEachBlock(ctx, s, normCols, func(_, c0, c1 int) {
		columns := blas64.General{Rows: s, Cols: c1 - c0, Stride: s, Data: v.Data[c0:]}
		product := blas64.General{Rows: columns.Cols, Cols: s, Stride: s, Data: make([]float64, columns.Cols*s)}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, columns, v, 0, product)
		for column := range product.Rows {
			columnSums[c0+column] = floats.Norm(product.Data[column*s:(column+1)*s], 1)
		}
	})
	return math.Sqrt(floats.Max(columnSums) + float64(s)*float64(s)*0x1p-51), err
}
