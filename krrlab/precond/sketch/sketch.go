package sketch

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Dist is a distribution over linear maps R^m → R^s for all m and s.
type Dist interface {
	// Sample draws a map; it is a function of m, s and the stream g. It returns an error if m < 1, s < 1, or the
	// distribution has no map of these sizes. It runs on all threads and must not be called within accel.ForEach.
	Sample(m, s int, g rng.Stream) (Operator, error)
	// String returns the name of the distribution.
	String() string
}

// Operator is a linear map S: R^m → R^s, an s×m matrix. It is immutable and safe for concurrent use if each goroutine
// has a separate Workspace.
type Operator interface {
	// Dims returns m and s.
	Dims() (m, s int)
	// Apply32 sets every row of Dst, s numbers, to S times the row of Src, m numbers, in float32. It panics if a slice
	// is too short or a stride too small.
	Apply32(b Rows32, w *Workspace)
	// Apply64 is Apply32 in float64.
	Apply64(b Rows64, w *Workspace)
}

// Rows32 and Rows64 are the rows to which a sketch is applied, Src, and the rows for the results, Dst. Dst and Src must
// not overlap.
type (
	Rows32 = rowBlock[float32]
	Rows64 = rowBlock[float64]
)

// Workspace is the scratch memory of one worker. The zero value is ready to use. A Workspace grows on demand and does
// not allocate in repeated calls. It must not be used by several goroutines at the same time.
type Workspace struct {
	row32   []float32    // padded rows of an SRHT, or the sums of a CountSketch
	row64   []float64    // the same in float64
	block64 []float64    // a block of a Gaussian matrix in float64
	panel32 [2][]float32 // intermediate results between the levels of a composition
	panel64 [2][]float64 // the same in float64
}

// rowBlock is the argument of Apply32 and Apply64. Row i of Src starts at Src[i*SrcStride], and row i of Dst at
// Dst[i*DstStride].
type rowBlock[T float] struct {
	Dst       []T
	DstStride int
	Src       []T
	SrcStride int
	Count     int // number of rows
}

// float is the number type of rows.
type float interface{ float32 | float64 }

// Parse returns the distribution with the given name: "countsketch", "srht" or "gaussian".
func Parse(name string) (Dist, error) {
	for _, d := range []Dist{CountSketch{}, SRHT{}, Gaussian{}} {
		if d.String() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("unknown sketch %q: want countsketch, srht or gaussian", name)
}

// checkSample returns an error if m or s is not a valid size.
func checkSample(d Dist, m, s int) error {
	switch {
	case m < 1:
		return fmt.Errorf("sketch: %v of vectors of length %d: want at least 1", d, m)
	case s < 1:
		return fmt.Errorf("sketch: %v to %d numbers: want at least 1", d, s)
	case m > math.MaxInt32 || s > math.MaxInt32:
		return fmt.Errorf("sketch: %v from %d to %d numbers: want at most %d", d, m, s, math.MaxInt32)
	}
	return nil
}

// check panics if the strides or the lengths of the slices do not fit the dimensions of o.
func (b *rowBlock[T]) check(o Operator) {
	m, s := o.Dims()
	if count := b.Count; count < 0 || b.DstStride < s || b.SrcStride < m ||
		count > 0 && (len(b.Dst) < (count-1)*b.DstStride+s || len(b.Src) < (count-1)*b.SrcStride+m) {
		panic(fmt.Sprintf("sketch: %d rows from R^%d to R^%d: %d numbers of stride %d into %d of stride %d", count, m,
			s, len(b.Src), b.SrcStride, len(b.Dst), b.DstStride))
	}
}

// panelRows is the largest number of rows in one unit of work. More rows make a product with a Gaussian matrix more
// efficient; fewer rows balance the threads better.
const panelRows = 256

// Apply returns Z·Sᵀ, n×s, for the rows of Z, n×m. Panels of 256 rows are processed in parallel and written directly to
// the result; the only other memory is the scratch memory of one panel per thread. The result does not depend on the
// number of threads. progress, if not nil, is called with the number of finished rows and the number of all rows; calls
// do not overlap, and the numbers increase. Apply returns the error of ctx if ctx ends, and panics if Z does not have m
// columns.
func Apply(ctx context.Context, o Operator, z *points.Dense32, progress func(completed, total int)) (*points.Dense32,
	error) {
	m, s := o.Dims()
	if z.D != m {
		panic(fmt.Sprintf("sketch: a map of R^%d given rows of length %d", m, z.D))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := points.NewDense32(z.N, s, nil)
	workers := make([]Workspace, accel.Threads())
	count := accel.ProgressCounter(z.N, progress)
	err := accel.ForEachBlock(ctx, z.N, panelRows, func(worker, start, end int) {
		o.Apply32(Rows32{out.Data[start*s : end*s], s, z.Data[start*z.Stride:], z.Stride, end - start},
			&workers[worker])
		count(end - start)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
