package feature_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

var poly = kernel.Polynomial{Gamma: 0.1, Coef0: 1, Degree: 3}

// distsOfEachKind returns one distribution of every kind.
func distsOfEachKind() (dists []feature.Dist) {
	for _, f := range fourierDists() {
		dists = append(dists, f)
	}
	dists = append(dists, feature.TensorSketch{Kernel: poly})
	for _, f := range []feature.Dist{fourierDists()[0], feature.TensorSketch{Kernel: poly}} {
		dists = append(dists, feature.Chain{Features: f, Width: 90,
			Sketches: sketch.Composition{{Dist: sketch.SRHT{}, Width: 50}, {Dist: sketch.Gaussian{}}}})
	}
	return dists
}

// TestMatrix compares Z with the map applied to each point, for numbers of points around the panel size of 256. The
// result must have the same bits for any number of threads. float32 features may differ by 1e-4 of the largest feature.
func TestMatrix(t *testing.T) {
	const d, s = 12, 30
	defer accel.SetThreads(accel.Threads())
	for _, n := range []int{1, 255, 256, 257, 600} {
		x, csr := sparsify(normalPoints(max(n, 2), d, 1, 6))
		for _, dist := range distsOfEachKind() {
			m := sampleMap(t, dist, d, s, 13)
			for _, pts := range []points.Points{x.Slice(0, n), csr.Slice(0, n)} {
				var z [3]*points.Dense32
				for run, threads := range []int{1, 2, 5} {
					accel.SetThreads(threads)
					var calls []int
					var err error
					z[run], err = feature.Matrix(t.Context(), m, pts, func(done, total int) {
						if calls = append(calls, done); total != n {
							t.Errorf("progress of %d points, want %d", total, n)
						}
					})
					testkit.OK(t, err)
					if !slices.IsSorted(calls) || calls[len(calls)-1] != n {
						t.Errorf("progress %v, want ascending to %d", calls, n)
					}
					if !slices.Equal(z[run].Data, z[0].Data) {
						t.Errorf("%v, n=%d: %d threads change the result", dist, n, threads)
					}
				}
				want := featuresOf(m, pts)
				var largest float64
				for _, v := range want {
					largest = max(largest, math.Abs(v))
				}
				checkNear(t, fmt.Sprintf("%v, n=%d, %T", dist, n, pts), inFloat64(z[0].Data), want, 1e-4*largest)
			}
		}
	}
}

// TestSeeds checks that a map depends on its seed, and on nothing else.
func TestSeeds(t *testing.T) {
	x := normalPoints(3, 5, 1, 1)
	for _, dist := range distsOfEachKind() {
		seed1, seed1Again := featuresOf(sampleMap(t, dist, 5, 8, 1), x), featuresOf(sampleMap(t, dist, 5, 8, 1), x)
		seed2 := featuresOf(sampleMap(t, dist, 5, 8, 2), x)
		if !slices.Equal(seed1, seed1Again) || slices.Equal(seed1, seed2) {
			t.Errorf("%v: the same seed gives different maps, or two seeds the same", dist)
		}
	}
}

// TestFor checks which distribution belongs to which kernel, and the errors for kernels without one.
func TestFor(t *testing.T) {
	for _, k := range fourierKernels {
		if dist, err := feature.For(k); err != nil || dist != (feature.Fourier{Kernel: k}) {
			t.Errorf("For(%v) = %v, %v", k, dist, err)
		}
	}
	if dist, err := feature.For(poly); err != nil || dist != (feature.TensorSketch{Kernel: poly}) {
		t.Errorf("For(%v) = %v, %v", poly, dist, err)
	}
	userKernel := kernel.Func{Name: "mine", F: func(x, z []float64) float64 { return 1 }}
	testkit.Fails(t, testkit.ErrOf(feature.For(userKernel)), "mine")
	testkit.Fails(t, testkit.ErrOf(feature.For(kernel.Gaussian{})), "sigma")
}

// TestSampleErrors checks that the error for an invalid dimension, number of features or kernel says which of them is
// invalid.
func TestSampleErrors(t *testing.T) {
	gauss := feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}
	for _, test := range []struct {
		dist feature.Dist
		d, s int
		want string
	}{
		{gauss, 0, 5, "dimension 0"},
		{gauss, 5, 0, "0 features"},
		{feature.Fourier{}, 5, 5, "no kernel"},
		{feature.Fourier{Kernel: poly}, 5, 5, "no Fourier features"},
		{feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1e-40}}, 5, 5, "beyond float32"},
		{gauss, 1 << 20, 1 << 24, "use fewer features"},
		{feature.TensorSketch{Kernel: poly}, 0, 5, "dimension 0"},
		{feature.TensorSketch{Kernel: poly}, 5, -1, "-1 features"},
		{feature.TensorSketch{Kernel: poly}, 5, math.MaxInt32 + 1, "at most"},
		{feature.TensorSketch{}, 5, 5, "polynomial"},
	} {
		testkit.Fails(t, testkit.ErrOf(test.dist.Sample(test.d, test.s, rng.New(1))), test.want)
	}
}

// TestMatrixErrors checks that features outside the range of float32 and a canceled context are errors.
func TestMatrixErrors(t *testing.T) {
	x := points.NewDense(300, 2, nil)
	x.Data[2*270], x.Data[2*290] = 1e80, 1e90
	m := sampleMap(t, feature.TensorSketch{Kernel: poly}, 2, 8, 1)
	testkit.Fails(t, testkit.ErrOf(feature.Matrix(t.Context(), m, x, nil)), "point 270")
	x.Data[2*7] = math.NaN()
	gauss := sampleMap(t, feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}, 2, 8, 1)
	testkit.Fails(t, testkit.ErrOf(feature.Matrix(t.Context(), gauss, x, nil)), "point 7")
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		return testkit.ErrOf(feature.Matrix(ctx, m, normalPoints(300, 2, 1, 1), nil))
	})
}

// TestMisusePanics checks that arguments of the wrong shape panic.
func TestMisusePanics(t *testing.T) {
	m := sampleMap(t, feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}, 3, 4, 1)
	w := &feature.Workspace{}
	testkit.Panics(t, map[string]func(){
		"dimension":        func() { m.MapTo(make([]float64, 8), 4, normalPoints(2, 2, 1, 1), w) },
		"short stride":     func() { m.MapTo(make([]float64, 8), 3, normalPoints(2, 3, 1, 1), w) },
		"short slice":      func() { m.MapTo(make([]float64, 7), 4, normalPoints(2, 3, 1, 1), w) },
		"matrix dimension": func() { feature.Matrix(t.Context(), m, normalPoints(2, 2, 1, 1), nil) },
		"frequency":        func() { m.(*feature.FourierMap).Frequency(make([]float64, 3), 4) },
	})
}

// TestMapStride checks that rows are written with their stride, and that the elements between them are unchanged.
func TestMapStride(t *testing.T) {
	const n, s, ld = 4, 6, 9
	x := normalPoints(n, 3, 1, 1)
	for _, dist := range distsOfEachKind() {
		m := sampleMap(t, dist, 3, s, 1)
		want := featuresOf(m, x)
		z, z32 := slices.Repeat([]float64{7}, n*ld), slices.Repeat([]float32{7}, n*ld)
		m.MapTo(z, ld, x, &feature.Workspace{})
		m.(feature.Map32).MapTo32(z32, ld, x, &feature.Workspace{})
		for i := range n {
			checkNear(t, dist.String(), z[i*ld:i*ld+s], want[i*s:(i+1)*s], 0)
			checkNear(t, dist.String(), inFloat64(z32[i*ld:i*ld+s]), want[i*s:(i+1)*s], 1e-4)
			for _, j := range []int{s, s + 1, s + 2} {
				if z[i*ld+j] != 7 || z32[i*ld+j] != 7 {
					t.Fatalf("%v: element %d of row %d, beyond the features, was written", dist, j, i)
				}
			}
		}
	}
}

// TestNoAllocation checks that a map allocates nothing after the first use of a workspace.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops values under the race detector")
	}
	const n, d, s = 50, 6, 20
	x, csr := sparsify(normalPoints(n, d, 1, 1))
	z, z32 := make([]float64, n*s), make([]float32, n*s)
	for _, dist := range distsOfEachKind() {
		m := sampleMap(t, dist, d, s, 1)
		for _, pts := range []points.Points{x, testkit.RoundToFloat32(x), csr} {
			var w feature.Workspace
			mapAll := func() {
				m.MapTo(z, s, pts, &w)
				m.(feature.Map32).MapTo32(z32, s, pts, &w)
			}
			if count := testkit.AllocationCount(5, mapAll); count > 0 {
				t.Errorf("%v of %T: %v allocations", dist, pts, count)
			}
		}
	}
}

// TestSampleWithin checks to the byte which maps fit a memory budget. A map of a user-defined distribution always
// fits.
func TestSampleWithin(t *testing.T) {
	const d, s = 5, 12
	fourier, tensor := feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}, feature.TensorSketch{Kernel: poly}
	gaussians := sketch.Composition{{Dist: sketch.SRHT{}, Width: 30}, {Dist: sketch.Gaussian{}, Width: 20},
		{Dist: sketch.Composition{{Dist: sketch.Gaussian{}}}}}
	for _, test := range []struct {
		dist  feature.Dist
		bytes int64
	}{
		{fourier, (4*d + 20) * s},
		{tensor, int64(4 * poly.Degree * (d + 1))},
		{feature.Doubling{Dist: fourier, First: 3}, (4*d + 20) * s},
		{feature.Chain{Features: fourier, Width: 70, Sketches: gaussians}, (4*d+20)*70 + 4*30*20 + 4*20*s},
		{struct{ feature.Dist }{fourier}, 1},
	} {
		_, err := feature.SampleWithin(accel.Budget{Limit: test.bytes}, test.dist, d, s, rng.New(1))
		testkit.OK(t, err)
		_, err = feature.SampleWithin(accel.Budget{Limit: test.bytes}.Reserve(1), test.dist, d, s, rng.New(1))
		if e, ok := errors.AsType[*accel.MemoryError](err); test.bytes > 1 && (!ok || e.Need != test.bytes) {
			t.Errorf("%v: %v, want a memory error of %d bytes", test.dist, err, test.bytes)
		}
	}
}
