package feature

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// sparse returns n points of dimension d with one or two nonzeros each, both ways.
func sparse(n, d int, size float64) (*points.Dense, *points.CSR) {
	x := points.NewDense(n, d, nil)
	s := &points.CSR{N: n, D: d, Ptr: []int{0}}
	for i := range n {
		for j, c := range []int{i % (d / 2), d/2 + i*7%(d/2)} {
			if j == 1 && i%3 == 0 {
				continue
			}
			v := float64(float32(size * (1 + float64(i%5)) / 4 * float64(1-2*j)))
			x.Data[i*d+c] = v
			s.Col, s.Val = append(s.Col, int32(c)), append(s.Val, v)
		}
		s.Ptr = append(s.Ptr, len(s.Col))
	}
	return x, s
}

// TestWalkedPhases compares phases by a walk over nonzeros with those of the same points as dense
// ones: in float64, in float32, and where some or all of the features go by float64 for their size.
func TestWalkedPhases(t *testing.T) {
	const n, d, s = 40, 64, 48
	for _, dist := range []Dist{Fourier{Kernel: kernel.Gaussian{Sigma: 1}}, Fourier{Kernel: kernel.Laplacian{Sigma: 1}}} {
		m, err := dist.Sample(d, s, rng.New(5))
		if err != nil {
			t.Fatal(err)
		}
		f := m.(*FourierMap)
		for _, size := range []float64{0.1, 30, 100, 1e3, 1e6} {
			x, csr := sparse(n, d, size)
			if _, walked := walk(csr); !walked {
				t.Fatal("the points are too full to be walked")
			}
			var w Workspace
			want, got := make([]float64, n*s), make([]float64, n*s)
			f.MapTo(want, s, x, &w)
			f.MapTo(got, s, csr, &w)
			z := make([]float32, n*s)
			f.MapTo32(z, s, csr, &w)
			far, most := 0, 0.0
			for _, v := range f.norm {
				if v*maxNorm(x, &w) > phaseLimit {
					far++
				} else {
					most = max(most, v*maxNorm(x, &w))
				}
			}
			// A phase of d+1 terms is known to (d+2)·ε of the sum of their sizes, ≤ ‖w‖₂‖x‖₁+π; cos and √(2/s)
			// pass that on. In float32 that holds up to phaseLimit, beyond it phases are float64.
			largest := 0.0
			for i := range n {
				var l1 float64
				for _, v := range x.Row(i) {
					l1 += math.Abs(v)
				}
				for _, v := range f.norm {
					largest = max(largest, v*l1)
				}
			}
			scale := math.Sqrt(2.0 / s)
			tol64 := 4 * scale * 0x1p-53 * (4*largest + 4)
			tol32 := 4*scale*0x1p-24*(4*math.Sqrt2*most+8) + tol64
			for i := range got {
				if math.Abs(got[i]-want[i]) > tol64 {
					t.Fatalf("%v, size %g: feature %d is %v, of dense points %v", dist, size, i, got[i], want[i])
				}
				if math.Abs(float64(z[i])-want[i]) > tol32 {
					t.Fatalf("%v, size %g, %d of %d far: float32 feature %d is %v, want %v within %.2g", dist, size, far, s, i, z[i], want[i], tol32)
				}
			}
		}
	}
}

// TestBadPoint names the first point that has no finite features, at the ends of panels too.
func TestBadPoint(t *testing.T) {
	m, err := TensorSketch{Kernel: kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}}.Sample(2, 8, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []int{0, panelRows - 1, panelRows, 2*panelRows - 1, 2 * panelRows} {
		x := points.NewDense(2*panelRows+1, 2, nil)
		for i := bad; i < x.N; i += panelRows/2 + 1 {
			x.Data[2*i] = 1e80
		}
		if _, err := Matrix(context.Background(), m, x, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("point %d ", bad)) {
			t.Errorf("bad point %d: %v", bad, err)
		}
	}
}

// TestMatrixToColumns writes into columns of a wider matrix and nowhere else, and refuses columns that
// it has not.
func TestMatrixToColumns(t *testing.T) {
	const n, d, s = 5, 3, 4
	m, err := Fourier{Kernel: kernel.Gaussian{Sigma: 1}}.Sample(d, s, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	x := points.NewDense(n, d, nil)
	rng.New(2).Normals(x.Data, 0)
	want, err := Matrix(context.Background(), m, x, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{-1, 0, 2, 3, 4} {
		z := points.NewDense32(n, s+3, nil)
		for i := range z.Data {
			z.Data[i] = -9
		}
		panicked := func() (v any) {
			defer func() { v = recover() }()
			if err := MatrixTo(context.Background(), z, from, m, x, nil); err != nil {
				t.Error(err)
			}
			return nil
		}()
		words, _ := panicked.(string) // not the runtime's
		if fits := from >= 0 && from <= 3; fits != (panicked == nil) || !fits && !strings.Contains(words, "do not fit") {
			t.Errorf("columns from %d: panic %v", from, panicked)
		}
		if panicked != nil {
			continue
		}
		for i := range n {
			for j, v := range z.Row(i) {
				w := float32(-9)
				if j >= from && j < from+s {
					w = want.Row(i)[j-from]
				}
				if v != w {
					t.Errorf("from %d: (%d, %d) is %v, want %v", from, i, j, v, w)
				}
			}
		}
	}
	short := points.NewDense32(n-1, s, nil)
	func() {
		defer func() {
			if v, _ := recover().(string); !strings.Contains(v, "do not fit") {
				t.Errorf("a matrix with a row too few: panic %q", v)
			}
		}()
		_ = MatrixTo(context.Background(), short, 0, m, x, nil)
	}()
}
