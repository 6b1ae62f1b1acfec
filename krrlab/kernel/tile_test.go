package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

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

// multiquadric is a user-defined radial kernel, the inverse multiquadric C/√(1+r²/σ²).
type multiquadric struct{ C, Sigma float64 }

func (k multiquadric) String() string { return fmt.Sprintf("multiquadric(%g, %g)", k.C, k.Sigma) }

func (k multiquadric) Eval(x, z []float64) float64 {
	var sq float64
	for j, v := range x {
		sq += (v - z[j]) * (v - z[j])
	}
	return k.C / math.Sqrt(1+sq/(k.Sigma*k.Sigma))
}

func (k multiquadric) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = k.C / math.Sqrt(1+v/(k.Sigma*k.Sigma))
	}
}

func (k multiquadric) Slope() float64 { return k.C / (2 * k.Sigma * k.Sigma) }

// multiquadric32 is a multiquadric with a method Profile32.
type multiquadric32 struct{ multiquadric }

func (k multiquadric32) Profile32(dst []float32, sq []float64) {
	for i, v := range sq {
		dst[i] = float32(k.C) / float32(math.Sqrt(1+v/(k.Sigma*k.Sigma)))
	}
}

// builtInKernels returns the kernels of the package with the given length scale.
func builtInKernels(scale float64) (all []kernel.Kernel) {
	for _, name := range kernel.Names() {
		k, _, err := kernel.Parse(name)
		if s, ok := k.(kernel.Scaled); ok {
			k = s.WithScale(scale)
		}
		if err == nil && kernel.BuiltIn(k) {
			all = append(all, k)
		}
	}
	return all
}

// kernels are built-in and user-defined kernels. The last two are radial.
var kernels = append(builtInKernels(3), kernel.Polynomial{Gamma: 0.2, Coef0: 0.5, Degree: 6}, minKernel{},
	kernel.Func{Name: "linear", F: func(x, z []float64) float64 {
		var s float64
		for j, v := range x {
			s += v * z[j]
		}
		return s
	}},
	multiquadric{0.5, 3}, multiquadric32{multiquadric{1, 2}})

// pointsInFormats returns n points of dimension d as dense float64, dense float32 and sparse points. A coordinate is
// normal with probability density, and otherwise 0.
func pointsInFormats(seed uint64, n, d int, density float64) []points.Points {
	g := rand.New(rand.NewPCG(seed, 2))
	dense := points.NewDense(n, d, nil)
	for k := range dense.Data {
		if g.Float64() < density {
			dense.Data[k] = g.NormFloat64()
		}
	}
	return []points.Points{dense, testkit.RoundToFloat32(dense), testkit.ToCSR(dense)}
}

// TestTiles compares tiles of every kernel, type of points and precision with Eval.
func TestTiles(t *testing.T) {
	var w kernel.Workspace
	for _, shape := range []struct {
		nx, nz, d int
		density   float64
	}{{1, 1, 1, 1}, {9, 6, 5, 1}, {13, 17, 20, 0.7}, {11, 12, 300, 0.03}, {2, 3, 0, 1}} {
		xs, zs := pointsInFormats(1, shape.nx, shape.d, shape.density),
			pointsInFormats(2, shape.nz, shape.d, shape.density)
		for _, k := range kernels {
			want := evalAll(k, xs[0], zs[0])
			for p := range xs {
				name := fmt.Sprintf("%v of %T %+v", k, xs[p], shape)
				checkTiles(t, name, k, xs[p], zs[p], want, &w)
			}
		}
	}
}

// evalAll returns k(x_i, z_j) by Eval for all pairs, row by row.
func evalAll(k kernel.Kernel, x, z points.Points) []float64 {
	n, d := x.Dims()
	m, _ := z.Dims()
	out := make([]float64, n*m)
	xRow, zRow := make([]float64, d), make([]float64, d)
	for i := range n {
		x.RowTo(xRow, i)
		for j := range m {
			z.RowTo(zRow, j)
			out[i*m+j] = k.Eval(xRow, zRow)
		}
	}
	return out
}

// checkTiles compares Tile64 and Tile32 with want, and checks that they leave the elements between the rows unchanged.
// The tolerances are some tens of roundings in float64 and float32, relative to the larger of 1 and max|want|.
func checkTiles(t *testing.T, name string, k kernel.Kernel, x, z points.Points, want []float64, w *kernel.Workspace) {
	t.Helper()
	nx, _ := x.Dims()
	nz, _ := z.Dims()
	ld := nz + 2
	const sentinel = 7
	scale := 1.0 // unit of the absolute error
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	check := func(tile string, got func(i int) float64, tol float64) {
		for a := range nx {
			for b := range nz {
				if v := got(a*ld + b); !(math.Abs(v-want[a*nz+b]) <= tol*scale) {
					t.Fatalf("%s, %s: (%d, %d) is %v, want %v", name, tile, a, b, v, want[a*nz+b])
				}
			}
			for b := nz; b < ld; b++ {
				if got(a*ld+b) != sentinel {
					t.Fatalf("%s, %s: wrote beyond its columns", name, tile)
				}
			}
		}
	}
	t64, t32 := make([]float64, nx*ld), make([]float32, nx*ld)
	fillWithSentinels := func() {
		for i := range t64 {
			t64[i], t32[i] = sentinel, sentinel
		}
	}
	fillWithSentinels()
	kernel.Tile64(t64, ld, k, points.NewPanel(x), points.NewPanel(z), kernel.Float64, w)
	check("Tile64", func(i int) float64 { return t64[i] }, 1e-14)
	kernel.Tile32(t32, ld, k, points.NewPanel(x), points.NewPanel(z), kernel.Float64, w)
	check("Tile32 Float64", func(i int) float64 { return float64(t32[i]) }, 3e-7)
	fillWithSentinels()
	kernel.Tile32(t32, ld, k, points.NewPanel32(x), points.NewPanel32(z), kernel.Float32, w)
	check("Tile32 Float32", func(i int) float64 { return float64(t32[i]) }, 3e-6)
}

// constant is a constant kernel that implements nothing but Eval.
type constant float64

func (c constant) Eval(_, _ []float64) float64 { return float64(c) }
func (c constant) String() string              { return "constant" }

// TestNoSubnormalEntries checks that tiles contain no subnormal number: values below 2⁻¹⁰⁰ (float32) or 2⁻²⁰⁰ (float64)
// of kernels with an exponential, and values that are subnormal in float32 of all kernels, are set to 0.
func TestNoSubnormalEntries(t *testing.T) {
	const n = 400
	x := points.NewDense(n, 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i) / 4
	}
	var w kernel.Workspace
	t32, t64 := make([]float32, n*n), make([]float64, n*n)
	p := points.NewPanel(x)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 0.4},
		kernel.Matern32{Sigma: 0.5}, kernel.Matern52{Sigma: 0.5}} {
		for _, arithmetic := range []kernel.Arithmetic{kernel.Float32, kernel.Float64} {
			kernel.Tile32(t32, n, k, p, p, arithmetic, &w)
			zeros := 0
			for _, v := range t32 {
				if v == 0 {
					zeros++
				} else if v < 0x1p-101 {
					t.Fatalf("%v, %v: entry %g, want 0", k, arithmetic, v)
				}
			}
			if zeros == 0 {
				t.Errorf("%v: no entry is set to 0", k)
			}
		}
		kernel.Tile64(t64, n, k, p, p, kernel.Float64, &w)
		for i, v := range t64 {
			if v != 0 && v < 0x1p-201 || v == 0 && t32[i] != 0 {
				t.Fatalf("%v in float64: entry %g, in float32 %g", k, v, t32[i])
			}
		}
	}
	for _, k := range []kernel.Kernel{kernel.Polynomial{Gamma: 1e-30, Degree: 2}, constant(0x1p-127),
		constant(-0x1p-127)} {
		kernel.Tile32(t32, n, k, p, p, kernel.Float64, &w)
		for _, v := range t32 {
			if v != 0 {
				t.Fatalf("%v: stored the subnormal %g", k, v)
			}
		}
	}
	if kernel.Tile32(t32, n, constant(0x1p-126), p, p, kernel.Float64, &w); t32[0] != 0x1p-126 {
		t.Errorf("the least normal number is stored as %g", t32[0])
	}
}

// TestTilesOfIdenticalPoints checks that the kernel of identical points is 1 to rounding, and never larger.
func TestTilesOfIdenticalPoints(t *testing.T) {
	x := points.NewDense(3, 4, []float64{1, 2, 3, 1e3, 1, 2, 3, 1e3, 1, 2, 3, 1e3})
	var w kernel.Workspace
	got := make([]float64, 9)
	for _, k := range kernels {
		if !kernel.Bounded01(k) {
			continue
		}
		kernel.Tile64(got, 3, k, points.NewPanel(x), points.NewPanel(x), kernel.Float64, &w)
		for _, v := range got {
			if v > 1 || v < 1-1e-9 {
				t.Errorf("%v of a point with itself is %v", k, v)
			}
		}
	}
}

// TestNoAllocation checks that tiles allocate nothing after the first use of a workspace.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes the pools of products forget")
	}
	var w kernel.Workspace
	dst, dst64 := make([]float32, 900), make([]float64, 900)
	for _, x := range pointsInFormats(4, 30, 40, 0.3) {
		p := points.NewPanel(x)
		formTiles := func() {
			for _, k := range kernels {
				if !kernel.BuiltIn(k) {
					continue
				}
				kernel.Tile32(dst, 30, k, p, p, kernel.Float32, &w)
				kernel.Tile32(dst, 30, k, p, p, kernel.Float64, &w)
				kernel.Tile64(dst64, 30, k, p, p, kernel.Float64, &w)
			}
		}
		formTiles()
		testkit.Equal(t, testkit.AllocationCount(5, formTiles), 0, x)
	}
}

func Example() {
	x := points.NewPanel(points.NewDense(2, 2, []float64{0, 0, 3, 4}))
	k, err := kernel.FromSpec(kernel.Spec{Name: "gaussian", Sigma: 5})
	if err != nil {
		panic(err)
	}
	tile := make([]float64, 4)
	var w kernel.Workspace
	kernel.Tile64(tile, 2, k, x, x, kernel.Float64, &w)
	fmt.Println(k)
	fmt.Printf("%.4f\n", tile)
	// Output:
	// gaussian(sigma=5)
	// [1.0000 0.6065 0.6065 1.0000]
}

// minKernelTiles is minKernel with EvalTile for many pairs at once. It counts the calls.
type minKernelTiles struct {
	minKernel
	calls *int
}

func (k minKernelTiles) EvalTile(dst, x, z []float64, nx, nz int) {
	*k.calls++
	d := len(x) / max(nx, 1)
	for entry := range dst {
		dst[entry] = k.Eval(x[entry/nz*d:][:d], z[entry%nz*d:][:d])
	}
}

// countingMultiquadric is multiquadric, and counts the calls of Profile.
type countingMultiquadric struct {
	multiquadric
	calls *int
}

func (k countingMultiquadric) Profile(dst, sq []float64) {
	*k.calls++
	k.multiquadric.Profile(dst, sq)
}

// TestOneCallPerTile checks that a user-defined kernel computes a tile in one call, and that the tile has the same bits
// as calls for single pairs.
func TestOneCallPerTile(t *testing.T) {
	var w kernel.Workspace
	calls := 0
	for _, d := range []int{4, 100000} { // rows of 100,000 coordinates are converted in several parts
		xs, zs := pointsInFormats(11, 9, d, 1e-2), pointsInFormats(12, 7, d, 1e-2)
		for _, ld := range []int{7, 10} {
			for _, k := range []kernel.Kernel{minKernelTiles{minKernel{}, &calls},
				countingMultiquadric{multiquadric{1, 30}, &calls}} {
				for i := range xs {
					x, z := points.NewPanel(xs[i]), points.NewPanel(zs[i])
					pair64, tile64 := make([]float64, 1), make([]float64, 9*ld)
					pair32, tile32 := make([]float32, 1), make([]float32, 9*ld)
					calls = 0
					kernel.Tile64(tile64, ld, k, x, z, kernel.Differences, &w)
					kernel.Tile32(tile32, ld, k, x, z, kernel.Float64, &w)
					kernel.Tile32(tile32, ld, k, x, z, kernel.Differences, &w)
					if _, pairs := k.(minKernelTiles); calls != 3 && !(pairs && d > 1000) {
						t.Errorf("%v: %d calls for three tiles", k, calls)
					}
					for a := range 9 {
						for b := range 7 {
							x, z := x.Slice(a, a+1), z.Slice(b, b+1)
							kernel.Tile64(pair64, 1, k, x, z, kernel.Differences, &w)
							kernel.Tile32(pair32, 1, k, x, z, kernel.Differences, &w)
							if tile64[a*ld+b] != pair64[0] || tile32[a*ld+b] != pair32[0] {
								t.Fatalf("%v of %T, ld = %d: (%d, %d) is %v and %v, want %v and %v", k, xs[i], ld, a, b,
									tile64[a*ld+b], tile32[a*ld+b], pair64[0], pair32[0])
							}
						}
					}
				}
			}
		}
	}
}
