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
	// Sample draws the map R^d → R^s that belongs to the stream g. It returns an
	// error if d < 1, s < 1, or the distribution has no such map. It runs on all
	// threads and must not be called within accel.ForEach.
	Sample(d, s int, g rng.Stream) (Map, error)
	// String names the distribution and its parameters.
	String() string
}

// Map is a feature map φ: R^d → R^s. It is immutable and safe for concurrent use,
// each goroutine with its own Workspace.
type Map interface {
	// Dims returns the dimension d of the points and the number s of features.
	Dims() (d, s int)
	// MapTo writes φ(x_i)ᵀ, computed in float64, to z[i*ld : i*ld+s] for all points.
	// It panics if the points are not of dimension d or ld < s. It must not keep x.
	MapTo(z []float64, ld int, x points.Points, w *Workspace)
}

// Map32 is a Map with a faster path to float32.
type Map32 interface {
	Map
	// MapTo32 is MapTo in float32; see the package doc for its error.
	MapTo32(z []float32, ld int, x points.Points, w *Workspace)
}

// Workspace is the scratch memory of one worker. The zero value is ready; it grows
// on demand and allocates no more once warm, for one map at a time. It must not be
// shared by goroutines that run at the same time.
type Workspace struct {
	x64, w64, phase64 []float64
	x32               []float32
	norms             []float64
	far               []int

	fft        *fourier.FFT
	seq        []float64
	prod, next []complex128

	chain *chainSpace
}

// For returns the distribution the paper pairs with a kernel: Fourier features for
// those with a spectral measure, TensorSketch for the polynomial. The error says
// which kernels have one.
func For(k kernel.Kernel) (Dist, error) {
	if err := kernel.Validate(k); err != nil {
		return nil, err
	}
	if p, ok := k.(kernel.Polynomial); ok {
		return TensorSketch{Kernel: p}, nil
	}
	if !spectral(k) {
		return nil, noFeatures("random", k)
	}
	return Fourier{Kernel: k}, nil
}

func checkSample(what fmt.Stringer, d, s int) error {
	switch {
	case d < 1:
		return fmt.Errorf("feature: %v of points of dimension %d: want at least 1", what, d)
	case s < 1:
		return fmt.Errorf("feature: %v with %d features: want at least 1", what, s)
	}
	return nil
}

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

// panelRows is the number of points mapped at once: enough to make BLAS efficient,
// few enough to balance threads and to keep a panel's scratch small.
const panelRows = 256

// Matrix returns Z, n×s in float32 with rows φ(x_i)ᵀ, of points.Weighted √w_i·φ(x_i)ᵀ. Panels of 256 points are
// mapped in parallel, each straight into its place; beyond Z the memory is a panel
// and its scratch for each thread. The result does not depend on the number of
// threads. progress, if not nil, is called with how many of all points are done, one call
// at a time, in ascending order.
//
// Matrix returns ctx's error if that ends, and an error that names the first point
// with a feature that is not finite in float32 (a polynomial kernel on large points).
func Matrix(ctx context.Context, m Map, x points.Points, progress func(done, total int)) (*points.Dense32, error) {
	_, s := m.Dims()
	n, _ := x.Dims()
	z := points.NewDense32(n, s, nil)
	if err := MatrixTo(ctx, z, 0, m, x, progress); err != nil {
		return nil, err
	}
	return z, nil
}

// MatrixTo is Matrix into columns from, …, from+s-1 of z, which has a row for every point.
// After an error these columns are undefined.
func MatrixTo(ctx context.Context, z *points.Dense32, from int, m Map, x points.Points,
	progress func(done, total int)) error {
	d, s := m.Dims()
	x, factors := points.Split(x)
	n, dx := x.Dims()
	if dx != d {
		panic(fmt.Sprintf("feature: points of dimension %d given to a map of R^%d", dx, d))
	}
	if z.N != n || from < 0 || from+s > z.D {
		panic(fmt.Sprintf("feature: %d features of %d points do not fit columns %d and on of a %d×%d matrix", s, n,
			from, z.N, z.D))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var (
		mu   sync.Mutex
		bad  = n // first point with a feature that is not finite
		work = make([]Workspace, accel.Threads())
		tmp  = make([][]float64, len(work))
		more = accel.Counter(n, progress)
	)
	err := accel.ForEach(ctx, (n+panelRows-1)/panelRows, func(worker, p int) {
		i, j := p*panelRows, min((p+1)*panelRows, n)
		rows := z.Data[i*z.Stride+from : (j-1)*z.Stride+from+s]
		mapTo32(m, rows, z.Stride, x.Slice(i, j), &work[worker], &tmp[worker])
		for k := i; k < j && factors != nil; k++ {
			for c, v := range z.Row(k)[from : from+s] {
				z.Row(k)[from+c] = float32(float64(v) * factors[k])
			}
		}
		more(j - i)
		for k := i; k < j; k++ {
			if !finite(z.Row(k)[from : from+s]) {
				mu.Lock()
				bad = min(bad, k)
				mu.Unlock()
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if bad < n {
		return fmt.Errorf("feature: point %d (counted from 0) has features that are not finite in float32: scale "+
			"the points down", bad)
	}
	return nil
}

// mapTo32 writes φ(x_i)ᵀ to rows of stride ld, by way of tmp if m has no float32 path.
func mapTo32(m Map, z []float32, ld int, x points.Points, w *Workspace, tmp *[]float64) {
	_, s := m.Dims()
	if m, ok := m.(Map32); ok {
		m.MapTo32(z, ld, x, w)
		return
	}
	n, _ := x.Dims()
	t := buffer.Grow(tmp, n*s)
	m.MapTo(t, s, x, w)
	for i := range n {
		for j, v := range t[i*s : (i+1)*s] {
			z[i*ld+j] = float32(v)
		}
	}
}

// finite reports whether there is no NaN or infinity.
func finite(z []float32) bool {
	var sum float32
	for _, v := range z {
		sum += v - v // 0, or NaN if v is not finite
	}
	return sum == 0
}
