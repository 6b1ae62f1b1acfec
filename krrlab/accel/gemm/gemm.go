package gemm

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n, all row-major:
// op(X) is X for blas.NoTrans and Xᵀ for blas.Trans and blas.ConjTrans. It runs on
// the calling goroutine. C is not read if β = 0, A and B are not if α = 0. The
// package comment bounds its error. Misuse panics as gonum's Sgemm does.
func Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if !plain(tA, tB, m, n, k, lda, len(a), ldb, len(b), ldc, len(c)) || alpha == 0 {
		gonum.Implementation{}.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	multiply32(product[float32]{tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, all})
}

// Dgemm is Sgemm in float64.
func Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if !plain(tA, tB, m, n, k, lda, len(a), ldb, len(b), ldc, len(c)) || alpha == 0 {
		gonum.Implementation{}.Dgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	multiply64(product[float64]{tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, all})
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA = blas.Trans or
// blas.ConjTrans of C = α·Aᵀ·A + β·C, A k×n; the other triangle is neither read nor
// written. Elements have the bits that Sgemm gives them. It takes little more than
// half of Sgemm's time. Misuse panics as gonum's Ssyrk does.
func Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	p, ok := triangle(ul)
	if !ok || !plain(tA, other(tA), n, n, k, lda, len(a), lda, len(a), ldc, len(c)) || alpha == 0 {
		if k == 0 {
			alpha = 0 // else gonum's multiplies C by β = 0 in one case, and 0·NaN is NaN
		}
		gonum.Implementation{}.Ssyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	multiply32(product[float32]{tA != blas.NoTrans, tA == blas.NoTrans, n, n, k, alpha, a, lda, a, lda, beta, c, ldc, p})
}

// Dsyrk is Ssyrk in float64.
func Dsyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	p, ok := triangle(ul)
	if !ok || !plain(tA, other(tA), n, n, k, lda, len(a), lda, len(a), ldc, len(c)) || alpha == 0 {
		if k == 0 {
			alpha = 0 // as in Ssyrk
		}
		gonum.Implementation{}.Dsyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	multiply64(product[float64]{tA != blas.NoTrans, tA == blas.NoTrans, n, n, k, alpha, a, lda, a, lda, beta, c, ldc, p})
}

func multiply32(x product[float32]) {
	w := pool32.Get().(*workspace[float32])
	w.gemm(current().s, &x)
	pool32.Put(w)
}

func multiply64(x product[float64]) {
	w := pool64.Get().(*workspace[float64])
	w.gemm(current().d, &x)
	pool64.Put(w)
}

// Tile returns the size of Sgemm's micro-kernel. Pieces of C that are multiples of it
// waste no work at their borders.
func Tile() (rows, cols int) { return current().s.mr, current().s.nr }

// Tile64 is Tile for Dgemm.
func Tile64() (rows, cols int) { return current().d.mr, current().d.nr }

func triangle(ul blas.Uplo) (part, bool) {
	switch ul {
	case blas.Lower:
		return lower, true
	case blas.Upper:
		return upper, true
	}
	return all, false
}

// other returns the transpose of the second factor of a symmetric product. It is wrong
// if t is.
func other(t blas.Transpose) blas.Transpose {
	if t == blas.NoTrans {
		return blas.Trans
	}
	return blas.NoTrans
}

// plain reports whether the arguments are right and no dimension is 0. Others are
// left to gonum, which scales C or panics.
func plain(tA, tB blas.Transpose, m, n, k, lda, lenA, ldb, lenB, ldc, lenC int) bool {
	ra, ca, rb, cb := m, k, k, n
	if tA != blas.NoTrans {
		ra, ca = k, m
	}
	if tB != blas.NoTrans {
		rb, cb = n, k
	}
	return isTrans(tA) && isTrans(tB) && matrix(ra, ca, lda, lenA) && matrix(rb, cb, ldb, lenB) && matrix(m, n, ldc, lenC)
}

func isTrans(t blas.Transpose) bool {
	return t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans
}

// matrix reports whether a matrix r×c with row stride ld is not empty and lies within
// l elements.
func matrix(r, c, ld, l int) bool {
	return 0 < r && 0 < c && c <= ld && c <= l && r-1 <= (l-c)/ld
}
