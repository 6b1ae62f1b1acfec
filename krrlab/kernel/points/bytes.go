package points

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Bytes is a row-major n×d matrix of points whose coordinates are integers from 0 to 255 times a common scale: point i
// is Scale·Data[i*Stride : i*Stride+D]. Pictures and data of zeros and ones have this form. They need one byte per
// number, and the inner products of two sets with the same scale are exact integers.
type Bytes struct {
	N, D, Stride int
	Scale        float64
	Data         []uint8
}

var _ Points = (*Bytes)(nil)

// Limits of the scale of Bytes. The square of a scale within them neither overflows nor loses digits.
const (
	minScale = 1e-100
	maxScale = 1e100
)

// NewBytes returns n points of dimension d backed by data. If data is nil, they are zero, and rows begin at multiples
// of 4 bytes, which makes products faster. NewBytes panics if n or d is negative, if len(data) != n*d, and if the scale
// is not between 1e-100 and 1e100.
func NewBytes(n, d int, scale float64, data []uint8) *Bytes {
	if !ScaleFits(scale) {
		panic(fmt.Sprintf("points: NewBytes with scale %v, want one from %g to %g", scale, minScale, maxScale))
	}
	stride := d
	if data == nil {
		stride = (d + 3) &^ 3
	}
	return &Bytes{n, d, stride, scale, dataOrZeros("NewBytes", n, d, stride, data)}
}

// ScaleFits reports whether Bytes may have the given scale.
func ScaleFits(scale float64) bool { return scale >= minScale && scale <= maxScale }

// AsBytes returns x as Bytes of the given scale. For scale 0 it tries the scales 1, the smallest positive number of x,
// and 1/255. ok is false if x has a value that is not an integer from 0 to 255 times the scale, up to a relative error
// of 2⁻⁵², the rounding of one operation. Sparse points become dense; ok is false if one byte for every number takes
// more memory than their nonzeros, 12 bytes each.
func AsBytes(x Points, scale float64) (b *Bytes, ok bool) {
	n, d := x.Dims()
	if b, ok := x.(*Bytes); ok && (scale == 0 || scale == b.Scale) {
		return b, true
	}
	if sparse, ok := x.(*CSR); ok && 12*sparse.NNZ() < n*d {
		return nil, false
	}
	scales := []float64{scale}                 // candidates
	rows := make([][]float64, accel.Threads()) // scratch memory of storedValues
	if scale == 0 {
		smallest, ok := smallestPositive(x, rows)
		if !ok {
			return nil, false
		}
		scales = []float64{1, smallest, 1.0 / 255}
	}
	b = NewBytes(n, d, 1, nil)
	for tried, candidate := range scales {
		if !ScaleFits(candidate) || slices.Contains(scales[:tried], candidate) {
			continue
		}
		b.Scale = candidate
		if forEachPoint(n, func(thread, i int) bool {
			col, val := storedValues(x, i, &rows[thread])
			row := b.Row(i)
			clear(row)
			for k, v := range val {
				rounded := math.RoundToEven(v / candidate)
				if !(rounded >= 0 && rounded <= 255) || math.Abs(rounded*candidate-v) > 0x1p-52*v {
					return false
				}
				row[columnOf(col, k)] = uint8(rounded)
			}
			return true
		}) {
			return b, true
		}
	}
	return nil, false
}

// smallestPositive returns the smallest positive number of x, or +Inf if there is none. ok is false if the largest
// number is at least 256 times as large, so that x has no representation in bytes. rows is scratch memory, one row per
// thread.
func smallestPositive(x Points, rows [][]float64) (smallest float64, ok bool) {
	n, _ := x.Dims()
	smallest, largest := math.Inf(1), 0.0
	var mu sync.Mutex
	ok = forEachPoint(n, func(thread, i int) bool {
		_, val := storedValues(x, i, &rows[thread])
		rowSmallest, rowLargest := math.Inf(1), 0.0
		for _, v := range val {
			if rowLargest = max(rowLargest, v); v > 0 {
				rowSmallest = min(rowSmallest, v)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		smallest, largest = min(smallest, rowSmallest), max(largest, rowLargest)
		return largest == 0 || largest < 256*smallest
	})
	return smallest, ok
}

// Dims implements Points.
func (x *Bytes) Dims() (n, d int) { return x.N, x.D }

// Row returns point i in units of Scale without copying it.
func (x *Bytes) Row(i int) []uint8 { return x.Data[i*x.Stride : i*x.Stride+x.D] }

// Slice implements Points.
func (x *Bytes) Slice(i, j int) Points {
	checkSlice(i, j, x.N)
	return &Bytes{j - i, x.D, x.Stride, x.Scale, x.Data[min(i*x.Stride, len(x.Data)):]}
}

// RowTo implements Points.
func (x *Bytes) RowTo(dst []float64, i int) { scaleTo(dst[:x.D], x.Row(i), x.Scale) }

// scaleTo sets dst to src times the scale. The result is rounded once in float64 and twice in float32.
func scaleTo[T realNumber](dst []T, src []uint8, scale float64) {
	dst = dst[:len(src)]
	for j, v := range src {
		dst[j] = T(float64(v) * scale)
	}
}

// ExactProductUnit returns the unit Scale² in which inner products of a and b are integers. ok is false unless both are
// Bytes of the same scale.
func ExactProductUnit(a, b Points) (unit float64, ok bool) {
	x, ok := a.(*Bytes)
	z, bothBytes := b.(*Bytes)
	if !ok || !bothBytes || x.Scale != z.Scale {
		return 0, false
	}
	return x.Scale * x.Scale, true
}

// IntegerNorms sets dst to the squared norms of Bytes as integers in units of Scale². norms are the squared norms of a
// Panel.
func IntegerNorms(dst, norms []float64, unit float64) {
	for i, v := range norms { // v/unit has a relative error of 2⁻⁵¹
		dst[i] = math.Round(v / unit)
	}
}

// IntegerInner32 sets dst[i*ld+j] = a_iᵀb_j in units of Scale² for all pairs, exactly, and returns true. It returns
// false and does nothing unless both are Bytes of the same scale with at most gemm.MaxBytesK dimensions. On processors
// without instructions for bytes, it forms the products of 256 dimensions at a time in float32, which is exact too,
// because they are integers below 2²⁴. IntegerInner32 panics if the dimensions differ.
func IntegerInner32(dst []int32, ld int, a, b Points, w *Workspace) bool {
	na, nb, d := pairDims(a, b, ld)
	if _, ok := ExactProductUnit(a, b); !ok || d > gemm.MaxBytesK {
		return false
	}
	if na > 0 && nb > 0 {
		w.integerBlockProducts(dst, ld, a.(*Bytes), b.(*Bytes), 0, d)
	}
	return true
}

// integerBlockProducts is IntegerInner32 for the columns c0, …, c1-1 of non-empty sets.
func (w *Workspace) integerBlockProducts(dst []int32, ld int, a, b *Bytes, c0, c1 int) {
	if simd.CurrentPath() != simd.Portable {
		gemm.MultiplyBytes(gemm.ByteProduct{M: a.N, N: b.N, K: c1 - c0, A: a.Data[min(c0, len(a.Data)):], LDA: a.Stride,
			B: b.Data[min(c0, len(b.Data)):], LDB: b.Stride, C: dst, LDC: ld})
		return
	}
	const depth = 256 // columns at a time: 256·255² < 2²⁴, so that float32 holds every sum exactly
	products := buffer.Grow(&w.chunkProducts, a.N*b.N)
	out := blas32.General{Rows: a.N, Cols: b.N, Stride: b.N, Data: products}
	zeroTile(dst, ld, a.N, b.N)
	for ; c0 < c1; c0 += depth {
		chunkEnd := min(c0+depth, c1)
		clear(products) // some BLAS libraries read the result even for β = 0
		x, z := w.widenBytes(0, a, c0, chunkEnd), w.widenBytes(1, b, c0, chunkEnd)
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, x, z, 0, out)
		addToTile(dst, ld, products, a.N, b.N)
	}
}

// addToTile adds products, rows×cols without gaps, to dst with stride ld.
func addToTile[T int32 | float64, S int32 | float32](dst []T, ld int, products []S, rows, cols int) {
	for i := range rows {
		row := dst[i*ld : i*ld+cols]
		for j, v := range products[i*cols : (i+1)*cols] {
			row[j] += T(v)
		}
	}
}

// widenBytes returns the columns c0, …, c1-1 of x as float32 without the scale, in the scratch memory of one side of
// the product (0 or 1).
func (w *Workspace) widenBytes(side int, x *Bytes, c0, c1 int) blas32.General {
	buf := buffer.Grow(&w.dense32[side], x.N*(c1-c0))
	for i := range x.N {
		scaleTo(buf[i*(c1-c0):], x.Row(i)[c0:c1], 1)
	}
	return blas32.General{Rows: x.N, Cols: c1 - c0, Stride: c1 - c0, Data: buf}
}

// IntegerInner64 is IntegerInner32 for any dimension, with the integers in float64. The sums are exact up to 2⁵³.
func IntegerInner64(dst []float64, ld int, a, b Points, w *Workspace) bool {
	na, nb, d := pairDims(a, b, ld)
	if _, ok := ExactProductUnit(a, b); !ok {
		return false
	}
	if na == 0 || nb == 0 {
		return true
	}
	zeroTile(dst, ld, na, nb)
	products := buffer.Grow(&w.intProducts, na*nb)
	for c0 := 0; c0 < d; c0 += gemm.MaxBytesK {
		w.integerBlockProducts(products, nb, a.(*Bytes), b.(*Bytes), c0, min(c0+gemm.MaxBytesK, d))
		addToTile(dst, ld, products, na, nb)
	}
	return true
}

// Int32View returns the memory of v as int32. It lets integers be computed in the memory of a float32 result.
func Int32View(v []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
