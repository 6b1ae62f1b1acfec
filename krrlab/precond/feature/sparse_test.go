package feature

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// sparsePoints returns n points of dimension d with one or two nonzeros each, as dense and as sparse points.
func sparsePoints(n, d int, size float64) (*points.Dense, *points.CSR) {
	x := points.NewDense(n, d, nil)
	for i := range n {
		for j, coordinate := range []int{i % (d / 2), d/2 + i*7%(d/2)} {
			if j == 0 || i%3 != 0 {
				x.Data[i*d+coordinate] = float64(float32(size * (1 + float64(i%5)) / 4 * float64(1-2*j)))
			}
		}
	}
	return x, testkit.ToCSR(x)
}

// TestSparsePhases compares the features of sparse points, whose phases are sums over nonzeros, with those of the
// same dense points: in float64, in float32, and where some or all phases are so large that float32 features compute
// them in float64.
func TestSparsePhases(t *testing.T) {
	const n, d, s = 40, 64, 48
	for _, dist := range []Dist{Fourier{Kernel: kernel.Gaussian{Sigma: 1}},
		Fourier{Kernel: kernel.Laplacian{Sigma: 1}}} {
		m := testkit.Must(dist.Sample(d, s, rng.New(5)))
		fourier := m.(*FourierMap)
		for _, size := range []float64{0.1, 30, 100, 1e3, 1e6} {
			x, csr := sparsePoints(n, d, size)
			if _, isSparse := asSparse(csr); !isSparse {
				t.Fatal("the points have too many nonzeros to be used as sparse")
			}
			var w Workspace
			want, got := make([]float64, n*s), make([]float64, n*s)
			fourier.MapTo(want, s, x, &w)
			fourier.MapTo(got, s, csr, &w)
			z := make([]float32, n*s)
			fourier.MapTo32(z, s, csr, &w)
			largePhases, largestIn32 := 0, 0.0
			for _, v := range fourier.norms {
				if v*maxNorm(x, &w) > phaseLimit {
					largePhases++
				} else {
					largestIn32 = max(largestIn32, v*maxNorm(x, &w))
				}
			}
			// A phase is a sum of d+1 terms, with an error of at most (d+2)·ε of the sum of their sizes, which is at
			// most ‖w‖₂‖x‖₁+π. cos and √(2/s) do not increase it. Float32 features compute phases above phaseLimit in
			// float64.
			largestPhase := 0.0
			for i := range n {
				var norm1 float64
				for _, v := range x.Row(i) {
					norm1 += math.Abs(v)
				}
				for _, v := range fourier.norms {
					largestPhase = max(largestPhase, v*norm1)
				}
			}
			scale := math.Sqrt(2.0 / s)
			tol64 := 4 * scale * 0x1p-53 * (4*largestPhase + 4)
			tol32 := 4*scale*0x1p-24*(4*math.Sqrt2*largestIn32+8) + tol64
			for i := range got {
				if math.Abs(got[i]-want[i]) > tol64 {
					t.Fatalf("%v, size %g: feature %d is %v, of dense points %v", dist, size, i, got[i], want[i])
				}
				if math.Abs(float64(z[i])-want[i]) > tol32 {
					t.Fatalf("%v, size %g, %d of %d phases large: float32 feature %d is %v, want %v within %.2g", dist,
						size, largePhases, s, i, z[i], want[i], tol32)
				}
			}
		}
	}
}
