package theory

import (
	"context"
	"fmt"
	"math"

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

func checkLeaveOneOut(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 1, func(i int, g rng.Stream, out []float64) error {
		size := g.Sub("sizes")
		k := manyKernels[i%len(manyKernels)]
		x := cloud(g, 2+size.IntN(0, 8), 1+size.IntN(1, 3), 0.8)
		lambda := spread(g.Sub("lambda"), 0, 1e-2, 10)
		y := mat.NewVecDense(x.N, nil)
		g.Sub("y").Normals(y.RawVector().Data, 0)
		c, err := e.fitted(ctx, k, x, lambda, y)
		if err != nil {
			return err
		}
		var chol mat.Cholesky
		if !chol.Factorize(shifted(evaluated(k, x), lambda)) {
			return fmt.Errorf("K+λI is not positive definite at λ = %g", lambda)
		}
		inv := mat.NewSymDense(x.N, nil)
		if err := chol.InverseTo(inv); err != nil {
			return err
		}
		want := e.parts.LeaveOneOut(c, values(x.N, func(i int) float64 { return inv.At(i, i) }))
		for i := range x.N {
			rest := leftOut(x, i)
			yr := mat.NewVecDense(rest.N, nil)
			for j := range rest.N {
				yr.SetVec(j, y.AtVec(j+b2i(j >= i)))
			}
			cr, err := e.fitted(ctx, k, rest, lambda, yr)
			if err != nil {
				return err
			}
			f := 0.0
			for j, v := range cr {
				f += v * k.Eval(rest.Row(j), x.Row(i))
			}
			out[0] = math.Max(out[0], math.Abs(y.AtVec(i)-f-want[i])/mat.Norm(y, 2))
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|y_i − f₋ᵢ(x_i) − c_i/(A⁻¹)_ii|/‖y‖₂", out[0], 1e-6)
	return nil
}

// leftOut returns the points but for number i.
func leftOut(x *points.Dense, i int) *points.Dense {
	out := points.NewDense(x.N-1, x.D, nil)
	for j := range out.N {
		from := j
		if j >= i {
			from++
		}
		copy(out.Row(j), x.Row(from))
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fitted returns c = (K+λI)⁻¹y by the project's K and PCG.
func (e *experiment) fitted(ctx context.Context, k kernel.Kernel, x *points.Dense, lambda float64, y *mat.VecDense) ([]float64, error) {
	stored, err := e.parts.Kernel(ctx, k, x, lambda, gram.Float64)
	if err != nil {
		return nil, err
	}
	r, err := e.parts.Solve(ctx, operator{shifted(symmetrized(stored), lambda)}, precond.Identity{N: x.N}, column(y), &pcg.Options{Tol: 1e-12})
	if err != nil {
		return nil, err
	}
	return mat.Col(nil, 0, r.X), nil
}
