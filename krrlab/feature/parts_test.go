package feature

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

// TestBytes counts what a workspace and a map hold, slice by slice.
func TestBytes(t *testing.T) {
	w := Workspace{
		x64: make([]float64, 1), w64: make([]float64, 2), phase64: make([]float64, 4), x32: make([]float32, 8), norms: make([]float64, 16),
		far: make([]int, 32), seq: make([]float64, 64), prod: make([]complex128, 128), next: make([]complex128, 256),
	}
	const plain = 8*(1+2+4+16+32+64) + 4*8 + 16*(128+256)
	if got := w.Bytes(); got != plain {
		t.Errorf("%d bytes, want %d", got, plain)
	}
	c := w.chained()
	c.first.x64, c.tmp = make([]float64, 3), make([]float64, 5)
	c.z32, c.z64 = make([]float32, 7), make([]float64, 13)
	op, err := sketch.CountSketch{}.Sample(3, 2, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	op.Apply64(make([]float64, 2), 2, make([]float64, 3), 3, 1, &c.sketch)
	if got, want := w.Bytes(), plain+8*(3+5+13)+4*7+c.sketch.Bytes(); got != want || c.sketch.Bytes() == 0 || w.chained() != c {
		t.Errorf("%d bytes with a chain, want %d", got, want)
	}
	for _, to := range []int{1, 7, 40} {
		m, err := Fourier{Kernel: kernel.Gaussian{Sigma: 1}}.Sample(3, to, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		f := m.(*FourierMap)
		if got, want := f.Bytes(), int64(4*(len(f.wt)+len(f.b32))+8*(len(f.b)+len(f.norm))); got != want || len(f.wt) != 3*to {
			t.Errorf("a map to %d: %d bytes, want %d", to, got, want)
		}
	}
}

// TestTail: the last features of a wider map, with their frequencies, and the scale of so many.
func TestTail(t *testing.T) {
	const d, s, from = 3, 9, 4
	m, err := Fourier{Kernel: kernel.Matern32{Sigma: 1}}.Sample(d, s, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	whole, part := m.(*FourierMap), m.(*FourierMap).tail(from)
	a, b, most := make([]float64, d), make([]float64, d), 0.0
	for j := range s - from {
		ba, bb := whole.Frequency(a, from+j), part.Frequency(b, j)
		var sum float64
		for c := range d {
			sum += b[c] * b[c]
			if a[c] != b[c] || ba != bb {
				t.Errorf("frequency %d: %v and %v, want %v and %v", j, b, bb, a, ba)
			}
		}
		if math.Abs(part.norm[j]-math.Sqrt(sum)) > 1e-6*part.norm[j] || part.b32[j] != float32(bb) {
			t.Errorf("frequency %d has the length %g, want %g", j, part.norm[j], math.Sqrt(sum))
		}
		most = max(most, part.norm[j])
	}
	if part.most != most || part.scale != math.Sqrt(2.0/(s-from)) || part.s != s-from || part.d != d {
		t.Errorf("%+v, want the largest length %g", part, most)
	}
}

// TestWalk: points are walked that have one nonzero in eight at most.
func TestWalk(t *testing.T) {
	for nnz, want := range map[int]bool{0: true, 7: true, 8: true, 9: false} {
		x := &points.CSR{N: 4, D: 16, Ptr: []int{0, min(nnz, 8), nnz, nnz, nnz}, Col: make([]int32, nnz), Val: make([]float64, nnz)}
		if _, walked := walk(x); walked != want {
			t.Errorf("%d nonzeros of 64: walked %v", nnz, walked)
		}
	}
	if _, walked := walk(points.NewDense(2, 16, nil)); walked {
		t.Error("dense points are walked")
	}
}

// TestPhases: phases of all features, and of some, of points of every kind, at a stride, where W is
// converted in one block and in many.
func TestPhases(t *testing.T) {
	for _, c := range []struct{ d, s int }{{5, 6}, {3, chunk/2 + 1}, {1, 3}} {
		m, err := Fourier{Kernel: kernel.Gaussian{Sigma: 1}}.Sample(c.d, c.s, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		f := m.(*FourierMap)
		const n = 3
		x, x32 := points.NewDense(n, c.d, nil), points.NewDense32(n, c.d, nil)
		csr := &points.CSR{N: n, D: c.d, Ptr: []int{0}}
		rng.New(2).Normals(x.Data, 0)
		for i := range x.Data {
			x32.Data[i] = float32(x.Data[i])
			x.Data[i] = float64(x32.Data[i])
			csr.Col, csr.Val = append(csr.Col, int32(i%c.d)), append(csr.Val, x.Data[i])
			if i%c.d == c.d-1 {
				csr.Ptr = append(csr.Ptr, i+1)
			}
		}
		few := []int{c.s - 1, 0, 2}
		w := make([]float64, c.d)
		for _, p := range []points.Points{x, x32, csr} {
			for _, only := range [][]int{nil, few} {
				cols := c.s
				if only != nil {
					cols = len(only)
				}
				ld := cols + 2
				got := make([]float64, n*ld)
				for i := range got {
					got[i] = -99
				}
				f.phases64(got, ld, p, only, &Workspace{})
				for k := range ld {
					j := k
					if only != nil && k < cols {
						j = only[k]
					}
					for i := range n {
						want := -99.0
						if k < cols {
							want = f.Frequency(w, j)
							for c, v := range x.Row(i) {
								want += w[c] * v
							}
						}
						if math.Abs(got[i*ld+k]-want) > 1e-12 {
							t.Fatalf("%T, d = %d, s = %d: phase (%d, %d) is %v, want %v", p, c.d, c.s, i, j, got[i*ld+k], want)
						}
					}
				}
			}
		}
	}
}

// TestPhaseLimit: phases that may exceed phaseLimit are reduced, those of a frequency and of a point
// that cannot are not; if one feature in four can, all are formed in float64.
func TestPhaseLimit(t *testing.T) {
	for far, all := range map[int]bool{0: false, 1: false, 2: false, 3: true, 8: true} {
		const s = 8
		f := &FourierMap{d: 1, s: s, wt: make([]float32, s), b: make([]float64, s), b32: make([]float32, s), norm: make([]float64, s), scale: 1}
		for j := range s {
			v := 1.0
			if j >= s-far {
				v = 1.5
			}
			f.wt[j], f.norm[j], f.most = float32(v), v, max(f.most, v)
		}
		x := points.NewDense(1, 1, []float64{phaseLimit})
		z, w := make([]float32, s), Workspace{}
		f.phases32(z, s, x, &w)
		for j, v := range z {
			v, phase := float64(v), f.norm[j]*phaseLimit
			reduced := math.Abs(v) <= math.Pi+1e-6
			if reduced != (all || j >= s-far) || math.Abs(math.Cos(v)-math.Cos(phase)) > 1e-3 {
				t.Errorf("%d far: phase %d is %v for %v", far, j, v, phase)
			}
		}
		if len(w.far) != far {
			t.Errorf("%d features are far, want %d", len(w.far), far)
		}
	}
}

// TestHaar: an orthonormal basis whose vector j is a function of the first j columns of G, with which it
// has a positive inner product: R_jj.
func TestHaar(t *testing.T) {
	const d = 5
	g := rng.New(3)
	whole := haar(d, d, g)
	for r := 1; r <= d; r++ {
		q := haar(d, r, g)
		for j := range r {
			col := make([]float64, d)
			g.Normals(col, uint64(j*d))
			var along float64
			for c, v := range q[j*d : (j+1)*d] {
				along += v * col[c]
				if math.Abs(v-whole[j*d+c]) > 1e-14 {
					t.Errorf("%d vectors: vector %d is %v, want %v", r, j, q[j*d:(j+1)*d], whole[j*d:(j+1)*d])
				}
			}
			if along <= 0 {
				t.Errorf("vector %d: R_jj = %g", j, along)
			}
			for i := range j + 1 {
				var dot, want float64
				if i == j {
					want = 1
				}
				for c := range d {
					dot += q[i*d+c] * q[j*d+c]
				}
				if math.Abs(dot-want) > 1e-14 {
					t.Errorf("vectors %d and %d: %g, want %g", i, j, dot, want)
				}
			}
		}
	}
}

// TestMulMod at the edges of the field, against 128 bits.
func TestMulMod(t *testing.T) {
	edge := []uint64{0, 1, 2, prime / 2, prime - 2, prime - 1, prime, 1<<61 - 3, 0x123456789abcdef}
	for _, a := range edge {
		for _, b := range edge {
			hi, lo := bits.Mul64(a, b)
			_, want := bits.Div64(hi, lo, prime)
			if got := mulMod(a, b); got != want {
				t.Errorf("%d·%d = %d, want %d", a, b, got, want)
			}
		}
	}
}

// TestHashPrime: a value that is the prime is 0.
func TestHashPrime(t *testing.T) {
	for i, want := range map[uint64]uint64{4: prime - 1, 5: 0, 6: 1} {
		if got := (polyHash{prime - 5, 1}).at(i); got != want {
			t.Errorf("the hash of %d is %d, want %d", i, got, want)
		}
	}
	one := TensorSketch{Kernel: kernel.Polynomial{Gamma: 1, Degree: 1}}
	if m := draw(t, one, 1, math.MaxInt32).(*TensorSketchMap); m.m != math.MaxInt32 {
		t.Errorf("%d numbers", m.m)
	}
	if _, err := one.Sample(1, math.MaxInt32+1, rng.New(1)); err == nil || !strings.Contains(err.Error(), "want at most 2147483647") {
		t.Errorf("%v", err)
	}
}

// TestOrthogonalLengths: frequency j has the length that its own stream gives.
func TestOrthogonalLengths(t *testing.T) {
	const d, s = 3, 7
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 2}, kernel.Matern52{Sigma: 2}} {
		g := rng.New(4)
		m, err := Fourier{Kernel: k, Orthogonal: true}.Sample(d, s, g)
		if err != nil {
			t.Fatal(err)
		}
		for j, got := range m.(*FourierMap).norm {
			row := g.Sub("frequencies", uint64(j))
			want := math.Sqrt(row.Sub("length").ChiSquare(0, d)) / 2
			if k != (kernel.Gaussian{Sigma: 2}) {
				want /= math.Sqrt(row.Sub("mix").ChiSquare(0, 5) / 5)
			}
			if math.Abs(got-want) > 1e-12*want {
				t.Errorf("%v: ‖w_%d‖ = %v, want %v", k, j, got, want)
			}
		}
	}
}

// TestFFTLen: s itself for one factor and where its own factors are small, and else the least length without
// large factors for which nothing wraps round.
func TestFFTLen(t *testing.T) {
	for _, c := range []struct{ q, s, want int }{
		{1, 1009, 1009}, {2, 1024, 1024}, {3, 1000, 1000}, {2, 1009, 2025}, {3, 1009, 3072}, {2, 1, 1}, {2, 7, 7}, {2, 127, 256}, {2, 4, 4},
	} {
		if got := fftLen(c.q, c.s); got != c.want {
			t.Errorf("q = %d, s = %d: %d, want %d", c.q, c.s, got, c.want)
		}
	}
}

// TestStackWords and what else a stack, a doubling and a chain say of themselves.
func TestWords(t *testing.T) {
	poly := TensorSketch{Kernel: kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}}
	gauss := Fourier{Kernel: kernel.Gaussian{Sigma: 1}}
	for got, want := range map[fmt.Stringer]string{
		Doubling{Dist: poly, First: 4}:  poly.String() + ", stacked from 4",
		Doubling{Dist: gauss, First: 4}: gauss.String(),
		&Chain{Features: gauss, Width: 9, Sketches: sketch.Composition{{Dist: sketch.SRHT{}, Width: 5}, {Dist: sketch.Gaussian{}}}}: gauss.String() + " to 9 → srht to 5 → gaussian",
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for name, f := range map[string]func(){
		"dimension 3 ": func() { draw(t, gauss, 2, 4).MapTo(make([]float64, 4), 4, points.NewDense(1, 3, nil), &Workspace{}) },
		"3 given to": func() {
			_ = MatrixTo(t.Context(), points.NewDense32(1, 4, nil), 0, draw(t, gauss, 2, 4), points.NewDense(1, 3, nil), nil)
		},
		"do not fit": func() { draw(t, gauss, 2, 4).MapTo(make([]float64, 8), 3, points.NewDense(2, 2, nil), &Workspace{}) },
		"4 numbers": func() {
			stacked([]Map{draw(t, gauss, 2, 2), draw(t, poly, 2, 3)}).MapTo(make([]float64, 4), 5, points.NewDense(1, 2, nil), &Workspace{})
		},
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, name) {
					t.Errorf("panic %q, want %q", v, name)
				}
			}()
			f()
		}()
	}
	var w Workspace
	stacked([]Map{draw(t, gauss, 2, 2), draw(t, poly, 2, 3)}).MapTo(nil, 5, points.NewDense(0, 2, nil), &w)
	if n := checkMap(draw(t, gauss, 2, 4), 8, 4, points.NewDense(2, 2, nil)); n != 2 {
		t.Errorf("%d points", n)
	}
}

func draw(t *testing.T, f Dist, d, s int) Map {
	t.Helper()
	m, err := f.Sample(d, s, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWholePanels: whole panels of points, and one more or less, at a stride that leaves nothing after the
// last row, have the features of each point alone.
func TestWholePanels(t *testing.T) {
	const d, s, ld = 3, 4, 6
	gauss := Fourier{Kernel: kernel.Gaussian{Sigma: 1}}
	poly := TensorSketch{Kernel: kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}}
	chain := Chain{Features: gauss, Width: 9, Sketches: sketch.Composition{{Dist: sketch.CountSketch{}, Width: 5}, {Dist: sketch.CountSketch{}, Width: 12}, {Dist: sketch.Gaussian{}}}}
	for _, f := range []Dist{gauss, poly, chain, Doubling{Dist: poly, First: 2}} {
		m := draw(t, f, d, s)
		for _, n := range []int{0, 1, panelRows - 1, panelRows, panelRows + 1, 2 * panelRows} {
			x := points.NewDense(n, d, nil)
			rng.New(2).Normals(x.Data, 0)
			z := make([]float64, max(0, (n-1)*ld+s))
			z32 := make([]float32, len(z))
			for i := range z {
				z[i], z32[i] = -9, -9
			}
			var w, one Workspace
			m.MapTo(z, ld, x, &w)
			fast, ok := m.(Map32)
			if ok {
				fast.MapTo32(z32, ld, x, &w)
			}
			want := make([]float64, s)
			for i := range n {
				m.MapTo(want, s, x.Slice(i, i+1), &one)
				for j := range ld {
					at := i*ld + j
					if at >= len(z) {
						break
					}
					v := -9.0
					if j < s {
						v = want[j]
					}
					if math.Abs(z[at]-v) > 1e-12 || ok && math.Abs(float64(z32[at])-v) > 1e-4 {
						t.Fatalf("%v, %d points: (%d, %d) is %v and %v, want %v", f, n, i, j, z[at], z32[at], v)
					}
				}
			}
		}
	}
}

// TestPartErrors: what cannot be drawn has no part either.
func TestPartErrors(t *testing.T) {
	for _, k := range []Dist{Fourier{Kernel: kernel.Gaussian{}}, TensorSketch{Kernel: kernel.Polynomial{Gamma: 1, Degree: 0}}} {
		for _, from := range []int{0, 4} {
			if m, err := (Doubling{Dist: k, First: 4}).Part(3, from, 8, rng.New(1)); err == nil || m != nil {
				t.Errorf("%v from %d: %v, %v", k, from, m, err)
			}
		}
	}
}
