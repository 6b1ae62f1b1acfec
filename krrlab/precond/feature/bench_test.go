package feature_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// BenchmarkMatrix forms Z for n = 10,000 points of dimension 784 and 2,000 features. The points have the shape and
// the norms of MNIST's.
func BenchmarkMatrix(b *testing.B) {
	const n, d, s = 10000, 784, 2000
	dense := points.NewDense32(n, d, nil)
	u := make([]float64, n*d)
	rng.New(1).Float64s(u, 0)
	for i, v := range u {
		dense.Data[i] = float32(0.6 * v)
	}
	for _, c := range []struct {
		name string
		dist feature.Dist
	}{
		{"gaussian", feature.Fourier{Kernel: kernel.Gaussian{Sigma: 8.5}}},
		{"matern32", feature.Fourier{Kernel: kernel.Matern32{Sigma: 8.5}}},
		{"laplacian", feature.Fourier{Kernel: kernel.Laplacian{Sigma: 100}}},
		{"tensorsketch", feature.TensorSketch{Kernel: kernel.Polynomial{Gamma: 0.01, Coef0: 1, Degree: 3}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			testkit.FastBLAS(b)
			var m feature.Map
			b.Run("sample", func(b *testing.B) {
				for range b.N {
					m, _ = c.dist.Sample(d, s, rng.New(1))
				}
			})
			b.Run("map", func(b *testing.B) {
				testkit.BenchmarkFloor(b, 0, 2*n*s*d, 0, func() error {
					_, err := feature.Matrix(context.Background(), m, dense, nil)
					return err
				})
			})
		})
	}
}

// BenchmarkSparse maps 256 sparse points to 2,000 features and reports the time per nonzero and feature. The constant
// sparseCost was fitted to this time.
func BenchmarkSparse(b *testing.B) {
	const n, d, s = 256, 784, 2000
	m, _ := feature.Fourier{Kernel: kernel.Gaussian{Sigma: 8.5}}.Sample(d, s, rng.New(1))
	z := make([]float32, n*s)
	for _, percent := range []int{2, 5, 10, 12, 13, 19, 100} {
		x := points.CSR{N: n, D: d, Ptr: []int{0}}
		for i := range n {
			for c := range d {
				if rng.New(7).IntN(uint64(i*d+c), 100) < percent {
					x.Col, x.Val = append(x.Col, int32(c)), append(x.Val, 0.3)
				}
			}
			x.Ptr = append(x.Ptr, len(x.Col))
		}
		b.Run(fmt.Sprintf("%dpercent", percent), func(b *testing.B) {
			testkit.FastBLAS(b)
			var w feature.Workspace
			for range b.N {
				m.(feature.Map32).MapTo32(z, s, &x, &w)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(x.NNZ())/s, "ns/step")
		})
	}
}
