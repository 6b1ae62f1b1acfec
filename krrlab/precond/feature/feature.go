package feature

import (
	"context"
	"fmt"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Dist is a distribution over feature maps for one kernel.
type Dist interface {
	// Sample draws a map R^d → R^s; it is a function of d, s and the stream g. It returns an error if d < 1, s < 1, or
	// the distribution has no map of these sizes. It runs on all threads and must not be called within accel.ForEach.
	Sample(d, s int, g rng.Stream) (Map, error)
	// String names the distribution and its parameters.
	String() string
}

// Map is a feature map φ: R^d → R^s. It is immutable and safe for concurrent use if each goroutine has a separate
// Workspace.
type Map interface {
	// Dims returns the dimension d of the points and the number s of features.
	Dims() (d, s int)
	// MapTo writes φ(x_i)ᵀ, computed in float64, to z[i*ld : i*ld+s] for all points i; ld is the row stride of z. It
	// panics if the points do not have dimension d, or if ld < s. It must not retain x.
	MapTo(z []float64, ld int, x points.Points, w *Workspace)
}

// Map32 is a Map with a faster method for float32.
type Map32 interface {
	Map
	// MapTo32 is MapTo in float32; for its error see the package documentation.
	MapTo32(z []float32, ld int, x points.Points, w *Workspace)
}

// Workspace is the scratch memory of one worker. The zero value is ready to use. A Workspace grows on demand and does
// not allocate in repeated calls for the same map. It must not be used by several goroutines at the same time.
type Workspace struct {
	x64, w64, phase64 []float64 // points, frequencies and phases in float64
	x32               []float32 // points in float32
	point             []float64 // one point, whose norm is computed
	wideFeatures      []int     // features whose phases are computed in float64

	fft          *fourier.FFT // transform of a TensorSketchMap
	sequence     []float64    // a CountSketch, and later φ(x)
	prod, factor []complex128 // product of the transforms of several CountSketches, and transform of the next one

	chain *chainSpace // scratch memory of a ChainMap, nil before its first use
}

// For returns the distribution that the paper uses for a kernel: Fourier features for kernels with a spectral measure,
// TensorSketch for the polynomial kernel. For other kernels it returns an error that lists the supported ones.
func For(k kernel.Kernel) (Dist, error) {
	if err := kernel.Validate(k); err != nil {
		return nil, err
	}
	if p, ok := k.(kernel.Polynomial); ok {
		return TensorSketch{Kernel: p}, nil
	}
	if !hasSpectralMeasure(k) {
		return nil, noFeatures("random", k)
	}
	return Fourier{Kernel: k}, nil
}

// SampleWithin is dist.Sample for a map that has to fit a memory budget. It returns an *accel.MemoryError if the map
// does not fit.
func SampleWithin(memory accel.Budget, dist Dist, d, s int, g rng.Stream) (Map, error) {
	if err := checkMemory(memory, dist, d, s); err != nil {
		return nil, err
	}
	return dist.Sample(d, s, g)
}

// checkMemory returns an *accel.MemoryError if a map R^d → R^s of dist does not fit a memory budget.
func checkMemory(memory accel.Budget, dist Dist, d, s int) error {
	return memory.Check(MapBytes(dist, d, s), fmt.Sprintf("feature: a map of %v from dimension %d to %d", dist, d, s),
		"use fewer features, or allow more by --memory")
}

// MapBytes returns the memory of a map R^d → R^s of dist in bytes, or 0 for a user-defined distribution.
func MapBytes(dist Dist, d, s int) int64 {
	if m, ok := dist.(interface{ mapBytes(d, s int) int64 }); ok {
		return m.mapBytes(d, s)
	}
	return 0
}

// checkSample returns an error if d or s is not positive.
func checkSample(dist fmt.Stringer, d, s int) error {
	switch {
	case d < 1:
		return fmt.Errorf("feature: %v of points of dimension %d: want at least 1", dist, d)
	case s < 1:
		return fmt.Errorf("feature: %v with %d features: want at least 1", dist, s)
	}
	return nil
}

// checkMap panics if the points or an array of size numbers, with row stride ld, do not match m. It returns the number
// of points.
func checkMap(m Map, size, ld int, x points.Points) (n int) {
	d, s := m.Dims()
	n, dx := x.Dims()
	if dx != d {
		panic(fmt.Sprintf("feature: points of dimension %d given to a map of R^%d", dx, d))
	}
	if ld < s || n > 0 && size < (n-1)*ld+s {
		panic(fmt.Sprintf("feature: %d×%d features do not fit %d numbers of stride %d", n, s, size, ld))
	}
	return n
}

// panelRows is the largest number of points in one unit of work. More points make BLAS more efficient; fewer points
// balance the threads better and need less scratch memory.
const panelRows = 256

// Matrix returns Z, n×s in float32 with the rows φ(x_i)ᵀ; for points.Weighted the rows are √w_i·φ(x_i)ᵀ. Panels of 256
// points are mapped in parallel and written directly to Z; the only other memory is the scratch memory of one panel per
// thread. The result does not depend on the number of threads. progress, if not nil, is called with the number of
// finished points and the number of all points; calls do not overlap, and the numbers increase.
//
// Matrix returns the error of ctx if ctx ends. It returns an error that names the first point with a feature that is
// not finite in float32, which happens for a polynomial kernel on large points.
func Matrix(ctx context.Context, m Map, x points.Points, progress func(completed, total int)) (*points.Dense32, error) {
	_, s := m.Dims()
	n, _ := x.Dims()
	z := points.NewDense32(n, s, nil)
	if err := MatrixTo(ctx, z, 0, m, x, progress); err != nil {
		return nil, err
	}
	return z, nil
}

// MatrixTo computes Matrix in columns firstColumn, …, firstColumn+s-1 of z, which has a row for every point. After an
// error these columns are undefined.
func MatrixTo(ctx context.Context, z *points.Dense32, firstColumn int, m Map, x points.Points,
	progress func(completed, total int)) error {
	d, s := m.Dims()
	x, factors := points.SplitFactors(x)
	n, dx := x.Dims()
	if dx != d {
		panic(fmt.Sprintf("feature: points of dimension %d given to a map of R^%d", dx, d))
	}
	if z.N != n || firstColumn < 0 || firstColumn+s > z.D {
		panic(fmt.Sprintf("feature: %d features of %d points do not fit columns %d and on of a %d×%d matrix", s, n,
			firstColumn, z.N, z.D))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var (
		mu            sync.Mutex
		firstBadPoint = n // first point with a feature that is not finite
		workers       = make([]Workspace, accel.Threads())
		buffers       = make([][]float64, len(workers))
		count         = accel.ProgressCounter(n, progress)
	)
	err := accel.ForEachBlock(ctx, n, panelRows, func(worker, start, end int) {
		rows := z.Data[start*z.Stride+firstColumn : (end-1)*z.Stride+firstColumn+s]
		mapTo32(m, rows, z.Stride, x.Slice(start, end), &workers[worker], &buffers[worker])
		for i := start; i < end; i++ {
			row := z.Row(i)[firstColumn : firstColumn+s]
			for j := 0; j < s && factors != nil; j++ {
				row[j] = float32(float64(row[j]) * factors[i])
			}
			if !finite(row) {
				mu.Lock()
				firstBadPoint = min(firstBadPoint, i)
				mu.Unlock()
				return
			}
		}
		count(end - start)
	})
	if err != nil {
		return err
	}
	if firstBadPoint < n {
		return fmt.Errorf("feature: point %d (counted from 0) has features that are not finite in float32: scale "+
			"the points down", firstBadPoint)
	}
	return nil
}

// mapTo32 writes φ(x_i)ᵀ to the rows of z. If m is not a Map32, it computes them in float64 first, in buf.
func mapTo32(m Map, z []float32, ld int, x points.Points, w *Workspace, buf *[]float64) {
	_, s := m.Dims()
	if m, ok := m.(Map32); ok {
		m.MapTo32(z, ld, x, w)
		return
	}
	n, _ := x.Dims()
	z64 := buffer.Grow(buf, n*s)
	m.MapTo(z64, s, x, w)
	for i := range n {
		for j, v := range z64[i*s : (i+1)*s] {
			z[i*ld+j] = float32(v)
		}
	}
}

// finite reports whether z has no NaN and no infinity.
func finite(z []float32) bool {
	var sum float32
	for _, v := range z {
		sum += v - v // v−v is 0 for a finite v, and NaN otherwise
	}
	return sum == 0
}
