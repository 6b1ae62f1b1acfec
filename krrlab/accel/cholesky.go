package accel

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Dpotrf computes the Cholesky factorization A = L·Lᵀ of the symmetric positive
// definite n×n matrix a, row-major with row stride lda, in place. Only the lower
// triangle of a is read, and L overwrites it; the upper triangle is not touched.
// Dpotrf reports whether it succeeded; if not, because a pivot was ≤ 0 or NaN, a is
// partly overwritten, with that pivot in its diagonal. It panics if n < 0, lda < n or a
// is too short.
//
// The computed factor satisfies L·Lᵀ = A + E, |E| ≤ c·n·u·|L|·|L|ᵀ with u = 2⁻⁵³ and
// c about 1 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
// theorem 10.3). Work: n³/3 multiplications. Workers factor tiles with the BLAS and
// LAPACK in use; unlike lapack64.Potrf the result has the same bits for any number of
// threads. Use it outside ForEach.
func Dpotrf(n int, a []float64, lda int) bool {
	checkSquare("Dpotrf", n, lda, len(a))
	return tiles[float64]{of64(blas64.Implementation()), func(n int, a []float64, lda int) bool {
		_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: lda, Data: a})
		return ok
	}}.cholesky(n, a, lda)
}

// Spotrf is Dpotrf in float32: u = 2⁻²⁴, so that A is seen as positive definite if
// λ_min(A) is above about n·u·max a_ii.
func Spotrf(n int, a []float32, lda int) bool {
	checkSquare("Spotrf", n, lda, len(a))
	return tiles[float32]{of32(blas32.Implementation()), func(n int, a []float32, lda int) bool {
		if l := inUse(); l != nil && n >= lapackOrder && matrix(n, n, lda, len(a)) {
			return potrf(l, l.s.potrf, blas.Lower, n, a, lda)
		}
		return spotrfGo(n, a, lda)
	}}.cholesky(n, a, lda)
}

func checkSquare(name string, n, lda, length int) {
	switch {
	case n < 0:
		panic(fmt.Sprintf("accel: %s: n = %d < 0", name, n))
	case lda < max(1, n):
		panic(fmt.Sprintf("accel: %s: lda = %d < n = %d", name, lda, n))
	case n > 0 && length < (n-1)*lda+n:
		panic(fmt.Sprintf("accel: %s: len(a) = %d < %d for n = %d, lda = %d", name, length, (n-1)*lda+n, n, lda))
	}
}

// tileOrder is the order of the tiles of a factorization: large enough for a product
// of tiles to run at the speed of large ones, small enough that the tiles of a
// diagonal, which one worker factors while the others wait, do not count.
const tileOrder = 384

// tiles are the operations on tiles of a Cholesky factorization, which the BLAS runs
// on one thread each.
type tiles[T real] struct {
	overridden[T]
	potrf func(n int, a []T, lda int) bool // A = L·Lᵀ
}

// cholesky is the right-looking algorithm. For each block column J:
//
//	L_JJ·L_JJᵀ = A_JJ
//	L_IJ = A_IJ·L_JJ⁻ᵀ,            I > J
//	A_IK ← A_IK − L_IJ·L_KJᵀ,  I ≥ K > J
func (op tiles[T]) cholesky(n int, a []T, lda int) bool {
	blocks := (n + tileOrder - 1) / tileOrder
	at := func(i, j int) []T { return a[i*tileOrder*lda+j*tileOrder:] }
	order := func(i int) int { return min(tileOrder, n-i*tileOrder) }
	for j := range blocks {
		ok := false
		each(1, func(int) { ok = op.potrf(order(j), at(j, j), lda) })
		if !ok {
			return false
		}
		below := blocks - j - 1
		each(below, func(i int) {
			i += j + 1
			op.trsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, order(i), order(j), 1, at(j, j), lda, at(i, j),
				lda)
		})
		each(below*(below+1)/2, func(q int) {
			i, k := pair(q)
			i, k = i+j+1, k+j+1
			if i == k {
				op.syrk(blas.Lower, blas.NoTrans, order(i), order(j), -1, at(i, j), lda, 1, at(i, i), lda)
				return
			}
			op.gemm(blas.NoTrans, blas.Trans, order(i), order(k), order(j), -1, at(i, j), lda, at(k, j), lda, 1,
				at(i, k), lda)
		})
	}
	return true
}

// Dtrtri overwrites the lower triangular n×n matrix a, row-major with row stride lda,
// by its inverse, and reports whether it has one; if not, a is left as it was. The
// upper triangle is not touched. Work: n³/3 multiplications. As of Dpotrf, the result
// has the same bits for any number of threads; use it outside ForEach.
func Dtrtri(n int, a []float64, lda int) bool {
	checkSquare("Dtrtri", n, lda, len(a))
	for i := range n {
		if a[i*lda+i] == 0 {
			return false
		}
	}
	bi := blas64.Implementation()
	blocks := (n + tileOrder - 1) / tileOrder
	at := func(i, j int) []float64 { return a[i*tileOrder*lda+j*tileOrder:] }
	order := func(i int) int { return min(tileOrder, n-i*tileOrder) }
	panel := make([]float64, n*min(n, tileOrder)) // T, row-major with the order of the block column
	for j := blocks - 1; j >= 0; j-- {
		// With L = [L_JJ 0; P Q] and X = Q⁻¹ in place already: L⁻¹ = [L_JJ⁻¹ 0; −XT X], T = P·L_JJ⁻¹.
		ld, below := order(j), blocks-j-1
		each(1, func(int) {
			lapack64.Trtri(blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: ld, Stride: lda, Data: at(j, j)})
		})
		rows := func(i int) []float64 { return panel[(i-j-1)*tileOrder*ld:] }
		each(below, func(i int) { // T_I = P_I·L_JJ⁻¹
			i += j + 1
			t, p := rows(i), at(i, j)
			for r := range order(i) {
				copy(t[r*ld:(r+1)*ld], p[r*lda:r*lda+ld])
			}
			bi.Dtrmm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, order(i), ld, 1, at(j, j), lda, t, ld)
		})
		each(below, func(i int) { // (L⁻¹)_IJ = −Σ_{J<K≤I} X_IK·T_K, the longest sums first
			i = blocks - 1 - i
			dst := at(i, j)
			for r := range order(i) {
				copy(dst[r*lda:r*lda+ld], rows(i)[r*ld:(r+1)*ld])
			}
			bi.Dtrmm(blas.Left, blas.Lower, blas.NoTrans, blas.NonUnit, order(i), ld, -1, at(i, i), lda, dst, lda)
			for k := j + 1; k < i; k++ {
				bi.Dgemm(blas.NoTrans, blas.NoTrans, order(i), ld, order(k), -1, at(i, k), lda, rows(k), ld, 1, dst,
					lda)
			}
		})
	}
	return true
}

// each calls body for i = 0 … n-1 on the pool of workers.
func each(n int, body func(i int)) {
	if err := ForEach(context.Background(), n, func(_, i int) { body(i) }); err != nil {
		panic(err) // the background context does not end
	}
}
