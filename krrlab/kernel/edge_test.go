package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// TestSmallestNormal: a polynomial's tile keeps the least normal float32 of either sign, and makes
// what is below it zero.
func TestSmallestNormal(t *testing.T) {
	const least = 0x1p-126
	x := points.NewPanel(points.NewDense(4, 1, []float64{least, -least, least / 2, -least / 2}))
	z := points.NewPanel(points.NewDense(1, 1, []float64{1}))
	dst := make([]float32, 4)
	for _, arith := range []kernel.Arithmetic{kernel.Float32, kernel.Float64} {
		kernel.Tile32(dst, 1, kernel.Polynomial{Gamma: 1, Degree: 1}, x, z, arith, &kernel.Workspace{})
		if !slices.Equal(dst, []float32{least, -least, 0, 0}) {
			t.Errorf("%v: %g", arith, dst)
		}
	}
}

// TestDiagLength: one number for each point, also of a user-defined kernel.
func TestDiagLength(t *testing.T) {
	x := points.NewDense(5, 2, []float64{0, 0, 1, 2, 1e3, -1e3, 3, 4, 5, 6})
	for _, k := range append(slices.Clone(kernels), own{}) {
		d := kernel.Diag(k, x)
		if len(d) != 5 {
			t.Fatalf("%v: %d numbers of 5 points", k, len(d))
		}
		row := make([]float64, 2)
		for i, got := range d {
			x.RowTo(row, i)
			if want := k.Eval(row, row); math.Abs(got-want) > 1e-15*math.Abs(want) {
				t.Errorf("%v: diagonal %d is %v, want %v", k, i, got, want)
			}
		}
	}
}

// TestNames: every name parses, and gives a kernel of that name.
func TestNames(t *testing.T) {
	names := kernel.Names()
	if len(names) < 5 || !slices.Contains(names, "gaussian") {
		t.Fatalf("names %q", names)
	}
}

// TestOriginAtTheBound: points exactly at the bound are left where they are.
func TestOriginAtTheBound(t *testing.T) {
	gauss := kernel.Gaussian{Sigma: 1}
	for name, c := range map[string]struct {
		x     []float64
		moved bool
	}{
		"the mean's distance":  {[]float64{3, 2, 4}, false}, // 16·1 = 4²
		"within":               {[]float64{3.01, 2.01, 4.01}, true},
		"the first's distance": {[]float64{4, 2}, false}, // 4·2² = 4²
		"within that":          {[]float64{4, 2.01}, true},
	} {
		p := points.NewPanel(points.NewDense(len(c.x), 1, c.x))
		if got := kernel.Origin(gauss, p); (got != nil) != c.moved {
			t.Errorf("%s: origin %v", name, got)
		}
	}
}

// TestTileDimensions: points of different dimensions have no tile, of any kernel, precision and arithmetic.
func TestTileDimensions(t *testing.T) {
	x, z := points.NewPanel(points.NewDense(2, 3, nil)), points.NewPanel(points.NewDense(2, 4, nil))
	for _, k := range append(slices.Clone(kernels), own{}) {
		for _, arith := range []kernel.Arithmetic{kernel.Float32, kernel.Float64, kernel.Differences} {
			for name, f := range map[string]func(w *kernel.Workspace){
				"Tile64": func(w *kernel.Workspace) { kernel.Tile64(make([]float64, 4), 2, k, x, z, arith, w) },
				"Tile32": func(w *kernel.Workspace) { kernel.Tile32(make([]float32, 4), 2, k, x, z, arith, w) },
			} {
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s of %v by %v: no panic", name, k, arith)
						}
					}()
					f(&kernel.Workspace{})
				}()
			}
		}
	}
}

// TestWideOwn evaluates a user-defined kernel on more points than are held at once.
func TestWideOwn(t *testing.T) {
	const d, n = 1 << 17, 5 // two points at once
	x := points.NewDense(n, d, nil)
	for i := range n {
		x.Data[i*d+i] = float64(i + 1)
	}
	p := points.NewPanel(x)
	got, w := make([]float64, n*n), &kernel.Workspace{}
	kernel.Tile64(got, n, own{}, p, p, kernel.Float64, w)
	a, b := make([]float64, d), make([]float64, d)
	for i := range n {
		for j := range n {
			x.RowTo(a, i)
			x.RowTo(b, j)
			if want := (own{}).Eval(a, b); got[i*n+j] != want {
				t.Errorf("(%d, %d): %v, want %v", i, j, got[i*n+j], want)
			}
		}
	}
	if bytes := w.Bytes(); bytes != 8*3*d {
		t.Errorf("scratch of %d bytes, want that of three points, %d", bytes, 8*3*d)
	}
}
