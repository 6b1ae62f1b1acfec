package accel

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// libraryLAPACK is the lapack.Float64 in use. It is gonum's, except that a library, if there is one, computes the
// factorizations that the project calls. As in level3, small or empty problems and misuse go to gonum. Other routines
// of gonum call blas64, so they use the library if they spend their time in level 3 (Dpotrs and Dtrtrs are calls of
// Dtrsm). For the form of a call, such as "cipio", see routine.
type libraryLAPACK struct {
	gonum.Implementation
}

var _ lapack.Float64 = libraryLAPACK{}

// lapackOrder is the smallest order for which the library is called; gonum solves smaller problems.
const lapackOrder = 32

// Dpotrf computes the Cholesky factor L (A = L·Lᵀ) or U (A = Uᵀ·U) in the
// triangle ul of a, and reports whether A was positive definite.
func (o libraryLAPACK) Dpotrf(ul blas.Uplo, n int, a []float64, lda int) (ok bool) {
	l := currentLibrary()
	if l == nil || n < lapackOrder || !isUplo(ul) || !fitsMatrix(n, n, lda, len(a)) {
		return o.Implementation.Dpotrf(ul, n, a, lda)
	}
	return potrf(l, l.d.potrf, ul, n, a, lda)
}

// potrf calls the library's xPOTRF at address fn, and reports whether all pivots were positive, as gonum's Dpotrf does.
// A pivot of +Inf counts as positive in both.
func potrf[T real](l *Library, fn uintptr, ul blas.Uplo, n int, a []T, lda int) bool {
	ok := fortran(l, routine[T]{address: fn, form: "cipio", chars: [4]byte{flipUplo(ul)}, ints: [6]int{n, lda}}, a) == 0
	// A NaN in A propagates to the diagonal, where the library's pivot test, a_jj ≤ 0, does not detect it.
	for i := 0; ok && i < n; i++ {
		ok = a[i*lda+i] == a[i*lda+i]
	}
	return ok
}

// Dtrtri computes the inverse of the triangular matrix a in place and reports
// whether a was nonsingular.
func (o libraryLAPACK) Dtrtri(ul blas.Uplo, d blas.Diag, n int, a []float64, lda int) (ok bool) {
	l := currentLibrary()
	if l == nil || n < lapackOrder || !isUplo(ul) || !isDiag(d) || !fitsMatrix(n, n, lda, len(a)) {
		return o.Implementation.Dtrtri(ul, d, n, a, lda)
	}
	if d == blas.NonUnit {
		for i := range n {
			if a[i*lda+i] == 0 {
				return false // a is not changed, as in gonum
			}
		}
	}
	return fortran(l, routine[float64]{l.dtrtri, "ccipio", [4]byte{flipUplo(ul), byte(d)}, [6]int{n, lda}, 0, 0},
		a) == 0
}

// spotrfBlock is the width of the block columns of spotrfGo.
const spotrfBlock = 64

// spotrfGo is the left-looking blocked Cholesky factorization in float32. It reports whether a was positive definite.
// With J the columns before the block column j, and i the rows below it:
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
			lowerRows := a[(j+jb)*lda:]
			bi.Sgemm(blas.NoTrans, blas.Trans, below, jb, j, -1, lowerRows, lda, rows, lda, 1, lowerRows[j:], lda)
			bi.Strsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, below, jb, 1, rows[j:], lda, lowerRows[j:], lda)
		}
	}
	return true
}

// spotf2 factors a diagonal block row by row, with sums in float64. It reports false at the first pivot that is not
// positive, and stores that pivot in the diagonal. As in the library and in gonum, +Inf counts as positive:
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
		if !(r > 0) { // d ≤ 0, √d rounds to 0 in float32, or NaN
			li[i] = float32(d)
			return false
		}
		li[i] = r
	}
	return true
}
