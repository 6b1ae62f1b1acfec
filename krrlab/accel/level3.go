package accel

import (
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// goThreads is the number of threads that products in Go use at present: 1 inside ForEach, Threads() outside.
var goThreads atomic.Int32

const (
	parallelWork = 1 << 20  // smallest number of multiplications for which a product in Go uses several threads
	maxPieceRows = 512      // largest number of rows of the pieces into which C is cut for threads
	maxPieceCols = 1024     // largest number of columns of these pieces
	trxmGoWork   = 16 << 10 // smallest number of multiplications for which package gemm's triangular routines are used
)

// gemmGo computes C = α·op(A)·op(B) + β·C with package gemm, on all threads outside ForEach and on one inside it. Each
// thread computes pieces of C. The bits of the results of gemmGo, syrkGo and trxmGo do not depend on the number of
// threads.
func gemmGo[T real](tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T,
	ldc int) {
	threads := int(goThreads.Load())
	if threads == 1 || !large(m, n, k, parallelWork) {
		gogemm.Gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	rows, cols := pieceSize[T](m, n, threads)
	forEachPiece(m, n, rows, cols, func(i, j, m, n int) {
		gogemm.Gemm(tA, tB, m, n, k, alpha, fromVector(a, tA == blas.NoTrans, i, lda), lda,
			fromVector(b, tB != blas.NoTrans, j, ldb), ldb, beta, c[i*ldc+j:], ldc)
	})
}

// syrkGo computes one triangle of C = α·A·Aᵀ + β·C or α·Aᵀ·A + β·C with package gemm. It cuts the triangle into about 8
// blocks per thread.
func syrkGo[T real](ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
	threads := int(goThreads.Load())
	if threads == 1 || !large(n, n, k, 2*parallelWork) {
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
		i, j := blockIndex(q)
		if ul == blas.Upper {
			i, j = j, i
		}
		i, j = i*size, j*size
		x, y := fromVector(a, tA == blas.NoTrans, i, lda), fromVector(a, tA == blas.NoTrans, j, lda)
		m, n, c := min(size, n-i), min(size, n-j), c[i*ldc+j:]
		if i == j {
			gogemm.Syrk(ul, tA, m, k, alpha, x, lda, beta, c, ldc)
			return
		}
		gogemm.Gemm(tA, tB, m, n, k, alpha, x, lda, y, lda, beta, c, ldc)
	})
}

// trxmGo computes B = α·op(A)⁻¹·B (gogemm.Solve) or α·op(A)·B (gogemm.Multiply), or the same with op(A) on the right,
// with package gemm. Each thread computes a range of columns of B or, with op(A) on the right, of rows. A range spans
// at least 8 tiles, because the triangle is packed again for each of them.
func trxmGo[T real](operation gogemm.Operation, s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int,
	alpha T, a []T, lda int, b []T, ldb int) {
	q, rows, cols := order(s, m, n), m, n
	vectors := m + n - q
	threads := int(goThreads.Load())
	if threads == 1 || !large(m, n, q, 2*parallelWork) {
		gogemm.Triangular(operation, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	_, unit := gogemm.Tile[T]()
	size := min(maxPieceRows, max(8*unit, ((vectors+threads-1)/threads+unit-1)/unit*unit))
	if s == blas.Left {
		cols = size
	} else {
		rows = size
	}
	forEachPiece(m, n, rows, cols, func(i, j, m, n int) {
		gogemm.Triangular(operation, s, ul, tA, d, m, n, alpha, a, lda, b[i*ldb+j:], ldb)
	})
}

// forEachPiece cuts an m×n matrix into pieces of at most rows×cols and calls body for each of them, on all threads. A
// piece is m×n and starts at element (i, j).
func forEachPiece(m, n, rows, cols int, body func(i, j, m, n int)) {
	across := (n + cols - 1) / cols
	Each((m+rows-1)/rows*across, func(_, q int) {
		i, j := q/across*rows, q%across*cols
		body(i, j, min(rows, m-i), min(cols, n-j))
	})
}

// blockIndex returns the row i and the column j ≤ i of the block with number q = i·(i+1)/2 + j of a lower triangle.
func blockIndex(q int) (i, j int) {
	for ; q > i; i++ {
		q -= i + 1
	}
	return i, q
}

// pieceSize returns the size of the pieces into which an m×n matrix C is cut. If C has enough tiles, there is at least
// one piece per thread, and fewer than four per thread are a multiple of the number of threads. No piece is larger than
// maxPieceRows×maxPieceCols, rounded up to complete tiles.
func pieceSize[T real](m, n, threads int) (rows, cols int) {
	mr, nr := gogemm.Tile[T]()
	sizeOf := func(n, count, unit int) int { return ((n+count-1)/count + unit - 1) / unit * unit }
	p, q := (m+maxPieceRows-1)/maxPieceRows, (n+maxPieceCols-1)/maxPieceCols
	for p*q < 4*threads && p*q%threads != 0 {
		switch {
		case sizeOf(m, p, mr) > mr && (sizeOf(m, p, mr) >= sizeOf(n, q, nr) || sizeOf(n, q, nr) == nr):
			p++
		case sizeOf(n, q, nr) > nr:
			q++
		default:
			return mr, nr
		}
	}
	return sizeOf(m, p, mr), sizeOf(n, q, nr)
}

// blockOrder returns the order of the blocks into which syrkGo cuts a triangle of order n.
func blockOrder[T real](n, threads int) int {
	mr, _ := gogemm.Tile[T]()
	count := 2
	for count*(count+1) < 16*threads {
		count++
	}
	return min(maxPieceRows, max(64, (n+count-1)/count)+mr-1) / mr * mr
}

// fromVector returns the matrix x without its first i rows if rows is set, and without its first i columns otherwise.
func fromVector[T real](x []T, rows bool, i, ld int) []T {
	if rows {
		return x[i*ld:]
	}
	return x[i:]
}

// Smallest numbers of multiplications, m·n·k, for which a call into the library is faster than gonum, as measured.
// Larger values leave more small problems to gonum.
const (
	gemmWork = 1 << 10
	syrkWork = 4 << 10
	trxmWork = 1 << 10
	gemvWork = 64 << 10 // such a matrix exceeds the cache; threads slow down smaller ones
)

// large reports whether m·n·k is at least work. Negative dimensions are not large.
func large(m, n, k, work int) bool {
	return m > 0 && n > 0 && k > 0 && float64(m)*float64(n)*float64(k) >= float64(work)
}

// level3 holds the expensive BLAS routines in one precision, and chooses the implementation of each call.
//
// If a library is in use, it gets the calls with valid arguments that are large enough. All others go to gonum: small
// or empty problems, α = 0, dimensions beyond 32 bits, and misuse, for which gonum panics.
//
// Without a library, products and triangular solves go to package gemm, on all threads outside ForEach and on one
// inside it, with the same bits for any number of threads. If gemm has no assembly for the processor they go to gonum,
// whose routines are faster than portable ones of gemm on x86-64.
//
// A library that is older than the processor may not use its AVX-512. Then package gemm also computes large products,
// but the library keeps the triangular solves.
type level3[T real] struct {
	// avx2Order is the smallest dimension of a product for which package gemm replaces a library on one thread with
	// AVX2.
	avx2Order  int
	routinesOf func(l *Library) *routines // returns the routines of l in this precision
	gonum      level3Routines[T]
}

// level3Routines holds the routines of a BLAS that this package replaces.
type level3Routines[T real] struct {
	gemm       func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	syrk       func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int)
	trsm, trmm func(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T,
		ldb int)
	gemv func(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
}

func of64(i blas.Float64) level3Routines[float64] {
	return level3Routines[float64]{i.Dgemm, i.Dsyrk, i.Dtrsm, i.Dtrmm, i.Dgemv}
}

func of32(i blas.Float32) level3Routines[float32] {
	return level3Routines[float32]{i.Sgemm, i.Ssyrk, i.Strsm, i.Strmm, i.Sgemv}
}

var (
	level3of64 = &level3[float64]{
		avx2Order: math.MaxInt, routinesOf: func(l *Library) *routines { return &l.d },
		gonum: of64(gonum.Implementation{}),
	}
	// With AVX2 on one thread, package gemm is faster than OpenBLAS 0.3.21: a product of 512×512×784 takes 0.97 times
	// as long on Zen 3.
	level3of32 = &level3[float32]{
		avx2Order: 128, routinesOf: func(l *Library) *routines { return &l.s },
		gonum: of32(gonum.Implementation{}),
	}
)

// avx512Order is the smallest dimension of a product for which package gemm with AVX-512 replaces a library that uses
// only AVX2. It was measured on Zen 5, which OpenBLAS 0.3.21 treats as a Haswell: package gemm takes 0.4 to 0.8 times
// as long as the library for products from 512×512×512 and for rank-k updates from 256, but 1.0 to 1.6 times as long
// for products of 128×128×128.
const avx512Order = 256

// usesGemm reports whether package gemm computes a product whose smallest dimension is order, when the library in use
// is l (nil if there is none).
func usesGemm(l *Library, order int) bool {
	path := simd.InUse()
	if l == nil {
		return path != simd.Portable
	}
	return l.lacksAVX512 && path == simd.AVX512 && order >= avx512Order
}

// gemm computes C = α·op(A)·op(B) + β·C; see Dgemm.
func (p *level3[T]) gemm(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int,
	beta T, c []T, ldc int) {
	l := inUse()
	ra, ca := opDims(tA, m, k)
	rb, cb := opDims(tB, k, n)
	good := isTrans(tA) && isTrans(tB) && alpha != 0 && fitsMatrix(ra, ca, lda, len(a)) &&
		fitsMatrix(rb, cb, ldb, len(b)) && fitsMatrix(m, n, ldc, len(c))
	switch {
	case good && usesGemm(l, min(m, n, k)):
		gemmGo(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case !good || l == nil || !large(m, n, k, gemmWork):
		p.gonum.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case goThreads.Load() == 1 && min(m, n, k) >= p.avx2Order && simd.InUse() == simd.AVX2:
		gogemm.Gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	default:
		// Cᵀ = α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ
		fortran(l, p.routinesOf(l).gemm, gemmForm, [4]byte{byte(tB), byte(tA)}, [6]int{n, m, k, ldb, lda, ldc},
			alpha, beta, b, a, c)
	}
}

// syrk computes one triangle of C = α·A·Aᵀ + β·C or α·Aᵀ·A + β·C; see Dsyrk.
func (p *level3[T]) syrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T,
	ldc int) {
	l := inUse()
	ra, ca := opDims(tA, n, k)
	good := isUplo(ul) && isTrans(tA) && alpha != 0 && fitsMatrix(ra, ca, lda, len(a)) && fitsMatrix(n, n, ldc, len(c))
	switch {
	case good && usesGemm(l, min(n, k)):
		syrkGo(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	case !good || l == nil || !large(n, n, k, syrkWork):
		p.gonum.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	default:
		if beta == 0 {
			clearTriangle(ul, n, c, ldc) // some builds scale by β, and 0·NaN = NaN
		}
		fortran(l, p.routinesOf(l).syrk, "cciiapibpi", [4]byte{flipUplo(ul), flipTrans(tA)}, [6]int{n, k, lda, ldc},
			alpha, beta, a, c)
	}
}

// trxm computes B = α·op(A)⁻¹·B or α·op(A)·B, or the same with op(A) on the right; see Dtrsm and Dtrmm.
func (p *level3[T]) trxm(operation gogemm.Operation, s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int,
	alpha T, a []T, lda int, b []T, ldb int) {
	l := inUse()
	gonumRoutine, libraryRoutine := p.gonum.trsm, func(r *routines) uintptr { return r.trsm }
	if operation == gogemm.Multiply {
		gonumRoutine, libraryRoutine = p.gonum.trmm, func(r *routines) uintptr { return r.trmm }
	}
	q := order(s, m, n)
	good := isSide(s) && isUplo(ul) && isTrans(tA) && isDiag(d) && alpha != 0 && fitsMatrix(q, q, lda, len(a)) &&
		fitsMatrix(m, n, ldb, len(b))
	switch {
	case good && usesGemm(l, 0) && large(m, n, q, trxmGoWork):
		trxmGo(operation, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	case !good || l == nil || !large(m, n, q, trxmWork):
		gonumRoutine(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	default:
		fortran(l, libraryRoutine(p.routinesOf(l)), "cccciiapipi", [4]byte{flipSide(s), flipUplo(ul), byte(tA), byte(d)},
			[6]int{n, m, lda, ldb}, alpha, 0, a, b)
	}
}

// gemv computes y = α·op(A)·x + β·y; see Dgemv.
func (p *level3[T]) gemv(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T,
	y []T, incY int) {
	l := inUse()
	lenY, lenX := opDims(tA, m, n)
	if l == nil || !large(m, n, 1, gemvWork) || !isTrans(tA) || alpha == 0 ||
		!fitsMatrix(m, n, lda, len(a)) || !fitsVector(lenX, incX, len(x)) || !fitsVector(lenY, incY, len(y)) {
		p.gonum.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	for i := 0; beta == 0 && i < lenY; i++ { // some builds scale by β, as in syrk
		y[i*max(incY, -incY)] = 0
	}
	fortran(l, p.routinesOf(l).gemv, "ciiapipibpi", [4]byte{flipTrans(tA)}, [6]int{n, m, lda, incX, incY},
		alpha, beta, a, x, y)
}
