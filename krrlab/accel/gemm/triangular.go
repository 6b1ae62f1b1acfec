package gemm

import (
	"unsafe"

	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Operation selects the result of Triangular.
type Operation int

const (
	Multiply Operation = iota // B = α·op(A)·B
	Solve                     // B = α·op(A)⁻¹·B
)

// Triangle holds the arguments of Triangular: B = α·op(A)⁻¹·B or B = α·op(A)·B, or the same with op(A) on the right. B
// is M×N and A is triangular, both row-major with strides LDA and LDB.
type Triangle[T real] struct {
	Operation Operation
	Side      blas.Side // side on which op(A) multiplies B
	Uplo      blas.Uplo
	TransA    blas.Transpose
	Diag      blas.Diag
	M, N      int
	Alpha     T
	A         []T
	LDA       int
	B         []T
	LDB       int
}

// Triangular solves with a triangular matrix or multiplies by it, on the calling goroutine. Each column of B (each row,
// if A is on the right) is computed independently of the others. A solve multiplies by the reciprocals of the diagonal
// of A. The package comment bounds the rounding error. The requirements on the arguments are those of Gemm.
func Triangular[T real](x Triangle[T]) {
	w := workspacePool.Get().(*workspaces)
	pick[*workspace[T]](&w.f32, &w.f64).triangular(*kernelOf[T](currentKernels()), *kernelOf[T](diagonalKernels()), &x)
	workspacePool.Put(w)
}

// The code handles all cases as X ← α·T⁻¹·X or X ← α·T·X. If A is on the left, T is op(A) and X is B; if A is on the
// right, T is op(A)ᵀ and X is Bᵀ.

// isLeft reports whether op(A) multiplies B from the left.
func (x *Triangle[T]) isLeft() bool { return x.Side == blas.Left }

// solves reports whether X is multiplied by T⁻¹.
func (x *Triangle[T]) solves() bool { return x.Operation == Solve }

// order returns the order of T.
func (x *Triangle[T]) order() int {
	if x.isLeft() {
		return x.M
	}
	return x.N
}

// vectors returns the number of columns of X.
func (x *Triangle[T]) vectors() int { return x.M + x.N - x.order() }

// isLower reports whether T is lower triangular.
func (x *Triangle[T]) isLower() bool { return (x.Uplo == blas.Lower) == x.isStored() }

// uplo returns blas.Lower or blas.Upper for T.
func (x *Triangle[T]) uplo() blas.Uplo {
	if x.isLower() {
		return blas.Lower
	}
	return blas.Upper
}

// isStored reports whether T is A; otherwise T is Aᵀ.
func (x *Triangle[T]) isStored() bool { return x.isLeft() == (x.TransA == blas.NoTrans) }

// tFrom returns the elements of A that start at element (i, j) of T.
func (x *Triangle[T]) tFrom(i, j int) []T {
	if x.isStored() {
		return x.A[i*x.LDA+j:]
	}
	return x.A[j*x.LDA+i:]
}

// xFrom returns the elements of B that start at row i of X.
func (x *Triangle[T]) xFrom(i int) []T {
	if x.isLeft() {
		return x.B[i*x.LDB:]
	}
	return x.B[i:]
}

// triOrder is the order of the diagonal blocks of T. It must be a multiple of mr of every kernel and at most depthMax.
const triOrder = 252

// diagonalKernels returns the kernels for the blocks on the diagonal, which are always those of AVX2. The tiles of
// AVX-512 are so large that their diagonal triangles, which are computed in Go, would take longer than the products
// next to them.
func diagonalKernels() *kernels { return byPath[simd.AVX2] }

// triangular computes X block row by block row, with the kernel k for the products and kt for the blocks on the
// diagonal. Let J be the rows that a solve computes before block I: the rows above it if T is lower triangular, and the
// rows below it otherwise. Then
//
//	X_I ← T_II⁻¹·(α·X_I − T_IJ·X_J)  in a solve, in this order of blocks,
//	X_I ← T_II·(α·X_I) + α·T_IJ·X_J  in a product, in the reverse order.
func (w *workspace[T]) triangular(k, kt kernel[T], x *Triangle[T]) {
	order := x.order()
	blocks := (order + triOrder - 1) / triOrder
	for q := range blocks {
		if x.solves() != x.isLower() {
			q = blocks - 1 - q
		}
		i0, i1 := q*triOrder, min((q+1)*triOrder, order)
		j0, j1 := 0, i0
		if !x.isLower() {
			j0, j1 = i1, order
		}
		switch {
		case j0 == j1:
			w.diagonal(kt, x, i0, i1, x.Alpha)
		case x.solves():
			w.addOffDiagonal(k, x, rowRange{i0, i1}, rowRange{j0, j1}, [2]T{-1, x.Alpha})
			w.diagonal(kt, x, i0, i1, 1)
		default:
			w.diagonal(kt, x, i0, i1, x.Alpha)
			w.addOffDiagonal(k, x, rowRange{i0, i1}, rowRange{j0, j1}, [2]T{x.Alpha, 1})
		}
	}
}

// rowRange is the rows start, …, end-1 of X, or the corresponding rows or columns of T.
type rowRange struct{ start, end int }

// addOffDiagonal computes X_I ← β·X_I + α·T_IJ·X_J, where alphaBeta holds α and β.
func (w *workspace[T]) addOffDiagonal(k kernel[T], x *Triangle[T], i, j rowRange, alphaBeta [2]T) {
	i0, i1, j0, j1 := i.start, i.end, j.start, j.end
	p := partialProduct[T]{Product: Product[T]{TransA: blas.NoTrans, TransB: blas.NoTrans, K: j1 - j0,
		Alpha: alphaBeta[0],
		Beta:  alphaBeta[1], C: x.xFrom(i0), LDC: x.LDB}}
	if x.isLeft() {
		p.M, p.N, p.TransA = i1-i0, x.N, x.TransA
		p.A, p.LDA, p.B, p.LDB = x.tFrom(i0, j0), x.LDA, x.xFrom(j0), x.LDB
	} else {
		p.M, p.N, p.TransB = x.M, i1-i0, x.TransA
		p.A, p.LDA, p.B, p.LDB = x.xFrom(j0), x.LDB, x.tFrom(i0, j0), x.LDA
	}
	w.gemm(k, &p)
}

// diagonal computes X_I ← α·T_II⁻¹·X_I or α·T_II·X_I, nr vectors at a time. The rows of T_II are packed in panels of
// mr, with the triangles on their diagonal stored separately. A panel of X is packed as a column of tiles, which the
// micro-kernel updates as tiles of C.
func (w *workspace[T]) diagonal(k kernel[T], x *Triangle[T], i0, i1 int, alpha T) {
	h := i1 - i0
	panels := (h + k.mr - 1) / k.mr
	w.tri, w.x = grow(w.tri, panels*k.mr*(h+k.mr)), grow(w.x, panels*k.mr*k.nr)
	x.pack(k, w.tri, i0, h)
	for v := 0; v < x.vectors(); v += k.nr {
		cols := min(k.nr, x.vectors()-v)
		clear(w.x[h*k.nr : panels*k.mr*k.nr])
		pack(k, w.x, x.B, x.LDB, v, i0, x.isLeft(), panelShape{cols, h, k.nr})
		if alpha != 1 {
			for i := range w.x[:h*k.nr] {
				w.x[i] *= alpha
			}
		}
		w.panel(k, x, h)
		x.unpack(w.x, i0, v, panelShape{cols, h, k.nr})
	}
}

// panel computes one packed panel of X, tile by tile. h is the order of the diagonal block.
func (w *workspace[T]) panel(k kernel[T], x *Triangle[T], h int) {
	panels := (h + k.mr - 1) / k.mr
	alpha := T(1)
	if x.solves() {
		alpha = -1
	}
	for p := range panels {
		if x.solves() != x.isLower() {
			p = panels - 1 - p
		}
		t := w.tri[p*k.mr*(h+k.mr) : (p+1)*k.mr*(h+k.mr)]
		j0, j1 := x.offDiagonal(p*k.mr, k.mr, h)
		tile := w.x[p*k.mr*k.nr : (p+1)*k.mr*k.nr]
		if !x.solves() {
			multiplyTile(t[k.mr*h:], tile, k.mr, k.nr, x.uplo())
		}
		if j0 < j1 {
			k.mul(j1-j0, unsafe.SliceData(t), unsafe.SliceData(w.x[j0*k.nr:]), &tile[0], k.nr, alpha, true)
		}
		if x.solves() {
			solveTile(t[k.mr*h:], tile, k.mr, k.nr, x.uplo())
		}
	}
}

// offDiagonal returns the columns j0, …, j1-1 of a diagonal block of order h in which rows i, …, i+mr-1 have elements
// outside the mr×mr triangle on the diagonal.
func (x *Triangle[T]) offDiagonal(i, mr, h int) (j0, j1 int) {
	if x.isLower() {
		return 0, i
	}
	return min(i+mr, h), h
}

// pack packs the diagonal block of T of order h that starts at row i0. Each panel of mr rows takes mr·(h+mr) elements.
// The first mr·h hold the elements outside the triangle on the diagonal. The others hold that triangle as an mr×mr
// matrix with zeros in the opposite triangle; in a solve, its diagonal holds reciprocals.
func (x *Triangle[T]) pack(k kernel[T], dst []T, i0, h int) {
	for i := 0; i < h; i += k.mr {
		t := dst[i*(h+k.mr) : (i+k.mr)*(h+k.mr)]
		rows := min(k.mr, h-i)
		j0, j1 := x.offDiagonal(i, k.mr, h)
		if j0 < j1 && x.isStored() {
			packAcross(k, t, x.tFrom(i0+i, i0+j0), x.LDA, panelShape{rows, j1 - j0, k.mr})
		} else if j0 < j1 {
			packAlong(k, t, x.tFrom(i0+i, i0+j0), x.LDA, panelShape{rows, j1 - j0, k.mr})
		}
		t = t[k.mr*h:]
		clear(t)
		for r := range rows {
			for c := range rows {
				switch {
				case r == c && x.Diag == blas.Unit:
					t[r*k.mr+r] = 1
				case r == c && x.solves():
					t[r*k.mr+r] = 1 / x.tFrom(i0+i+r, i0+i+r)[0]
				case r == c, (r > c) == x.isLower():
					t[r*k.mr+c] = x.tFrom(i0+i+r, i0+i+c)[0]
				}
			}
		}
	}
}

// unpack copies a packed panel src of k rows of n vectors to the vectors v, …, v+n-1, from row i0 on.
func (x *Triangle[T]) unpack(src []T, i0, v int, shape panelShape) {
	cols, h, nr := shape.count, shape.k, shape.width
	if x.isLeft() {
		for i := range h {
			copy(x.B[(i0+i)*x.LDB+v:(i0+i)*x.LDB+v+cols], src[i*nr:])
		}
		return
	}
	for c := range cols {
		row := x.B[(v+c)*x.LDB+i0 : (v+c)*x.LDB+i0+h]
		for i := range row {
			row[i] = src[i*nr+c]
		}
	}
}

// solveTile computes x ← t⁻¹x for a tile x of mr×nr. The triangle t is the one that uplo selects, and its diagonal
// holds reciprocals. For every row r, in the order of substitution,
//
//	x_r ← (x_r − Σ_q t_rq·x_q)·t_rr⁻¹,  q over the rows that are already solved.
func solveTile[T real](t, x []T, mr, nr int, uplo blas.Uplo) {
	for i := range mr {
		r, q0, q1 := i, 0, i
		if uplo == blas.Upper {
			r = mr - 1 - i
			q0, q1 = r+1, mr
		}
		row := x[r*nr : r*nr+nr]
		for q := q0; q < q1; q++ {
			subtract(row, x[q*nr:q*nr+nr], t[r*mr+q])
		}
		scale(row, t[r*mr+r])
	}
}

// multiplyTile computes x ← tx for a tile x of mr×nr. The triangle t is the one that uplo selects. The rows are taken
// in the reverse order of solveTile, so that every x_q on the right is still the old one:
//
//	x_r ← t_rr·x_r + Σ_q t_rq·x_q.
func multiplyTile[T real](t, x []T, mr, nr int, uplo blas.Uplo) {
	for i := range mr {
		r, q0, q1 := i, i+1, mr
		if uplo == blas.Lower {
			r = mr - 1 - i
			q0, q1 = 0, r
		}
		row := x[r*nr : r*nr+nr]
		scale(row, t[r*mr+r])
		for q := q0; q < q1; q++ {
			subtract(row, x[q*nr:q*nr+nr], -t[r*mr+q])
		}
	}
}

// subtract computes x ← x − v·y. It takes four elements at a time, so the length of x must be a multiple of 4; nr is
// one.
func subtract[T real](x, y []T, v T) {
	for len(x) >= 4 && len(y) >= 4 {
		x[0] -= v * y[0]
		x[1] -= v * y[1]
		x[2] -= v * y[2]
		x[3] -= v * y[3]
		x, y = x[4:], y[4:]
	}
}

// scale computes x ← v·x.
func scale[T real](x []T, v T) {
	for i := range x {
		x[i] *= v
	}
}
