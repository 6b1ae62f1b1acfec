package gemm

import (
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
)

// Limits of the block sizes. A micro-panel of B, depthMax·nr elements of 4 or 8 bytes (each row of nr elements takes 64
// or 128 bytes), stays in the first cache. A block of A, rowsMax·depthMax, stays in the second cache, and a block of B,
// depthMax·colsMax, in the third. Larger blocks need larger caches; smaller ones are packed more often.
const (
	depthMax = 256  // largest block of k; changing it changes the last bits of results
	rowsMax  = 168  // largest block of m; a multiple of mr of every kernel
	colsMax  = 2048 // largest block of n
)

// partialProduct is a product of which only a region of C is computed: all of it for Gemm, a triangle for Syrk.
type partialProduct[T float] struct {
	Product[T]
	region region
}

// block is the m×n block of C at (i, j), which is computed from k columns of op(A).
type block struct {
	i, j, m, n, k int
	add           bool // add to the elements of C instead of overwriting them
}

// region is the part of C that is computed.
type region int

const (
	wholeMatrix   region = iota
	lowerTriangle        // j ≤ i
	upperTriangle        // j ≥ i
)

// columns returns the range of columns that are computed in row i among the n columns j, …, j+n-1: columns j+lo up to
// but not including j+hi.
func (r region) columns(i, j, n int) (lo, hi int) {
	switch r {
	case lowerTriangle:
		return 0, max(0, min(n, i-j+1))
	case upperTriangle:
		return min(n, max(0, i-j)), n
	}
	return 0, n
}

// workspace is the scratch memory of one product or triangular solve.
type workspace[T float] struct {
	a, b []T // packed blocks of A and B
	tile []T // a tile at the border of C

	tri []T // a packed diagonal block of a triangular matrix
	x   []T // a packed panel of the matrix that the triangular one multiplies
}

// workspaces holds a workspace for each number format.
type workspaces struct {
	f32 workspace[float32]
	f64 workspace[float64]
}

var workspacePool = sync.Pool{New: func() any { return new(workspaces) }}

// blockSize divides n into as few blocks of about equal size as the limit allows, and returns their size. The limit and
// the result are multiples of unit.
func blockSize(n, limit, unit int) int {
	count := (n + limit - 1) / limit
	return min((((n+count-1)/count+unit-1)/unit)*unit, limit)
}

// depth returns the size of the blocks of k. It must be a function of k alone, because the sum of an element is rounded
// between blocks.
func depth(k int) int { return blockSize(k, depthMax, 8) }

// gemm computes the product block by block. Every block B_pj of B is packed once, and every
// block A_ip of A is packed once for each j:
//
//	C_ij = β·C_ij,  C_ij = C_ij + α·A_ip·B_pj,  p ascending.
func (w *workspace[T]) gemm(micro kernel[T], product *partialProduct[T]) {
	if product.Beta != 0 && product.Beta != 1 {
		for i := range product.M {
			start, end := product.region.columns(i, 0, product.N)
			row := product.C[i*product.LDC+start : i*product.LDC+end]
			for j := range row {
				row[j] *= product.Beta
			}
		}
	}
	kc := depth(product.K)
	mc := blockSize(product.M, rowsMax, micro.mr)
	nc := blockSize(product.N, colsMax, micro.nr)
	w.a, w.b, w.tile = grow(w.a, mc*kc), grow(w.b, nc*kc), grow(w.tile, micro.mr*micro.nr)
	for j := 0; j < product.N; j += nc {
		n := min(nc, product.N-j)
		for p := 0; p < product.K; p += kc {
			kp := min(kc, product.K-p)
			pack(micro, w.b, product.B, product.LDB, j, p, product.TransB == blas.NoTrans, panelShape{n, kp, micro.nr})
			for i := 0; i < product.M; i += mc {
				m := min(mc, product.M-i)
				pack(micro, w.a, product.A, product.LDA, i, p, product.TransA != blas.NoTrans, panelShape{m, kp,
					micro.mr})
				w.multiplyBlock(micro, product, block{i, j, m, n, kp, p > 0 || product.Beta != 0})
			}
		}
	}
}

// multiplyBlock multiplies the packed blocks of A and B, tile by tile, and stores the result in the block target of C,
// or adds it to that block if target.add is set. If a tile crosses the border of C or the diagonal of a triangle, the
// same kernel computes the complete tile in w.tile, and the elements that belong to the result are copied to C.
func (w *workspace[T]) multiplyBlock(micro kernel[T], product *partialProduct[T], target block) {
	i0, j0, m, n, kp := target.i, target.j, target.m, target.n, target.k
	for j := 0; j < n; j += micro.nr {
		b := unsafe.SliceData(w.b[j*kp:])
		cols := min(micro.nr, n-j)
		for i := 0; i < m; i += micro.mr {
			a := unsafe.SliceData(w.a[i*kp:])
			rows := min(micro.mr, m-i)
			topStart, topEnd := product.region.columns(i0+i, j0+j, cols)
			bottomStart, bottomEnd := product.region.columns(i0+i+rows-1, j0+j, cols)
			if topStart == topEnd && bottomStart == bottomEnd {
				continue // the tile lies in the other triangle
			}
			cRows := product.C[(i0+i)*product.LDC+j0+j:]
			if rows == micro.mr && max(topStart, bottomStart) == 0 && min(topEnd, bottomEnd) == micro.nr {
				micro.mul(kp, a, b, &cRows[0], product.LDC, product.Alpha, target.add)
				continue
			}
			if target.add {
				for r := range rows {
					start, end := product.region.columns(i0+i+r, j0+j, cols)
					copy(w.tile[r*micro.nr+start:], cRows[r*product.LDC+start:r*product.LDC+end])
				}
			}
			micro.mul(kp, a, b, &w.tile[0], micro.nr, product.Alpha, target.add)
			for r := range rows {
				start, end := product.region.columns(i0+i+r, j0+j, cols)
				copy(cRows[r*product.LDC+start:r*product.LDC+end], w.tile[r*micro.nr+start:])
			}
		}
	}
}

// grow returns s if it has at least n elements, and otherwise a new slice of at least n elements whose start is aligned
// to a cache line.
func grow[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	const line = 64
	size := int(unsafe.Sizeof(s[0]))
	s = make([]T, n+line/size)
	misalignment := int(uintptr(unsafe.Pointer(&s[0])) % line)
	return s[(line-misalignment)%line/size:]
}
