package theory

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
)

var proposition2 = Claim{
	Name: "proposition2", Place: "Proposition 2, section 3.2", Kind: Identity,
	Statement: "QQᵀ + λL⁻¹L⁻ᵀ = I for the λ-LQ factorization A = LQ.",
	Measured:  "the largest entry of the difference, with QQᵀ = L⁻¹(A·M⁻¹·Aᵀ)L from the preconditioner's M⁻¹ = (AᵀA+λI)⁻¹.",
	Fails:     "M⁻¹ of another λ, or with a factor transposed, gives another QQᵀ.",
	run:       checkProposition2,
}

func checkProposition2(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 2, func(i int, g rng.Stream, out []float64) error {
		f, err := newLQ(g)
		if err != nil {
			return err
		}
		rest := outer(solved(f.l, identity(f.m))) // L⁻¹L⁻ᵀ
		rest.ScaleSym(f.lambda, rest)
		direct := outer(f.q)
		direct.AddSym(direct, rest)
		out[0] = apart(direct, identity(f.m))
		m, err := e.parts.Precond(ctx, f.z, f.lambda, f.lambda, forms[i%len(forms)])
		if err != nil {
			return err
		}
		inv, err := inverse(ctx, m)
		if err != nil {
			return err
		}
		var middle, sum mat.Dense
		middle.Product(f.a, inv, f.a.T()) // A(AᵀA+λI)⁻¹Aᵀ = L·QQᵀ·L⁻¹
		middle.Mul(solved(f.l, &middle), f.l)
		sum.Add(&middle, rest)
		out[1] = apart(&sum, identity(f.m))
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, Q = L⁻¹A", out[0], 1e-9)
	e.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, QQᵀ by M⁻¹", out[1], 1e-6)
	return nil
}
