package estimate

import (
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// RandomSigns returns an n×m matrix of independent random signs ±1. Its columns are the probe vectors with the numbers
// start, …, start+m−1 of a sequence. Each vector depends only on the stream and on its number in the sequence.
func RandomSigns(n, start, m int, stream rng.Stream) *mat.Dense {
	z := mat.NewDense(n, m, nil)
	for j := range m {
		vectorStream := stream.Sub("probe", uint64(start+j))
		for i := 0; i < n; i += 64 {
			bits := vectorStream.Uint64(uint64(i / 64))
			for row := i; row < min(i+64, n); row++ {
				z.Set(row, j, 1-2*float64(bits&1))
				bits >>= 1
			}
		}
	}
	return z
}
