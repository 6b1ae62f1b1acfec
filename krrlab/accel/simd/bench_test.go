package simd

import (
	"fmt"
	"testing"
)

// BenchmarkBoth reads a matrix of 64 tiles of 512×512 in turn, 67 MB of float32, on one core:
// GB of the tile a second.
func BenchmarkBoth(b *testing.B) {
	const n, tiles = 512, 64
	t32 := make([]float32, tiles*n*n)
	for i := range t32 {
		t32[i] = float32(i%7) / 7
	}
	for _, p := range Paths() {
		for _, t := range []int{1, 2, 3, 4, 8, 10, 16} {
			b.Run(fmt.Sprintf("%v/t=%d", p, t), func(b *testing.B) {
				Use(p)
				defer Use(Paths()[len(Paths())-1])
				x, y, z, u := make([]float32, n*t), make([]float32, n*t), make([]float32, n*t), make([]float32, n*t)
				var w Workspace
				b.SetBytes(4 * n * n)
				for i := range b.N {
					k := i % tiles
					Both32(n, n, t32[k*n*n:(k+1)*n*n], n, x, y, z, u, t, &w)
				}
			})
		}
	}
}
