package accel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
)

// own64 is the blas.Float64 of a process without a library: gonum's, with products and
// triangular solves from package gemm, on all threads outside ForEach and on one inside
// it. On a processor that gemm has no assembly for, gonum's serve, which on x86-64 are
// faster.
type own64 struct{ gonum.Implementation }

var _ blas.Float64 = own64{}

// Dgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n. The bits do not
// depend on the number of threads.
func (o own64) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Dgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	owned64.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Dsyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n. The bits do not depend on the number of threads.
func (o own64) Dsyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Dsyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	owned64.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Dtrsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular. The bits do not depend on the number of threads.
func (o own64) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Dtrsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	owned64.trxm(ownTrsm, o.Implementation.Dtrsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dtrmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular. The bits do not depend on the number of threads.
func (o own64) Dtrmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Dtrmm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	owned64.trxm(ownTrmm, o.Implementation.Dtrmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}
