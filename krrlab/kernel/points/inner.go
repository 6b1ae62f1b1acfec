package points

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Workspace is the scratch memory of one goroutine: converted panels, and the transposed panel of a sparse product. The
// zero value is ready to use. It grows on demand and makes no further allocations for blocks of the same size.
// Goroutines that run at the same time must not share a Workspace.
type Workspace struct {
	dense64       [2][]float64         // converted columns of the first and of the second set of points
	dense32       [2][]float32         // the same in float32
	ptr           []int32              // transposed panel: start of each column in row and val
	row           []int32              // transposed panel: rows of the nonzeros
	val           []float64            // transposed panel: nonzeros
	acc           []float64            // results for one point of the first set
	absSums       []float64            // ‖b_j‖₁ of the points of the second set
	intProducts   []int32              // inner products of bytes
	chunkProducts []float32            // inner products of some columns of bytes
	pairs64       pairScratch[float64] // scratch memory for distances
	pairs32       pairScratch[float32] // the same in float32
}

// maxPanelEntries is the number of entries that are converted at once: a larger panel is converted, multiplied and
// added in blocks of columns. This bounds the scratch memory for large dimensions (8 MB in float64) up to 16,384
// points; with more points, a block has minChunkColumns columns and is larger. A larger value needs more memory and
// fewer passes over the result.
const maxPanelEntries = 1 << 20

// minChunkColumns is the smallest number of columns of a block. A product with fewer columns is dominated by the time
// for adding to the result.
const minChunkColumns = 64

// chunkColumns returns the number of columns, out of d, to handle at once for panels of at most n rows.
func chunkColumns(n, d int) int { return min(d, max(minChunkColumns, maxPanelEntries/max(n, 1))) }

// Inner64 sets dst[i*ld+j] = a_iᵀ b_j for all pairs, in float64. dst has len(a) rows and len(b) columns with stride ld.
//
// Dense points of the right type are multiplied without copying. Other points are converted panel by panel in the
// memory of w. For two sparse panels that share few columns, the product iterates over their nonzeros. Inner64 panics
// if the dimensions differ.
func Inner64(dst []float64, ld int, a, b Points, w *Workspace) {
	innerProducts(dst, ld, a, b, w, &w.dense64, exactValues, func(x, z columnBlock[float64], beta float64) {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, blas64.General{Rows: x.n, Cols: x.d, Stride: x.ld, Data: x.data},
			blas64.General{Rows: z.n, Cols: z.d, Stride: z.ld, Data: z.data}, beta,
			blas64.General{Rows: x.n, Cols: z.n, Stride: ld, Data: dst})
	})
}

// Inner32 is Inner64 for the points rounded to float32. Dense products are formed and accumulated in float32. Sparse
// products are accumulated in float64 and rounded once.
func Inner32(dst []float32, ld int, a, b Points, w *Workspace) {
	sameMatrix := samePoints(a, b) // then a symmetric product takes half the work
	na, _ := a.Dims()
	if sameMatrix {
		zeroTile(dst, ld, na, na) // some BLAS libraries read the result even for β = 0
	}
	innerProducts(dst, ld, a, b, w, &w.dense32, roundedValues, func(x, z columnBlock[float32], beta float32) {
		xMatrix := blas32.General{Rows: x.n, Cols: x.d, Stride: x.ld, Data: x.data}
		if sameMatrix {
			lower := blas32.Symmetric{Uplo: blas.Lower, N: x.n, Stride: ld, Data: dst}
			blas32.Syrk(blas.NoTrans, 1, xMatrix, beta, lower)
			return
		}
		zMatrix := blas32.General{Rows: z.n, Cols: z.d, Stride: z.ld, Data: z.data}
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, xMatrix, zMatrix, beta,
			blas32.General{Rows: x.n, Cols: z.n, Stride: ld, Data: dst})
	})
	if !sameMatrix {
		return
	}
	for i := range na {
		for j := range i {
			dst[j*ld+i] = dst[i*ld+j]
		}
	}
}

// innerProducts implements Inner64 and Inner32. multiply sets dst to x·zᵀ + β·dst for a block of columns x of a and the
// same columns z of b. If a and b are the same dense matrix, z is x.
func innerProducts[T realNumber](dst []T, ld int, a, b Points, w *Workspace, buffers *[2][]T, round rounding,
	multiply func(x, z columnBlock[T], beta T)) {
	na, nb, d := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	if sa, sb, ok := asCSRPair(a, b); ok && w.transposeIfCheap(sa, sb, round) {
		w.sparseInner(sa, nb, round, func(i int, acc []float64) { convert(dst[i*ld:i*ld+nb], acc) })
		return
	}
	if d == 0 {
		zeroTile(dst, ld, na, nb)
		return
	}
	step := d
	if denseBlock[T](a) == nil || denseBlock[T](b) == nil {
		step = chunkColumns(max(na, nb), d)
	}
	for c0, beta := 0, T(0); c0 < d; c0, beta = c0+step, 1 {
		c1 := min(c0+step, d)
		x := operand(&buffers[0], a, c0, c1)
		z := x
		if !samePoints(a, b) {
			z = operand(&buffers[1], b, c0, c1)
		}
		multiply(x, z, beta)
	}
}

// samePoints reports whether a and b are the same dense matrix.
func samePoints(a, b Points) bool {
	switch a := a.(type) {
	case *Dense32:
		return a == b
	case *Dense:
		return a == b
	}
	return false
}

// pairDims returns the numbers of points of a and b and their dimension. It panics if the dimensions differ or the
// stride ld is too small.
func pairDims(a, b Points, ld int) (na, nb, d int) {
	na, d = a.Dims()
	nb, db := b.Dims()
	if d != db {
		panic(fmt.Sprintf("points: dimensions %d and %d differ", d, db))
	}
	if ld < nb {
		panic(fmt.Sprintf("points: stride %d is less than %d columns", ld, nb))
	}
	return na, nb, d
}

// zeroTile sets a tile with stride ld to zero.
func zeroTile[T any](dst []T, ld, rows, cols int) {
	for i := range rows {
		clear(dst[i*ld : i*ld+cols])
	}
}

// columnBlock is a block of columns of n dense points: row i is data[i*ld : i*ld+d].
type columnBlock[T realNumber] struct {
	n, d, ld int
	data     []T
}

// row returns row i without copying it.
func (b columnBlock[T]) row(i int) []T { return b.data[i*b.ld : i*b.ld+b.d] }

// denseBlock returns the points x as a columnBlock without copying, or nil if they are not stored as dense numbers of
// type T.
func denseBlock[T realNumber](x Points) *columnBlock[T] {
	var block any
	switch x := x.(type) {
	case *Dense:
		block = &columnBlock[float64]{x.N, x.D, x.Stride, x.Data}
	case *Dense32:
		block = &columnBlock[float32]{x.N, x.D, x.Stride, x.Data}
	}
	typed, _ := block.(*columnBlock[T])
	return typed
}

// operand returns the columns c0, …, c1-1 of x: without copying if x is dense with numbers of type T, and otherwise
// converted into buf.
func operand[T realNumber](buf *[]T, x Points, c0, c1 int) columnBlock[T] {
	if block := denseBlock[T](x); block != nil {
		return columnBlock[T]{block.n, c1 - c0, block.ld, block.data[c0:]}
	}
	n, _ := x.Dims()
	columnsTo(buffer.Grow(buf, n*(c1-c0)), c1-c0, x, c0, c1)
	return columnBlock[T]{n, c1 - c0, c1 - c0, *buf}
}
