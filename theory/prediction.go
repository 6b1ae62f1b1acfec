package theory

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/verify"
)

// PredictionBound returns the bound √k(x,x)·‖r‖₂/(2√λ) on |f(x)−f̃(x)| for a residual r = y−(K+λI)c̃
// against the exact K.
//
// Proof. f−f̃ = k_xᵀA⁻¹r, and ‖A⁻¹k_x‖₂² ≤ k(x,x)·max_μ μ/(μ+λ)² ≤ k(x,x)/(4λ), since k_xk_xᵀ ≼ k(x,x)·K.
func PredictionBound(diag, residual, lambda float64) float64 {
	return math.Sqrt(diag) * residual / (2 * math.Sqrt(lambda))
}

var prediction = Claim{
	Name: "prediction", Place: "the project's; the paper has no such bound", Kind: Bound,
	Statement: "|f(x)−f̃(x)| ≤ √k(x,x)·‖r‖₂/(2√λ) for every x, r = y−(K+λI)c̃.",
	Measured:  "the difference over the bound at new points and at training points, f by a dense solve and f̃ by package model from PCG stopped early; the same by package verify; and the case that meets it: one point with k(x,x) = λ.",
	Fails:     "a residual against another K, λ in place of √λ, or the recurrence's residual, which drifts.",
	run:       checkPrediction,
}

func checkPrediction(e *experiment) {
	out := e.sample("trial", e.trials, 2, func(i int, g rng.Stream, out []float64) {
		size := g.Sub("sizes")
		k := manyKernels[i%len(manyKernels)]
		x := cloud(g, 6+size.IntN(0, 10), 2+size.IntN(1, 3), 0.8)
		lambda := spread(g.Sub("lambda"), 0, 1e-3, 10)
		out[0], out[1] = e.predicted(k, x, cloud(g.Sub("new"), 5, x.D, 0.8), lambda, g)
	})
	e.atMost("|f−f̃| over its bound", out[0], 1+1e-6)
	e.atMost("|f−f̃| over the bound of package verify", out[1], 1+1e-6)
	var tight []float64
	for _, lambda := range []float64{0.01, 0.5, 4} {
		x := points.NewDense(1, 1, []float64{math.Sqrt(lambda)}) // k(x,x) = x² = λ
		ratio, _ := e.predicted(plain(1), x, x, lambda, e.g.Sub("tight"))
		tight = append(tight, ratio)
	}
	e.atMost("|f−f̃| over its bound, where it is met", tight, 1+1e-9)
}

// predicted returns the largest |f−f̃| over the bound, and over that of package verify, at the
// points x and z, for coefficients off by some per cent.
func (e *experiment) predicted(k kernel.Kernel, x, z *points.Dense, lambda float64, g rng.Stream) (ratio, verified float64) {
	a := shifted(evaluated(k, x), lambda)
	y := vector(g.Sub("y"), x.N)
	exact := solution(a, y)
	c := e.early(k, x, lambda, y, g)
	var r mat.VecDense
	r.MulVec(a, c.ColView(0))
	r.SubVec(y, &r)
	residual := mat.Norm(&r, 2)
	v := must(verify.New(e.ctx, nil, must(kernel.ToSpec(k)), x, 1<<30, nil))
	coef, target := c.RawMatrix().Data, y.RawVector().Data
	ax, rounding, err := v.Apply(e.ctx, coef, 1, lambda)
	res := v.Residual(must(ax, err), rounding, coef, target, 1, lambda)
	m := &model.Model{Kernel: k, Lambda: lambda, X: x, C: c}
	for _, at := range []*points.Dense{x, z} {
		got := must(m.Decision(e.ctx, at, &model.Options{Float64: true}))
		p := must(v.Predict(e.ctx, at, coef, 1, res, lambda))
		for i := range at.N {
			f := 0.0
			for j := range x.N {
				f += exact.AtVec(j) * k.Eval(x.Row(j), at.Row(i))
			}
			diff := math.Abs(f - got.At(i, 0))
			ratio = math.Max(ratio, diff/e.parts.PredictionBound(k.Eval(at.Row(i), at.Row(i)), residual, lambda))
			verified = math.Max(verified, diff/p.Bound[i])
		}
	}
	return ratio, verified
}

// early returns coefficients of a solve that is stopped after two iterations; for a single point,
// where that is the solution, half of it.
func (e *experiment) early(k kernel.Kernel, x *points.Dense, lambda float64, y *mat.VecDense, g rng.Stream) *mat.Dense {
	op := must(gram.New(e.ctx, k, x, lambda, &gram.Options{Storage: gram.Float64}))
	r := must(e.parts.Solve(e.ctx, op, precond.Identity{N: x.N}, column(y), &pcg.Options{Tol: spread(g.Sub("tol"), 0, 1e-2, 0.5), MaxIter: 2}))
	if x.N == 1 {
		r.X.Scale(0.5, r.X)
	}
	return r.X
}
