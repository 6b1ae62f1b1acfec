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
type Triangle[T float] struct {
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
func Triangular[T float](tri Triangle[T]) {
	w := workspacePool.Get().(*workspaces)
	pick[*workspace[T]](&w.f32, &w.f64).triangular(*kernelOf[T](currentKernels()), *kernelOf[T](diagonalKernels()),
		&tri)
	workspacePool.Put(w)
}

// The code handles all cases as X ← α·T⁻¹·X or X ← α·T·X. If A is on the left, T is op(A) and X is B; if A is on the
// right, T is op(A)ᵀ and X is Bᵀ.

// isLeft reports whether op(A) multiplies B from the left.
func (tri *Triangle[T]) isLeft() bool { return tri.Side == blas.Left }

// solves reports whether X is multiplied by T⁻¹.
func (tri *Triangle[T]) solves() bool { return tri.Operation == Solve }

// order returns the order of T.
func (tri *Triangle[T]) order() int {
	if tri.isLeft() {
		return tri.M
	}
	return tri.N
}

// vectors returns the number of columns of X.
func (tri *Triangle[T]) vectors() int { return tri.M + tri.N - tri.order() }

// isLower reports whether T is lower triangular.
func (tri *Triangle[T]) isLower() bool { return (tri.Uplo == blas.Lower) == tri.isStored() }

// uplo returns blas.Lower or blas.Upper for T.
func (tri *Triangle[T]) uplo() blas.Uplo {
	if tri.isLower() {
		return blas.Lower
	}
	return blas.Upper
}

// isStored reports whether T is A; otherwise T is Aᵀ.
func (tri *Triangle[T]) isStored() bool { return tri.isLeft() == (tri.TransA == blas.NoTrans) }

// tFrom returns the elements of A that start at element (i, j) of T.
func (tri *Triangle[T]) tFrom(i, j int) []T {
	if tri.isStored() {
		return tri.A[i*tri.LDA+j:]
	}
	return tri.A[j*tri.LDA+i:]
}

// xFrom returns the elements of B that start at row i of X.
func (tri *Triangle[T]) xFrom(i int) []T {
	if tri.isLeft() {
		return tri.B[i*tri.LDB:]
	}
	return tri.B[i:]
}

// triOrder is the order of the diagonal blocks of T. It must be a multiple of mr of every kernel and at most depthMax.
const triOrder = 252

// diagonalKernels returns the kernels for the blocks on the diagonal, which are always those of AVX2. The tiles of
// AVX-512 are so large that their diagonal triangles, which are computed in Go, would take longer than the products
// next to them.
func diagonalKernels() *kernels { return byPath[simd.AVX2] }

// triangular computes X block row by block row, with the kernel micro for the products and diagonalMicro for the blocks
// on the diagonal. Let J be the rows that a solve computes before block I: the rows above it if T is lower triangular,
// and the rows below it otherwise. Then
//
//	X_I ← T_II⁻¹·(α·X_I − T_IJ·X_J)  in a solve, in this order of blocks,
//	X_I ← T_II·(α·X_I) + α·T_IJ·X_J  in a product, in the reverse order.
func (w *workspace[T]) triangular(micro, diagonalMicro kernel[T], tri *Triangle[T]) {
	order := tri.order()
	blocks := (order + triOrder - 1) / triOrder
	for q := range blocks {
		if tri.solves() != tri.isLower() {
			q = blocks - 1 - q
		}
		i0, i1 := q*triOrder, min((q+1)*triOrder, order)
		j0, j1 := 0, i0
		if !tri.isLower() {
			j0, j1 = i1, order
		}
		switch {
		case j0 == j1:
			w.diagonal(diagonalMicro, tri, i0, i1, tri.Alpha)
		case tri.solves():
			w.addOffDiagonal(micro, tri, rowRange{i0, i1}, rowRange{j0, j1}, [2]T{-1, tri.Alpha})
			w.diagonal(diagonalMicro, tri, i0, i1, 1)
		default:
			w.diagonal(diagonalMicro, tri, i0, i1, tri.Alpha)
			w.addOffDiagonal(micro, tri, rowRange{i0, i1}, rowRange{j0, j1}, [2]T{tri.Alpha, 1})
		}
	}
}

// rowRange is the rows start, …, end-1 of X, or the corresponding rows or columns of T.
type rowRange struct{ start, end int }

// addOffDiagonal computes X_I ← β·X_I + α·T_IJ·X_J, where alphaBeta holds α and β.
func (w *workspace[T]) addOffDiagonal(micro kernel[T], tri *Triangle[T], i, j rowRange, alphaBeta [2]T) {
	i0, i1, j0, j1 := i.start, i.end, j.start, j.end
	product := partialProduct[T]{Product: Product[T]{TransA: blas.NoTrans, TransB: blas.NoTrans, K: j1 - j0,
		Alpha: alphaBeta[0],
		Beta:  alphaBeta[1], C: tri.xFrom(i0), LDC: tri.LDB}}
	if tri.isLeft() {
		product.M, product.N, product.TransA = i1-i0, tri.N, tri.TransA
		product.A, product.LDA, product.B, product.LDB = tri.tFrom(i0, j0), tri.LDA, tri.xFrom(j0), tri.LDB
	} else {
		product.M, product.N, product.TransB = tri.M, i1-i0, tri.TransA
		product.A, product.LDA, product.B, product.LDB = tri.xFrom(j0), tri.LDB, tri.tFrom(i0, j0), tri.LDA
	}
	w.gemm(micro, &product)
}

// diagonal computes X_I ← α·T_II⁻¹·X_I or α·T_II·X_I, nr vectors at a time. The rows of T_II are packed in panels of
// mr, with the triangles on their diagonal stored separately. A panel of X is packed as a column of tiles, which the
// micro-kernel updates as tiles of C.
func (w *workspace[T]) diagonal(micro kernel[T], tri *Triangle[T], i0, i1 int, alpha T) {
	order := i1 - i0
	panels := (order + micro.mr - 1) / micro.mr
	w.tri, w.x = grow(w.tri, panels*micro.mr*(order+micro.mr)), grow(w.x, panels*micro.mr*micro.nr)
	tri.pack(micro, w.tri, i0, order)
	for v := 0; v < tri.vectors(); v += micro.nr {
		cols := min(micro.nr, tri.vectors()-v)
		clear(w.x[order*micro.nr : panels*micro.mr*micro.nr])
		pack(micro, w.x, tri.B, tri.LDB, v, i0, tri.isLeft(), panelShape{cols, order, micro.nr})
		if alpha != 1 {
			for i := range w.x[:order*micro.nr] {
				w.x[i] *= alpha
			}
		}
		w.panel(micro, tri, order)
		tri.unpack(w.x, i0, v, panelShape{cols, order, micro.nr})
	}
}

// panel computes one packed panel of X, tile by tile. order is the order of the diagonal block.
func (w *workspace[T]) panel(micro kernel[T], tri *Triangle[T], order int) {
	panels := (order + micro.mr - 1) / micro.mr
	alpha := T(1)
	if tri.solves() {
		alpha = -1
	}
	for p := range panels {
		if tri.solves() != tri.isLower() {
			p = panels - 1 - p
		}
		packed := w.tri[p*micro.mr*(order+micro.mr) : (p+1)*micro.mr*(order+micro.mr)]
		j0, j1 := tri.offDiagonal(p*micro.mr, micro.mr, order)
		tile := w.x[p*micro.mr*micro.nr : (p+1)*micro.mr*micro.nr]
		if !tri.solves() {
			multiplyTile(packed[micro.mr*order:], tile, micro.mr, micro.nr, tri.uplo())
		}
		if j0 < j1 {
			micro.mul(j1-j0, unsafe.SliceData(packed), unsafe.SliceData(w.x[j0*micro.nr:]), &tile[0], micro.nr, alpha,
				true)
		}
		if tri.solves() {
			solveTile(packed[micro.mr*order:], tile, micro.mr, micro.nr, tri.uplo())
		}
	}
}

// offDiagonal returns the columns j0, …, j1-1 of a diagonal block of the given order in which rows i, …, i+mr-1 have
// elements outside the mr×mr triangle on the diagonal.
func (tri *Triangle[T]) offDiagonal(i, mr, order int) (j0, j1 int) {
	if tri.isLower() {
		return 0, i
	}
	return min(i+mr, order), order
}

// pack packs the diagonal block of T of the given order that starts at row i0. Each panel of mr rows takes
// mr·(order+mr) elements. The first mr·order hold the elements outside the triangle on the diagonal. The others hold
// that triangle as an mr×mr matrix with zeros in the opposite triangle; in a solve, its diagonal holds reciprocals.
func (tri *Triangle[T]) pack(micro kernel[T], dst []T, i0, order int) {
	for i := 0; i < order; i += micro.mr {
		packed := dst[i*(order+micro.mr) : (i+micro.mr)*(order+micro.mr)]
		rows := min(micro.mr, order-i)
		j0, j1 := tri.offDiagonal(i, micro.mr, order)
		if j0 < j1 && tri.isStored() {
			packAcross(micro, packed, tri.tFrom(i0+i, i0+j0), tri.LDA, panelShape{rows, j1 - j0, micro.mr})
		} else if j0 < j1 {
			packAlong(micro, packed, tri.tFrom(i0+i, i0+j0), tri.LDA, panelShape{rows, j1 - j0, micro.mr})
		}
		packed = packed[micro.mr*order:]
		clear(packed)
		for r := range rows {
			for c := range rows {
				switch {
				case r == c && tri.Diag == blas.Unit:
					packed[r*micro.mr+r] = 1
				case r == c && tri.solves():
					packed[r*micro.mr+r] = 1 / tri.tFrom(i0+i+r, i0+i+r)[0]
				case r == c, (r > c) == tri.isLower():
					packed[r*micro.mr+c] = tri.tFrom(i0+i+r, i0+i+c)[0]
				}
			}
		}
	}
}

// unpack copies a packed panel src, of shape.k rows of shape.count vectors, to the vectors of X from number v on, from
// row i0 on.
func (tri *Triangle[T]) unpack(src []T, i0, v int, shape panelShape) {
	cols, order, nr := shape.count, shape.k, shape.width
	if tri.isLeft() {
		for i := range order {
			copy(tri.B[(i0+i)*tri.LDB+v:(i0+i)*tri.LDB+v+cols], src[i*nr:])
		}
		return
	}
	for c := range cols {
		row := tri.B[(v+c)*tri.LDB+i0 : (v+c)*tri.LDB+i0+order]
		for i := range row {
			row[i] = src[i*nr+c]
		}
	}
}

// solveTile computes x ← t⁻¹x for a tile x of mr×nr. The triangle t is the one that uplo selects, and its diagonal
// holds reciprocals. For every row r, in the order of substitution,
//
//	x_r ← (x_r − Σ_q t_rq·x_q)·t_rr⁻¹,  q over the rows that are already solved.
func solveTile[T float](t, x []T, mr, nr int, uplo blas.Uplo) {
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
func multiplyTile[T float](t, x []T, mr, nr int, uplo blas.Uplo) {
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

// subtract computes x ← x − v·y. It takes four elements at a time, so the length of x must be a multiple of 4. Every nr
// is such a multiple.
func subtract[T float](x, y []T, v T) {
	for len(x) >= 4 && len(y) >= 4 {
		x[0] -= v * y[0]
		x[1] -= v * y[1]
		x[2] -= v * y[2]
		x[3] -= v * y[3]
		x, y = x[4:], y[4:]
	}
}

// scale computes x ← v·x.
func scale[T float](x []T, v T) {
	for i := range x {
		x[i] *= v
	}
}
