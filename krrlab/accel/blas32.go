package accel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
)

// ownOrder is the least dimension of a product for which package gemm takes less time
// with AVX2, on one thread, than OpenBLAS 0.3.21: 512×512×784 in 0.97 of it on Zen 3.
const ownOrder = 128

// openblas32 is a blas.Float32: gonum's, with the routines that the time goes
// into overridden. Each override sends what is plainly good, and large enough to
// be worth the call, to the library, and everything else to gonum: small
// problems, empty ones, α = 0, dimensions beyond 32 bits, and misuse, at which
// gonum panics.
type openblas32 struct {
	gonum.Implementation
	lib *Library
}

var _ blas.Float32 = openblas32{}

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n. On one thread
// package gemm computes it where it has been measured to be the faster of the two.
func (o openblas32) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	ra, ca := opDims(tA, m, k)
	rb, cb := opDims(tB, k, n)
	if large(m, n, k, gemmWork) && isTrans(tA) && isTrans(tB) && alpha != 0 &&
		matrix(ra, ca, lda, len(a)) && matrix(rb, cb, ldb, len(b)) && matrix(m, n, ldc, len(c)) {
		if ownThreads.Load() == 1 && min(m, n, k) >= ownOrder && gogemm.InUse() == gogemm.AVX2 {
			gogemm.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
			return
		}
		gemm(o.lib, o.lib.sgemm, tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	o.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n.
func (o openblas32) Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	ra, ca := opDims(tA, n, k)
	if large(n, n, k, syrkWork) && isUplo(ul) && isTrans(tA) && alpha != 0 &&
		matrix(ra, ca, lda, len(a)) && matrix(n, n, ldc, len(c)) {
		syrk(o.lib, o.lib.ssyrk, ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	o.Implementation.Ssyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Strsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (o openblas32) Strsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	k := order(s, m, n)
	if large(m, n, k, trxmWork) && isSide(s) && isUplo(ul) && isTrans(tA) && isDiag(d) && alpha != 0 &&
		matrix(k, k, lda, len(a)) && matrix(m, n, ldb, len(b)) {
		trxm(o.lib, o.lib.strsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	o.Implementation.Strsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Strmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (o openblas32) Strmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	k := order(s, m, n)
	if large(m, n, k, trxmWork) && isSide(s) && isUplo(ul) && isTrans(tA) && isDiag(d) && alpha != 0 &&
		matrix(k, k, lda, len(a)) && matrix(m, n, ldb, len(b)) {
		trxm(o.lib, o.lib.strmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	o.Implementation.Strmm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Ssymm computes C = α·A·B + β·C or, from the right, α·B·A + β·C, B and C m×n
// and A symmetric with one triangle stored.
func (o openblas32) Ssymm(s blas.Side, ul blas.Uplo, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	k := order(s, m, n)
	if large(m, n, k, gemmWork) && isSide(s) && isUplo(ul) && alpha != 0 &&
		matrix(k, k, lda, len(a)) && matrix(m, n, ldb, len(b)) && matrix(m, n, ldc, len(c)) {
		symm(o.lib, o.lib.ssymm, s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	o.Implementation.Ssymm(s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Sgemv computes y = α·op(A)·x + β·y, A m×n.
func (o openblas32) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32, y []float32, incY int) {
	lenY, lenX := opDims(tA, m, n)
	if large(m, n, 1, gemvWork) && isTrans(tA) && alpha != 0 &&
		matrix(m, n, lda, len(a)) && vector(lenX, incX, len(x)) && vector(lenY, incY, len(y)) {
		gemv(o.lib, o.lib.sgemv, tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	o.Implementation.Sgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
