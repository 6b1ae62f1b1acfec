package theory

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

var remark3 = Claim{
	Name: "remark3", Place: "first remark on Theorem 6, section 4", Kind: Bound,
	Statement: "κ(K+λI) ≤ 1+‖K‖₂/λ; so κ ≤ 2 if λ ≥ ‖K‖₂, and plain CG needs ⌈(√2/2)·ln(2/ε)⌉ iterations.",
	Measured:  "κ of K+λI over its bound, for spectra with and without a zero eigenvalue (where the bound is met), and the error of CG after the count over ε.",
	Fails:     "an identity that is not I, a count that is too low, or a K of another scale.",
	run:       checkRemark3,
}

func checkRemark3(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 3, func(i int, g rng.Stream, out []float64) error {
		size := g.Sub("sizes")
		n := 2 + size.IntN(0, 14)
		x := cloud(g, n, 1+size.IntN(1, n), 0.8)
		k, err := e.parts.Kernel(ctx, plain(1), x, 1, gram.Float64)
		if err != nil {
			return err
		}
		mu, err := eigenvalues(evaluated(plain(1), x))
		if err != nil {
			return err
		}
		top := mu[n-1]
		lambda := top * spread(g.Sub("lambda"), 0, 1e-3, 1e2)
		v, err := eigenvalues(shifted(symmetrized(k), lambda))
		if err != nil {
			return err
		}
		out[0] = cond(v) / (1 + top/lambda)
		lambda = top * uniform(g.Sub("above"), 0, 1, 3)
		a := shifted(symmetrized(k), lambda)
		if v, err = eigenvalues(a); err != nil {
			return err
		}
		out[1] = cond(v) / 2
		out[2], err = solveError(ctx, e, a, precond.Identity{N: n}, g, e.parts.Iterations(2, epsilon))
		out[2] /= epsilon
		return err
	})
	if err != nil {
		return err
	}
	e.atMost("κ(K+λI) over 1+‖K‖₂/λ", out[0], 1+1e-9)
	e.atMost("κ(K+λI) over 2 for λ ≥ ‖K‖₂", out[1], 1+1e-9)
	e.atMost("‖c̃−c‖_A/‖c‖_A over ε after the count for κ = 2", out[2], 1)
	return nil
}

// solveError returns ‖c̃−c‖_A/‖c‖_A of PCG for a random right-hand side.
func solveError(ctx context.Context, e *experiment, a *mat.SymDense, m pcg.Preconditioner, g rng.Stream, iterations int) (float64, error) {
	y := mat.NewVecDense(a.SymmetricDim(), nil)
	g.Sub("right-hand side").Normals(y.RawVector().Data, 0)
	return solveErrorFor(ctx, e, a, m, y, iterations)
}

func solveErrorFor(ctx context.Context, e *experiment, a *mat.SymDense, m pcg.Preconditioner, y *mat.VecDense, iterations int) (float64, error) {
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return 0, errors.New("a matrix that is not positive definite")
	}
	p := &problem{n: a.SymmetricDim(), a: a, y: y, c: mat.NewVecDense(y.Len(), nil)}
	if err := chol.SolveVecTo(p.c, y); err != nil {
		var badly mat.Condition
		if !errors.As(err, &badly) {
			return 0, err
		}
	}
	return p.missed(ctx, e, m, iterations)
}
