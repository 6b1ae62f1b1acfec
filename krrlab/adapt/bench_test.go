package adapt

import (
	"context"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

// BenchmarkLadder compares what the whole ladder 64, 128, …, 2048 takes, of Z, ZᵀZ and the
// factor of every rung, with what its last rung takes alone, at n = 8,000, d = 100. The bound
// is 1.5; in flops it is 1 for Z and ZᵀZ, and 8/7 for the factor.
func BenchmarkLadder(b *testing.B) {
	lib, err := accel.OpenBLAS()
	if err != nil {
		b.Skip(err)
	}
	accel.Use(lib)
	b.Cleanup(func() { accel.Use(nil) })
	const n, d, first, last = 8000, 100, 64, 2048
	ctx, x := context.Background(), cloud(n, d, 1)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 10}, kernel.Polynomial{Gamma: 0.01, Coef0: 1, Degree: 3}} {
		dist, err := feature.For(k)
		if err != nil {
			b.Fatal(err)
		}
		climb := func(from int) time.Duration {
			l := &ladder{x: x, comm: comm.Alone(), dist: feature.Doubling{Dist: dist, First: from}, g: rng.New(1)}
			began := time.Now()
			for s := from; s <= last; s *= 2 {
				if err := l.climb(ctx, s); err != nil {
					b.Fatal(err)
				}
				if _, err := l.metric(ctx, 0.1); err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(began)
		}
		b.Run(k.String(), func(b *testing.B) {
			var whole, alone time.Duration
			for b.Loop() {
				whole += climb(first)
				alone += climb(last)
			}
			b.ReportMetric(whole.Seconds()/float64(b.N), "ladder-s")
			b.ReportMetric(alone.Seconds()/float64(b.N), "last-s")
			b.ReportMetric(whole.Seconds()/alone.Seconds(), "ratio")
		})
	}
}
