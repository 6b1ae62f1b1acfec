package gemm

import (
	"unsafe"

	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Triangular computes B = α·op(A)⁻¹·B, solve, or α·op(A)·B, or with op(A) on the right, B m×n and A triangular, all
// row-major, on the calling goroutine. What a column of B (from the right, a row) becomes does not depend on the
// others. A solve multiplies by the reciprocals of A's diagonal. The package comment bounds its error. Arguments are
// as Gemm's.
func Triangular[T real](solve bool, s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T,
	lda int, b []T, ldb int) {
	x := triangular[T]{s == blas.Left, ul == blas.Lower, tA != blas.NoTrans, d == blas.Unit, solve, m, n, alpha, a, lda,
		b, ldb}
	w := pool.Get().(*workspaces)
	of[*workspace[T]](&w.s, &w.d).triangular(*kernelOf[T](current()), *kernelOf[T](triangles()), &x)
	pool.Put(w)
}

// triangular holds the arguments of Triangular, which come down to
// X ← α·T⁻¹·X or X ← α·T·X: from the left T is op(A) and X is B, from the right T is
// op(A)ᵀ and X is Bᵀ.
type triangular[T real] struct {
	left, lower, trans, unit, solve bool // of A as it is stored
	m, n                            int
	alpha                           T
	a                               []T
	lda                             int
	b                               []T
	ldb                             int
}

func (x *triangular[T]) order() int {
	if x.left {
		return x.m
	}
	return x.n
}

// vectors returns the number of columns of X.
func (x *triangular[T]) vectors() int { return x.m + x.n - x.order() }

// down reports whether T is lower triangular.
func (x *triangular[T]) down() bool { return x.lower == (x.left != x.trans) }

// rows reports whether T is A as it is stored; if not it is Aᵀ.
func (x *triangular[T]) rows() bool { return x.left != x.trans }

// at returns A from element (i, j) of T on.
func (x *triangular[T]) at(i, j int) []T {
	if x.rows() {
		return x.a[i*x.lda+j:]
	}
	return x.a[j*x.lda+i:]
}

// from returns B from row i of X on.
func (x *triangular[T]) from(i int) []T {
	if x.left {
		return x.b[i*x.ldb:]
	}
	return x.b[i:]
}

// triOrder is the order of the diagonal blocks of T, a multiple of every kernel's mr
// and at most depthMax.
const triOrder = 252

// triangles returns the kernels for the blocks on the diagonal. The tiles of AVX-512
// are so large that the triangles within, which are computed in Go, would take longer
// than the products around them.
func triangles() *kernels { return byPath[simd.AVX2] }

// triangular computes X block row by block row, k being the kernel for the products
// and kt that for the blocks on the diagonal. J are the rows that come before block I
// in a solve, which for lower triangular T are those above:
//
//	X_I ← T_II⁻¹·(α·X_I − T_IJ·X_J),  blocks in that order
//	X_I ← T_II·(α·X_I) + α·T_IJ·X_J,  blocks in the other.
func (w *workspace[T]) triangular(k, kt kernel[T], x *triangular[T]) {
	order := x.order()
	blocks := (order + triOrder - 1) / triOrder
	for q := range blocks {
		if x.solve != x.down() {
			q = blocks - 1 - q
		}
		i0, i1 := q*triOrder, min((q+1)*triOrder, order)
		j0, j1 := 0, i0
		if !x.down() {
			j0, j1 = i1, order
		}
		switch {
		case j0 == j1:
			w.diagonal(kt, x, i0, i1, x.alpha)
		case x.solve:
			w.besides(k, x, i0, i1, j0, j1, -1, x.alpha)
			w.diagonal(kt, x, i0, i1, 1)
		default:
			w.diagonal(kt, x, i0, i1, x.alpha)
			w.besides(k, x, i0, i1, j0, j1, x.alpha, 1)
		}
	}
}

// besides computes X_I ← β·X_I + α·T_IJ·X_J.
func (w *workspace[T]) besides(k kernel[T], x *triangular[T], i0, i1, j0, j1 int, alpha, beta T) {
	p := product[T]{k: j1 - j0, alpha: alpha, beta: beta, c: x.from(i0), ldc: x.ldb}
	if x.left {
		p.m, p.n, p.transA = i1-i0, x.n, x.trans
		p.a, p.lda, p.b, p.ldb = x.at(i0, j0), x.lda, x.from(j0), x.ldb
	} else {
		p.m, p.n, p.transB = x.m, i1-i0, x.trans
		p.a, p.lda, p.b, p.ldb = x.from(j0), x.ldb, x.at(i0, j0), x.lda
	}
	w.gemm(k, &p)
}

// diagonal computes X_I ← α·T_II⁻¹·X_I or α·T_II·X_I, nr vectors at a time. The rows
// of T_II are packed in panels of mr, without the triangles on their diagonal, and a
// panel of X lies packed as the tiles of C that the micro-kernel computes.
func (w *workspace[T]) diagonal(k kernel[T], x *triangular[T], i0, i1 int, alpha T) {
	h := i1 - i0
	panels := (h + k.mr - 1) / k.mr
	w.tri, w.x = grow(w.tri, panels*k.mr*(h+k.mr)), grow(w.x, panels*k.mr*k.nr)
	x.pack(k, w.tri, i0, h)
	for v := 0; v < x.vectors(); v += k.nr {
		cols := min(k.nr, x.vectors()-v)
		clear(w.x[h*k.nr : panels*k.mr*k.nr])
		if x.left {
			packAlong(k, w.x, x.b[i0*x.ldb+v:], x.ldb, cols, h, k.nr)
		} else {
			packAcross(k, w.x, x.b[v*x.ldb+i0:], x.ldb, cols, h, k.nr)
		}
		if alpha != 1 {
			for i := range w.x[:h*k.nr] {
				w.x[i] *= alpha
			}
		}
		w.panel(k, x, h)
		x.unpack(w.x, i0, h, v, cols, k.nr)
	}
}

// panel computes one packed panel of X, row of tiles by row of tiles.
func (w *workspace[T]) panel(k kernel[T], x *triangular[T], h int) {
	panels := (h + k.mr - 1) / k.mr
	alpha := T(1)
	if x.solve {
		alpha = -1
	}
	for p := range panels {
		if x.solve != x.down() {
			p = panels - 1 - p
		}
		t := w.tri[p*k.mr*(h+k.mr) : (p+1)*k.mr*(h+k.mr)]
		j0, j1 := x.beside(p*k.mr, k.mr, h)
		tile := w.x[p*k.mr*k.nr : (p+1)*k.mr*k.nr]
		if !x.solve {
			multiplyTile(t[k.mr*h:], tile, k.mr, k.nr, x.down())
		}
		if j0 < j1 {
			k.mul(j1-j0, unsafe.SliceData(t), unsafe.SliceData(w.x[j0*k.nr:]), &tile[0], k.nr, alpha, true)
		}
		if x.solve {
			solveTile(t[k.mr*h:], tile, k.mr, k.nr, x.down())
		}
	}
}

// beside returns which columns of T, of order h, rows i, …, i+mr-1 have beside the
// triangle on the diagonal.
func (x *triangular[T]) beside(i, mr, h int) (j0, j1 int) {
	if x.down() {
		return 0, i
	}
	return min(i+mr, h), h
}

// pack packs the block of T of order h at i0: for each panel of mr rows what is beside
// the triangle on the diagonal, in the first mr·h elements, and the triangle, mr×mr
// with zeros around it, the reciprocals of its diagonal in a solve.
func (x *triangular[T]) pack(k kernel[T], dst []T, i0, h int) {
	for i := 0; i < h; i += k.mr {
		t := dst[i*(h+k.mr) : (i+k.mr)*(h+k.mr)]
		rows := min(k.mr, h-i)
		j0, j1 := x.beside(i, k.mr, h)
		if j0 < j1 && x.rows() {
			packAcross(k, t, x.at(i0+i, i0+j0), x.lda, rows, j1-j0, k.mr)
		} else if j0 < j1 {
			packAlong(k, t, x.at(i0+i, i0+j0), x.lda, rows, j1-j0, k.mr)
		}
		t = t[k.mr*h:]
		clear(t)
		for r := range rows {
			for c := range rows {
				switch {
				case r == c && x.unit:
					t[r*k.mr+r] = 1
				case r == c && x.solve:
					t[r*k.mr+r] = 1 / x.at(i0+i+r, i0+i+r)[0]
				case r == c, (r > c) == x.down():
					t[r*k.mr+c] = x.at(i0+i+r, i0+i+c)[0]
				}
			}
		}
	}
}

// unpack writes rows i0, …, i0+h-1 of the vectors from v on.
func (x *triangular[T]) unpack(src []T, i0, h, v, cols, nr int) {
	if x.left {
		for i := range h {
			copy(x.b[(i0+i)*x.ldb+v:(i0+i)*x.ldb+v+cols], src[i*nr:])
		}
		return
	}
	for c := range cols {
		row := x.b[(v+c)*x.ldb+i0 : (v+c)*x.ldb+i0+h]
		for i := range row {
			row[i] = src[i*nr+c]
		}
	}
}

// solveTile computes x ← t⁻¹x for the rows of a tile, mr×nr; t has reciprocals in its
// diagonal. The triangle is lower if down.
//
//	x_r ← (x_r − Σ_q t_rq·x_q)·t_rr⁻¹,  q from the diagonal's far end
func solveTile[T real](t, x []T, mr, nr int, down bool) {
	for i := range mr {
		r, q0, q1 := i, 0, i
		if !down {
			r = mr - 1 - i
			q0, q1 = r+1, mr
		}
		to := x[r*nr : r*nr+nr]
		for q := q0; q < q1; q++ {
			subtract(to, x[q*nr:q*nr+nr], t[r*mr+q])
		}
		scale(to, t[r*mr+r])
	}
}

// multiplyTile computes x ← tx for the rows of a tile, in the other order.
//
//	x_r ← t_rr·x_r + Σ_q t_rq·x_q
func multiplyTile[T real](t, x []T, mr, nr int, down bool) {
	for i := range mr {
		r, q0, q1 := i, i+1, mr
		if down {
			r = mr - 1 - i
			q0, q1 = 0, r
		}
		to := x[r*nr : r*nr+nr]
		scale(to, t[r*mr+r])
		for q := q0; q < q1; q++ {
			subtract(to, x[q*nr:q*nr+nr], -t[r*mr+q])
		}
	}
}

// subtract computes x ← x − v·y, four elements at a time: nr is a multiple of 4.
func subtract[T real](x, y []T, v T) {
	for len(x) >= 4 && len(y) >= 4 {
		x[0] -= v * y[0]
		x[1] -= v * y[1]
		x[2] -= v * y[2]
		x[3] -= v * y[3]
		x, y = x[4:], y[4:]
	}
}

func scale[T real](x []T, v T) {
	for i := range x {
		x[i] *= v
	}
}
