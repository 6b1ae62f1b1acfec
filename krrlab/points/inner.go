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
	na, nb, d := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	if sa, sb, ok := bothSparse(a, b); ok && w.transpose(sa, sb, false) {
		w.sparseInner(sa, nb, false, func(i int, acc []float64) { copy(dst[i*ld:i*ld+nb], acc) })
		return
	}
	if d == 0 {
		zeroTile(dst, ld, na, nb)
		return
	}
	out := blas64.General{Rows: na, Cols: nb, Stride: ld, Data: dst}
	step := d
	if !inPlace64(a) || !inPlace64(b) {
		step = chunkColumns(max(na, nb), d)
	}
	for c0, beta := 0, 0.0; c0 < d; c0, beta = c0+step, 1 {
		c1 := min(c0+step, d)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, w.operand64(0, a, c0, c1), w.operand64(1, b, c0, c1), beta, out)
	}
}

// Inner32 is Inner64 for the points rounded to float32: products are formed and,
// on the dense path, accumulated in float32; on the sparse path they are
// accumulated in float64 and rounded once.
func Inner32(dst []float32, ld int, a, b Points, w *Workspace) {
	na, nb, d := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	if sa, sb, ok := bothSparse(a, b); ok && w.transpose(sa, sb, true) {
		w.sparseInner(sa, nb, true, func(i int, acc []float64) { convert(dst[i*ld:i*ld+nb], acc) })
		return
	}
	if d == 0 {
		zeroTile(dst, ld, na, nb)
		return
	}
	out := blas32.General{Rows: na, Cols: nb, Stride: ld, Data: dst}
	same := samePoints(a, b) // half the work
	if same {
		zeroTile(dst, ld, na, nb) // some libraries read what β = 0 is for
	}
	step := d
	if !inPlace32(a) || !inPlace32(b) {
		step = chunkColumns(max(na, nb), d)
	}
	for c0, beta := 0, float32(0); c0 < d; c0, beta = c0+step, 1 {
		c1 := min(c0+step, d)
		x := w.operand32(0, a, c0, c1)
		if same {
			blas32.Syrk(blas.NoTrans, 1, x, beta, blas32.Symmetric{Uplo: blas.Lower, N: na, Stride: ld, Data: dst})
			continue
		}
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, x, w.operand32(1, b, c0, c1), beta, out)
	}
	if !same {
		return
	}
	for i := range na {
		for j := range i {
			dst[j*ld+i] = dst[i*ld+j]
		}
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

func inPlace64(x Points) bool { _, ok := x.(*Dense); return ok }
func inPlace32(x Points) bool { _, ok := x.(*Dense32); return ok }

// operand64 returns columns c0, …, c1-1 of x as a matrix for BLAS, where it is
// or converted into the scratch of the given side.
func (w *Workspace) operand64(side int, x Points, c0, c1 int) blas64.General {
	if x, ok := x.(*Dense); ok {
		return blas64.General{Rows: x.N, Cols: c1 - c0, Stride: x.Stride, Data: x.Data[c0:]}
	}
	n, _ := x.Dims()
	buf := buffer.Grow(&w.dense64[side], n*(c1-c0))
	columnsTo(buf, c1-c0, x, c0, c1)
	return blas64.General{Rows: n, Cols: c1 - c0, Stride: c1 - c0, Data: buf}
}

func (w *Workspace) operand32(side int, x Points, c0, c1 int) blas32.General {
	if x, ok := x.(*Dense32); ok {
		return blas32.General{Rows: x.N, Cols: c1 - c0, Stride: x.Stride, Data: x.Data[c0:]}
	}
	n, _ := x.Dims()
	buf := buffer.Grow(&w.dense32[side], n*(c1-c0))
	columnsTo(buf, c1-c0, x, c0, c1)
	return blas32.General{Rows: n, Cols: c1 - c0, Stride: c1 - c0, Data: buf}
}

// Bytes returns the size of the scratch.
func (w *Workspace) Bytes() int64 {
	f64 := cap(w.dense64[0]) + cap(w.dense64[1]) + cap(w.val) + cap(w.acc) + cap(w.one[0]) + cap(w.one[1]) + cap(w.pairs64.z)
	f32 := cap(w.dense32[0]) + cap(w.dense32[1]) + cap(w.ptr) + cap(w.row) + cap(w.ints) + cap(w.part) + cap(w.pairs32.z)
	return 8*int64(f64) + 4*int64(f32)
}
