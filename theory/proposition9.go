package theory

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/statdim"
)

var proposition9 = Claim{
	Name: "proposition9", Place: "Proposition 9, appendix", Kind: Identity,
	Statement: "tr K(Q,Q) = s_λ(K) = n − λ·tr((K+λI)⁻¹) (the print has K+I).",
	Measured:  "the trace of ⟨q_i, q_j⟩ and what package statdim has, against Σ μ/(μ+λ).",
	Fails:     "the printed K+I gives another number wherever λ ≠ 1.",
	run:       checkProposition9,
}

func checkProposition9(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 2, func(i int, g rng.Stream, out []float64) error {
		kqq, _, mu, lambda, stored, err := e.innerProducts(ctx, i, g)
		if err != nil {
			return err
		}
		want := degrees(mu, lambda)
		out[0] = math.Abs(mat.Trace(kqq) - want)
		out[1], err = statDimError(stored, lambda, want)
		return err
	})
	if err != nil {
		return err
	}
	e.atMost("|tr K(Q,Q) − s_λ(K)|", out[0], 1e-9)
	e.atMost("|statdim.Exact − s_λ(K)|", out[1], 1e-9)
	return nil
}

// statDimError returns how far package statdim is from s_λ.
func statDimError(k *mat.Dense, lambda, want float64) (float64, error) {
	r, err := statdim.Exact(mat.DenseCopyOf(k), 0, lambda, nil)
	if err != nil {
		return 0, err
	}
	return math.Abs(r.Estimate.Value - want), nil
}
