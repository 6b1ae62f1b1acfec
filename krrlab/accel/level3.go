package accel

import (
	"math"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
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
func gemmGo[T real](x gogemm.Product[T]) {
	threads := int(goThreads.Load())
	if threads == 1 || !large(x.M, x.N, x.K, parallelWork) {
		gogemm.Gemm(x)
		return
	}
	rows, cols := pieceSize[T](x.M, x.N, threads)
	shared := x // only this copy is moved to the heap
	forEachPiece(x.M, x.N, rows, cols, func(i, j, m, n int) { gogemm.Gemm(piece(shared, i, j, m, n)) })
}

// piece returns the product for the block of C of m×n that starts at element (i, j).
func piece[T real](x gogemm.Product[T], i, j, m, n int) gogemm.Product[T] {
	strideA, strideB := 1, 1 // between the rows of op(A), and between the columns of op(B)
	if x.TransA == blas.NoTrans {
		strideA = x.LDA
	}
	if x.TransB != blas.NoTrans {
		strideB = x.LDB
	}
	x.M, x.N, x.A, x.B, x.C = m, n, x.A[i*strideA:], x.B[j*strideB:], x.C[i*x.LDC+j:]
	return x
}

// syrkGo computes one triangle of C = α·op(A)·op(A)ᵀ + β·C with package gemm. It cuts the triangle into about 8 blocks
// per thread.
func syrkGo[T real](ul blas.Uplo, x gogemm.Product[T]) {
	threads, n := int(goThreads.Load()), x.N
	if threads == 1 || !large(n, n, x.K, 2*parallelWork) {
		gogemm.Syrk(ul, x)
		return
	}
	shared := x.Symmetric()
	size := blockOrder[T](n, threads)
	blocks := (n + size - 1) / size
	Each(blocks*(blocks+1)/2, func(_, q int) {
		i, j := blockIndex(q)
		if ul == blas.Upper {
			i, j = j, i
		}
		i, j = i*size, j*size
		block := piece(shared, i, j, min(size, n-i), min(size, n-j))
		if i == j {
			gogemm.Syrk(ul, block)
			return
		}
		gogemm.Gemm(block)
	})
}

// trxmGo solves or multiplies with a triangle by package gemm. Each thread computes a range of columns of B or, with
// op(A) on the right, of rows. A range spans at least 8 tiles, because the triangle is packed again for each of them.
func trxmGo[T real](x gogemm.Triangle[T]) {
	q, rows, cols := order(x.Side, x.M, x.N), x.M, x.N
	vectors := rows + cols - q
	threads := int(goThreads.Load())
	if threads == 1 || !large(rows, cols, q, 2*parallelWork) {
		gogemm.Triangular(x)
		return
	}
	_, unit := gogemm.TileSize[T]()
	size := min(maxPieceRows, max(8*unit, ((vectors+threads-1)/threads+unit-1)/unit*unit))
	if x.Side == blas.Left {
		cols = size
	} else {
		rows = size
	}
	shared := x
	forEachPiece(x.M, x.N, rows, cols, func(i, j, m, n int) {
		part := shared
		part.M, part.N, part.B = m, n, part.B[i*part.LDB+j:]
		gogemm.Triangular(part)
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

// pieceSize returns the size of the pieces into which an m×n matrix C is cut, in complete tiles. No piece is larger
// than maxPieceRows×maxPieceCols, rounded up to complete tiles. If C has enough tiles, there are at least four pieces
// per thread or their number is a multiple of the number of threads, so that no thread is idle for long at the end.
func pieceSize[T real](m, n, threads int) (rows, cols int) {
	mr, nr := gogemm.TileSize[T]()
	sizeOf := func(n, count, unit int) int { return ((n+count-1)/count + unit - 1) / unit * unit }
	down, across := (m+maxPieceRows-1)/maxPieceRows, (n+maxPieceCols-1)/maxPieceCols // numbers of pieces
	for down*across < 4*threads && down*across%threads != 0 {
		rows, cols = sizeOf(m, down, mr), sizeOf(n, across, nr)
		switch {
		case rows > mr && (rows >= cols || cols == nr):
			down++
		case cols > nr:
			across++
		default:
			return mr, nr
		}
	}
	return sizeOf(m, down, mr), sizeOf(n, across, nr)
}

// blockOrder returns the order of the blocks into which syrkGo cuts a triangle of order n. There are at least 8 blocks
// per thread, unless their order would be below 64; it is at most maxPieceRows.
func blockOrder[T real](n, threads int) int {
	mr, _ := gogemm.TileSize[T]()
	count := 2
	for count*(count+1)/2 < 8*threads {
		count++
	}
	return min(maxPieceRows, max(64, (n+count-1)/count)+mr-1) / mr * mr
}

// Smallest numbers of multiplications, m·n·k, for which a call into the library is faster than gonum, as measured.
// Smaller products go to package gemm, or to gonum where gemm has no assembly; other small problems go to gonum.
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
// If a library is in use, it gets the calls with valid arguments that are large enough. Smaller products go to package
// gemm, which rounds them as a library with fused multiply-adds does, unlike gonum. A caller may measure rounding
// errors on small blocks and apply the result to large ones, so that both must be rounded alike. Empty problems, α = 0,
// dimensions beyond 32 bits, and misuse, for which gonum panics, go to gonum.
//
// Without a library, products and triangular solves go to package gemm, on all threads outside ForEach and on one
// inside it, with the same bits for any number of threads. If gemm has no assembly for the processor they go to gonum,
// whose routines are faster than portable ones of gemm on x86-64.
//
// A library that is older than the processor may not use its AVX-512. Then package gemm also computes large products,
// but the library keeps the triangular solves. If it does not even use fused multiply-adds, package gemm computes all.
type level3[T real] struct {
	// avx2Order is the smallest dimension of a product for which package gemm replaces a library on one thread with
	// AVX2.
	avx2Order  int
	routinesOf func(l *Library) *routines // returns the routines of l in this precision
	gonum      level3Routines[T]
	scratch    sync.Pool // of *[]T, for forEachChunk
}

// level3Routines holds the routines of a BLAS that this package replaces.
type level3Routines[T real] struct {
	gemm       func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	syrk       func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int)
	trsm, trmm func(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T,
		ldb int)
	gemv func(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
}

// float64Routines and float32Routines return the routines of a BLAS in one precision.
func float64Routines(i blas.Float64) level3Routines[float64] {
	return level3Routines[float64]{i.Dgemm, i.Dsyrk, i.Dtrsm, i.Dtrmm, i.Dgemv}
}

func float32Routines(i blas.Float32) level3Routines[float32] {
	return level3Routines[float32]{i.Sgemm, i.Ssyrk, i.Strsm, i.Strmm, i.Sgemv}
}

var (
	level3of64 = &level3[float64]{
		avx2Order: math.MaxInt, routinesOf: func(l *Library) *routines { return &l.d },
		gonum: float64Routines(gonum.Implementation{}),
	}
	// With AVX2 on one thread, package gemm is faster than OpenBLAS 0.3.21: a product of 512×512×784 takes 0.97 times
	// as long on Zen 3.
	level3of32 = &level3[float32]{
		avx2Order: 128, routinesOf: func(l *Library) *routines { return &l.s },
		gonum: float32Routines(gonum.Implementation{}),
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
	path := simd.CurrentPath()
	if l == nil || l.lacksFMA {
		return path != simd.Portable
	}
	return l.lacksAVX512 && path == simd.AVX512 && order >= avx512Order
}

// productArgs and triangleArgs have the fields of Product and Triangle. With local types, literals may list the
// arguments in the order of the BLAS without their names; go vet wants names for types of another package.
type (
	productArgs[T real]  gogemm.Product[T]
	triangleArgs[T real] gogemm.Triangle[T]
)

// gemm computes C = α·op(A)·op(B) + β·C; see Dgemm.
func (p *level3[T]) gemm(arguments productArgs[T]) {
	l, x := currentLibrary(), gogemm.Product[T](arguments)
	ra, ca := opDims(x.TransA, x.M, x.K)
	rb, cb := opDims(x.TransB, x.K, x.N)
	isValid := isTrans(x.TransA) && isTrans(x.TransB) && x.Alpha != 0 && fitsMatrix(ra, ca, x.LDA, len(x.A)) &&
		fitsMatrix(rb, cb, x.LDB, len(x.B)) && fitsMatrix(x.M, x.N, x.LDC, len(x.C))
	smallest := min(x.M, x.N, x.K)
	if !large(x.M, x.N, x.K, gemmWork) {
		l = nil // a call of the library costs more than the product
	}

	switch {
	case isValid && usesGemm(l, smallest):
		gemmGo(x)
	case isValid && l == nil && x.K > 0 && x.TransA == blas.NoTrans && x.TransB != blas.NoTrans:
		p.forEachChunk(x.N, x.K, x.Beta, x.B, x.LDB, func(start, k int, b []T, beta T) {
			p.gonum.gemm(x.TransA, x.TransB, x.M, x.N, k, x.Alpha, x.A[start:], x.LDA, b, chunkColumns, beta, x.C, x.LDC)
		})
	case !isValid || l == nil:
		p.gonum.gemm(x.TransA, x.TransB, x.M, x.N, x.K, x.Alpha, x.A, x.LDA, x.B, x.LDB, x.Beta, x.C, x.LDC)
	case goThreads.Load() == 1 && smallest >= p.avx2Order && simd.CurrentPath() == simd.AVX2:
		gogemm.Gemm(x)
	default:
		// Cᵀ = α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ
		fortran(l, routine[T]{p.routinesOf(l).gemm, gemmForm, [4]byte{byte(x.TransB), byte(x.TransA)},
			[6]int{x.N, x.M, x.K, x.LDB, x.LDA, x.LDC}, x.Alpha, x.Beta}, x.B, x.A, x.C)
	}
}

// syrk computes one triangle of C = α·op(A)·op(A)ᵀ + β·C; see Dsyrk.
func (p *level3[T]) syrk(ul blas.Uplo, arguments productArgs[T]) {
	l, x, n := currentLibrary(), gogemm.Product[T](arguments), arguments.N
	ra, ca := opDims(x.TransA, n, x.K)
	isValid := isUplo(ul) && isTrans(x.TransA) && x.Alpha != 0 && fitsMatrix(ra, ca, x.LDA, len(x.A)) &&
		fitsMatrix(n, n, x.LDC, len(x.C))
	if !large(n, n, x.K, syrkWork) {
		l = nil
	}
	switch {
	case isValid && usesGemm(l, min(n, x.K)):
		syrkGo(ul, x)
	case isValid && l == nil && x.K > 0 && x.TransA == blas.NoTrans:
		p.forEachChunk(n, x.K, x.Beta, x.A, x.LDA, func(_, k int, a []T, beta T) {
			p.gonum.syrk(ul, x.TransA, n, k, x.Alpha, a, chunkColumns, beta, x.C, x.LDC)
		})
	case !isValid || l == nil:
		p.gonum.syrk(ul, x.TransA, n, x.K, x.Alpha, x.A, x.LDA, x.Beta, x.C, x.LDC)
	default:
		for i := 0; x.Beta == 0 && i < n; i++ { // some builds scale by β, and 0·NaN = NaN
			clear(triangleRow(ul, n, x.C, x.LDC, i))
		}
		fortran(l, routine[T]{p.routinesOf(l).syrk, "cciiapibpi", [4]byte{flipUplo(ul), flipTrans(x.TransA)},
			[6]int{n, x.K, x.LDA, x.LDC}, x.Alpha, x.Beta}, x.A, x.C)
	}
}

// chunkColumns is the number of columns that gonum multiplies at once in products with large results.
const chunkColumns = 64

// forEachChunk calls f with a copy of up to chunkColumns columns of the n×k matrix a at a time, whose rows begin at
// boundaries of 16 bytes, with their first column and number, and with β, which is 1 from the second call on.
//
// On x86-64 gonum sums an inner product from the first such boundary in its second argument, and in chunks only if the
// result is large. With chunks of aligned rows its rounding depends on the numbers only, not on their addresses: an
// entry of a product is the same in every block that contains it.
func (p *level3[T]) forEachChunk(n, k int, beta T, a []T, lda int, f func(start, k int, chunk []T, beta T)) {
	scratch, ok := p.scratch.Get().(*[]T)
	if !ok {
		scratch = new([]T)
	}
	defer p.scratch.Put(scratch)
	chunk := buffer.Grow(scratch, n*chunkColumns)
	for start := 0; start < k; start, beta = start+chunkColumns, 1 {
		columns := min(chunkColumns, k-start)
		for i := range n {
			copy(chunk[i*chunkColumns:][:columns], a[i*lda+start:])
		}
		f(start, columns, chunk, beta)
	}
}

// trxm solves or multiplies with a triangle; see Dtrsm and Dtrmm.
func (p *level3[T]) trxm(arguments triangleArgs[T]) {
	l, x := currentLibrary(), gogemm.Triangle[T](arguments)
	gonumRoutine, libraryRoutine := p.gonum.trsm, func(r *routines) uintptr { return r.trsm }
	if x.Operation == gogemm.Multiply {
		gonumRoutine, libraryRoutine = p.gonum.trmm, func(r *routines) uintptr { return r.trmm }
	}
	q := order(x.Side, x.M, x.N)
	isValid := isSide(x.Side) && isUplo(x.Uplo) && isTrans(x.TransA) && isDiag(x.Diag) && x.Alpha != 0 &&
		fitsMatrix(q, q, x.LDA, len(x.A)) && fitsMatrix(x.M, x.N, x.LDB, len(x.B))
	switch {
	case isValid && usesGemm(l, 0) && large(x.M, x.N, q, trxmGoWork):
		trxmGo(x)
	case !isValid || l == nil || !large(x.M, x.N, q, trxmWork):
		gonumRoutine(x.Side, x.Uplo, x.TransA, x.Diag, x.M, x.N, x.Alpha, x.A, x.LDA, x.B, x.LDB)
	default:
		fortran(l, routine[T]{libraryRoutine(p.routinesOf(l)), "cccciiapipi",
			[4]byte{flipSide(x.Side), flipUplo(x.Uplo), byte(x.TransA), byte(x.Diag)}, [6]int{x.N, x.M, x.LDA, x.LDB},
			x.Alpha, 0}, x.A, x.B)
	}
}

// gemv computes y = α·op(A)·x + β·y; see Dgemv.
func (p *level3[T]) gemv(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T,
	y []T, incY int) {
	l := currentLibrary()
	lenY, lenX := opDims(tA, m, n)
	if l == nil || !large(m, n, 1, gemvWork) || !isTrans(tA) || alpha == 0 ||
		!fitsMatrix(m, n, lda, len(a)) || !fitsVector(lenX, incX, len(x)) || !fitsVector(lenY, incY, len(y)) {
		p.gonum.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	for i := 0; beta == 0 && i < lenY; i++ { // some builds scale by β, as in syrk
		y[i*max(incY, -incY)] = 0
	}
	fortran(l, routine[T]{p.routinesOf(l).gemv, "ciiapipibpi", [4]byte{flipTrans(tA)}, [6]int{n, m, lda, incX, incY},
		alpha, beta}, a, x, y)
}
