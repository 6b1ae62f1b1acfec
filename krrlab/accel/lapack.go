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
func (l libraryLAPACK) Dpotrf(ul blas.Uplo, n int, a []float64, lda int) (ok bool) {
	lib := currentLibrary()
	if lib == nil || n < lapackOrder || !isUplo(ul) || !fitsMatrix(n, n, lda, len(a)) {
		return l.Implementation.Dpotrf(ul, n, a, lda)
	}
	return potrf(lib, lib.d.potrf, ul, n, a, lda)
}

// potrf calls the library's xPOTRF (DPOTRF or SPOTRF) at the given address, and reports whether all pivots were
// positive, as gonum's Dpotrf does. A pivot of +Inf counts as positive in both.
func potrf[T float](lib *Library, address uintptr, ul blas.Uplo, n int, a []T, lda int) bool {
	ok := callFortran(lib, routine[T]{address: address, form: "cipio", chars: [4]byte{flipUplo(ul)}, ints: [6]int{n,
		lda}}, a) == 0
	// A NaN in A propagates to the diagonal, where the library's pivot test, a_jj ≤ 0, does not detect it.
	for i := 0; ok && i < n; i++ {
		ok = a[i*lda+i] == a[i*lda+i]
	}
	return ok
}

// Dtrtri computes the inverse of the triangular matrix a in place and reports
// whether a was nonsingular.
func (l libraryLAPACK) Dtrtri(ul blas.Uplo, d blas.Diag, n int, a []float64, lda int) (ok bool) {
	lib := currentLibrary()
	if lib == nil || n < lapackOrder || !isUplo(ul) || !isDiag(d) || !fitsMatrix(n, n, lda, len(a)) {
		return l.Implementation.Dtrtri(ul, d, n, a, lda)
	}
	if d == blas.NonUnit {
		for i := range n {
			if a[i*lda+i] == 0 {
				return false // a is not changed, as in gonum
			}
		}
	}
	return callFortran(lib, routine[float64]{lib.dtrtri, "ccipio", [4]byte{flipUplo(ul), byte(d)}, [6]int{n, lda}, 0,
		0}, a) == 0
}

// spotrfBlock is the width of the block columns of spotrfGo.
const spotrfBlock = 64

// spotrfGo is the left-looking blocked Cholesky factorization in float32. It reports whether a was positive definite.
// With J the columns before the block column j, and i the rows below it:
//
//	A_jj ← A_jj − L_jJ·L_jJᵀ,  L_jj = chol(A_jj)
//	L_ij = (A_ij − L_iJ·L_jJᵀ)·L_jj⁻ᵀ
func spotrfGo(n int, a []float32, lda int) bool {
	routines := blas32.Implementation()
	for j := 0; j < n; j += spotrfBlock {
		width := min(spotrfBlock, n-j)
		rows, rowsBelow := a[j*lda:], n-j-width
		routines.Ssyrk(blas.Lower, blas.NoTrans, width, j, -1, rows, lda, 1, rows[j:], lda)
		if !spotf2(width, rows[j:], lda) {
			return false
		}
		if rowsBelow > 0 {
			lowerRows := a[(j+width)*lda:]
			routines.Sgemm(blas.NoTrans, blas.Trans, rowsBelow, width, j, -1, lowerRows, lda, rows, lda, 1,
				lowerRows[j:], lda)
			routines.Strsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, rowsBelow, width, 1, rows[j:], lda,
				lowerRows[j:], lda)
		}
	}
	return true
}

// spotf2 factors a diagonal block row by row, with sums in float64. At the first pivot that is not positive, it
// stores that pivot on the diagonal and returns false. As in the library and in gonum, +Inf counts as positive:
//
//	l_ij = (a_ij − Σ_{k<j} l_ik·l_jk)/l_jj, j < i;  l_ii = √(a_ii − Σ_{k<i} l_ik²)
func spotf2(n int, a []float32, lda int) bool {
	for i := range n {
		rowI := a[i*lda : i*lda+i+1]
		pivot := float64(rowI[i])
		for j := range i {
			rowJ := a[j*lda : j*lda+j+1]
			sum := float64(rowI[j])
			for k, entry := range rowJ[:j] {
				sum -= float64(rowI[k]) * float64(entry)
			}
			rowI[j] = float32(sum / float64(rowJ[j]))
			pivot -= float64(rowI[j]) * float64(rowI[j])
		}
		root := float32(math.Sqrt(pivot))
		if !(root > 0) { // pivot ≤ 0, a root that rounds to 0 in float32, or NaN
			rowI[i] = float32(pivot)
			return false
		}
		rowI[i] = root
	}
	return true
}
