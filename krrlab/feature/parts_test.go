package feature

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

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

func draw(t *testing.T, f Dist, d, s int) Map {
	t.Helper()
	m, err := f.Sample(d, s, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
