package accel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Spotrf computes the Cholesky factorization A = L·Lᵀ of the symmetric positive
// definite n×n float32 matrix a, row-major with row stride lda, in place. Only
// the lower triangle of a is read, and L overwrites it; the upper triangle is
// not touched. Spotrf reports whether it succeeded; if not, because a pivot was
// ≤ 0 or NaN, a is partly overwritten. Spotrf panics if n < 0, lda < n or a is
// too short.
//
// The computed factor satisfies L·Lᵀ = A + E, |E| ≤ c·n·u·|L|·|L|ᵀ with
// u = 2⁻²⁴ and c about 1 (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., theorem 10.3), so A is seen as positive definite if
// λ_min(A) is above about n·u·max a_ii. Work: n³/3 multiplications. It runs on
// LAPACK's spotrf if a library is in use, otherwise on blocked Go code on top of
// blas32; use it outside ForEach.
//
// For float64 there is lapack64.Potrf.
func Spotrf(n int, a []float32, lda int) bool {
	switch {
	case n < 0:
		panic(fmt.Sprintf("accel: Spotrf: n = %d < 0", n))
	case lda < max(1, n):
		panic(fmt.Sprintf("accel: Spotrf: lda = %d < n = %d", lda, n))
	case n > 0 && len(a) < (n-1)*lda+n:
		panic(fmt.Sprintf("accel: Spotrf: len(a) = %d < %d for n = %d, lda = %d", len(a), (n-1)*lda+n, n, lda))
	}
	if l := inUse.Load(); l != nil && n >= lapackOrder && matrix(n, n, lda, len(a)) {
		return potrf(l, l.spotrf, blas.Lower, n, a, lda)
	}
	return spotrfGo(n, a, lda)
}

// spotrfBlock is the width of the block columns of spotrfGo.
const spotrfBlock = 64

// spotrfGo is the left-looking blocked algorithm. With J the columns before the
// block column j and i the rows below it:
//
//	A_jj ← A_jj − L_jJ·L_jJᵀ,  L_jj = chol(A_jj)
//	L_ij = (A_ij − L_iJ·L_jJᵀ)·L_jj⁻ᵀ
func spotrfGo(n int, a []float32, lda int) bool {
	bi := blas32.Implementation()
	for j := 0; j < n; j += spotrfBlock {
		jb := min(spotrfBlock, n-j)
		rows, below := a[j*lda:], n-j-jb
		bi.Ssyrk(blas.Lower, blas.NoTrans, jb, j, -1, rows, lda, 1, rows[j:], lda)
		if !spotf2(jb, rows[j:], lda) {
			return false
		}
		if below > 0 {
			rest := a[(j+jb)*lda:]
			bi.Sgemm(blas.NoTrans, blas.Trans, below, jb, j, -1, rest, lda, rows, lda, 1, rest[j:], lda)
			bi.Strsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, below, jb, 1, rows[j:], lda, rest[j:], lda)
		}
	}
	return true
}

// spotf2 factors a diagonal block row by row, with float64 sums:
//
//	l_ij = (a_ij − Σ_{k<j} l_ik·l_jk)/l_jj, j < i;  l_ii = √(a_ii − Σ_{k<i} l_ik²)
func spotf2(n int, a []float32, lda int) bool {
	for i := range n {
		li := a[i*lda : i*lda+i+1]
		d := float64(li[i])
		for j := range i {
			lj := a[j*lda : j*lda+j+1]
			s := float64(li[j])
			for k, v := range lj[:j] {
				s -= float64(li[k]) * float64(v)
			}
			li[j] = float32(s / float64(lj[j]))
			d -= float64(li[j]) * float64(li[j])
		}
		r := float32(math.Sqrt(d))
		if !(r > 0) { // d ≤ 0, d below float32's range, or NaN
			return false
		}
		li[i] = r
	}
	return true
}
