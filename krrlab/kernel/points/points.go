package points

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Points is a set of n points in R^d, the rows of X, n×d. Points are immutable by convention: no function of this
// project changes the points of its caller.
type Points interface {
	// Dims returns the number n of points and their dimension d.
	Dims() (n, d int)
	// Slice returns points i, …, j-1. The result shares memory with the receiver.
	Slice(i, j int) Points
	// RowTo writes point i to dst, which must have length d.
	RowTo(dst []float64, i int)
}

// Dense is a row-major n×d matrix of points in float64: point i is Data[i*Stride : i*Stride+D].
type Dense struct {
	N, D, Stride int
	Data         []float64
}

// Dense32 is a row-major n×d matrix of points in float32.
type Dense32 struct {
	N, D, Stride int
	Data         []float32
}

// CSR holds sparse points as compressed sparse rows: the nonzeros of point i are Val[Ptr[i]:Ptr[i+1]] in the columns
// Col[Ptr[i]:Ptr[i+1]], which strictly increase.
type CSR struct {
	N, D int
	Ptr  []int     // N+1 offsets into Col and Val; Ptr[0] need not be zero
	Col  []int32   // column of each nonzero
	Val  []float64 // value of each nonzero
}

var (
	_ Points = (*Dense)(nil)
	_ Points = (*Dense32)(nil)
	_ Points = (*CSR)(nil)
)

// NewDense returns n points of dimension d backed by data, or by new zeros if data is nil. It panics if n or d is
// negative or len(data) != n*d.
func NewDense(n, d int, data []float64) *Dense {
	return &Dense{n, d, d, dataOrZeros("NewDense", n, d, d, data)}
}

// NewDense32 is NewDense for float32.
func NewDense32(n, d int, data []float32) *Dense32 {
	return &Dense32{n, d, d, dataOrZeros("NewDense32", n, d, d, data)}
}

// dataOrZeros returns data, or n rows of zeros if data is nil. It panics with the name of the caller if the shape is
// invalid.
func dataOrZeros[T any](name string, n, d, stride int, data []T) []T {
	switch {
	case n < 0 || d < 0:
		panic(fmt.Sprintf("points: negative dimension %d×%d", n, d))
	case data == nil:
		return make([]T, n*stride)
	case len(data) != n*d:
		panic(fmt.Sprintf("points: %s(%d, %d) with %d values", name, n, d, len(data)))
	}
	return data
}

// Dims implements Points.
func (x *Dense) Dims() (n, d int) { return x.N, x.D }

// Dims implements Points.
func (x *Dense32) Dims() (n, d int) { return x.N, x.D }

// Dims implements Points.
func (x *CSR) Dims() (n, d int) { return x.N, x.D }

// Row returns point i without copying it.
func (x *Dense) Row(i int) []float64 { return x.Data[i*x.Stride : i*x.Stride+x.D] }

// Row returns point i without copying it.
func (x *Dense32) Row(i int) []float32 { return x.Data[i*x.Stride : i*x.Stride+x.D] }

// Row returns the columns and the values of the nonzeros of point i without copying them.
func (x *CSR) Row(i int) (col []int32, val []float64) {
	start, end := x.Ptr[i], x.Ptr[i+1]
	return x.Col[start:end], x.Val[start:end]
}

// NNZ returns the number of stored nonzeros.
func (x *CSR) NNZ() int { return x.Ptr[x.N] - x.Ptr[0] }

// Check returns an error unless x is a valid matrix, for example after it was read from a file. The offsets must rise
// from 0 to the number of nonzeros, so x must not be a slice, and the columns of each row must strictly increase and be
// below D.
func (x *CSR) Check() error {
	if x.N < 0 || len(x.Ptr) != x.N+1 || len(x.Col) != len(x.Val) || x.Ptr[0] != 0 || x.Ptr[x.N] != len(x.Col) {
		return fmt.Errorf("sparse points: %d columns, %d values, and offsets that do not fit %d rows", len(x.Col),
			len(x.Val), x.N)
	}
	for i := range x.N {
		if x.Ptr[i] > x.Ptr[i+1] || x.Ptr[i+1] > len(x.Col) {
			return fmt.Errorf("sparse points: row %d spans %d to %d of %d", i, x.Ptr[i], x.Ptr[i+1], len(x.Col))
		}
		lastColumn := int32(-1)
		for _, j := range x.Col[x.Ptr[i]:x.Ptr[i+1]] {
			if j <= lastColumn || int(j) >= x.D {
				return fmt.Errorf("sparse points: column %d in row %d of dimension %d", j, i, x.D)
			}
			lastColumn = j
		}
	}
	return nil
}

// Slice implements Points.
func (x *Dense) Slice(i, j int) Points {
	checkSlice(i, j, x.N)
	return &Dense{j - i, x.D, x.Stride, x.Data[min(i*x.Stride, len(x.Data)):]}
}

// Slice implements Points.
func (x *Dense32) Slice(i, j int) Points {
	checkSlice(i, j, x.N)
	return &Dense32{j - i, x.D, x.Stride, x.Data[min(i*x.Stride, len(x.Data)):]}
}

// Slice implements Points.
func (x *CSR) Slice(i, j int) Points {
	checkSlice(i, j, x.N)
	return &CSR{j - i, x.D, x.Ptr[i : j+1], x.Col, x.Val}
}

// checkSlice panics unless 0 ≤ i ≤ j ≤ n.
func checkSlice(i, j, n int) {
	if i < 0 || j < i || j > n {
		panic(fmt.Sprintf("points: slice [%d, %d) of %d points", i, j, n))
	}
}

// RowTo implements Points.
func (x *Dense) RowTo(dst []float64, i int) { copy(dst[:x.D], x.Row(i)) }

// RowTo implements Points.
func (x *Dense32) RowTo(dst []float64, i int) { Widen(dst[:x.D], x.Row(i)) }

// Widen sets dst to src, which has the same length. It is unrolled by eight, which doubles its speed.
func Widen(dst []float64, src []float32) {
	for len(src) >= 8 {
		d, s := dst[:8:8], src[:8:8]
		d[0], d[1], d[2], d[3] = float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])
		d[4], d[5], d[6], d[7] = float64(s[4]), float64(s[5]), float64(s[6]), float64(s[7])
		dst, src = dst[8:], src[8:]
	}
	for j, v := range src {
		dst[j] = float64(v)
	}
}

// RowTo implements Points.
func (x *CSR) RowTo(dst []float64, i int) {
	dst = dst[:x.D]
	clear(dst)
	col, val := x.Row(i)
	for k, j := range col {
		dst[j] = val[k]
	}
}

// pointsPerTask is the number of points that a thread handles at once. A larger value takes fewer synchronizations and
// leaves threads idle if there are few points.
const pointsPerTask = 512

// forEachPoint calls visit(thread, i) for i = 0 … n-1 on all threads until one call returns false. It reports whether
// all calls returned true.
func forEachPoint(n int, visit func(thread, i int) bool) bool {
	var stopped atomic.Bool
	accel.Each((n+pointsPerTask-1)/pointsPerTask, func(thread, task int) {
		for i := task * pointsPerTask; i < min((task+1)*pointsPerTask, n) && !stopped.Load(); i++ {
			if !visit(thread, i) {
				stopped.Store(true)
			}
		}
	})
	return !stopped.Load()
}

// storedValues returns the stored values of point i and their columns. For sparse points these are the nonzeros. For
// other points they are all coordinates, written to buf, and col is nil.
func storedValues(x Points, i int, buf *[]float64) (col []int32, val []float64) {
	x, _ = SplitFactors(x)
	if sparse, ok := x.(*CSR); ok {
		return sparse.Row(i)
	}
	_, d := x.Dims()
	x.RowTo(buffer.Grow(buf, d), i)
	return nil, *buf
}

// columnOf returns the column of the k-th value of storedValues.
func columnOf(col []int32, k int) int {
	if col == nil {
		return k
	}
	return int(col[k])
}

// CheckFinite returns an error that names the first entry that is NaN or infinite, with row and column counted from 0.
// It returns nil if there is none.
func CheckFinite(x Points) error {
	if i, j, v, exists := FindNonFinite(x, nil); exists {
		return fmt.Errorf("points: entry (%d, %d) is %v", i, j, v)
	}
	return nil
}

// FindNonFinite returns the first entry x_ij = v that is NaN or infinite, and exists = true, or exists = false if there
// is none. It ignores values for which allowed returns true, unless allowed is nil.
func FindNonFinite(x Points, allowed func(v float64) bool) (i, j int, v float64, exists bool) {
	var row []float64
	n, _ := x.Dims()
	for i := range n {
		col, val := storedValues(x, i, &row)
		for k, v := range val {
			if (math.IsNaN(v) || math.IsInf(v, 0)) && (allowed == nil || !allowed(v)) {
				return i, columnOf(col, k), v, true
			}
		}
	}
	return 0, 0, 0, false
}

// MemoryBytes returns the memory of the coordinates and weights of the points in bytes.
func MemoryBytes(x Points) int64 {
	n, d := x.Dims()
	switch x := x.(type) {
	case *CSR:
		return 12*int64(x.NNZ()) + 8*int64(n)
	case *Bytes:
		return int64(n) * int64(d)
	case *Dense32:
		return 4 * int64(n) * int64(d)
	case *Weighted:
		return MemoryBytes(x.Points) + 8*int64(n)
	}
	return 8 * int64(n) * int64(d)
}
