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
	"github.com/krrlab/lab/plots"
)

var definition2 = Claim{
	Name: "definition2", Place: "Definition 2, section 3.3", Kind: Probability,
	Statement: "Approximate multiplication with f(ν, ξ, δ): with s ≥ f features ‖Z_UZ_Vᵀ − K(U,V)‖_F² ≤ ν²·tr K(U,U)·tr K(V,V) + ξ²\n" +
		"with probability 1−δ for all finite U, V ⊂ H_k. TensorSketch has f = (2+3^q)/(ν²δ), for any ξ.\nFor random Fourier features no f is known; for given U and V Chebyshev's inequality gives one.",
	Measured: "the share of draws that exceed, for combinations u = Σα_i k(x_i, ·) of kernels (γxᵀz+c)^q and of a Gaussian; the mean of ‖·‖_F² against its closed form, two-sided.",
	Fails:    "a wrong scale of the features exceeds in every draw.",
	run:      checkDefinition2,
}

var theorem5 = Claim{
	Name: "theorem5", Place: "Theorem 5, section 3.3", Kind: Probability,
	Statement: "A map that has the property with f gives κ(M⁻¹A) ≤ 3, and ε after ⌈(√3/2)·ln(2/ε)⌉ iterations, with probability 1−δ\n" +
		"for s ≥ f(1/(2s_λ), 0, δ) or s ≥ f(1/(2√2·s_λ), 1/(2√2), δ).",
	Measured: "the shares of draws that miss, for TensorSketch of (γxᵀz+c)^q with either s, and for Fourier features with s = E/δ·4, E being s times the expectation of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², in closed form; the means of that, two-sided.",
	Fails:    "as Theorem 1; for Fourier features the s has no slack but Chebyshev's.",
	run:      checkTheorem5, figure: figureTheorem5,
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

func (e *experiment) gaussProblem() (*problem, kernel.Gaussian, error) {
	g := e.g.Sub("gaussian problem")
	k := kernel.Gaussian{Sigma: 2}
	p, err := newProblem(g, k, cloud(g, 16, 4, 0.8), 3)
	return p, k, err
}

func checkTheorem5(ctx context.Context, e *experiment) error {
	const delta = 0.2
	poly := kernel.Polynomial{Gamma: 0.8, Coef0: 0.3, Degree: 2}
	g := e.g.Sub("polynomial problem")
	p, err := newProblem(g, poly, cloud(g, 16, 12, 0.8), 2)
	if err != nil {
		return err
	}
	half := 1 / (2 * p.statDim)
	e.atMost("ν²s_λ²+ξ² over ¼ for ν = 1/(2√2·s_λ), ξ = 1/(2√2)", []float64{4 * (half*half/2*p.statDim*p.statDim + 1.0/8)}, 1+1e-12)
	d := e.parts.TensorSketch(poly)
	for _, nu := range []float64{half, half / math.Sqrt2} {
		out, err := e.guarantee(ctx, p, fmt.Sprintf("TensorSketch, ν = %.3g", nu), d, multiplyFeatures(2, nu, delta), delta)
		if err != nil {
			return err
		}
		s := multiplyFeatures(2, nu, delta)
		e.mean(fmt.Sprintf("mean of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², TensorSketch, s = %d", s), out[0],
			expected(p.inv, p.inv, tensorSketchCovariance(lifted(poly, p.x), 2, s)), p.bound(2, s))
	}
	pg, k, err := e.gaussProblem()
	if err != nil {
		return err
	}
	one := expected(pg.inv, pg.inv, fourierCovariance(k, pg.x, 1))
	s := int(math.Ceil(4 * one / delta))
	out, err := e.guarantee(ctx, pg, "Fourier", e.parts.Fourier(k), s, delta)
	if err != nil {
		return err
	}
	e.sharp("Fourier", out)
	e.mean(fmt.Sprintf("mean of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², Fourier, s = %d", s), out[0], one/float64(s), 0)
	return nil
}

func figureTheorem5(ctx context.Context, e *experiment) (*plots.Figure, error) {
	const delta = 0.2
	p, k, err := e.gaussProblem()
	if err != nil {
		return nil, err
	}
	one := expected(p.inv, p.inv, fourierCovariance(k, p.x, 1))
	exact := plots.Series{Name: "expectation"}
	mean := plots.Series{Name: "mean of draws", Style: plots.Points}
	bound := plots.Series{Name: "κ with probability 1−δ, by Chebyshev"}
	kappa := plots.Series{Name: "κ of draws, median and 5 to 95 %", Style: plots.Points}
	for _, s := range []int{16, 32, 64, 128, 256, 512, 1024} {
		out, err := p.draws(ctx, e, fmt.Sprintf("figure %d", s), e.parts.Fourier(k), s, e.trials, false)
		if err != nil {
			return nil, err
		}
		add(&exact, s, one/float64(s))
		add(&mean, s, average(out[0]))
		addDraws(&kappa, float64(s), out[2])
		if b := math.Sqrt(one / float64(s) / delta); b < 0.95 {
			add(&bound, s, (1+b)/(1-b))
		}
	}
	at := []plots.RefLine{{At: 4 * one / delta, Label: "s of Theorem 5"}}
	left := plots.Sweep("What the proof bounds", "s", "E‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_{F}^{2}", at, exact, mean)
	left.HLines = []plots.RefLine{{At: delta / 4, Label: "δ/4"}}
	right := plots.Sweep("What it implies", "s", "κ(M⁻¹A)", at, bound, kappa)
	right.HLines = []plots.RefLine{{At: 3, Label: "3"}}
	return pair("Theorem 5: Gaussian kernel, Fourier features, s_λ = 3, δ = 0.2", left, right), nil
}
