package estimate

import (
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// Signs returns probes number first, …, first+m−1: n×m independent signs ±1, a function of the stream and the
// probe's number.
func Signs(n, first, m int, g rng.Stream) *mat.Dense {
	z := mat.NewDense(n, m, nil)
	for j := range m {
		s := g.Sub("probe", uint64(first+j))
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

// Student returns the half-width of the two-sided interval of Student's t with freedom degrees of freedom.
func Student(confidence, freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(0.5 + confidence/2)
}
