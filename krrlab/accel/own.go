package accel

import (
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// ownThreads is the number of threads that products of the BLAS run on now.
var ownThreads atomic.Int32

const (
	ownWork = 1 << 20 // least work for which threads are worth their while
	ownRows = 512     // largest pieces that C is cut into
	ownCols = 1024

	ownTrxmWork = 16 << 10 // least work for which gemm's triangular routines are
)

// ownGemm computes C = α·op(A)·op(B) + β·C by package gemm, on all threads outside ForEach and on one inside it, in
// pieces of C. The bits of what this and the next two compute do not depend on the number of threads.
func ownGemm[T real](tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T,
	ldc int) {
	threads := int(ownThreads.Load())
	if threads == 1 || !large(m, n, k, ownWork) {
		gogemm.Gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	rows, cols := pieces[T](m, n, threads)
	grid(m, n, rows, cols, func(i, j, m, n int) {
		gogemm.Gemm(tA, tB, m, n, k, alpha, vectors(a, tA == blas.NoTrans, i, lda), lda,
			vectors(b, tB != blas.NoTrans, j, ldb), ldb, beta, c[i*ldc+j:], ldc)
	})
}

// ownSyrk computes one triangle of C = α·A·Aᵀ + β·C or α·Aᵀ·A + β·C in blocks of it, about 8 for each thread.
func ownSyrk[T real](ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
	threads := int(ownThreads.Load())
	if threads == 1 || !large(n, n, k, 2*ownWork) {
		gogemm.Syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	tB := blas.Trans
	if tA != blas.NoTrans {
		tB = blas.NoTrans
	}
	size := blockOrder[T](n, threads)
	blocks := (n + size - 1) / size
	Each(blocks*(blocks+1)/2, func(_, q int) {
		i, j := pair(q)
		if ul == blas.Upper {
			i, j = j, i
		}
		i, j = i*size, j*size
		x, y := vectors(a, tA == blas.NoTrans, i, lda), vectors(a, tA == blas.NoTrans, j, lda)
		m, n, c := min(size, n-i), min(size, n-j), c[i*ldc+j:]
		if i == j {
			gogemm.Syrk(ul, tA, m, k, alpha, x, lda, beta, c, ldc)
			return
		}
		gogemm.Gemm(tA, tB, m, n, k, alpha, x, lda, y, lda, beta, c, ldc)
	})
}

// ownTrxm computes B = α·op(A)⁻¹·B, solve, or α·op(A)·B, or with op(A) on the right, in pieces of
// columns of B or, from the right, of rows: of 8 tiles at least, as each packs the triangle again.
func ownTrxm[T real](solve bool, s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T,
	lda int, b []T, ldb int) {
	q, rows, cols := order(s, m, n), m, n
	vectors := m + n - q
	threads := int(ownThreads.Load())
	if threads == 1 || !large(m, n, q, 2*ownWork) {
		gogemm.Triangular(solve, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	_, unit := gogemm.Tile[T]()
	size := min(ownRows, max(8*unit, ((vectors+threads-1)/threads+unit-1)/unit*unit))
	if s == blas.Left {
		cols = size
	} else {
		rows = size
	}
	grid(m, n, rows, cols, func(i, j, m, n int) {
		gogemm.Triangular(solve, s, ul, tA, d, m, n, alpha, a, lda, b[i*ldb+j:], ldb)
	})
}

// grid calls body, on all threads, for the pieces rows×cols of an m×n matrix, which begin at (i, j).
func grid(m, n, rows, cols int, body func(i, j, m, n int)) {
	across := (n + cols - 1) / cols
	Each((m+rows-1)/rows*across, func(_, q int) {
		i, j := q/across*rows, q%across*cols
		body(i, j, min(rows, m-i), min(cols, n-j))
	})
}

// pair returns the block of a lower triangle that has number q = i·(i+1)/2 + j, j ≤ i.
func pair(q int) (i, j int) {
	for ; q > i; i++ {
		q -= i + 1
	}
	return i, q
}

// pieces returns the size of the pieces that C, m×n, is cut into: at least one for
// each thread if C has enough tiles, a multiple of the number of threads if they are
// few, and none larger than ownRows×ownCols.
func pieces[T real](m, n, threads int) (rows, cols int) {
	mr, nr := gogemm.Tile[T]()
	part := func(n, count, unit int) int { return ((n+count-1)/count + unit - 1) / unit * unit }
	p, q := (m+ownRows-1)/ownRows, (n+ownCols-1)/ownCols
	for p*q < 4*threads && p*q%threads != 0 {
		switch {
		case part(m, p, mr) > mr && (part(m, p, mr) >= part(n, q, nr) || part(n, q, nr) == nr):
			p++
		case part(n, q, nr) > nr:
			q++
		default:
			return mr, nr
		}
	}
	return part(m, p, mr), part(n, q, nr)
}

// blockOrder returns the order of the blocks of a triangle of order n.
func blockOrder[T real](n, threads int) int {
	mr, _ := gogemm.Tile[T]()
	count := 2
	for count*(count+1) < 16*threads {
		count++
	}
	return min(ownRows, max(64, (n+count-1)/count)+mr-1) / mr * mr
}

// vectors returns a matrix without its first i rows or, if not rows, columns.
func vectors[T real](x []T, rows bool, i, ld int) []T {
	if rows {
		return x[i*ld:]
	}
	return x[i:]
}

// The least work, m·n·k multiplications, for which a call into the library is
// worth its while, as measured.
const (
	gemmWork = 1 << 10
	syrkWork = 4 << 10
	trxmWork = 1 << 10
	gemvWork = 64 << 10 // matrices that leave the cache: else threads cost more than they bring
)

// large reports whether m·n·k is at least work. Negative dimensions are not large.
func large(m, n, k, work int) bool {
	return m > 0 && n > 0 && k > 0 && float64(m)*float64(n)*float64(k) >= float64(work)
}

// level3 has the routines that the time goes into, in one precision. With a library a call that is
// plainly good, and large enough to be worth it, goes there, and everything else to gonum: small
// problems, empty ones, α = 0, dimensions beyond 32 bits, and misuse, at which gonum panics.
// Without one, products and triangular solves go to package gemm, on all threads outside ForEach and
// on one inside it, with the same bits for any number of threads; where gemm has no assembly for the
// processor, to gonum's, which on x86-64 are faster. A library that does not use the processor's AVX-512, because it
// is older than the processor, is left out of large products likewise, but not of triangular solves.
type level3[T real] struct {
	// ownOrder is the least dimension of a product on one thread with AVX2 for which own is used beside a library too.
	ownOrder int
	of       func(l *Library) *routines // l's
	gonum    overridden[T]
}

// overridden are the routines of a BLAS that this package has its own of.
type overridden[T real] struct {
	gemm       func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	syrk       func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int)
	trsm, trmm func(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T,
		ldb int)
	gemv func(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
}

func of64(i blas.Float64) overridden[float64] {
	return overridden[float64]{i.Dgemm, i.Dsyrk, i.Dtrsm, i.Dtrmm, i.Dgemv}
}

func of32(i blas.Float32) overridden[float32] {
	return overridden[float32]{i.Sgemm, i.Ssyrk, i.Strsm, i.Strmm, i.Sgemv}
}

var (
	level3of64 = &level3[float64]{
		ownOrder: math.MaxInt, of: func(l *Library) *routines { return &l.d },
		gonum: of64(gonum.Implementation{}),
	}
	// With AVX2, on one thread, gemm takes less time than OpenBLAS 0.3.21: 512×512×784 in 0.97 of it on Zen 3.
	level3of32 = &level3[float32]{
		ownOrder: 128, of: func(l *Library) *routines { return &l.s },
		gonum: of32(gonum.Implementation{}),
	}
)

// narrowOrder is the least dimension from which package gemm takes less time with AVX-512 than a library with AVX2: on
// Zen 5, which OpenBLAS 0.3.21 takes for a Haswell, 0.4 to 0.8 of the library's for products from 512×512×512 and
// rank-k updates from 256 on, and 1.0 to 1.6 for products of 128×128×128.
const narrowOrder = 256

// ours reports whether package gemm is used for a product whose least dimension is the given one.
func ours(l *Library, order int) bool {
	path := simd.InUse()
	if l == nil {
		return path != simd.Portable
	}
	return l.narrow && path == simd.AVX512 && order >= narrowOrder
}

func (p *level3[T]) gemm(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int,
	beta T, c []T, ldc int) {
	l := inUse()
	ra, ca := opDims(tA, m, k)
	rb, cb := opDims(tB, k, n)
	good := isTrans(tA) && isTrans(tB) && alpha != 0 && matrix(ra, ca, lda, len(a)) && matrix(rb, cb, ldb, len(b)) &&
		matrix(m, n, ldc, len(c))
	switch {
	case good && ours(l, min(m, n, k)):
		ownGemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case !good || l == nil || !large(m, n, k, gemmWork):
		p.gonum.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case ownThreads.Load() == 1 && min(m, n, k) >= p.ownOrder && simd.InUse() == simd.AVX2:
		gogemm.Gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	default:
		// Cᵀ = α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ
		fortran(l, p.of(l).gemm, gemmForm, [4]byte{byte(tB), byte(tA)}, [6]int{n, m, k, ldb, lda, ldc}, alpha, beta, b, a,
			c)
	}
}

func (p *level3[T]) syrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T,
	ldc int) {
	l := inUse()
	ra, ca := opDims(tA, n, k)
	good := isUplo(ul) && isTrans(tA) && alpha != 0 && matrix(ra, ca, lda, len(a)) && matrix(n, n, ldc, len(c))
	switch {
	case good && ours(l, min(n, k)):
		ownSyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	case !good || l == nil || !large(n, n, k, syrkWork):
		p.gonum.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	default:
		if beta == 0 {
			clearTriangle(ul, n, c, ldc) // some builds scale by β, and 0·NaN = NaN
		}
		fortran(l, p.of(l).syrk, "cciiapibpi", [4]byte{flipUplo(ul), flipTrans(tA)}, [6]int{n, k, lda, ldc}, alpha, beta, a,
			c)
	}
}

func (p *level3[T]) trxm(solve bool, s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int,
	alpha T, a []T, lda int, b []T, ldb int) {
	l := inUse()
	ref, fn := p.gonum.trsm, func(r *routines) uintptr { return r.trsm }
	if !solve {
		ref, fn = p.gonum.trmm, func(r *routines) uintptr { return r.trmm }
	}
	q := order(s, m, n)
	good := isSide(s) && isUplo(ul) && isTrans(tA) && isDiag(d) && alpha != 0 && matrix(q, q, lda, len(a)) &&
		matrix(m, n, ldb, len(b))
	switch {
	case good && ours(l, 0) && large(m, n, q, ownTrxmWork):
		ownTrxm(solve, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	case !good || l == nil || !large(m, n, q, trxmWork):
		ref(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	default:
		fortran(l, fn(p.of(l)), "cccciiapipi", [4]byte{flipSide(s), flipUplo(ul), byte(tA), byte(d)},
			[6]int{n, m, lda, ldb}, alpha, 0, a, b)
	}
}

func (p *level3[T]) gemv(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T,
	y []T, incY int) {
	l := inUse()
	lenY, lenX := opDims(tA, m, n)
	if l == nil || !large(m, n, 1, gemvWork) || !isTrans(tA) || alpha == 0 ||
		!matrix(m, n, lda, len(a)) || !vector(lenX, incX, len(x)) || !vector(lenY, incY, len(y)) {
		p.gonum.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	for i := 0; beta == 0 && i < lenY; i++ { // as in syrk
		y[i*max(incY, -incY)] = 0
	}
	fortran(l, p.of(l).gemv, "ciiapipibpi", [4]byte{flipTrans(tA)}, [6]int{n, m, lda, incX, incY}, alpha, beta, a, x, y)
}
