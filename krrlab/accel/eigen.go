package accel

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Eigen returns the eigenvalues of the symmetric matrix a, in ascending order. Without eigenvectors it takes about
// 4n³/3 flops. Eigen runs on one thread, because with several the bits of the result would depend on their number. It
// overwrites a. If jobz is EVCompute, the columns of a become the eigenvectors. It returns an error if ctx ends, an
// entry is NaN or infinite, or the iteration does not converge.
//
// If ctx ends, Eigen returns between two panels of 32 columns of the reduction to tridiagonal form; for eigenvalues
// alone, that is nearly all of the work. With a library, the longest part that is completed first is the divide and
// conquer for the eigenvectors of the tridiagonal matrix, about a quarter of the work. Without a library, the
// computation of eigenvectors after the reduction is completed. A matrix that is stored in its upper triangle is
// reduced in one piece without a library.
func Eigen(ctx context.Context, jobz lapack.EVJob, a blas64.Symmetric) ([]float64, error) {
	values, query := make([]float64, a.N), make([]float64, 1)
	lapack64.Syev(jobz, a, values, query, -1)
	work := make([]float64, int(query[0]))
	ok := false
	err := ForEach(ctx, 1, func(_, _ int) {
		ok = libraryLAPACK{}.dsyev(ctx, jobz, a, eigenBuffers{values, work,
			len(work)})
	})
	if err == nil && !ok {
		err = fmt.Errorf("the eigenvalues of a matrix of order %d did not converge", a.N)
	}
	return values, err
}

// Dsyev computes the eigenvalues w, ascending, and with jobz = EVCompute the eigenvectors, in the columns of a, of the
// symmetric a with triangle ul stored. With a library it runs the routines of LAPACK's dsyevd, which is the divide and
// conquer algorithm, and allocates 2n² numbers for eigenvectors. For small n, above n = maxDivideOrder, and without a
// library it runs gonum's routines.
//
// If an entry of the triangle is NaN or infinite, Dsyev sets w to NaN and returns false. In this case, the iterations
// of a library may not terminate, and those of gonum may return numbers.
func (l libraryLAPACK) Dsyev(jobz lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, w, work []float64,
	lwork int) (ok bool) {
	return l.dsyev(context.Background(), jobz, blas64.Symmetric{Uplo: ul, N: n, Data: a, Stride: lda},
		eigenBuffers{w, work, lwork})
}

// eigenBuffers are the arguments of Dsyev for the eigenvalues and the scratch memory.
type eigenBuffers struct {
	w, work []float64
	lwork   int // length of work, or −1 for a query
}

// maxDivideOrder is the largest order n for which the scratch memory of LAPACK's dstedc, n²+4n+1 numbers, can be
// counted in 32 bits.
const maxDivideOrder = 46000

// dsyev is Dsyev for the matrix s. It also returns false if ctx ends. It scales the matrix by a power of two and
// normalizes the tridiagonal matrix, because gonum's own scaling panics for tiny or huge blocks.
func (l libraryLAPACK) dsyev(ctx context.Context, jobz lapack.EVJob, s blas64.Symmetric, b eigenBuffers) (ok bool) {
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
	maxAbs := 0.0
	if isValid && n > 1 {
		maxAbs = l.Dlansy(lapack.MaxAbs, ul, n, a, lda, work)
	}
	if maxAbs == 0 { // invalid arguments, a query of the workspace, or a zero matrix
		return l.Implementation.Dsyev(jobz, ul, n, a, lda, w, work, lwork)
	}
	_, inputExponent := math.Frexp(maxAbs)
	for i := range n {
		row := triangleRow(ul, n, a, lda, i)
		for j, v := range row {
			row[j] = math.Ldexp(v, -inputExponent)
		}
	}
	lib, t := currentLibrary(), tridiagonal{w[:n], work[:n-1], work[n : 2*n-1]}
	if n < lapackOrder || n > maxDivideOrder {
		lib = nil
	}
	if lib != nil {
		ok = lib.reduce(ctx, s, t)
	} else {
		ok = l.reduce(ctx, s, t, work[2*n:lwork])
	}
	if !ok {
		return false
	}
	tridiagonalExponent, ok := normalize(t.d, t.e)
	switch {
	case !ok:
		return false
	case jobz == lapack.EVNone:
		ok = l.Implementation.Dsterf(n, t.d, t.e)
	case lib != nil:
		ok = lib.eigenvectors(ctx, s, t)
	default:
		l.Dorgtr(ul, n, a, lda, t.tau, work[2*n:], lwork-2*n)
		ok = l.Dsteqr(lapack.EVComp(jobz), n, t.d, t.e, a, lda, work[n:])
	}
	for i := range n {
		w[i] = math.Ldexp(w[i], inputExponent+tridiagonalExponent)
	}
	return ok
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

// transpose transposes the n×n matrix a in place, in blocks of nb×nb that fit a cache.
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

// tridiagonal has the diagonal d and the subdiagonal e of a tridiagonal matrix, and the factors τ of the Householder
// reflections I − τvvᵀ that reduce a symmetric matrix to it.
type tridiagonal struct{ d, e, tau []float64 }

// reduce is gonum's Dsytrd. It returns false if ctx ends between two panels of a lower triangle: with V the Householder
// vectors of a panel of nb columns, and W the matrix that Dlatrd returns, the part of A below and right of the
// panel becomes A − VWᵀ − WVᵀ.
func (l libraryLAPACK) reduce(ctx context.Context, s blas64.Symmetric, t tridiagonal, work []float64) bool {
	ul, n, a, lda := s.Uplo, s.N, s.Data, s.Stride
	d, e, tau := t.d, t.e, t.tau
	nb := l.Ilaenv(1, "DSYTRD", string(ul), n, -1, -1, -1)
	unblocked := max(nb, l.Ilaenv(3, "DSYTRD", string(ul), n, -1, -1, -1)) // order of the part without panels
	if ul == blas.Upper || n <= unblocked || len(work) < n*nb {
		l.Dsytrd(ul, n, a, lda, d, e, tau, work, len(work))
		return ctx.Err() == nil
	}
	i := 0
	for ; i < n-unblocked && ctx.Err() == nil; i += nb {
		panel, below := a[i*lda+i:], n-i-nb
		l.Dlatrd(ul, n-i, nb, panel, lda, e[i:], tau[i:], work, nb)
		blas64.Implementation().Dsyr2k(ul, blas.NoTrans, below, nb, -1, panel[nb*lda:], lda, work[nb*nb:], nb, 1,
			panel[nb*lda+nb:], lda)
		for j := i; j < i+nb; j++ {
			a[(j+1)*lda+j], d[j] = e[j], a[j*lda+j]
		}
	}
	if ctx.Err() != nil {
		return false
	}
	l.Dsytd2(ul, n-i, a[i*lda+i:], lda, d[i:], e[i:], tau[i:])
	return true
}

// reduce is LAPACK's dsytrd. It calls the same routines, so that the result has the same bits, but it returns false if
// ctx ends between two panels. The library takes the upper triangle of s for a lower one, which dsytrd reduces from the
// first column on, and the lower triangle for an upper one, which it reduces from the last column on.
func (l *Library) reduce(ctx context.Context, s blas64.Symmetric, t tridiagonal) bool {
	const nb = 32 // columns of a panel in dsytrd
	n, a, lda, uplo := s.N, s.Data, s.Stride, flipUplo(s.Uplo)
	work, panels := make([]float64, n*nb), (n-1)/nb
	for panel := range panels {
		if ctx.Err() != nil {
			return false
		}
		// The part of the matrix that is not reduced yet begins at row and column start, its panel at column
		// panelColumn, and the part without the panel at row and column trailing.
		panelColumn, start, trailing, neighbor := panel*nb, panel*nb, (panel+1)*nb, 1
		if uplo == 'U' {
			panelColumn, start, trailing, neighbor = n-(panel+1)*nb, 0, 0, -1
		}
		order := n - panel*nb
		callFortran(l, routine[float64]{l.dlatrd, "ciipipppi", [4]byte{uplo}, [6]int{order, nb, lda, n}, 0, 0},
			a[start*(lda+1):], t.e[start:], t.tau[start:], work)
		callFortran(l, routine[float64]{l.dsyr2k, "cciiapipibpi", [4]byte{uplo, 'N'}, [6]int{order - nb, nb, lda, n,
			lda},
			-1, 1}, a[panelColumn*lda+trailing:], work[trailing-start:], a[trailing*(lda+1):])
		for j := panelColumn; j < panelColumn+nb; j++ {
			t.d[j], a[j*lda+j+neighbor] = a[j*lda+j], t.e[min(j, j+neighbor)]
		}
	}
	start := panels * nb
	if uplo == 'U' {
		start = 0
	}
	callFortran(l, routine[float64]{l.dsytd2, "cipipppo", [4]byte{uplo}, [6]int{n - panels*nb, lda}, 0, 0},
		a[start*(lda+1):], t.d[start:], t.e[start:], t.tau[start:])
	return true
}

// eigenvectorsPerCall is the number of eigenvectors to which one call applies the reflections. Measured for n = 1,500,
// the calls take 7 % longer than a single one, and with 256 eigenvectors 17 %. With more, ctx is checked less often.
const eigenvectorsPerCall = 512

// eigenvectors replaces s, which reduce has reduced to t, by the eigenvectors in its columns, and t.d by the
// eigenvalues. It calls the routines of LAPACK's dsyevd: first dstedc for the tridiagonal matrix, and then dormql or
// dormqr for the reflections. It returns false if ctx ends between two calls, or if dstedc does not converge.
func (l *Library) eigenvectors(ctx context.Context, s blas64.Symmetric, t tridiagonal) bool {
	n, a, lda := s.N, s.Data, s.Stride
	z, work := make([]float64, n*n), make([]float64, n*n+4*n+1)
	integers := make([]float64, (3+5*n)/2+1) // memory for 3+5n integers of 32 bits
	if callFortran(l, routine[float64]{l.dstedc, "cipppipipio", [4]byte{'I'}, [6]int{n, n, len(work), 3 + 5*n}, 0, 0},
		t.d,
		t.e, z, work, integers) != 0 {
		return false
	}
	address, reflectors, firstRow := l.dormql, a[lda:], 0
	if s.Uplo == blas.Upper {
		address, reflectors, firstRow = l.dormqr, a[1:], 1
	}
	for k := 0; k < n; k += eigenvectorsPerCall {
		if ctx.Err() != nil {
			return false
		}
		callFortran(l, routine[float64]{address, "cciiipippipio", [4]byte{'L', 'N'},
			[6]int{n - 1, min(eigenvectorsPerCall, n-k), n - 1, lda, n, len(work)}, 0, 0}, reflectors, t.tau,
			z[k*n+firstRow:], work)
	}
	for k := range n { // eigenvector k is row k of z
		copy(a[k*lda:k*lda+n], z[k*n:])
	}
	transpose(n, a, lda)
	return true
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
	exponent, ok := normalize(diag, off)
	if !ok || !(gonum.Implementation{}).Dsterf(len(diag), diag, off) {
		return false
	}
	for i, scaled := range diag {
		diag[i] = math.Ldexp(scaled, exponent)
	}
	return true
}

// normalize multiplies a tridiagonal matrix by 2^−e, so that its largest entry is at least ½ and below 1, and then sets
// entries below dropThreshold to 0. It returns the exponent e, which is 0 for a zero matrix. If a number is not finite,
// ok is false and the matrix is not changed.
func normalize(diag, off []float64) (exponent int, ok bool) {
	var maxAbs float64
	for _, entries := range [][]float64{diag, off} {
		for _, entry := range entries {
			if math.IsNaN(entry) || math.IsInf(entry, 0) {
				return 0, false
			}
			maxAbs = max(maxAbs, math.Abs(entry))
		}
	}
	_, exponent = math.Frexp(maxAbs)
	for _, entries := range [][]float64{diag, off} {
		for i, entry := range entries {
			if entries[i] = math.Ldexp(entry, -exponent); math.Abs(entries[i]) < dropThreshold {
				entries[i] = 0
			}
		}
	}
	return exponent, true
}
