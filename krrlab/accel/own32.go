package accel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
)

// own32 is the blas.Float32 of a process without a library: gonum's, with products and
// triangular solves from package gemm, on all threads outside ForEach and on one inside
// it. On a processor that gemm has no assembly for, gonum's serve, which on x86-64 are
// faster.
type own32 struct{ gonum.Implementation }

var _ blas.Float32 = own32{}

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n. The bits do not
// depend on the number of threads.
func (o own32) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	owned32.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n. The bits do not depend on the number of threads.
func (o own32) Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Ssyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	owned32.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Strsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular. The bits do not depend on the number of threads.
func (o own32) Strsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Strsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	owned32.trxm(ownTrsm, o.Implementation.Strsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Strmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular. The bits do not depend on the number of threads.
func (o own32) Strmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Strmm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	owned32.trxm(ownTrmm, o.Implementation.Strmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}
