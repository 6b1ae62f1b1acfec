package accel

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// lapacks is the lapack.Float64 in use: gonum's, with the factorizations overridden
// that the project calls, where there is a library. As in level3, what is small, empty or misuse goes
// to gonum. gonum's other routines call blas64 and so run on the library where
// their time goes into level 3 (Dpotrs and Dtrtrs are calls of Dtrsm).
type lapacks struct {
	gonum.Implementation
}

var _ lapack.Float64 = lapacks{}

// lapackOrder is the least order for which the library is called.
const lapackOrder = 32

// Dpotrf computes the Cholesky factor L (A = L·Lᵀ) or U (A = Uᵀ·U) in the
// triangle ul of a, and reports whether A was positive definite.
func (o lapacks) Dpotrf(ul blas.Uplo, n int, a []float64, lda int) (ok bool) {
	l := inUse()
	if l == nil || n < lapackOrder || !isUplo(ul) || !matrix(n, n, lda, len(a)) {
		return o.Implementation.Dpotrf(ul, n, a, lda)
	}
	return potrf(l, l.d.potrf, ul, n, a, lda)
}

// potrf calls xPOTRF at fn.
func potrf[T real](l *Library, fn uintptr, ul blas.Uplo, n int, a []T, lda int) bool {
	ok := fortran(l, fn, "cipio", [4]byte{flipUplo(ul)}, [6]int{n, lda}, 0, 0, a) == 0
	// A NaN in A ends up in the diagonal, where the library's pivot test,
	// a_jj ≤ 0, lets it pass.
	for i := 0; ok && i < n; i++ {
		ok = a[i*lda+i] == a[i*lda+i]
	}
	return ok
}

// Dtrtri computes the inverse of the triangular matrix a in place and reports
// whether a was nonsingular.
func (o lapacks) Dtrtri(ul blas.Uplo, d blas.Diag, n int, a []float64, lda int) (ok bool) {
	l := inUse()
	if l == nil || n < lapackOrder || !isUplo(ul) || !isDiag(d) || !matrix(n, n, lda, len(a)) {
		return o.Implementation.Dtrtri(ul, d, n, a, lda)
	}
	if d == blas.NonUnit {
		for i := range n {
			if a[i*lda+i] == 0 {
				return false // as gonum: a is left as it is
			}
		}
	}
	return fortran(l, l.dtrtri, "ccipio", [4]byte{flipUplo(ul), byte(d)}, [6]int{n, lda}, 0, 0, a) == 0
}

// Dsyev computes the eigenvalues w, ascending, and with jobz = EVCompute the
// eigenvectors, in the columns of a, of the symmetric a with triangle ul stored.
// It runs LAPACK's divide and conquer, dsyevd, with its own workspace, 2n²
// numbers (work is only checked); gonum's where that is more than 32 bits count, above n = 32,000.
func (o lapacks) Dsyev(jobz lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, w, work []float64,
	lwork int) (ok bool) {
	l := inUse()
	if l == nil || n < lapackOrder || n > 32000 || jobz != lapack.EVNone && jobz != lapack.EVCompute || !isUplo(ul) ||
		!matrix(n, n, lda, len(a)) || len(w) < n || lwork < 3*n-1 || len(work) < lwork || hasNaN(ul, n, a, lda) {
		return o.syev(jobz, ul, n, a, lda, w, work, lwork)
	}
	lw, liw := 1+2*n, 1
	if jobz == lapack.EVCompute {
		lw, liw = 1+6*n+2*n*n, 3+5*n
	}
	ok = fortran(l, l.dsyevd, "ccipippipio", [4]byte{byte(jobz), flipUplo(ul)}, [6]int{n, lda, lw, liw}, 0, 0,
		a, w, make([]float64, lw), make([]float64, liw/2+1)) == 0 // the last one's memory is of 32-bit integers
	if ok && jobz == lapack.EVCompute {
		transpose(n, a, lda) // eigenvector i lies in row i
	}
	return ok
}

// Eigen returns the eigenvalues of the symmetric matrix a, ascending, in 4n³/3 flops on one thread: on more the bits
// depend on their number. It overwrites a, with jobz = EVCompute by the eigenvectors, in its columns.
func Eigen(ctx context.Context, jobz lapack.EVJob, a blas64.Symmetric) ([]float64, error) {
	values, query := make([]float64, a.N), make([]float64, 1)
	lapack64.Syev(jobz, a, values, query, -1)
	work := make([]float64, int(query[0]))
	ok := false
	err := ForEach(ctx, 1, func(_, _ int) { ok = lapack64.Syev(jobz, a, values, work, len(work)) })
	if err == nil && !ok {
		err = fmt.Errorf("the eigenvalues of a matrix of order %d did not converge", a.N)
	}
	return values, err
}

// hasNaN reports whether the triangle ul of a has a NaN, with which LAPACK's
// iterations may not end.
func hasNaN(ul blas.Uplo, n int, a []float64, lda int) bool {
	for i := range n {
		row := a[i*lda : i*lda+i+1]
		if ul == blas.Upper {
			row = a[i*lda+i : i*lda+n]
		}
		for _, v := range row {
			if math.IsNaN(v) {
				return true
			}
		}
	}
	return false
}

// transpose transposes the n×n matrix a in place, by blocks that fit a cache.
func transpose(n int, a []float64, lda int) {
	const nb = 32
	for i0 := 0; i0 < n; i0 += nb {
		for j0 := 0; j0 <= i0; j0 += nb {
			for i := i0; i < min(i0+nb, n); i++ {
				for j := j0; j < min(j0+nb, i); j++ {
					a[i*lda+j], a[j*lda+i] = a[j*lda+i], a[i*lda+j]
				}
			}
		}
	}
}

// negligible is what an entry of a tridiagonal matrix of size 1 may be without weight.
const negligible = 0x1p-400

// Dsterf replaces diag, the diagonal of a symmetric tridiagonal matrix, by its eigenvalues, ascending,
// and spoils off, what stands beside it. It reports whether it could: a number that is not finite
// and a failed iteration say no. Eigenvalues are within about 10⁻¹⁶ of the largest one's size.
//
// It is gonum's Dsterf, the root-free QL or QR iteration, save that the matrix is scaled by a
// power of two and freed of entries below 2⁻⁴⁰⁰ of its largest first: gonum's own scaling
// of blocks that are tiny or huge panics.
func Dsterf(diag, off []float64) bool {
	e, ok := normalize(diag, off)
	if !ok || !(gonum.Implementation{}).Dsterf(len(diag), diag, off) {
		return false
	}
	for i, v := range diag {
		diag[i] = math.Ldexp(v, e)
	}
	return true
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

// normalize multiplies a tridiagonal matrix by 2^−e, so that its largest entry is between ½ and 1, and sets entries below
// negligible to 0. ok is false if a number is not finite.
func normalize(diag, off []float64) (e int, ok bool) {
	var top float64
	for _, list := range [][]float64{diag, off} {
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, false
			}
			top = max(top, math.Abs(v))
		}
	}
	_, e = math.Frexp(top)
	for _, list := range [][]float64{diag, off} {
		for i, v := range list {
			if list[i] = math.Ldexp(v, -e); math.Abs(list[i]) < negligible {
				list[i] = 0
			}
		}
	}
	return e, true
}

// syev is gonum's Dsyev with the tridiagonal matrix normalized, as gonum's scaling of its tiny or huge blocks panics.
func (o lapacks) syev(jobz lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, w, work []float64,
	lwork int) (ok bool) {
	var top float64
	if lwork >= 3*n-1 && len(work) >= lwork && n > 1 && isUplo(ul) && matrix(n, n, lda, len(a)) && len(w) >= n {
		top = o.Dlansy(lapack.MaxAbs, ul, n, a, lda, work)
	}
	if jobz != lapack.EVNone && jobz != lapack.EVCompute || !(top > 0 && top <= math.MaxFloat64) {
		return o.Implementation.Dsyev(jobz, ul, n, a, lda, w, work, lwork)
	}
	_, first := math.Frexp(top)
	for i := range n {
		row := a[i*lda : i*lda+i+1]
		if ul == blas.Upper {
			row = a[i*lda+i : i*lda+n]
		}
		for j, v := range row {
			row[j] = math.Ldexp(v, -first)
		}
	}
	off, tau, rest := work[:n-1], work[n:2*n-1], work[2*n:]
	o.Dsytrd(ul, n, a, lda, w, off, tau, rest, lwork-2*n)
	second, ok := normalize(w[:n], off)
	switch {
	case !ok:
		return false
	case jobz == lapack.EVNone:
		ok = o.Implementation.Dsterf(n, w, off)
	default:
		o.Dorgtr(ul, n, a, lda, tau, rest, lwork-2*n)
		ok = o.Dsteqr(lapack.EVComp(jobz), n, w, off, a, lda, work[n:])
	}
	for i := range n {
		w[i] = math.Ldexp(w[i], first+second)
	}
	return ok
}
