package baseline_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// The benchmarks compare each method with what its flops and bytes take at the rates of this machine:
// the metric x-bound is the ratio of the least time of all rounds to that at the highest rates measured
// before and after them, so that other work on the machine does not count.

const benchN, benchS, benchD = 16000, 2000, 784

// atRates runs f between two measurements of the rates and returns the higher ones.
func atRates(f func()) testkit.Rates {
	before := testkit.MeasureRates()
	f()
	return before.Max(testkit.MeasureRates())
}

// least keeps the least of the values it is given.
type least float64

func (l *least) add(v float64) {
	if *l == 0 || v < float64(*l) {
		*l = least(v)
	}
}

// benchPoints are points as MNIST's: of dimension 784, one number in five not 0, norms about 10.
func benchPoints(n int) *points.Dense32 {
	x := points.NewDense32(n, benchD, nil)
	g := rng.New(1)
	for i := range x.Data {
		if v := g.Float64(uint64(i)); v < 0.2 {
			x.Data[i] = float32(5 * v)
		}
	}
	return x
}

// BenchmarkRandomFeatures: features 2nsd and ZᵀZ ns² flops in float32, Cholesky s³/3 in float64,
// and Z read in each of the passes.
func BenchmarkRandomFeatures(b *testing.B) {
	testkit.FastBLAS(b)
	x := benchPoints(benchN)
	m := sample(b, feature.Fourier{Kernel: kernel.Gaussian{Sigma: 8.5}}, benchD, benchS)
	for _, t := range []int{1, 10} {
		y := targets(1, benchN, t)
		for _, o := range []baseline.FeatureOptions{{}, {Exact: true}, {Stream: true}} {
			b.Run(fmt.Sprintf("t=%d/exact=%v/stream=%v", t, o.Exact, o.Stream), func(b *testing.B) {
				var total least
				var passes float64
				r := atRates(func() {
					for b.Loop() {
						res, err := baseline.RandomFeatures(context.Background(), m, x, 0.1, y, &o)
						if err != nil || res.Status != pcg.Converged {
							b.Fatal(res, err)
						}
						total.add(res.Seconds.Total)
						passes = float64(res.Rounds + 2)
					}
				})
				const n, s, d = benchN, benchS, benchD
				forming, gram := 2.0*n*s*d/r.Gemm32, n*s*s/r.Gemm32
				if o.Exact {
					gram = n * s * s / r.Gemm64
				}
				if o.Stream {
					forming *= passes
				}
				bound := forming + gram + s*s*s/3.0/r.Gemm64 + passes*max(4*n*s/r.Read, 4*n*s*float64(t)/r.Gemm64)
				b.ReportMetric(float64(total)/bound, "x-bound")
				b.ReportMetric(passes, "passes")
			})
		}
	}
}

// BenchmarkADMM: an iteration reads Z and the factors once, or takes 4nst flops in float64.
func BenchmarkADMM(b *testing.B) {
	testkit.FastBLAS(b)
	x := benchPoints(benchN)
	m := sample(b, feature.Fourier{Kernel: kernel.Gaussian{Sigma: 8.5}}, benchD, benchS)
	for _, t := range []int{1, 10} {
		y := signs(targets(1, benchN, t))
		for _, loss := range losses {
			for _, blocks := range []int{1, 4} {
				a := newADMM(b, m, x, 1, y, loss, &baseline.ADMMOptions{FeatureBlocks: blocks})
				b.Run(fmt.Sprintf("t=%d/%v/%d", t, loss, blocks), func(b *testing.B) {
					const n, s, window = benchN, benchS, 5
					k := float64(s / blocks) // order of the factors
					factors := float64(blocks) * k * k
					var total least // of the windows of so many iterations
					r := atRates(func() {
						for b.Loop() {
							res := solved(b, a, &baseline.ADMMSolve{MaxIter: 40, Every: window, Tol: 1e-12})
							for i := 1; i < len(res.History); i++ {
								total.add((res.History[i].Seconds - res.History[i-1].Seconds) / window)
							}
						}
					})
					bound := max(4*n*s/r.Read, 4*n*s*float64(t)/r.Gemm64) + max(8*factors/r.Read, 2*factors*float64(t)/r.Gemm64)
					b.ReportMetric(float64(total)/bound, "x-bound")
					b.ReportMetric(1e3*float64(total), "ms/iteration")
				})
			}
		}
	}
}

// BenchmarkADMMSetup: features, ZᵀZ by blocks in float64, factor and inverse.
func BenchmarkADMMSetup(b *testing.B) {
	testkit.FastBLAS(b)
	x := benchPoints(benchN)
	m := sample(b, feature.Fourier{Kernel: kernel.Gaussian{Sigma: 8.5}}, benchD, benchS)
	y := targets(1, benchN, 1)
	var total least
	r := atRates(func() {
		for b.Loop() {
			a := newADMM(b, m, x, 1, y, baseline.Square, &baseline.ADMMOptions{FeatureBlocks: 2})
			total.add(a.Seconds().Total)
		}
	})
	const n, s, d, k = benchN, benchS, benchD, benchS / 2
	b.ReportMetric(float64(total)/(2.0*n*s*d/r.Gemm32+(2*n*k*k+2*2.0/3*k*k*k)/r.Gemm64), "x-bound")
}
