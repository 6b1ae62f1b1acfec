package simd

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAddBothProducts reads matrices of 512×512 tiles in turn, 64 MiB for each core, on one core and on two cores
// that read different memory. It reports 1e9 entries of the tiles per second.
func BenchmarkAddBothProducts(b *testing.B) {
	for _, path := range Paths() {
		for _, sides := range []int{1, 2, 3, 4, 8, 10, 16} {
			name := fmt.Sprintf("%v/t=%d/", path, sides)
			benchmarkTiles(b, name+"float32", path, sides, 64, AddBothProducts[float32, float32])
			benchmarkTiles(b, name+"16bit", path, sides, 128, AddBothProducts[uint16, float32])
		}
	}
}

// benchmarkTiles multiplies the given number of vectors (sides) by the given number of tiles in turn, on one and on two
// cores.
func benchmarkTiles[T uint16 | float32](b *testing.B, name string, path Path, sides, tiles int,
	addProducts func(rows, cols int, tile []T, ld int, x, y, z, u []float32, sides int, w *Workspace)) {
	const n = 512
	for cores := 1; cores <= 2; cores++ {
		b.Run(fmt.Sprintf("%s/cores=%d", name, cores), func(b *testing.B) {
			defer UsePath(CurrentPath())
			UsePath(path)
			matrices := make([][]T, cores)
			for c := range matrices {
				matrices[c] = make([]T, tiles*n*n)
				for i := range matrices[c] {
					matrices[c][i] = T(i % 7)
				}
			}
			b.ResetTimer()
			var group sync.WaitGroup
			for c := range cores {
				group.Go(func() {
					x, y, z, u := make([]float32, n*sides), make([]float32, n*sides), make([]float32, n*sides),
						make([]float32, n*sides)
					var w Workspace
					for i := range b.N {
						tileIndex := i % tiles
						addProducts(n, n, matrices[c][tileIndex*n*n:(tileIndex+1)*n*n], n, x, y, z, u, sides, &w)
					}
				})
			}
			group.Wait()
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
		fraction := float32(i*911%n) / n
		x[i], phases[i], products[i], norms[i] = -20*fraction, 40*fraction-20, 60+20*fraction, 94
		x64[i] = 20 * float64(fraction)
	}
	for _, path := range Paths() {
		for _, benchmark := range []struct {
			name string
			call func()
		}{
			{"Exp32", func() { Exp32(dst, x) }},
			{"Exp64", func() { Exp64(dst64, x64, -1, -100) }},
			{"Cos32", func() { Cos32(dst, phases) }},
			{"GaussianRow", func() { GaussianRow(dst, products, norms, 94, -1/128.0, -80) }},
		} {
			b.Run(fmt.Sprintf("%v/%s", path, benchmark.name), func(b *testing.B) {
				defer UsePath(CurrentPath())
				UsePath(path)
				for range b.N {
					benchmark.call()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(n)/float64(b.N), "ns/number")
			})
		}
	}
}
