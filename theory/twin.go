package theory

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// twin is a pair of matrices of small order: K, and Z in float32 with ZZᵀ near it.
type twin struct {
	k   *mat.SymDense
	z   *points.Dense32
	eta float64 // ‖K−ZZᵀ‖₂
}

// newTwin draws a K with eigenvalues over decades and a Z of n or fewer columns.
func newTwin(g rng.Stream, n int) *twin {
	closeness := spread(g.Sub("closeness"), 0, 1e-3, 1)
	r := root(g.Sub("K"), values(n, func(i int) float64 { return math.Pow(10, 1-5*float64(i)/float64(n)) }))
	var z mat.Dense
	noise := normals(g.Sub("noise"), n, n)
	noise.Scale(closeness/math.Sqrt(float64(n)), noise)
	z.Mul(r, noise)
	z.Add(&z, r)
	cut := mat.DenseCopyOf(z.Slice(0, n, 0, 1+g.Sub("columns").IntN(0, n)))
	return twinOf(outer(r), rounded(cut))
}

func twinOf(k *mat.SymDense, z *points.Dense32) *twin {
	d := outer(whole(z))
	subtract(d, k)
	return &twin{k: k, z: z, eta: norm(d)}
}

// spectrum returns the eigenvalues of M⁻¹A, with M⁻¹ as it is applied.
func (p *twin) spectrum(e *experiment, lambda, lambdaP float64, form precond.Form) []float64 {
	return e.pencil(factor(shifted(p.k, lambda)), e.precond(p.z, lambda, lambdaP, form))
}
