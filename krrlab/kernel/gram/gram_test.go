package gram_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

var ctx = context.Background()

// minKernel is the user-defined kernel 1 + Σ_j min(|x_j|, |z_j|).
type minKernel struct{}

func (minKernel) Eval(x, z []float64) float64 {
	sum := 1.0
	for j, v := range x {
		sum += min(math.Abs(v), math.Abs(z[j]))
	}
	return sum
}
func (minKernel) String() string { return "min" }

// kernels are the kernels of most tests. The last two are user-defined, the last one is radial (radial_test.go).
var kernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 2.5}, kernel.Laplacian{Sigma: 6}, kernel.Matern32{Sigma: 3}, kernel.Matern52{Sigma: 3},
	kernel.Polynomial{Gamma: 0.1, Coef0: 1, Degree: 3}, minKernel{}, radial{scale: 1.5, c: 0.3},
}

// pointsInFormats returns n points of dimension d as dense float64, dense float32 and sparse points. A coordinate is
// normal with probability density, and otherwise 0. Column 1 is constant, and every fifth point repeats the previous
// one.
func pointsInFormats(seed uint64, n, d int, density float64) []points.Points {
	g := rand.New(rand.NewPCG(seed, 3))
	dense := points.NewDense(n, d, nil)
	for i := range n {
		for j := range d {
			var v float64
			if g.Float64() < density {
				v = float64(float32(g.NormFloat64()))
			}
			if j == 1 {
				v = 3
			}
			if i%5 == 4 {
				v = dense.Data[(i-1)*d+j]
			}
			dense.Data[i*d+j] = v
		}
	}
	return []points.Points{dense, testkit.RoundToFloat32(dense), testkit.ToCSR(dense)}
}

// evalMatrix returns the kernel matrix of x, computed by k.Eval in float64.
func evalMatrix(k kernel.Kernel, x points.Points) *mat.Dense {
	return mat.DenseCopyOf(testkit.KernelMatrix(k, x))
}

// gaussianMatrix returns an n×t matrix of standard normal numbers.
func gaussianMatrix(seed uint64, n, t int) *mat.Dense {
	return mat.NewDense(n, t, testkit.Normals(seed, 4, n*t))
}

// mustNew returns the matrix of New, and panics if New fails.
func mustNew(t testing.TB, k kernel.Kernel, x points.Points, lambda float64, opts *gram.Options) *gram.Matrix {
	t.Helper()
	return testkit.Must(gram.New(ctx, k, x, lambda, opts))
}

// tolerance returns the tolerance of entries, relative to the largest entry of K: about 50 roundings in float64 or
// float32, and half of a step of 16-bit storage.
func tolerance(storage gram.Storage, arithmetic kernel.Arithmetic) float64 {
	switch {
	case storage == gram.Float64 || storage == gram.Recompute && arithmetic == kernel.Float64:
		return 1e-14
	case storage == gram.Fixed16:
		return 3e-6 + 0.5/65535
	}
	return 3e-6
}

// TestProducts compares products with K from Eval, for every kernel, storage, type of points and number of right-hand
// sides. The tile sizes include 1, n, more than n, and sizes that do not divide n.
func TestProducts(t *testing.T) {
	const lambda = 0.3
	for _, c := range []struct {
		n, tile int
		density float64
	}{{53, 8, 1}, {53, 8, 0.06}, {41, 41, 1}, {30, 1, 1}, {17, 100, 1}, {130, 0, 1}} {
		xs := pointsInFormats(1, c.n, 12, c.density)
		for _, k := range kernels {
			want := evalMatrix(k, xs[0])
			for _, x := range xs {
				for _, storage := range []gram.Storage{gram.Auto, gram.Float64, gram.Float32, gram.Recompute,
					gram.Fixed16} {
					if storage == gram.Fixed16 && !kernel.Bounded01(k) {
						continue
					}
					for _, accuracy := range []float64{1, 1e-12} { // one value for each arithmetic
						name := fmt.Sprintf("n=%d tile=%d %v %T %v accuracy %g", c.n, c.tile, k, x, storage, accuracy)
						m := mustNew(t, k, x, lambda, &gram.Options{Storage: storage, TileSize: c.tile,
							Accuracy: accuracy})
						if storage != gram.Auto && m.Storage() != storage {
							t.Fatalf("%s: storage is %v", name, m.Storage())
						}
						checkMatrix(t, name, m, want, lambda)
					}
				}
			}
		}
	}
}

// checkMatrix compares the entries of m with want, and products of m with want and want + λI. It also checks that the
// entries are exactly symmetric, and that the diagonal is exactly 1 for kernels with values in [0, 1].
func checkMatrix(t *testing.T, name string, m *gram.Matrix, want *mat.Dense, lambda float64) {
	t.Helper()
	n := m.Dim()
	tol := tolerance(m.Storage(), m.Choice().Arithmetic) * testkit.MaxAbs(want)
	got := mat.NewDense(n, n, nil)
	testkit.OK(t, m.DenseTo(ctx, got))
	for i := range n {
		for j := range n {
			if deviation := math.Abs(got.At(i, j) - want.At(i, j)); !(deviation <= tol) {
				t.Fatalf("%s: K(%d, %d) = %v, want %v", name, i, j, got.At(i, j), want.At(i, j))
			}
			if got.At(i, j) != got.At(j, i) {
				t.Fatalf("%s: K(%d, %d) is not symmetric", name, i, j)
			}
		}
		if kernel.Bounded01(m.Kernel()) && got.At(i, i) != 1 {
			t.Fatalf("%s: K(%d, %d) = %v, want 1", name, i, i, got.At(i, i))
		}
	}
	for _, cols := range []int{1, 2, 3, 10, 17} {
		x := gaussianMatrix(2, n, cols)
		dst, wantKX, wantAX := mat.NewDense(n, cols, nil), mat.NewDense(n, cols, nil), mat.NewDense(n, cols, nil)
		wantKX.Mul(want, x)
		limit := tol * 4 * math.Sqrt(float64(n)) * (1 + testkit.MaxAbs(x)) // four deviations of n independent errors
		testkit.OK(t, m.KMulTo(ctx, dst, x))
		checkClose(t, name+" KMulTo", dst, wantKX, limit)

		wantAX.Scale(lambda, x)
		wantAX.Add(wantKX, wantAX)
		testkit.OK(t, m.MulTo(ctx, x, x)) // in place
		checkClose(t, name+" MulTo", x, wantAX, limit)
	}
}

// checkClose checks that the entries of got and want differ by at most tol.
func checkClose(t *testing.T, name string, got, want *mat.Dense, tol float64) {
	t.Helper()
	n, c := want.Dims()
	for i := range n {
		for j := range c {
			if deviation := math.Abs(got.At(i, j) - want.At(i, j)); !(deviation <= tol) {
				t.Fatalf("%s: (%d, %d) is %v, want %v ± %.1g", name, i, j, got.At(i, j), want.At(i, j), tol)
			}
		}
	}
}

// TestFewPoints checks one to three points, points without coordinates, and right-hand sides that are columns of a
// wider matrix.
func TestFewPoints(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, d := range []int{0, 1, 4} {
			x := points.NewDense(n, d, nil)
			for i := range x.Data {
				x.Data[i] = float64(i) / 3
			}
			for _, k := range kernels {
				for _, storage := range []gram.Storage{gram.Auto, gram.Float64, gram.Float32, gram.Recompute} {
					m := mustNew(t, k, x, 0.5, &gram.Options{Storage: storage})
					checkMatrix(t, fmt.Sprintf("n=%d d=%d %v %v", n, d, k, storage), m, evalMatrix(k, x), 0.5)
				}
			}
		}
	}
	x := pointsInFormats(1, 20, 3, 1)[0]
	m := mustNew(t, kernels[0], x, 0, &gram.Options{TileSize: 6, Accuracy: 1e-3})
	wideSrc := gaussianMatrix(1, 20, 7)
	src := wideSrc.Slice(0, 20, 2, 5).(*mat.Dense)
	want := mat.NewDense(20, 3, nil)
	want.Mul(evalMatrix(kernels[0], x), src)
	wideDst := mat.NewDense(20, 9, nil)
	testkit.OK(t, m.MulTo(ctx, wideDst.Slice(0, 20, 1, 4).(*mat.Dense), src))
	checkClose(t, "strided", wideDst.Slice(0, 20, 1, 4).(*mat.Dense), want, 1e-5)
	if wideDst.At(3, 0) != 0 || wideDst.At(3, 4) != 0 {
		t.Error("wrote beyond the columns of dst")
	}
}

// TestThreads checks that a product has the same bits for any number of threads, when it is repeated, and when four
// products run at the same time.
func TestThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	x := pointsInFormats(5, 203, 6, 1)[1]
	for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute} {
		for _, cols := range []int{1, 10} {
			src := gaussianMatrix(3, 203, cols)
			var want []float64
			for _, threads := range []int{1, 2, 3, 7} {
				accel.SetThreads(threads)
				m := mustNew(t, kernels[0], x, 0.1, &gram.Options{Storage: storage, TileSize: 16})
				for range 3 {
					dst := mat.NewDense(203, cols, nil)
					testkit.OK(t, m.MulTo(ctx, dst, src))
					if want == nil {
						want = dst.RawMatrix().Data
					}
					if !slices.Equal(dst.RawMatrix().Data, want) {
						t.Fatalf("%v, %d columns: another result on %d threads than on 1", storage, cols, threads)
					}
				}
				results := make(chan []float64, 4)
				for range 4 {
					go func() {
						dst := mat.NewDense(203, cols, nil)
						if err := m.MulTo(ctx, dst, src); err != nil {
							t.Error(err)
						}
						results <- dst.RawMatrix().Data
					}()
				}
				for range 4 {
					if !slices.Equal(<-results, want) {
						t.Fatalf("%v, %d columns: another result while other products run", storage, cols)
					}
				}
			}
		}
	}
}

// TestNoAllocation checks that a product allocates nothing after the first one.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool forget")
	}
	x := pointsInFormats(6, 150, 6, 1)[1]
	for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute} {
		m := mustNew(t, kernels[0], x, 0.1, &gram.Options{Storage: storage, TileSize: 32, Accuracy: 1})
		src, dst := gaussianMatrix(1, 150, 10), mat.NewDense(150, 10, nil)
		multiply := func() {
			testkit.OK(t, m.MulTo(ctx, dst, src))
		}
		multiply()
		testkit.Equal(t, testkit.AllocationCount(20, multiply), 0, storage)
	}
}

// TestPositiveSemidefinite checks that the stored matrix is positive semidefinite up to its storage error.
func TestPositiveSemidefinite(t *testing.T) {
	x := pointsInFormats(8, 120, 4, 1)[0]
	for _, k := range kernels {
		m := mustNew(t, k, x, 0.1, &gram.Options{TileSize: 50})
		dense := mat.NewDense(120, 120, nil)
		testkit.OK(t, m.DenseTo(ctx, dense))
		smallest := slices.Min(testkit.Eigenvalues(t, mat.NewSymDense(120, dense.RawMatrix().Data)))
		rounding := 1e-12 * testkit.MaxAbs(dense) * 120 // of the eigenvalues
		if bound := 2 * m.Choice().Error; smallest < -bound-rounding {
			t.Errorf("%v: least eigenvalue %v, want at least −2‖E‖₂ = %v", k, smallest, -bound)
		}
	}
}
