package accel

import (
	"context"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
)

// own32 is the blas.Float32 of a process without a library: gonum's, with products
// from package gemm, on all threads outside ForEach and on one inside it. On a
// processor that gemm has no assembly for, gonum's serve, which on x86-64 are faster.
type own32 struct{ gonum.Implementation }

var _ blas.Float32 = own32{}

// ownThreads is the number of threads that products of own32 run on now.
var ownThreads atomic.Int32

const (
	ownWork = 1 << 20 // least work for which threads are worth their while
	ownRows = 512     // largest pieces that C is cut into
	ownCols = 1024
)

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n. The bits do not
// depend on the number of threads.
func (o own32) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	ra, ca := opDims(tA, m, k)
	rb, cb := opDims(tB, k, n)
	threads := int(ownThreads.Load())
	if threads > 1 && large(m, n, k, ownWork) && isTrans(tA) && isTrans(tB) && alpha != 0 &&
		matrix(ra, ca, lda, len(a)) && matrix(rb, cb, ldb, len(b)) && matrix(m, n, ldc, len(c)) {
		rows, cols := pieces(m, n, threads)
		ownProducts.Get().(*ownProduct).run(ownProduct{
			tA: tA, tB: tB, m: m, n: n, k: k, alpha: alpha, beta: beta,
			a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: ldc, rows: rows, cols: cols,
		}, (m+rows-1)/rows*((n+cols-1)/cols))
		return
	}
	gogemm.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n. The bits do not depend on the number of threads.
func (o own32) Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	if gogemm.InUse() == gogemm.Portable {
		o.Implementation.Ssyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	ra, ca := opDims(tA, n, k)
	threads := int(ownThreads.Load())
	if threads > 1 && large(n, n, k, 2*ownWork) && isUplo(ul) && isTrans(tA) && alpha != 0 &&
		matrix(ra, ca, lda, len(a)) && matrix(n, n, ldc, len(c)) {
		// Blocks of the triangle, about 8 for each thread.
		size := blockOrder(n, threads)
		blocks := (n + size - 1) / size
		ownProducts.Get().(*ownProduct).run(ownProduct{
			tA: tA, tB: blas.Trans, m: n, n: n, k: k, alpha: alpha, beta: beta,
			a: a, b: a, c: c, lda: lda, ldb: lda, ldc: ldc, rows: size, cols: size, ul: ul,
		}, blocks*(blocks+1)/2)
		return
	}
	gogemm.Ssyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// pieces returns the size of the pieces that C, m×n, is cut into: at least one for
// each thread if C has so many tiles, a multiple of the number of threads if they are
// few, and none larger than ownRows×ownCols.
func pieces(m, n, threads int) (rows, cols int) {
	mr, nr := gogemm.Tile()
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
func blockOrder(n, threads int) int {
	mr, _ := gogemm.Tile()
	count := 2
	for count*(count+1) < 16*threads {
		count++
	}
	return min(ownRows, max(64, (n+count-1)/count)+mr-1) / mr * mr
}

// ownProduct is one product that runs on several threads. For Ssyrk ul is set, tB is
// not used and b is a.
type ownProduct struct {
	tA, tB                 blas.Transpose
	ul                     blas.Uplo
	m, n, k, lda, ldb, ldc int
	alpha, beta            float32
	a, b, c                []float32
	rows, cols             int
	body                   func(worker, i int)
}

var ownProducts = sync.Pool{New: func() any {
	p := new(ownProduct)
	p.body = p.piece
	return p
}}

// run computes x, which is cut into count pieces, and gives p back.
func (p *ownProduct) run(x ownProduct, count int) {
	x.body = p.body
	*p = x
	// The context is never done, so ForEach gives no error.
	_ = ForEach(context.Background(), count, p.body)
	*p = ownProduct{body: p.body}
	ownProducts.Put(p)
}

// piece computes one piece of C.
func (p *ownProduct) piece(_, q int) {
	if p.ul != 0 {
		p.block(q)
		return
	}
	across := (p.n + p.cols - 1) / p.cols
	i, j := q/across*p.rows, q%across*p.cols
	gogemm.Sgemm(p.tA, p.tB, min(p.rows, p.m-i), min(p.cols, p.n-j), p.k, p.alpha,
		vectors(p.a, p.tA == blas.NoTrans, i, p.lda), p.lda,
		vectors(p.b, p.tB != blas.NoTrans, j, p.ldb), p.ldb, p.beta, p.c[i*p.ldc+j:], p.ldc)
}

// block computes block q of a triangle; block (i, j), j ≤ i, of the lower one has
// number i·(i+1)/2 + j, and its transpose in the upper one has the same.
func (p *ownProduct) block(q int) {
	i := 0
	for (i+1)*(i+2)/2 <= q {
		i++
	}
	j := q - i*(i+1)/2
	if p.ul == blas.Upper {
		i, j = j, i
	}
	i, j = i*p.rows, j*p.rows
	x := vectors(p.a, p.tA == blas.NoTrans, i, p.lda)
	y := vectors(p.a, p.tA == blas.NoTrans, j, p.lda)
	c := p.c[i*p.ldc+j:]
	m, n := min(p.rows, p.n-i), min(p.rows, p.n-j)
	switch {
	case i == j:
		gogemm.Ssyrk(p.ul, p.tA, m, p.k, p.alpha, x, p.lda, p.beta, c, p.ldc)
	case p.tA == blas.NoTrans:
		gogemm.Sgemm(blas.NoTrans, blas.Trans, m, n, p.k, p.alpha, x, p.lda, y, p.lda, p.beta, c, p.ldc)
	default:
		gogemm.Sgemm(blas.Trans, blas.NoTrans, m, n, p.k, p.alpha, x, p.lda, y, p.lda, p.beta, c, p.ldc)
	}
}

// vectors returns a matrix without its first i rows or, if not rows, columns.
func vectors(x []float32, rows bool, i, ld int) []float32 {
	if rows {
		return x[i*ld:]
	}
	return x[i:]
}
