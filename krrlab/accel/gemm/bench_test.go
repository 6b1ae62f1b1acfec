package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

func slice32(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = 2*rand.Float32() - 1
	}
	return s
}

func BenchmarkSgemm(b *testing.B) {
	for _, s := range []struct {
		m, n, k int
		t       blas.Transpose
	}{{512, 512, 784, blas.NoTrans}, {512, 512, 784, blas.Trans}, {256, 2000, 784, blas.NoTrans}, {256, 2000, 784, blas.Trans}, {16, 16, 16, blas.NoTrans}, {1, 512, 512, blas.NoTrans}, {10, 512, 512, blas.NoTrans}, {10, 512, 512, blas.Trans}} {
		x, y, z := slice32(s.m*s.k), slice32(s.n*s.k), slice32(s.m*s.n)
		ldb := s.n
		if s.t != blas.NoTrans {
			ldb = s.k
		}
		flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		do := func(name string, f func()) {
			b.Run(fmt.Sprintf("%dx%dx%d%c/%s", s.m, s.n, s.k, s.t, name), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
		do("gonum", func() {
			gonum.Implementation{}.Sgemm(blas.NoTrans, s.t, s.m, s.n, s.k, 1, x, s.k, y, ldb, 0, z, s.n)
		})
		for _, p := range Paths() {
			Use(p)
			do(p.String(), func() { Sgemm(blas.NoTrans, s.t, s.m, s.n, s.k, 1, x, s.k, y, ldb, 0, z, s.n) })
		}
	}
}
