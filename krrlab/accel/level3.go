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
	parallelWork = 1 << 20 // smallest number of multiplications for which a product in Go uses several threads
	maxPieceRows = 512     // largest number of rows of the pieces into which C is cut for threads
	maxPieceCols = 1024    // largest number of columns of these pieces
	// triangularGoWork is the smallest number of multiplications for which package gemm's triangular routines are used.
	triangularGoWork = 16 << 10
)

// gemmGo computes C = α·op(A)·op(B) + β·C with package gemm, on all threads outside ForEach and on one inside it. Each
// thread computes pieces of C. The bits of the results of gemmGo, syrkGo and triangularGo do not depend on the number
// of threads.
func gemmGo[T float](p gogemm.Product[T]) {
	threads := int(goThreads.Load())
	if threads == 1 || !isLarge(p.M, p.N, p.K, parallelWork) {
		gogemm.Gemm(p)
		return
	}
	rows, cols := pieceSize[T](p.M, p.N, threads)
	heapCopy := p // only this copy is moved to the heap
	forEachPiece(p.M, p.N, rows, cols, func(i, j, m, n int) { gogemm.Gemm(piece(heapCopy, i, j, m, n)) })
}

// piece returns the product for the block of C of m×n that starts at element (i, j).
func piece[T float](p gogemm.Product[T], i, j, m, n int) gogemm.Product[T] {
	strideA, strideB := 1, 1 // between the rows of op(A), and between the columns of op(B)
	if p.TransA == blas.NoTrans {
		strideA = p.LDA
	}
	if p.TransB != blas.NoTrans {
		strideB = p.LDB
	}
	p.M, p.N, p.A, p.B, p.C = m, n, p.A[i*strideA:], p.B[j*strideB:], p.C[i*p.LDC+j:]
	return p
}

// syrkGo computes one triangle of C = α·op(A)·op(A)ᵀ + β·C with package gemm. It cuts the triangle into about 8 blocks
// per thread.
func syrkGo[T float](ul blas.Uplo, p gogemm.Product[T]) {
	threads, n := int(goThreads.Load()), p.N
	if threads == 1 || !isLarge(n, n, p.K, 2*parallelWork) {
		gogemm.Syrk(ul, p)
		return
	}
	symmetric := p.Symmetric()
	size := blockOrder[T](n, threads)
	blocks := (n + size - 1) / size
	Each(blocks*(blocks+1)/2, func(_, index int) {
		i, j := blockIndex(index)
		if ul == blas.Upper {
			i, j = j, i
		}
		i, j = i*size, j*size
		block := piece(symmetric, i, j, min(size, n-i), min(size, n-j))
		if i == j {
			gogemm.Syrk(ul, block)
			return
		}
		gogemm.Gemm(block)
	})
}

// triangularGo solves or multiplies with a triangle by package gemm. Each thread computes a range of columns of B or,
// with op(A) on the right, of rows. A range spans at least 8 tiles, because the triangle is packed again for each of
// them.
func triangularGo[T float](tri gogemm.Triangle[T]) {
	q, rows, cols := order(tri.Side, tri.M, tri.N), tri.M, tri.N // q is the order of the triangle
	vectors := rows + cols - q
	threads := int(goThreads.Load())
	if threads == 1 || !isLarge(rows, cols, q, 2*parallelWork) {
		gogemm.Triangular(tri)
		return
	}
	_, unit := gogemm.TileSize[T]()
	size := min(maxPieceRows, max(8*unit, ((vectors+threads-1)/threads+unit-1)/unit*unit))
	if tri.Side == blas.Left {
		cols = size
	} else {
		rows = size
	}
	heapCopy := tri
	forEachPiece(tri.M, tri.N, rows, cols, func(i, j, m, n int) {
		block := heapCopy
		block.M, block.N, block.B = m, n, block.B[i*block.LDB+j:]
		gogemm.Triangular(block)
	})
}

// forEachPiece cuts an m×n matrix into pieces of at most rows×cols and calls body for each of them, on all threads. A
// piece is m×n and starts at element (i, j).
func forEachPiece(m, n, rows, cols int, body func(i, j, m, n int)) {
	piecesPerRow := (n + cols - 1) / cols
	Each((m+rows-1)/rows*piecesPerRow, func(_, index int) {
		i, j := index/piecesPerRow*rows, index%piecesPerRow*cols
		body(i, j, min(rows, m-i), min(cols, n-j))
	})
}

// blockIndex returns the row i and the column j ≤ i of the block with the number index = i·(i+1)/2 + j of a lower
// triangle.
func blockIndex(index int) (i, j int) {
	for ; index > i; i++ {
		index -= i + 1
	}
	return i, index
}

// pieceSize returns the size of the pieces into which an m×n matrix C is cut, in complete tiles. No piece is larger
// than maxPieceRows×maxPieceCols, rounded up to complete tiles. If C has enough tiles, there are at least four pieces
// per thread or their number is a multiple of the number of threads, so that no thread is idle for long at the end.
func pieceSize[T float](m, n, threads int) (rows, cols int) {
	mr, nr := gogemm.TileSize[T]()
	sizeOf := func(n, count, unit int) int { return ((n+count-1)/count + unit - 1) / unit * unit }
	rowPieces, colPieces := (m+maxPieceRows-1)/maxPieceRows, (n+maxPieceCols-1)/maxPieceCols // numbers of pieces
	for rowPieces*colPieces < 4*threads && rowPieces*colPieces%threads != 0 {
		rows, cols = sizeOf(m, rowPieces, mr), sizeOf(n, colPieces, nr)
		switch {
		case rows > mr && (rows >= cols || cols == nr):
			rowPieces++
		case cols > nr:
			colPieces++
		default:
			return mr, nr
		}
	}
	return sizeOf(m, rowPieces, mr), sizeOf(n, colPieces, nr)
}

// blockOrder returns the order of the blocks into which syrkGo cuts a triangle of order n. There are at least 8 blocks
// per thread, unless their order would be below 64; it is at most maxPieceRows.
func blockOrder[T float](n, threads int) int {
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
	gemmWork       = 1 << 10
	syrkWork       = 4 << 10
	triangularWork = 1 << 10
	gemvWork       = 64 << 10 // such a matrix exceeds the cache; threads slow down smaller ones
)

// isLarge reports whether m·n·k is at least work. The result is false for negative dimensions.
func isLarge(m, n, k, work int) bool {
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
// but the library keeps the triangular solves. If the library does not even use fused multiply-adds, package gemm
// computes all of these routines.
type level3[T float] struct {
	// avx2Order is the smallest dimension of a product for which package gemm replaces a library on one thread with
	// AVX2.
	avx2Order  int
	routinesOf func(l *Library) *routines // returns the routines of l in this precision
	gonum      level3Routines[T]
	scratch    sync.Pool // of *[]T, for forEachChunk
}

// level3Routines holds the routines of a BLAS that this package replaces.
type level3Routines[T float] struct {
	gemm       func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	syrk       func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int)
	trsm, trmm func(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T,
		ldb int)
	gemv func(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
}

// float64Routines and float32Routines return the routines of a BLAS in one precision.
func float64Routines(b blas.Float64) level3Routines[float64] {
	return level3Routines[float64]{b.Dgemm, b.Dsyrk, b.Dtrsm, b.Dtrmm, b.Dgemv}
}

func float32Routines(b blas.Float32) level3Routines[float32] {
	return level3Routines[float32]{b.Sgemm, b.Ssyrk, b.Strsm, b.Strmm, b.Sgemv}
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
// is lib (nil if there is none).
func usesGemm(lib *Library, order int) bool {
	path := simd.CurrentPath()
	if lib == nil || lib.lacksFMA {
		return path != simd.Portable
	}
	return lib.lacksAVX512 && path == simd.AVX512 && order >= avx512Order
}

// productArgs and triangleArgs have the fields of Product and Triangle. With local types, literals may list the
// arguments in the order of the BLAS without their names; go vet wants names for types of another package.
type (
	productArgs[T float]  gogemm.Product[T]
	triangleArgs[T float] gogemm.Triangle[T]
)

// gemm computes C = α·op(A)·op(B) + β·C; see Dgemm.
func (l *level3[T]) gemm(arguments productArgs[T]) {
	lib, p := currentLibrary(), gogemm.Product[T](arguments)
	ra, ca := opDims(p.TransA, p.M, p.K)
	rb, cb := opDims(p.TransB, p.K, p.N)
	isValid := isTrans(p.TransA) && isTrans(p.TransB) && p.Alpha != 0 && fitsMatrix(ra, ca, p.LDA, len(p.A)) &&
		fitsMatrix(rb, cb, p.LDB, len(p.B)) && fitsMatrix(p.M, p.N, p.LDC, len(p.C))
	smallest := min(p.M, p.N, p.K)
	if !isLarge(p.M, p.N, p.K, gemmWork) {
		lib = nil // a call of the library costs more than the product
	}

	switch {
	case isValid && usesGemm(lib, smallest):
		gemmGo(p)
	case isValid && lib == nil && p.K > 0 && p.TransA == blas.NoTrans && p.TransB != blas.NoTrans:
		l.forEachChunk(p.N, p.K, p.Beta, p.B, p.LDB, func(start, k int, b []T, beta T) {
			l.gonum.gemm(p.TransA, p.TransB, p.M, p.N, k, p.Alpha, p.A[start:], p.LDA, b, chunkColumns, beta, p.C,
				p.LDC)
		})
	case !isValid || lib == nil:
		l.gonum.gemm(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A, p.LDA, p.B, p.LDB, p.Beta, p.C, p.LDC)
	case goThreads.Load() == 1 && smallest >= l.avx2Order && simd.CurrentPath() == simd.AVX2:
		gogemm.Gemm(p)
	default:
		// Cᵀ = α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ
		callFortran(lib, routine[T]{l.routinesOf(lib).gemm, gemmForm, [4]byte{byte(p.TransB), byte(p.TransA)},
			[6]int{p.N, p.M, p.K, p.LDB, p.LDA, p.LDC}, p.Alpha, p.Beta}, p.B, p.A, p.C)
	}
}

// syrk computes one triangle of C = α·op(A)·op(A)ᵀ + β·C; see Dsyrk.
func (l *level3[T]) syrk(ul blas.Uplo, arguments productArgs[T]) {
	lib, p, n := currentLibrary(), gogemm.Product[T](arguments), arguments.N
	ra, ca := opDims(p.TransA, n, p.K)
	isValid := isUplo(ul) && isTrans(p.TransA) && p.Alpha != 0 && fitsMatrix(ra, ca, p.LDA, len(p.A)) &&
		fitsMatrix(n, n, p.LDC, len(p.C))
	if !isLarge(n, n, p.K, syrkWork) {
		lib = nil
	}
	switch {
	case isValid && usesGemm(lib, min(n, p.K)):
		syrkGo(ul, p)
	case isValid && lib == nil && p.K > 0 && p.TransA == blas.NoTrans:
		l.forEachChunk(n, p.K, p.Beta, p.A, p.LDA, func(_, k int, a []T, beta T) {
			l.gonum.syrk(ul, p.TransA, n, k, p.Alpha, a, chunkColumns, beta, p.C, p.LDC)
		})
	case !isValid || lib == nil:
		l.gonum.syrk(ul, p.TransA, n, p.K, p.Alpha, p.A, p.LDA, p.Beta, p.C, p.LDC)
	default:
		for i := 0; p.Beta == 0 && i < n; i++ { // some builds scale by β, and 0·NaN = NaN
			clear(triangleRow(ul, n, p.C, p.LDC, i))
		}
		callFortran(lib, routine[T]{l.routinesOf(lib).syrk, "cciiapibpi", [4]byte{flipUplo(ul), flipTrans(p.TransA)},
			[6]int{n, p.K, p.LDA, p.LDC}, p.Alpha, p.Beta}, p.A, p.C)
	}
}

// chunkColumns is the number of columns that gonum multiplies at once in products with large results.
const chunkColumns = 64

// forEachChunk calls f with a copy of up to chunkColumns columns of the n×k matrix a at a time, whose rows begin at
// boundaries of 16 bytes, with the index start of their first column, their number k, and β, which is 1 from the second
// call on.
//
// On x86-64 gonum sums an inner product from the first such boundary in its second argument, and in chunks only if the
// result is large. With chunks of aligned rows its rounding depends on the numbers only, not on their addresses: an
// entry of a product is the same in every block that contains it.
func (l *level3[T]) forEachChunk(n, k int, beta T, a []T, lda int, f func(start, k int, chunk []T, beta T)) {
	scratch, ok := l.scratch.Get().(*[]T)
	if !ok {
		scratch = new([]T)
	}
	defer l.scratch.Put(scratch)
	chunk := buffer.Grow(scratch, n*chunkColumns)
	for start := 0; start < k; start, beta = start+chunkColumns, 1 {
		columns := min(chunkColumns, k-start)
		for i := range n {
			copy(chunk[i*chunkColumns:][:columns], a[i*lda+start:])
		}
		f(start, columns, chunk, beta)
	}
}

// triangular solves or multiplies with a triangle; see Dtrsm and Dtrmm.
func (l *level3[T]) triangular(arguments triangleArgs[T]) {
	lib, tri := currentLibrary(), gogemm.Triangle[T](arguments)
	gonumRoutine, libraryRoutine := l.gonum.trsm, func(r *routines) uintptr { return r.trsm }
	if tri.Operation == gogemm.Multiply {
		gonumRoutine, libraryRoutine = l.gonum.trmm, func(r *routines) uintptr { return r.trmm }
	}
	q := order(tri.Side, tri.M, tri.N) // order of the triangle
	isValid := isSide(tri.Side) && isUplo(tri.Uplo) && isTrans(tri.TransA) && isDiag(tri.Diag) && tri.Alpha != 0 &&
		fitsMatrix(q, q, tri.LDA, len(tri.A)) && fitsMatrix(tri.M, tri.N, tri.LDB, len(tri.B))
	switch {
	case isValid && usesGemm(lib, 0) && isLarge(tri.M, tri.N, q, triangularGoWork):
		triangularGo(tri)
	case !isValid || lib == nil || !isLarge(tri.M, tri.N, q, triangularWork):
		gonumRoutine(tri.Side, tri.Uplo, tri.TransA, tri.Diag, tri.M, tri.N, tri.Alpha, tri.A, tri.LDA, tri.B, tri.LDB)
	default:
		callFortran(lib, routine[T]{libraryRoutine(l.routinesOf(lib)), "cccciiapipi",
			[4]byte{flipSide(tri.Side), flipUplo(tri.Uplo), byte(tri.TransA), byte(tri.Diag)},
			[6]int{tri.N, tri.M, tri.LDA, tri.LDB}, tri.Alpha, 0}, tri.A, tri.B)
	}
}

// gemv computes y = α·op(A)·x + β·y; see Dgemv.
func (l *level3[T]) gemv(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T,
	y []T, incY int) {
	lib := currentLibrary()
	lenY, lenX := opDims(tA, m, n)
	if lib == nil || !isLarge(m, n, 1, gemvWork) || !isTrans(tA) || alpha == 0 ||
		!fitsMatrix(m, n, lda, len(a)) || !fitsVector(lenX, incX, len(x)) || !fitsVector(lenY, incY, len(y)) {
		l.gonum.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	for i := 0; beta == 0 && i < lenY; i++ { // some builds scale by β, as in syrk
		y[i*max(incY, -incY)] = 0
	}
	callFortran(lib, routine[T]{l.routinesOf(lib).gemv, "ciiapipibpi", [4]byte{flipTrans(tA)},
		[6]int{n, m, lda, incX, incY}, alpha, beta}, a, x, y)
}
