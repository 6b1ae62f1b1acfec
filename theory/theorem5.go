package theory

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

var theorem5 = Claim{
	Name: "theorem5", Place: "Theorem 5, section 3.3", Kind: Probability,
	Statement: "A map that has the property with f gives κ(M⁻¹A) ≤ 3, and ε after ⌈(√3/2)·ln(2/ε)⌉ iterations, with probability 1−δ\n" +
		"for s ≥ f(1/(2s_λ), 0, δ) or s ≥ f(1/(2√2·s_λ), 1/(2√2), δ).",
	Measured: "the shares of draws that miss, for TensorSketch of (γxᵀz+c)^q with either s, and for Fourier features with s = E/δ·4, E being s times the expectation of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², in closed form; the means of that, two-sided.",
	Fails:    "as Theorem 1; for Fourier features the s has no slack but Chebyshev's.",
	run:      checkTheorem5, figure: figureTheorem5,
}

func (e *experiment) gaussProblem() (*problem, kernel.Gaussian) {
	g := e.g.Sub("gaussian problem")
	k := kernel.Gaussian{Sigma: 2}
	return newProblem(g, k, cloud(g, 16, 4, 0.8), 3), k
}

func checkTheorem5(e *experiment) {
	const delta = 0.2
	poly := kernel.Polynomial{Gamma: 0.8, Coef0: 0.3, Degree: 2}
	g := e.g.Sub("polynomial problem")
	p := newProblem(g, poly, cloud(g, 16, 12, 0.8), 2)
	half := 1 / (2 * p.statDim)
	e.atMost("ν²s_λ²+ξ² over ¼ for ν = 1/(2√2·s_λ), ξ = 1/(2√2)", []float64{4 * (half*half/2*p.statDim*p.statDim + 1.0/8)}, 1+1e-12)
	d := e.parts.TensorSketch(poly)
	for _, nu := range []float64{half, half / math.Sqrt2} {
		s := multiplyFeatures(2, nu, delta)
		e.guarantee(p, fmt.Sprintf("TensorSketch, ν = %.3g", nu), d, s, delta)
	}
	const few = 60
	out := p.draws(e, "TensorSketch", d, few, e.trials, false)
	e.mean(fmt.Sprintf("mean of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², TensorSketch, s = %d", few), out[0],
		expected(p.inv, p.inv, tensorSketchCovariance(lifted(poly, p.x), 2, few)), p.bound(2, few))
	pg, k := e.gaussProblem()
	one := expected(pg.inv, pg.inv, fourierCovariance(k, pg.x, 1))
	s := int(math.Ceil(4 * one / delta))
	out = e.guarantee(pg, "Fourier", e.parts.Fourier(k), s, delta)
	e.sharp("Fourier", out)
	e.mean(fmt.Sprintf("mean of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², Fourier, s = %d", s), out[0], one/float64(s), 0)
}

func figureTheorem5(e *experiment) *plots.Figure {
	const delta = 0.2
	p, k := e.gaussProblem()
	one := expected(p.inv, p.inv, fourierCovariance(k, p.x, 1))
	exact := func(s int) float64 { return one / float64(s) }
	bound := plots.Series{Name: "κ with probability 1−δ, by Chebyshev"}
	sizes := []int{16, 32, 64, 128, 256, 512, 1024}
	for _, s := range sizes {
		addKappa(&bound, s, exact(s)/delta)
	}
	left, right := p.chain(e, e.parts.Fourier(k), sizes, exact, "E‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_{F}^{2}", delta,
		plots.RefLine{At: 4 * one / delta, Label: "s of Theorem 5"}, bound)
	return pair("Theorem 5: Gaussian kernel, Fourier features, s_λ = 3, δ = 0.2", left, right)
}
