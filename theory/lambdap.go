package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/plots"
)

var lambdaP = Claim{
	Name: "lambda-p", Place: "section 6.3 has no theory; this is the project's", Kind: Bound,
	Statement: "For M = ZZᵀ+λ_pI, A = K+λI and η = ‖K−ZZᵀ‖₂, κ(M⁻¹A) ≤ max(1, (λ+η)/λ_p)·max(1, (λ_p+η)/λ):\n" +
		"(1+η/λ)(1+η/λ_p) for |λ−λ_p| ≤ η. It is least at λ_p = λ+η, where it is 1+2η/λ. And M⁻¹ = λ_p⁻¹(I−UᵀU).",
	Measured: "κ over the bound, for random pairs, λ_p over four decades either side and the project's M⁻¹; the pairs for which the bound is met; M·M⁻¹−I.",
	Fails:    "with λ in place of λ_p κ is that of λ, which breaks the bound at λ_p = λ+η, and M·M⁻¹ is not I.",
	run:      checkLambdaP, figure: figureLambdaP,
}

func checkLambdaP(e *experiment) {
	out := e.sample("trial", e.trials, 4, func(i int, g rng.Stream, out []float64) {
		p := newTwin(g, 8)
		lambda := spread(g.Sub("lambda"), 0, 1e-2, 10)
		lp := spread(g.Sub("lambda_p"), 0, lambda*1e-2, 1e2*(lambda+p.eta))
		form := forms[i%len(forms)]
		for j, ridge := range []float64{lp, lambda + p.eta} {
			out[j] = cond(p.spectrum(e, lambda, ridge, form)) / e.parts.RidgeBound(lambda, ridge, p.eta)
		}
		best := e.parts.RidgeBound(lambda, lambda+p.eta, p.eta)
		out[2] = math.Max(math.Abs(best/(1+2*p.eta/lambda)-1), best/e.parts.RidgeBound(lambda, lp, p.eta)-1)
		out[3] = backward(e, p.z, lambda, lp, form)
	})
	e.atMost("κ over its bound, any λ_p", out[0], 1+1e-6)
	e.atMost("κ over its bound at λ_p = λ+η, 1+2η/λ", out[1], 1+1e-6)
	e.atMost("the bound at λ+η over 1+2η/λ and over that at any λ_p, less 1", out[2], 1e-12)
	e.atMost("|M·M⁻¹ − I|", out[3], 1e-6)
	e.atMost("κ over its bound for K = diag(1, 0), ZZᵀ = diag(0, 1), where it is met", e.tightRidge(), 1+1e-9)
}

// backward returns |M·M⁻¹−I| for M = ZZᵀ+λ_pI.
func backward(e *experiment, z *points.Dense32, lambda, lambdaP float64, form precond.Form) float64 {
	var product mat.Dense
	product.Mul(shifted(outer(whole(z)), lambdaP), inverse(e.ctx, e.precond(z, lambda, lambdaP, form)))
	return apart(&product, identity(z.N))
}

// tightRidge returns κ over the bound for the pair that meets it at every λ_p in [λ−η, λ+η].
func (e *experiment) tightRidge() (out []float64) {
	p := &twin{k: mat.NewSymDense(2, []float64{1, 0, 0, 0}), z: points.NewDense32(2, 1, []float32{0, 1}), eta: 1}
	for _, c := range []struct{ lambda, lambdaP float64 }{{0.5, 0.5}, {0.5, 1.5}, {0.5, 1}, {2, 1}, {2, 3}, {0.01, 1.01}} {
		out = append(out, cond(p.spectrum(e, c.lambda, c.lambdaP, precond.FormLInv))/e.parts.RidgeBound(c.lambda, c.lambdaP, 1))
	}
	return out
}

func figureLambdaP(e *experiment) *plots.Figure {
	g := e.g.Sub("figure")
	const lambda = 0.01
	k := kernel.Gaussian{Sigma: 1.5}
	x := cloud(g, 60, 4, 0.8)
	var series []plots.Series
	var at []plots.RefLine
	for _, s := range []int{40, 640} {
		p := twinOf(evaluated(k, x), condensed(rounded(mapped(e.parts.Fourier(k), x, s, g))))
		bound := plots.Series{Name: fmt.Sprintf("bound, s = %d", s)}
		kappa := plots.Series{Name: fmt.Sprintf("κ, s = %d", s)}
		for i := range 81 {
			lp := 1e-4 * math.Pow(10, 6*float64(i)/80)
			addAt(&bound, lp, e.parts.RidgeBound(lambda, lp, p.eta))
			addAt(&kappa, lp, cond(p.spectrum(e, lambda, lp, precond.FormEigen)))
		}
		series = append(series, bound, kappa)
		at = append(at, plots.RefLine{At: lambda + p.eta, Label: fmt.Sprintf("λ+η, s = %d", s)})
	}
	at = append(at, plots.RefLine{At: lambda, Label: "λ"})
	return plots.Sweep("The ridge of the preconditioner: λ = 0.01, Fourier features", "λ_p", "κ(M⁻¹A)", at, series...)
}
