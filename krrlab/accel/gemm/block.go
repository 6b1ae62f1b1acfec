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
type partialProduct[T real] struct {
	Product[T]
	region region
}

// block is the m×n block of C at (i, j), which is computed from k columns of op(A).
type block struct {
	i, j, m, n, k int
	add           bool // add to the elements of C; false: overwrite them
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
func (p region) columns(i, j, n int) (lo, hi int) {
	switch p {
	case lowerTriangle:
		return 0, max(0, min(n, i-j+1))
	case upperTriangle:
		return min(n, max(0, i-j)), n
	}
	return 0, n
}

// workspace is the scratch memory of one product or triangular solve.
type workspace[T real] struct {
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

// gemm computes the product x block by block, with the micro-kernel k. Every block B_pj of B is packed once, and every
// block A_ip of A is packed once for each j:
//
//	C_ij = β·C_ij,  C_ij = C_ij + α·A_ip·B_pj,  p ascending.
func (w *workspace[T]) gemm(k kernel[T], x *partialProduct[T]) {
	if x.Beta != 0 && x.Beta != 1 {
		for i := range x.M {
			lo, hi := x.region.columns(i, 0, x.N)
			row := x.C[i*x.LDC+lo : i*x.LDC+hi]
			for j := range row {
				row[j] *= x.Beta
			}
		}
	}
	kc := depth(x.K)
	mc := blockSize(x.M, rowsMax, k.mr)
	nc := blockSize(x.N, colsMax, k.nr)
	w.a, w.b, w.tile = grow(w.a, mc*kc), grow(w.b, nc*kc), grow(w.tile, k.mr*k.nr)
	for j := 0; j < x.N; j += nc {
		n := min(nc, x.N-j)
		for p := 0; p < x.K; p += kc {
			kp := min(kc, x.K-p)
			pack(k, w.b, x.B, x.LDB, j, p, x.TransB == blas.NoTrans, panelShape{n, kp, k.nr})
			for i := 0; i < x.M; i += mc {
				m := min(mc, x.M-i)
				pack(k, w.a, x.A, x.LDA, i, p, x.TransA != blas.NoTrans, panelShape{m, kp, k.mr})
				w.block(k, x, block{i, j, m, n, kp, p > 0 || x.Beta != 0})
			}
		}
	}
}

// block multiplies the packed blocks of A and B, tile by tile, and stores the result in the block c of C,
// or adds it to that block if c.add is set. If a tile crosses the border of C or the diagonal of a triangle, the same
// kernel computes the complete tile in w.tile, and the elements that belong to the result are copied to C.
func (w *workspace[T]) block(k kernel[T], x *partialProduct[T], c block) {
	i0, j0, m, n, kp := c.i, c.j, c.m, c.n, c.k
	for j := 0; j < n; j += k.nr {
		b := unsafe.SliceData(w.b[j*kp:])
		cols := min(k.nr, n-j)
		for i := 0; i < m; i += k.mr {
			a := unsafe.SliceData(w.a[i*kp:])
			rows := min(k.mr, m-i)
			topStart, topEnd := x.region.columns(i0+i, j0+j, cols)
			bottomStart, bottomEnd := x.region.columns(i0+i+rows-1, j0+j, cols)
			if topStart == topEnd && bottomStart == bottomEnd {
				continue // the tile lies in the other triangle
			}
			out := x.C[(i0+i)*x.LDC+j0+j:]
			if rows == k.mr && max(topStart, bottomStart) == 0 && min(topEnd, bottomEnd) == k.nr {
				k.mul(kp, a, b, &out[0], x.LDC, x.Alpha, c.add)
				continue
			}
			if c.add {
				for r := range rows {
					lo, hi := x.region.columns(i0+i+r, j0+j, cols)
					copy(w.tile[r*k.nr+lo:], out[r*x.LDC+lo:r*x.LDC+hi])
				}
			}
			k.mul(kp, a, b, &w.tile[0], k.nr, x.Alpha, c.add)
			for r := range rows {
				lo, hi := x.region.columns(i0+i+r, j0+j, cols)
				copy(out[r*x.LDC+lo:r*x.LDC+hi], w.tile[r*k.nr+lo:])
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
	off := int(uintptr(unsafe.Pointer(&s[0])) % line)
	return s[(line-off)%line/size:]
}
