package theory

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

var proposition8 = Claim{
	Name: "proposition8", Place: "Proposition 8, appendix", Kind: Identity,
	Statement: "K(Q,Q) + λL⁻¹L⁻ᵀ = I for q_i = Σ_j (L⁻¹)_ij k(x_j, ·), K+λI = LLᵀ.",
	Measured:  "the largest entry of the difference, with L from K as package gram stores it and the inner products ⟨q_i, q_j⟩ from the kernel's formula, for all kernels.",
	Fails:     "a K that is not the kernel's, or a factor transposed.",
	run:       checkProposition8,
}

// manyKernels are the kernels of Propositions 8 and 9.
var manyKernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1.5}, kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3},
}

// innerProducts returns K(Q, Q) by the kernel's formula, L⁻¹, K's eigenvalues and λ.
func (e *experiment) innerProducts(ctx context.Context, i int, g rng.Stream) (kqq, rest *mat.SymDense, mu []float64, lambda float64, stored *mat.Dense, err error) {
	k := manyKernels[i%len(manyKernels)]
	size := g.Sub("sizes")
	x := cloud(g, 1+size.IntN(0, 14), 1+size.IntN(1, 4), 0.8)
	lambda = spread(g.Sub("lambda"), 0, 1e-2, 1e2)
	if stored, err = e.parts.Kernel(ctx, k, x, lambda, gram.Float64); err != nil {
		return nil, nil, nil, 0, nil, err
	}
	l, err := tiled(shifted(symmetrized(stored), lambda))
	if err != nil {
		return nil, nil, nil, 0, nil, err
	}
	byFormula := evaluated(k, x)
	kqq = between(l, byFormula)
	rest = outer(solved(l, identity(x.N)))
	rest.ScaleSym(lambda, rest)
	mu, err = eigenvalues(byFormula)
	return kqq, rest, mu, lambda, stored, err
}

func checkProposition8(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 1, func(i int, g rng.Stream, out []float64) error {
		kqq, rest, _, _, _, err := e.innerProducts(ctx, i, g)
		if err != nil {
			return err
		}
		kqq.AddSym(kqq, rest)
		out[0] = apart(kqq, identity(kqq.SymmetricDim()))
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|K(Q,Q) + λL⁻¹L⁻ᵀ − I|", out[0], 1e-9)
	return nil
}
