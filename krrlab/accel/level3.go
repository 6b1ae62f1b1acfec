package accel

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
)

// The least work, m·n·k multiplications, for which a call into the library is
// worth its while; measured with BenchmarkCrossover.
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
// processor, to gonum's, which on x86-64 are faster.
type level3[T real] struct {
	own      *owned[T]
	ownOrder int                        // least dimension of a product on one thread with AVX2 for which own is used beside a library too
	of       func(l *Library) *routines // l's
	gonum    overridden[T]
}

// overridden are the routines of a BLAS that this package has its own of.
type overridden[T real] struct {
	gemm       func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	syrk       func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int)
	trsm, trmm triangularFunc[T]
	symm       func(s blas.Side, ul blas.Uplo, m, n int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	gemv       func(tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
}

func of64(i blas.Float64) overridden[float64] {
	return overridden[float64]{i.Dgemm, i.Dsyrk, i.Dtrsm, i.Dtrmm, i.Dsymm, i.Dgemv}
}

func of32(i blas.Float32) overridden[float32] {
	return overridden[float32]{i.Sgemm, i.Ssyrk, i.Strsm, i.Strmm, i.Ssymm, i.Sgemv}
}

var (
	level3of64 = &level3[float64]{
		own: owned64, ownOrder: math.MaxInt, of: func(l *Library) *routines { return &l.d }, gonum: of64(gonum.Implementation{}),
	}
	// With AVX2, on one thread, gemm takes less time than OpenBLAS 0.3.21: 512×512×784 in 0.97 of it on Zen 3.
	level3of32 = &level3[float32]{
		own: owned32, ownOrder: 128, of: func(l *Library) *routines { return &l.s }, gonum: of32(gonum.Implementation{}),
	}
)

func (p *level3[T]) gemm(l *Library, tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	ra, ca := opDims(tA, m, k)
	rb, cb := opDims(tB, k, n)
	switch {
	case l == nil && gogemm.InUse() != gogemm.Portable:
		p.own.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case l == nil || !large(m, n, k, gemmWork) || !isTrans(tA) || !isTrans(tB) || alpha == 0 ||
		!matrix(ra, ca, lda, len(a)) || !matrix(rb, cb, ldb, len(b)) || !matrix(m, n, ldc, len(c)):
		p.gonum.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case ownThreads.Load() == 1 && min(m, n, k) >= p.ownOrder && gogemm.InUse() == gogemm.AVX2:
		p.own.mul(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	default:
		gemm(l, p.of(l).gemm, tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	}
}

func (p *level3[T]) syrk(l *Library, ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
	ra, ca := opDims(tA, n, k)
	switch {
	case l == nil && gogemm.InUse() != gogemm.Portable:
		p.own.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	case l == nil || !large(n, n, k, syrkWork) || !isUplo(ul) || !isTrans(tA) || alpha == 0 ||
		!matrix(ra, ca, lda, len(a)) || !matrix(n, n, ldc, len(c)):
		p.gonum.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	default:
		syrk(l, p.of(l).syrk, ul, tA, n, k, alpha, a, lda, beta, c, ldc)
	}
}

func (p *level3[T]) trxm(l *Library, kind ownKind, s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T, ldb int) {
	ref := p.gonum.trsm
	if kind == ownTrmm {
		ref = p.gonum.trmm
	}
	q := order(s, m, n)
	switch {
	case l == nil && gogemm.InUse() != gogemm.Portable:
		p.own.trxm(kind, ref, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	case l == nil || !large(m, n, q, trxmWork) || !isSide(s) || !isUplo(ul) || !isTrans(tA) || !isDiag(d) || alpha == 0 ||
		!matrix(q, q, lda, len(a)) || !matrix(m, n, ldb, len(b)):
		ref(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	case kind == ownTrmm:
		trxm(l, p.of(l).trmm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	default:
		trxm(l, p.of(l).trsm, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
	}
}

func (p *level3[T]) symm(l *Library, s blas.Side, ul blas.Uplo, m, n int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	q := order(s, m, n)
	if l == nil || !large(m, n, q, gemmWork) || !isSide(s) || !isUplo(ul) || alpha == 0 ||
		!matrix(q, q, lda, len(a)) || !matrix(m, n, ldb, len(b)) || !matrix(m, n, ldc, len(c)) {
		p.gonum.symm(s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	symm(l, p.of(l).symm, s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (p *level3[T]) gemv(l *Library, tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int) {
	lenY, lenX := opDims(tA, m, n)
	if l == nil || !large(m, n, 1, gemvWork) || !isTrans(tA) || alpha == 0 ||
		!matrix(m, n, lda, len(a)) || !vector(lenX, incX, len(x)) || !vector(lenY, incY, len(y)) {
		p.gonum.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		return
	}
	gemv(l, p.of(l).gemv, tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
