package accel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// openblas64 is a blas.Float64: gonum's, with the routines that the time goes
// into overridden. Each override sends what is plainly good, and large enough to
// be worth the call, to the library, and everything else to gonum: small
// problems, empty ones, α = 0, dimensions beyond 32 bits, and misuse, at which
// gonum panics.
type openblas64 struct {
	gonum.Implementation
	lib *Library
}

var _ blas.Float64 = openblas64{}

// Dgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (o openblas64) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	ra, ca := opDims(tA, m, k)
	rb, cb := opDims(tB, k, n)
	if large(m, n, k, gemmWork) && isTrans(tA) && isTrans(tB) && alpha != 0 &&
		matrix(ra, ca, lda, len(a)) && matrix(rb, cb, ldb, len(b)) && matrix(m, n, ldc, len(c)) {
		gemm(o.lib, o.lib.dgemm, tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	o.Implementation.Dgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Dsyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n.
func (o openblas64) Dsyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	ra, ca := opDims(tA, n, k)
	if large(n, n, k, syrkWork) && isUplo(ul) && isTrans(tA) && alpha != 0 &&
		matrix(ra, ca, lda, len(a)) && matrix(n, n, ldc, len(c)) {
		syrk(o.lib, o.lib.dsyrk, ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	o.Implementation.Dsyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Dtrsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (o openblas64) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	k := order(s, m, n)
	if large(m, n, k, trxmWork) && isSide(s) && isUplo(ul) && isTrans(tA) && isDiag(d) && alpha != 0 &&
		matrix(k, k, lda, len(a)) && matrix(m, n, ldb, len(b)) {
		trxm(o.lib, o.lib.dtrsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	o.Implementation.Dtrsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dtrmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (o openblas64) Dtrmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	k := order(s, m, n)
	if large(m, n, k, trxmWork) && isSide(s) && isUplo(ul) && isTrans(tA) && isDiag(d) && alpha != 0 &&
		matrix(k, k, lda, len(a)) && matrix(m, n, ldb, len(b)) {
		trxm(o.lib, o.lib.dtrmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	o.Implementation.Dtrmm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dsymm computes C = α·A·B + β·C or, from the right, α·B·A + β·C, B and C m×n
// and A symmetric with one triangle stored.
func (o openblas64) Dsymm(s blas.Side, ul blas.Uplo, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	k := order(s, m, n)
	if large(m, n, k, gemmWork) && isSide(s) && isUplo(ul) && alpha != 0 &&
		matrix(k, k, lda, len(a)) && matrix(m, n, ldb, len(b)) && matrix(m, n, ldc, len(c)) {
		symm(o.lib, o.lib.dsymm, s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	o.Implementation.Dsymm(s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Dgemv computes y = α·op(A)·x + β·y, A m×n.
func (o openblas64) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	lenY, lenX := opDims(tA, m, n)
	if large(m, n, 1, gemvWork) && isTrans(tA) && alpha != 0 &&
		matrix(m, n, lda, len(a)) && vector(lenX, incX, len(x)) && vector(lenY, incY, len(y)) {
		gemv(o.lib, o.lib.dgemv, tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	o.Implementation.Dgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
