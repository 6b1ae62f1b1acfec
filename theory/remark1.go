package theory

import (
	"context"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

var remark1 = Claim{
	Name: "remark1", Place: "first remark on Theorem 1, section 3.2", Kind: Identity,
	Statement: "(γxᵀz+c)^q is the homogeneous kernel of the points (√γ·x, √c): one constant feature more.",
	Measured:  "K of either, and Z of either from one stream, entry by entry.",
	Fails:     "a constant c in place of √c, or a constant outside of the sketch, gives another K and another Z.",
	run:       checkRemark1,
}

func checkRemark1(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 2, func(_ int, g rng.Stream, out []float64) error {
		size := g.Sub("sizes")
		k := kernel.Polynomial{Gamma: spread(g.Sub("gamma"), 0, 0.1, 10), Coef0: spread(g.Sub("c"), 0, 0.1, 10), Degree: 1 + size.IntN(0, 4)}
		x := cloud(g, 1+size.IntN(1, 8), 1+size.IntN(2, 6), 0.9)
		up := lifted(k, x)
		a, err := e.parts.Kernel(ctx, k, x, 1, gram.Float64)
		if err != nil {
			return err
		}
		b := evaluated(plain(k.Degree), up)
		out[0] = apart(a, b) / largest(b)
		s := 1 + size.IntN(3, 40)
		z, err := mapped(e.parts.TensorSketch(k), x, s, g)
		if err != nil {
			return err
		}
		z0, err := mapped(e.parts.TensorSketch(plain(k.Degree)), up, s, g)
		if err != nil {
			return err
		}
		out[1] = apart(z, z0) / largest(z0)
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|K − K of the lifted points|, relative", out[0], 1e-12)
	e.atMost("|Z − Z of the lifted points|, relative", out[1], 1e-11)
	return nil
}
