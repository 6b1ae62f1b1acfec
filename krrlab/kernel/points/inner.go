package points

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Workspace is the scratch memory of one worker: panels converted or made dense,
// and the transposed panel of a sparse product. The zero value is ready; it grows
// on demand and allocates no more once warm. It must not be shared by goroutines
// that run at the same time.
type Workspace struct {
	dense64 [2][]float64
	dense32 [2][]float32
	ptr     []int32
	row     []int32
	val     []float64
	acc     []float64
	one     [2][]float64 // ‖x‖₁ of the two sides
	ints    []int32      // products of bytes,
	part    []float32    // and some of their columns
	pairs64 pairScratch[float64]
	pairs32 pairScratch[float32]
}

// chunk is the number of entries of one converted panel: panels with more are
// converted, multiplied and added in blocks of columns, so that the scratch of
// huge dimensions stays bounded (8 MB in float64).
const chunk = 1 << 20

// chunkColumns returns how many of d columns to take at once for panels of at
// most n rows.
func chunkColumns(n, d int) int { return min(d, max(64, chunk/max(n, 1))) }

// Inner64 sets dst[i*ld+j] = a_iᵀ b_j for all pairs, in float64. dst has the
// shape of len(a) rows and len(b) columns with stride ld.
//
// Dense points of the right type are multiplied where they are; others are
// converted panel by panel into w. Two sparse panels that share few columns are
// multiplied by walking their nonzeros. Inner64 panics if dimensions differ.
func Inner64(dst []float64, ld int, a, b Points, w *Workspace) {
	inner(dst, ld, a, b, w, &w.dense64, false, false, func(x, z rows[float64], beta float64) {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, blas64.General{Rows: x.n, Cols: x.d, Stride: x.ld, Data: x.data},
			blas64.General{Rows: z.n, Cols: z.d, Stride: z.ld, Data: z.data}, beta,
			blas64.General{Rows: x.n, Cols: z.n, Stride: ld, Data: dst})
	})
}

// Inner32 is Inner64 for the points rounded to float32: products are formed and,
// on the dense path, accumulated in float32; on the sparse path they are
// accumulated in float64 and rounded once.
func Inner32(dst []float32, ld int, a, b Points, w *Workspace) {
	same := samePoints(a, b) // half the work
	na, _ := a.Dims()
	if same {
		zeroTile(dst, ld, na, na) // some libraries read what β = 0 is for
	}
	inner(dst, ld, a, b, w, &w.dense32, true, same, func(x, z rows[float32], beta float32) {
		xg := blas32.General{Rows: x.n, Cols: x.d, Stride: x.ld, Data: x.data}
		if same {
			blas32.Syrk(blas.NoTrans, 1, xg, beta, blas32.Symmetric{Uplo: blas.Lower, N: x.n, Stride: ld, Data: dst})
			return
		}
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, xg, blas32.General{Rows: z.n, Cols: z.d, Stride: z.ld, Data: z.data},
			beta,
			blas32.General{Rows: x.n, Cols: z.n, Stride: ld, Data: dst})
	})
	if !same {
		return
	}
	for i := range na {
		for j := range i {
			dst[j*ld+i] = dst[i*ld+j]
		}
	}
}

// inner is Inner64 or Inner32; mul adds the products of some columns to β times those before. Of the same points z is
// x.
func inner[T float](dst []T, ld int, a, b Points, w *Workspace, sides *[2][]T, round, same bool,
	mul func(x, z rows[T], beta T)) {
	na, nb, d := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	if sa, sb, ok := bothSparse(a, b); ok && w.transpose(sa, sb, round) {
		w.sparseInner(sa, nb, round, func(i int, acc []float64) { convert(dst[i*ld:i*ld+nb], acc) })
		return
	}
	if d == 0 {
		zeroTile(dst, ld, na, nb)
		return
	}
	step := d
	if dense[T](a) == nil || dense[T](b) == nil {
		step = chunkColumns(max(na, nb), d)
	}
	for c0, beta := 0, T(0); c0 < d; c0, beta = c0+step, 1 {
		c1 := min(c0+step, d)
		x := operand(&sides[0], a, c0, c1)
		z := x
		if !same {
			z = operand(&sides[1], b, c0, c1)
		}
		mul(x, z, beta)
	}
}

// samePoints reports whether a and b are one matrix.
func samePoints(a, b Points) bool {
	switch a := a.(type) {
	case *Dense32:
		return a == b
	case *Dense:
		return a == b
	}
	return false
}

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

func zeroTile[T any](dst []T, ld, rows, cols int) {
	for i := range rows {
		clear(dst[i*ld : i*ld+cols])
	}
}

// rows are those of some columns of points.
type rows[T float] struct {
	n, d, ld int
	data     []T
}

func (r rows[T]) row(i int) []T { return r.data[i*r.ld : i*r.ld+r.d] }

// dense returns the numbers of points that are held as T; nil of others.
func dense[T float](x Points) *rows[T] {
	var held any
	switch x := x.(type) {
	case *Dense:
		held = &rows[float64]{x.N, x.D, x.Stride, x.Data}
	case *Dense32:
		held = &rows[float32]{x.N, x.D, x.Stride, x.Data}
	}
	r, _ := held.(*rows[T])
	return r
}

// operand returns columns c0, …, c1-1 of x, where they are or converted into buf.
func operand[T float](buf *[]T, x Points, c0, c1 int) rows[T] {
	if r := dense[T](x); r != nil {
		return rows[T]{r.n, c1 - c0, r.ld, r.data[c0:]}
	}
	n, _ := x.Dims()
	columnsTo(buffer.Grow(buf, n*(c1-c0)), c1-c0, x, c0, c1)
	return rows[T]{n, c1 - c0, c1 - c0, *buf}
}
