package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BenchmarkPaths compares the paths with each other and with gonum's code, which takes
// all cores where ours takes one. Package accel's BenchmarkGemmSizes has OpenBLAS beside it.
func BenchmarkPaths(b *testing.B) {
	b.Run("float32", func(b *testing.B) { benchmarkPaths(b, Sgemm, gonum.Implementation{}.Sgemm) })
	b.Run("float64", func(b *testing.B) { benchmarkPaths(b, Dgemm, gonum.Implementation{}.Dgemm) })
}

func benchmarkPaths[T real](b *testing.B, ours, gonums multiply[T]) {
	before := InUse()
	b.Cleanup(func() { Use(before) })
	g := rand.New(rand.NewPCG(15, 16))
	for _, s := range []struct {
		m, n, k int
		t       blas.Transpose
	}{
		{512, 512, 784, blas.NoTrans}, {512, 512, 784, blas.Trans},
		{256, 2000, 784, blas.NoTrans}, {256, 2000, 784, blas.Trans},
		{1, 512, 512, blas.NoTrans}, {10, 512, 512, blas.NoTrans}, {10, 512, 512, blas.Trans},
		{16, 16, 16, blas.NoTrans},
	} {
		x, y, z := values[T](g, s.m*s.k), values[T](g, s.n*s.k), make([]T, s.m*s.n)
		ldb := s.n
		if s.t != blas.NoTrans {
			ldb = s.k
		}
		run := func(name string, mul multiply[T]) {
			b.Run(fmt.Sprintf("N%c/%dx%dx%d/%s", s.t, s.m, s.n, s.k, name), func(b *testing.B) {
				for b.Loop() {
					mul(blas.NoTrans, s.t, s.m, s.n, s.k, 1, x, s.k, y, ldb, 0, z, s.n)
				}
				flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
				b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
		run("gonum", gonums)
		for _, p := range Paths() {
			Use(p)
			run(p.String(), ours)
		}
	}
}
