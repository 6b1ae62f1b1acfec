package theory

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

var definition2 = Claim{
	Name: "definition2", Place: "Definition 2, section 3.3", Kind: Probability,
	Statement: "Approximate multiplication with f(ν, ξ, δ): with s ≥ f features ‖Z_UZ_Vᵀ − K(U,V)‖_F² ≤ ν²·tr K(U,U)·tr K(V,V) + ξ²\n" +
		"with probability 1−δ for all finite U, V ⊂ H_k. TensorSketch has f = (2+3^q)/(ν²δ), for any ξ.\nFor random Fourier features no f is known; for given U and V Chebyshev's inequality gives one.",
	Measured: "the share of draws that exceed, for combinations u = Σα_i k(x_i, ·) of kernels (γxᵀz+c)^q and of a Gaussian; the mean of ‖·‖_F² against its closed form, two-sided.",
	Fails:    "a wrong scale of the features exceeds in every draw.",
	run:      checkDefinition2,
}

func checkDefinition2(ctx context.Context, e *experiment) error {
	poly := kernel.Polynomial{Gamma: 0.6, Coef0: 0.4, Degree: 2}
	gauss := kernel.Gaussian{Sigma: 1.5}
	x := cloud(e.g.Sub("cloud"), 8, 12, 0.85)
	const rows, nu, delta = 5, 0.5, 0.1
	alpha, beta := normals(e.g.Sub("U"), rows, x.N), normals(e.g.Sub("V"), rows, x.N)
	bb, cc := outer(alpha.T()), outer(beta.T())
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		d    feature.Dist
		cov  func(s int) covariance
		s    int // 0: Chebyshev's
	}{
		{"TensorSketch", poly, e.parts.TensorSketch(poly),
			func(s int) covariance { return tensorSketchCovariance(lifted(poly, x), poly.Degree, s) }, multiplyFeatures(2, nu, delta)},
		{"Fourier", gauss, e.parts.Fourier(gauss), func(s int) covariance { return fourierCovariance(gauss, x, s) }, 0},
	} {
		p := &combination{evaluated(c.k, x), alpha, beta, x}
		size := p.trace(alpha) * p.trace(beta)
		s := c.s
		if s == 0 {
			s = int(math.Ceil(expected(bb, cc, c.cov(1)) / (nu * nu * size * delta)))
		}
		for i, s := range []int{s, 24} {
			v, err := p.misses(ctx, e, fmt.Sprintf("%s %d", c.name, s), c.d, s)
			if err != nil {
				return err
			}
			if i == 0 {
				e.share(fmt.Sprintf("share above ν²·tr·tr, %s, s = %d, δ = %g", c.name, s, delta), v, nu*nu*size, delta)
			}
			e.mean(fmt.Sprintf("mean of ‖Z_UZ_Vᵀ−K(U,V)‖_F², %s, s = %d", c.name, s), v, expected(bb, cc, c.cov(s)), 0)
		}
	}
	return nil
}

// combination is two sets U and V of functions Σ_i α_ai k(x_i, ·).
type combination struct {
	gram        *mat.SymDense
	alpha, beta *mat.Dense
	x           *points.Dense
}

// trace returns tr K(U, U).
func (p *combination) trace(alpha *mat.Dense) float64 {
	var b mat.Dense
	b.Product(alpha, p.gram, alpha.T())
	return mat.Trace(&b)
}

// misses returns ‖Z_UZ_Vᵀ−K(U,V)‖_F² of draws.
func (p *combination) misses(ctx context.Context, e *experiment, name string, d feature.Dist, s int) ([]float64, error) {
	out, err := e.sample(ctx, name, e.trials, 1, func(_ int, g rng.Stream, out []float64) error {
		z, err := mapped(d, p.x, s, g)
		if err != nil {
			return err
		}
		var zu, zv, got, want mat.Dense
		zu.Mul(p.alpha, z) // φ is linear: Z_U = αZ
		zv.Mul(p.beta, z)
		got.Mul(&zu, zv.T())
		want.Product(p.alpha, p.gram, p.beta.T())
		got.Sub(&got, &want)
		out[0] = frobenius(&got)
		return nil
	})
	return out[0], err
}
