package gemm

import (
	"sync"
	"unsafe"
)

// The largest blocks. A micro-panel of B, depthMax·nr elements of 4 or 8 bytes and
// nr registers' worth of 64 or 128 bytes, stays in the first cache, a block of A,
// rowsMax·depthMax, in the second, a block of B, depthMax·colsMax, in the third.
const (
	depthMax = 256 // of k; part of the results' last bits
	rowsMax  = 168 // of m; a multiple of every kernel's mr
	colsMax  = 2048
)

// product holds the arguments of one product, plain ones.
type product[T real] struct {
	transA, transB bool
	m, n, k        int
	alpha          T
	a              []T
	lda            int
	b              []T
	ldb            int
	beta           T
	c              []T
	ldc            int
	part           part
}

// part is the part of C that is computed.
type part int

const (
	all   part = iota
	lower      // j ≤ i
	upper      // j ≥ i
)

// columns returns which of the n columns from j on are computed in row i, as [lo, hi)
// from j.
func (p part) columns(i, j, n int) (lo, hi int) {
	switch p {
	case lower:
		return 0, max(0, min(n, i-j+1))
	case upper:
		return min(n, max(0, i-j)), n
	}
	return 0, n
}

// workspace is what one product needs.
type workspace[T real] struct {
	a, b []T // packed blocks of A and B
	tile []T // a tile of C at its border

	tri, x []T // a block of a triangular matrix, and a panel of what it multiplies
}

// workspaces are those of both formats.
type workspaces struct {
	s workspace[float32]
	d workspace[float64]
}

var pool = sync.Pool{New: func() any { return new(workspaces) }}

// parts cuts n into the fewest parts of at most limit, a multiple of unit, of about
// equal size, and returns that size, a multiple of unit.
func parts(n, limit, unit int) int {
	count := (n + limit - 1) / limit
	return min((((n+count-1)/count+unit-1)/unit)*unit, limit)
}

// depth returns the size of the blocks that k is cut into. It depends on nothing but
// k, for the sums of an element are rounded between blocks.
func depth(k int) int { return parts(k, depthMax, 8) }

// gemm computes a product block by block. For blocks B_pj of B, packed once, and
// blocks A_ip of A, packed once for each j,
//
//	C_ij = β·C_ij,  C_ij = C_ij + α·A_ip·B_pj,  p ascending.
func (w *workspace[T]) gemm(k kernel[T], x *product[T]) {
	if x.beta != 0 && x.beta != 1 {
		for i := range x.m {
			lo, hi := x.part.columns(i, 0, x.n)
			row := x.c[i*x.ldc+lo : i*x.ldc+hi]
			for j := range row {
				row[j] *= x.beta
			}
		}
	}
	kc := depth(x.k)
	mc := parts(x.m, rowsMax, k.mr)
	nc := parts(x.n, colsMax, k.nr)
	w.a, w.b, w.tile = grow(w.a, mc*kc), grow(w.b, nc*kc), grow(w.tile, k.mr*k.nr)
	for j := 0; j < x.n; j += nc {
		n := min(nc, x.n-j)
		for p := 0; p < x.k; p += kc {
			kp := min(kc, x.k-p)
			if x.transB {
				packAcross(k, w.b, x.b[j*x.ldb+p:], x.ldb, n, kp, k.nr)
			} else {
				packAlong(k, w.b, x.b[p*x.ldb+j:], x.ldb, n, kp, k.nr)
			}
			for i := 0; i < x.m; i += mc {
				m := min(mc, x.m-i)
				if x.transA {
					packAlong(k, w.a, x.a[p*x.lda+i:], x.lda, m, kp, k.mr)
				} else {
					packAcross(k, w.a, x.a[i*x.lda+p:], x.lda, m, kp, k.mr)
				}
				w.block(k, x, i, j, m, n, kp, p > 0 || x.beta != 0)
			}
		}
	}
}

// block multiplies the packed blocks, tile by tile, into the m×n block of C at (i0, j0).
// A tile at the border of C, or on the diagonal of a triangle, is computed whole, beside
// C, by the same kernel.
func (w *workspace[T]) block(k kernel[T], x *product[T], i0, j0, m, n, kp int, add bool) {
	for j := 0; j < n; j += k.nr {
		b := unsafe.SliceData(w.b[j*kp:])
		cols := min(k.nr, n-j)
		for i := 0; i < m; i += k.mr {
			a := unsafe.SliceData(w.a[i*kp:])
			rows := min(k.mr, m-i)
			first, firstEnd := x.part.columns(i0+i, j0+j, cols)
			last, lastEnd := x.part.columns(i0+i+rows-1, j0+j, cols)
			if first == firstEnd && last == lastEnd {
				continue // of the other triangle
			}
			c := x.c[(i0+i)*x.ldc+j0+j:]
			if rows == k.mr && max(first, last) == 0 && min(firstEnd, lastEnd) == k.nr {
				k.mul(kp, a, b, &c[0], x.ldc, x.alpha, add)
				continue
			}
			if add {
				for r := range rows {
					lo, hi := x.part.columns(i0+i+r, j0+j, cols)
					copy(w.tile[r*k.nr+lo:], c[r*x.ldc+lo:r*x.ldc+hi])
				}
			}
			k.mul(kp, a, b, &w.tile[0], k.nr, x.alpha, add)
			for r := range rows {
				lo, hi := x.part.columns(i0+i+r, j0+j, cols)
				copy(c[r*x.ldc+lo:r*x.ldc+hi], w.tile[r*k.nr+lo:])
			}
		}
	}
}

// grow returns a slice of at least n elements that begins at a cache line.
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
