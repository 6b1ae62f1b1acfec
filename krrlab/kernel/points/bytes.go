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

// Bytes is a row-major n×d matrix of points whose coordinates are whole numbers from 0 to 255 times one scale:
// point i is Scale·Data[i*Stride : i*Stride+D]. Pictures are, and data of 0 and 1. They take a byte a
// number, and inner products of two sets of one scale are exact, in integers.
type Bytes struct {
	N, D, Stride int
	Scale        float64
	Data         []uint8
}

var _ Points = (*Bytes)(nil)

// The scales that Bytes may have: their squares lose no digit.
const (
	minScale = 1e-100
	maxScale = 1e100
)

// NewBytes returns n points of dimension d backed by data, or by new zeros if data is nil, with rows that begin at
// multiples of 4 then: products are faster. It panics if n or d is negative, if len(data) != n*d, and if the scale
// is not from 1e-100 to 1e100.
func NewBytes(n, d int, scale float64, data []uint8) *Bytes {
	if !ScaleFits(scale) {
		panic(fmt.Sprintf("points: NewBytes with scale %v, want one from %g to %g", scale, minScale, maxScale))
	}
	stride := d
	if data == nil {
		stride = (d + 3) &^ 3
	}
	return &Bytes{n, d, stride, scale, numbers("NewBytes", n, d, stride, data)}
}

// ScaleFits reports whether Bytes may have that scale.
func ScaleFits(scale float64) bool { return scale >= minScale && scale <= maxScale }

// AsBytes returns x as Bytes of the given scale, or, if that is 0, of a scale that it finds; ok is false if x is no
// such points. A number counts as b·scale if it differs by no more than the rounding of one operation, 2⁻⁵²
// of itself. Sparse points are made dense, and therefore left alone where a byte for every
// number is more than their nonzeros take, 12 bytes each.
//
// The scales tried are 1, the smallest positive number of x, and 1/255.
func AsBytes(x Points, scale float64) (b *Bytes, ok bool) {
	n, d := x.Dims()
	if b, ok := x.(*Bytes); ok && (scale == 0 || scale == b.Scale) {
		return b, true
	}
	if s, ok := x.(*CSR); ok && 12*s.NNZ() < n*d {
		return nil, false
	}
	scales, rows := []float64{scale}, make([][]float64, accel.Threads())
	if scale == 0 {
		least, most := math.Inf(1), 0.0
		var mu sync.Mutex
		if !each(n, func(who, i int) bool {
			_, val := stored(x, i, &rows[who])
			lo, hi := math.Inf(1), 0.0
			for _, v := range val {
				if hi = max(hi, v); v > 0 {
					lo = min(lo, v)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			least, most = min(least, lo), max(most, hi)
			return most == 0 || most < 256*least
		}) {
			return nil, false
		}
		scales = []float64{1, least, 1.0 / 255}
	}
	b = NewBytes(n, d, 1, nil)
	for i, s := range scales {
		if !ScaleFits(s) || slices.Contains(scales[:i], s) {
			continue
		}
		b.Scale = s
		if each(n, func(who, i int) bool {
			col, val := stored(x, i, &rows[who])
			row := b.Row(i)
			clear(row)
			for k, v := range val {
				q := math.RoundToEven(v / s)
				if !(q >= 0 && q <= 255) || math.Abs(q*s-v) > 0x1p-52*v {
					return false
				}
				row[column(col, k)] = uint8(q)
			}
			return true
		}) {
			return b, true
		}
	}
	return nil, false
}

// Dims implements Points.
func (x *Bytes) Dims() (n, d int) { return x.N, x.D }

// Row returns point i without copying it, in units of Scale.
func (x *Bytes) Row(i int) []uint8 { return x.Data[i*x.Stride : i*x.Stride+x.D] }

// Slice implements Points.
func (x *Bytes) Slice(i, j int) Points {
	checkSlice(i, j, x.N)
	return &Bytes{j - i, x.D, x.Stride, x.Scale, x.Data[min(i*x.Stride, len(x.Data)):]}
}

// RowTo implements Points.
func (x *Bytes) RowTo(dst []float64, i int) { scaleTo(dst[:x.D], x.Row(i), x.Scale) }

// scaleTo sets dst to src times the scale, rounded once or, to float32, twice.
func scaleTo[T float](dst []T, src []uint8, scale float64) {
	dst = dst[:len(src)]
	for j, v := range src {
		dst[j] = T(float64(v) * scale)
	}
}

// sqNorm returns Σ v².
func sqNorm(v []uint8) (s uint64) {
	for _, b := range v {
		s += uint64(b) * uint64(b)
	}
	return s
}

// SameBytes returns the unit of exact products, Scale², if both are Bytes of one scale.
func ExactProductUnit(a, b Points) (unit float64, ok bool) {
	x, ok := a.(*Bytes)
	z, both := b.(*Bytes)
	if !ok || !both || x.Scale != z.Scale {
		return 0, false
	}
	return x.Scale * x.Scale, true
}

// WholeNorms sets dst to the squared norms of Bytes in units of Scale², whole numbers again, from those of a Panel.
func WholeNorms(dst, norms []float64, unit float64) {
	for i, v := range norms { // v/unit has a relative error of 2⁻⁵¹
		dst[i] = math.Round(v / unit)
	}
}

// InnerInt sets dst[i*ld+j] = a_iᵀb_j in units of Scale² for all pairs, exactly, and reports whether it has: both must
// be Bytes of one scale and of at most gemm.BytesDepth dimensions. Where there are no instructions for
// bytes, float32 has the products of 256 dimensions at a time, also exactly: they are whole numbers below
// 2²⁴. InnerInt panics if dimensions differ.
func InnerInt(dst []int32, ld int, a, b Points, w *Workspace) bool {
	na, nb, d := pairDims(a, b, ld)
	if _, ok := ExactProductUnit(a, b); !ok || d > gemm.BytesDepth {
		return false
	}
	if na > 0 && nb > 0 {
		w.innerInt(dst, ld, a.(*Bytes), b.(*Bytes), 0, d)
	}
	return true
}

// innerInt is InnerInt of columns c0, …, c1-1.
func (w *Workspace) innerInt(dst []int32, ld int, a, b *Bytes, c0, c1 int) {
	if simd.InUse() != simd.Portable {
		gemm.Bytes(a.N, b.N, c1-c0, a.Data[min(c0, len(a.Data)):], a.Stride, b.Data[min(c0, len(b.Data)):], b.Stride,
			dst, ld)
		return
	}
	const depth = 256 // 256·255² < 2²⁴
	part := buffer.Grow(&w.part, a.N*b.N)
	out := blas32.General{Rows: a.N, Cols: b.N, Stride: b.N, Data: part}
	zeroTile(dst, ld, a.N, b.N)
	for ; c0 < c1; c0 += depth {
		end := min(c0+depth, c1)
		clear(part) // some libraries read what β = 0 is for
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, w.whole(0, a, c0, end), w.whole(1, b, c0, end), 0, out)
		addTile(dst, ld, part, a.N, b.N)
	}
}

// addTile adds whole numbers, a row after the other, to the rows of dst.
func addTile[T int32 | float64, S int32 | float32](dst []T, ld int, part []S, rows, cols int) {
	for i := range rows {
		row := dst[i*ld : i*ld+cols]
		for j, v := range part[i*cols : (i+1)*cols] {
			row[j] += T(v)
		}
	}
}

// whole returns columns of bytes as float32, without the scale.
func (w *Workspace) whole(side int, x *Bytes, c0, c1 int) blas32.General {
	buf := buffer.Grow(&w.dense32[side], x.N*(c1-c0))
	for i := range x.N {
		scaleTo(buf[i*(c1-c0):], x.Row(i)[c0:c1], 1)
	}
	return blas32.General{Rows: x.N, Cols: c1 - c0, Stride: c1 - c0, Data: buf}
}

// InnerWhole is InnerInt for any dimension, with the whole numbers in float64: sums are exact up to 2⁵³.
func InnerWhole(dst []float64, ld int, a, b Points, w *Workspace) bool {
	na, nb, d := pairDims(a, b, ld)
	if _, ok := ExactProductUnit(a, b); !ok {
		return false
	}
	if na == 0 || nb == 0 {
		return true
	}
	zeroTile(dst, ld, na, nb)
	part := buffer.Grow(&w.ints, na*nb)
	for c0 := 0; c0 < d; c0 += gemm.BytesDepth {
		w.innerInt(part, nb, a.(*Bytes), b.(*Bytes), c0, min(c0+gemm.BytesDepth, d))
		addTile(dst, ld, part, na, nb)
	}
	return true
}

// Over is the memory of float32 numbers, for whole ones that these are to be made of.
func Int32View(v []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
