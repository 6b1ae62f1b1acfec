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
	l := inUse()
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
	l := inUse()
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

// Dsyev computes the eigenvalues w, ascending, and with jobz = EVCompute the eigenvectors, in the columns of a, of the
// symmetric a with triangle ul stored. It runs LAPACK's divide and conquer, dsyevd, and allocates the workspace of 2n²
// numbers itself; the length of work is checked, but work is not used. Without a library, for small n, and above
// n = 32,000, where the size of that workspace exceeds 32 bits, it runs gonum's Dsyev on a normalized matrix (syev),
// which uses work.
//
// If an entry of the triangle is NaN or infinite, Dsyev sets w to NaN and returns false. The iterations of a library
// may not terminate then, and those of gonum may return numbers.
func (o libraryLAPACK) Dsyev(jobz lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, w, work []float64,
	lwork int) (ok bool) {
	return o.dsyev(context.Background(), jobz, blas64.Symmetric{Uplo: ul, N: n, Data: a, Stride: lda},
		eigenBuffers{w, work, lwork})
}

// eigenBuffers are the arguments of Dsyev for the eigenvalues and the scratch memory.
type eigenBuffers struct {
	w, work []float64
	lwork   int // length of work, or −1 for a query
}

// dsyev is Dsyev for the matrix s. It also returns false if ctx ends.
func (o libraryLAPACK) dsyev(ctx context.Context, jobz lapack.EVJob, s blas64.Symmetric, b eigenBuffers) (ok bool) {
	ul, n, a, lda := s.Uplo, s.N, s.Data, s.Stride
	w, work, lwork := b.w, b.work, b.lwork
	isValid := n > 0 && (jobz == lapack.EVNone || jobz == lapack.EVCompute) && isUplo(ul) &&
		fitsMatrix(n, n, lda, len(a)) && len(w) >= n && lwork >= max(1, 3*n-1) && len(work) >= lwork
	if isValid && !isFiniteTriangle(ul, n, a, lda) {
		for i := range n {
			w[i] = math.NaN()
		}
		return false
	}
	l := inUse()
	if l == nil || n < lapackOrder || n > 32000 || !isValid {
		return o.syev(ctx, jobz, s, b)
	}
	lw, liw := 1+2*n, 1
	if jobz == lapack.EVCompute {
		lw, liw = 1+6*n+2*n*n, 3+5*n
	}
	ok = fortran(l, routine[float64]{l.dsyevd, "ccipippipio", [4]byte{byte(jobz), flipUplo(ul)},
		[6]int{n, lda, lw, liw}, 0, 0},
		a, w, make([]float64, lw), make([]float64, liw/2+1)) == 0 // the last slice is memory for 32-bit integers
	if ok && jobz == lapack.EVCompute {
		transpose(n, a, lda) // the library returned eigenvector i in row i
	}
	return ok
}

// Eigen returns the eigenvalues of the symmetric matrix a, in ascending order. Without eigenvectors it takes about
// 4n³/3 flops. It runs on one thread, because with more the bits of the result would depend on their number. It
// overwrites a; if jobz is EVCompute, the columns of a become the eigenvectors. It returns an error if ctx ends, an
// entry is NaN or infinite, or the iteration does not converge.
//
// Without a library, a reduction of the lower triangle ends between two panels of 32 columns if ctx ends; for
// eigenvalues alone, that is nearly all of the work. A library's routine, and the computation of eigenvectors after the
// reduction, are completed before Eigen returns ctx's error.
func Eigen(ctx context.Context, jobz lapack.EVJob, a blas64.Symmetric) ([]float64, error) {
	values, query := make([]float64, a.N), make([]float64, 1)
	lapack64.Syev(jobz, a, values, query, -1)
	work := make([]float64, int(query[0]))
	ok := false
	err := ForEach(ctx, 1, func(_, _ int) { ok = libraryLAPACK{}.dsyev(ctx, jobz, a, eigenBuffers{values, work, len(work)}) })
	if err == nil && !ok {
		err = fmt.Errorf("the eigenvalues of a matrix of order %d did not converge", a.N)
	}
	return values, err
}

// isFiniteTriangle reports whether all numbers in the triangle ul of a are finite.
func isFiniteTriangle(ul blas.Uplo, n int, a []float64, lda int) bool {
	for i := range n {
		for _, v := range triangleRow(ul, n, a, lda, i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
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

// dropThreshold is relative to the largest entry of a tridiagonal matrix, which normalize scales to between ½ and 1.
// normalize sets the entries below it to 0. A larger threshold drops more entries; the errors of the eigenvalues are at
// most about the threshold, which is far below the rounding errors.
const dropThreshold = 0x1p-400

// Dsterf computes the eigenvalues of a symmetric tridiagonal matrix with the diagonal diag and the off-diagonal off. It
// replaces diag by the eigenvalues, in ascending order, and overwrites off with scratch values. It reports false if a
// number is not finite or the iteration fails. The errors of the eigenvalues are about 10⁻¹⁶ times the largest one.
//
// Dsterf calls gonum's Dsterf, the root-free QL or QR iteration. Before that it scales the matrix by a power of two and
// sets entries below 2⁻⁴⁰⁰ times the largest to 0, because gonum's own scaling panics for tiny or huge blocks.
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

// normalize multiplies a tridiagonal matrix by 2^−e, so that its largest entry is at least ½ and below 1, and then sets
// entries below dropThreshold to 0. It returns e, which is 0 for a zero matrix. If a number is not finite, ok is false
// and the matrix is not changed.
func normalize(diag, off []float64) (e int, ok bool) {
	var maxAbs float64
	for _, list := range [][]float64{diag, off} {
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, false
			}
			maxAbs = max(maxAbs, math.Abs(v))
		}
	}
	_, e = math.Frexp(maxAbs)
	for _, list := range [][]float64{diag, off} {
		for i, v := range list {
			if list[i] = math.Ldexp(v, -e); math.Abs(list[i]) < dropThreshold {
				list[i] = 0
			}
		}
	}
	return e, true
}

// syev is gonum's Dsyev, except that the tridiagonal matrix is normalized, because gonum's own scaling panics for tiny
// or huge blocks, and that it returns false if ctx ends during the reduction.
func (o libraryLAPACK) syev(ctx context.Context, jobz lapack.EVJob, s blas64.Symmetric, b eigenBuffers) (ok bool) {
	ul, n, a, lda := s.Uplo, s.N, s.Data, s.Stride
	w, work, lwork := b.w, b.work, b.lwork
	var maxAbs float64
	if lwork >= 3*n-1 && len(work) >= lwork && n > 1 && isUplo(ul) && fitsMatrix(n, n, lda, len(a)) && len(w) >= n {
		maxAbs = o.Dlansy(lapack.MaxAbs, ul, n, a, lda, work)
	}
	// Invalid arguments, queries of the workspace and zero matrices, with maxAbs = 0, go to gonum unchanged.
	if jobz != lapack.EVNone && jobz != lapack.EVCompute || !(maxAbs > 0 && maxAbs <= math.MaxFloat64) {
		return o.Implementation.Dsyev(jobz, ul, n, a, lda, w, work, lwork)
	}
	_, inputExponent := math.Frexp(maxAbs)
	for i := range n {
		row := triangleRow(ul, n, a, lda, i)
		for j, v := range row {
			row[j] = math.Ldexp(v, -inputExponent)
		}
	}
	off, tau, remainingWork := work[:n-1], work[n:2*n-1], work[2*n:]
	if !o.reduce(ctx, s, tridiagonal{w, off, tau}, remainingWork[:lwork-2*n]) {
		return false
	}
	tridiagonalExponent, ok := normalize(w[:n], off)
	switch {
	case !ok:
		return false
	case jobz == lapack.EVNone:
		ok = o.Implementation.Dsterf(n, w, off)
	default:
		o.Dorgtr(ul, n, a, lda, tau, remainingWork, lwork-2*n)
		ok = o.Dsteqr(lapack.EVComp(jobz), n, w, off, a, lda, work[n:])
	}
	for i := range n {
		w[i] = math.Ldexp(w[i], inputExponent+tridiagonalExponent)
	}
	return ok
}

// tridiagonal has the diagonal d and the subdiagonal e of a tridiagonal matrix, and the factors τ of the Householder
// reflections I − τvvᵀ that reduce a symmetric matrix to it.
type tridiagonal struct{ d, e, tau []float64 }

// reduce is gonum's Dsytrd. It returns false if ctx ends between two panels of a lower triangle: with V the Householder
// vectors of a panel of nb columns, and W the matrix that Dlatrd returns, the part of A below and right of the
// panel becomes A − VWᵀ − WVᵀ.
func (o libraryLAPACK) reduce(ctx context.Context, s blas64.Symmetric, t tridiagonal, work []float64) bool {
	ul, n, a, lda := s.Uplo, s.N, s.Data, s.Stride
	d, e, tau := t.d, t.e, t.tau
	nb := o.Ilaenv(1, "DSYTRD", string(ul), n, -1, -1, -1)
	unblocked := max(nb, o.Ilaenv(3, "DSYTRD", string(ul), n, -1, -1, -1)) // order of the part without panels
	if ul == blas.Upper || n <= unblocked || len(work) < n*nb {
		o.Dsytrd(ul, n, a, lda, d, e, tau, work, len(work))
		return ctx.Err() == nil
	}
	i := 0
	for ; i < n-unblocked && ctx.Err() == nil; i += nb {
		panel, below := a[i*lda+i:], n-i-nb
		o.Dlatrd(ul, n-i, nb, panel, lda, e[i:], tau[i:], work, nb)
		blas64.Implementation().Dsyr2k(ul, blas.NoTrans, below, nb, -1, panel[nb*lda:], lda, work[nb*nb:], nb, 1,
			panel[nb*lda+nb:], lda)
		for j := i; j < i+nb; j++ {
			a[(j+1)*lda+j], d[j] = e[j], a[j*lda+j]
		}
	}
	if ctx.Err() != nil {
		return false
	}
	o.Dsytd2(ul, n-i, a[i*lda+i:], lda, d[i:], e[i:], tau[i:])
	return true
}
