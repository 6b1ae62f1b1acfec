package feature

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// sparse returns n points of dimension d with one or two nonzeros each, both ways.
func sparse(n, d int, size float64) (*points.Dense, *points.CSR) {
	x := points.NewDense(n, d, nil)
	for i := range n {
		for j, c := range []int{i % (d / 2), d/2 + i*7%(d/2)} {
			if j == 0 || i%3 != 0 {
				x.Data[i*d+c] = float64(float32(size * (1 + float64(i%5)) / 4 * float64(1-2*j)))
			}
		}
	}
	return x, testkit.Sparse(x)
}

// TestSparsePhases compares phases by a walk over nonzeros with those of the same points as dense
// ones: in float64, in float32, and where some or all of the features go by float64 for their size.
func TestSparsePhases(t *testing.T) {
	const n, d, s = 40, 64, 48
	for _, dist := range []Dist{Fourier{Kernel: kernel.Gaussian{Sigma: 1}},
		Fourier{Kernel: kernel.Laplacian{Sigma: 1}}} {
		m := testkit.Must(dist.Sample(d, s, rng.New(5)))
		f := m.(*FourierMap)
		for _, size := range []float64{0.1, 30, 100, 1e3, 1e6} {
			x, csr := sparse(n, d, size)
			if _, isSparse := asSparse(csr); !isSparse {
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
					t.Fatalf("%v, size %g, %d of %d far: float32 feature %d is %v, want %v within %.2g", dist, size,
						far, s, i, z[i], want[i], tol32)
				}
			}
		}
	}
}
