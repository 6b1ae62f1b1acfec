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
// to the times at the measured rates of matrix products. Each time is the minimum over the runs.
func BenchmarkSolve(b *testing.B) {
	testkit.FastBLAS(b)
	const n, d = 4000, 784
	x := points.NewDense32(n, d, nil)
	stream := rng.New(1)
	for i := range x.Data { // one number in five is not 0, as for MNIST
		if number := stream.Float64(uint64(i)); number < 0.2 {
			x.Data[i] = float32(5 * number)
		}
	}
	y := targets(1, n, 10)
	rates := testkit.MeasureRates()
	for _, precision := range precisions {
		b.Run(precision.String(), func(b *testing.B) {
			var kernelSeconds, factorSeconds float64
			for b.Loop() {
				res, err := direct.Solve(context.Background(), kernel.Gaussian{Sigma: 8.5}, x, 0.1, y,
					&direct.Options{Precision: precision})
				if err != nil || res.Status != pcg.Converged {
					b.Fatal(res, err)
				}
				if kernelSeconds == 0 || res.Seconds.Kernel < kernelSeconds {
					kernelSeconds = res.Seconds.Kernel
				}
				if factorSeconds == 0 || res.Seconds.Factor < factorSeconds {
					factorSeconds = res.Seconds.Factor
				}
			}
			rate := rates.Gemm64
			if precision == direct.Float32Refined {
				rate = rates.Gemm32
			}
			b.ReportMetric(kernelSeconds/(n*n*d/rates.Gemm64), "x-kernel")
			b.ReportMetric(factorSeconds/(1.0*n*n*n/3/rate), "x-factor")
		})
	}
}
