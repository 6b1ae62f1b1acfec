package simd

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAddBothProducts reads matrices of 512×512 tiles in turn, 64 MiB for each core, on one core and on two cores
// that read different memory. It reports 1e9 entries of the tiles per second.
func BenchmarkAddBothProducts(b *testing.B) {
	for _, p := range Paths() {
		for _, t := range []int{1, 2, 3, 4, 8, 10, 16} {
			name := fmt.Sprintf("%v/t=%d/", p, t)
			benchmarkTiles(b, name+"float32", p, t, 64, AddBothProducts[float32, float32])
			benchmarkTiles(b, name+"16bit", p, t, 128, AddBothProducts[uint16, float32])
		}
	}
}

// benchmarkTiles multiplies t vectors by the given number of tiles in turn, on one and on two cores.
func benchmarkTiles[T uint16 | float32](b *testing.B, name string, p Path, t, tiles int,
	f func(rows, cols int, tile []T, ld int, x, y, z, u []float32, t int, w *Workspace)) {
	const n = 512
	for cores := 1; cores <= 2; cores++ {
		b.Run(fmt.Sprintf("%s/cores=%d", name, cores), func(b *testing.B) {
			defer UsePath(CurrentPath())
			UsePath(p)
			matrix := make([][]T, cores)
			for c := range matrix {
				matrix[c] = make([]T, tiles*n*n)
				for i := range matrix[c] {
					matrix[c][i] = T(i % 7)
				}
			}
			b.ResetTimer()
			var wait sync.WaitGroup
			for c := range cores {
				wait.Go(func() {
					x, y, z, u := make([]float32, n*t), make([]float32, n*t), make([]float32, n*t), make([]float32, n*t)
					var w Workspace
					for i := range b.N {
						k := i % tiles
						f(n, n, matrix[c][k*n*n:(k+1)*n*n], n, x, y, z, u, t, &w)
					}
				})
			}
			wait.Wait()
			b.ReportMetric(float64(b.N*cores*n*n)/b.Elapsed().Seconds()/1e9, "Gentries/s")
		})
	}
}

// BenchmarkElements measures the elementwise functions on one core in ns per number.
func BenchmarkElements(b *testing.B) {
	const n = 4096
	x64, dst64 := make([]float64, n), make([]float64, n)
	x, phases, dst, products, norms := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n),
		make([]float64, n)
	for i := range x {
		u := float32(i*911%n) / n
		x[i], phases[i], products[i], norms[i] = -20*u, 40*u-20, 60+20*u, 94
		x64[i] = 20 * float64(u)
	}
	for _, p := range Paths() {
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"Exp32", func() { Exp32(dst, x) }},
			{"Exp64", func() { Exp64(dst64, x64, -1, -100) }},
			{"Cos32", func() { Cos32(dst, phases) }},
			{"GaussianRow", func() { GaussianRow(dst, products, norms, 94, -1/128.0, -80) }},
		} {
			b.Run(fmt.Sprintf("%v/%s", p, c.name), func(b *testing.B) {
				defer UsePath(CurrentPath())
				UsePath(p)
				for range b.N {
					c.f()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(n)/float64(b.N), "ns/number")
			})
		}
	}
}
