package accel

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

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

// spotf2 factors a diagonal block row by row, with float64 sums; it leaves the first pivot that is
// not positive in its place:
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
			li[i] = float32(d)
			return false
		}
		li[i] = r
	}
	return true
}
