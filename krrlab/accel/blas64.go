package accel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// float64s is the blas.Float64 in use: gonum's, with the routines overridden that the time
// goes into (see level3).
type float64s struct {
	gonum.Implementation
	lib func() *Library
}

var _ blas.Float64 = float64s{}

// Dgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (o float64s) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	level3of64.gemm(o.lib(), tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Dsyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n.
func (o float64s) Dsyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	level3of64.syrk(o.lib(), ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Dtrsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (o float64s) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	level3of64.trxm(o.lib(), ownTrsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dtrmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (o float64s) Dtrmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	level3of64.trxm(o.lib(), ownTrmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dsymm computes C = α·A·B + β·C or, from the right, α·B·A + β·C, B and C m×n
// and A symmetric with one triangle stored.
func (o float64s) Dsymm(s blas.Side, ul blas.Uplo, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	level3of64.symm(o.lib(), s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Dgemv computes y = α·op(A)·x + β·y, A m×n.
func (o float64s) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	level3of64.gemv(o.lib(), tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
