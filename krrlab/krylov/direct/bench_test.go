package direct_test

import (
	"context"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// BenchmarkSolve reports the times of forming K, n²d flops in float64, and of the factorization, n³/3 flops, relative
// to the times at the measured rates of matrix products. Each is the minimum over the runs.
func BenchmarkSolve(b *testing.B) {
	testkit.FastBLAS(b)
	const n, d = 4000, 784
	x := points.NewDense32(n, d, nil)
	g := rng.New(1)
	for i := range x.Data { // one number in five is not 0, as for MNIST
		if v := g.Float64(uint64(i)); v < 0.2 {
			x.Data[i] = float32(5 * v)
		}
	}
	y := targets(1, n, 10)
	rates := testkit.MeasureRates()
	for _, p := range precisions {
		b.Run(p.String(), func(b *testing.B) {
			var forming, factoring float64
			for b.Loop() {
				res, err := direct.Solve(context.Background(), kernel.Gaussian{Sigma: 8.5}, x, 0.1, y,
					&direct.Options{Precision: p})
				if err != nil || res.Status != pcg.Converged {
					b.Fatal(res, err)
				}
				if forming == 0 || res.Seconds.Kernel < forming {
					forming = res.Seconds.Kernel
				}
				if factoring == 0 || res.Seconds.Factor < factoring {
					factoring = res.Seconds.Factor
				}
			}
			rate := rates.Gemm64
			if p == direct.Float32Refined {
				rate = rates.Gemm32
			}
			b.ReportMetric(forming/(n*n*d/rates.Gemm64), "x-kernel")
			b.ReportMetric(factoring/(1.0*n*n*n/3/rate), "x-factor")
		})
	}
}
