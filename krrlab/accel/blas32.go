package accel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// float32s is the blas.Float32 in use: gonum's, with the routines overridden that the time
// goes into (see level3).
type float32s struct {
	gonum.Implementation
	lib func() *Library
}

var _ blas.Float32 = float32s{}

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (o float32s) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	level3of32.gemm(o.lib(), tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n.
func (o float32s) Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	level3of32.syrk(o.lib(), ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Strsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (o float32s) Strsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	level3of32.trxm(o.lib(), ownTrsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Strmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (o float32s) Strmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	level3of32.trxm(o.lib(), ownTrmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Ssymm computes C = α·A·B + β·C or, from the right, α·B·A + β·C, B and C m×n
// and A symmetric with one triangle stored.
func (o float32s) Ssymm(s blas.Side, ul blas.Uplo, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	level3of32.symm(o.lib(), s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Sgemv computes y = α·op(A)·x + β·y, A m×n.
func (o float32s) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32, y []float32, incY int) {
	level3of32.gemv(o.lib(), tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
