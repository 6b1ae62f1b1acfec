package theory

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// LeaveOneOut returns the leave-one-out residuals y_i − f₋ᵢ(x_i) = c_i/(A⁻¹)_ii, f₋ᵢ being fitted
// without point i, from the coefficients c of all points and diag A⁻¹, A = K+λI. Allen's PRESS; see
// also G. Wahba, Spline Models for Observational Data, SIAM 1990, section 4.2.
func LeaveOneOut(c, diag []float64) []float64 {
	out := make([]float64, len(c))
	for i := range out {
		out[i] = c[i] / diag[i]
	}
	return out
}

var leaveOneOut = Claim{
	Name: "leave-one-out", Place: "the project's; classical (Allen, Wahba)", Kind: Identity,
	Statement: "y_i − f₋ᵢ(x_i) = c_i/(A⁻¹)_ii, f₋ᵢ fitted without point i.",
	Measured:  "c and f₋ᵢ by the project's K and PCG, for every i; the two sides of the equation.",
	Fails:     "A_ii in place of 1/(A⁻¹)_ii, or y−f of the whole fit in place of it.",
	run:       checkLeaveOneOut,
}

func checkLeaveOneOut(e *experiment) {
	out := e.sample("trial", e.trials, 1, func(i int, g rng.Stream, out []float64) {
		size := g.Sub("sizes")
		k := manyKernels[i%len(manyKernels)]
		x := cloud(g, 2+size.IntN(0, 8), 1+size.IntN(1, 3), 0.8)
		lambda := spread(g.Sub("lambda"), 0, 1e-2, 10)
		y := vector(g.Sub("y"), x.N)
		c := e.fitted(k, x, lambda, y)
		inv := inverted(shifted(evaluated(k, x), lambda))
		want := e.parts.LeaveOneOut(c, values(x.N, func(i int) float64 { return inv.At(i, i) }))
		for i := range x.N {
			left := func(v []float64, d int) []float64 { return slices.Delete(slices.Clone(v), i*d, (i+1)*d) }
			rest := points.NewDense(x.N-1, x.D, left(x.Data, x.D))
			cr := e.fitted(k, rest, lambda, mat.NewVecDense(rest.N, left(y.RawVector().Data, 1)))
			f := 0.0
			for j, v := range cr {
				f += v * k.Eval(rest.Row(j), x.Row(i))
			}
			out[0] = math.Max(out[0], math.Abs(y.AtVec(i)-f-want[i])/mat.Norm(y, 2))
		}
	})
	e.atMost("|y_i − f₋ᵢ(x_i) − c_i/(A⁻¹)_ii|/‖y‖₂", out[0], 1e-6)
}

// fitted returns c = (K+λI)⁻¹y by the project's K and PCG.
func (e *experiment) fitted(k kernel.Kernel, x *points.Dense, lambda float64, y *mat.VecDense) []float64 {
	a := shifted(symmetrized(e.kernel(k, x, lambda, gram.Float64)), lambda)
	return mat.Col(nil, 0, e.solve(a, precond.Identity{N: x.N}, y, &pcg.Options{Tol: 1e-12}))
}
