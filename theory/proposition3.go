package theory

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/statdim"
)

var proposition3 = Claim{
	Name: "proposition3", Place: "Proposition 3, section 3.2", Kind: Identity,
	Statement: "‖Q‖_F² = s_λ(AAᵀ) = tr((AAᵀ+λI)⁻¹AAᵀ) = m − λ·tr((AAᵀ+λI)⁻¹) (the print has AAᵀ+I in the last).",
	Measured:  "‖Q‖_F², the statistical dimension that each form of the preconditioner states, and that of package statdim, against Σ σ²/(σ²+λ).",
	Fails:     "the printed proof's AAᵀ+I gives another number wherever λ ≠ 1, and so does a λ that is not λ_p's.",
	run:       checkProposition3,
}

func checkProposition3(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 2+len(forms), func(i int, g rng.Stream, out []float64) error {
		f, err := newLQ(g)
		if err != nil {
			return err
		}
		var svd mat.SVD
		if !svd.Factorize(f.a, mat.SVDNone) {
			return fmt.Errorf("no singular values")
		}
		want := 0.0
		for _, v := range svd.Values(nil) {
			want += v * v / (v*v + f.lambda)
		}
		out[0] = math.Abs(frobenius(f.q) - want)
		r, err := statdim.Exact(mat.DenseCopyOf(f.aat), 0, f.lambda, nil)
		if err != nil {
			return err
		}
		out[1] = math.Abs(r.Estimate.Value - want)
		for k, form := range forms {
			m, err := e.parts.Precond(ctx, f.z, f.lambda, f.lambda, form)
			if err != nil {
				return err
			}
			out[2+k] = math.Abs(m.StatDim() - want)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|‖Q‖_F² − s_λ|", out[0], 1e-9)
	e.atMost("|statdim.Exact − s_λ|", out[1], 1e-9)
	for k, form := range forms {
		e.atMost(fmt.Sprintf("|StatDim − s_λ|, form %v", form), out[2+k], 1e-9)
	}
	return nil
}
