package estimate

import (
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// RandomSigns returns the probe vectors number start, …, start+m−1 as an n×m matrix of independent signs ±1. Each
// vector depends only on the stream and its number.
func RandomSigns(n, start, m int, g rng.Stream) *mat.Dense {
	z := mat.NewDense(n, m, nil)
	for j := range m {
		s := g.Sub("probe", uint64(start+j))
		for i := 0; i < n; i += 64 {
			bits := s.Uint64(uint64(i / 64))
			for k := i; k < min(i+64, n); k++ {
				z.Set(k, j, 1-2*float64(bits&1))
				bits >>= 1
			}
		}
	}
	return z
}
