package theory

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage/verify"
	"github.com/krrlab/lab/plots"
)

// Features returns the least number of TensorSketch features for which Theorem 1
// guarantees κ(M⁻¹A) ≤ 3 with probability at least 1−δ, for the kernel (xᵀz)^q and
// λ_p = λ:
//
//	s ≥ 4(2+3^q)·s_λ(K)²/δ.
//
// It is returned as a float64, for it is often larger than any number of features one
// could use; in practice far fewer do. Features panics unless q ≥ 1, s_λ ≥ 0 and
// 0 < δ < 1.
func Features(q int, statDim, delta float64) float64 {
	if q < 1 || !(statDim >= 0) || !(delta > 0 && delta < 1) {
		panic(fmt.Sprintf("theory: Features(q=%d, s_λ=%g, δ=%g): want q ≥ 1, s_λ ≥ 0 and 0 < δ < 1", q, statDim, delta))
	}
	return math.Ceil(4 * (2 + math.Pow(3, float64(q))) * statDim * statDim / delta)
}

func checkIterations(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		const n = 30
		kappa, eps := spread(g.Sub("kappa"), 1.5, 300), spread(g.Sub("epsilon"), 1e-4, 0.3)
		random := values(n, func(i int) float64 { return 1 + (kappa-1)*g.Sub("eigenvalues").Float64(uint64(i)) })
		random[0], random[1] = 1, kappa
		over := func(j uint64, v []float64) float64 {
			return solveError(e, designed(g.Sub("basis", j), v), g, e.parts.Iterations(kappa, eps)) / eps
		}
		t.atMost("‖c̃−c‖_A/‖c‖_A over ε, random spectra", over(0, random), 1)
		t.atMost("‖c̃−c‖_A/‖c‖_A over ε, Chebyshev's points", over(1, chebyshev(n, kappa)), 1)
	})
	e.hardest()
}

// chebyshev returns n points of [1, κ], the extrema of a Chebyshev polynomial of degree n−1.
func chebyshev(n int, kappa float64) []float64 {
	return values(n, func(i int) float64 {
		return (1+kappa)/2 - (kappa-1)/2*math.Cos(math.Pi*float64(i)/float64(n-1))
	})
}

// hardest runs CG on the spectra and right-hand sides for which it is slowest: k iterations on the
// k+1 extrema x_i of a Chebyshev polynomial, where all polynomials p of degree k with p(0) = 1 have
// max |p(x_i)| ≥ 1/T_k((κ+1)/(κ−1)), and weights |l_i(0)|, l_i Lagrange's polynomials, for which the
// mean square of p is no less. ε is what the count promises of k.
func (e *experiment) hardest() {
	var ratios []float64
	for _, kappa := range []float64{3, 10, 100} {
		for _, k := range []int{2, 4, 8} {
			eps := math.Min(2*math.Exp(-2*float64(k)/math.Sqrt(kappa))*(1+1e-12), 1)
			x := chebyshev(k+1, kappa)
			a, y := mat.NewSymDense(k+1, nil), mat.NewVecDense(k+1, nil)
			for i := range x {
				weight := 1.0
				for j := range x {
					if j != i {
						weight *= math.Abs(x[j] / (x[j] - x[i]))
					}
				}
				a.SetSym(i, i, x[i])
				y.SetVec(i, math.Sqrt(x[i]*weight))
			}
			ratios = append(ratios, solveErrorFor(e, a, y, e.parts.Iterations(kappa, eps))/eps)
		}
	}
	e.atMost("‖c̃−c‖_A/‖c‖_A over ε, the hardest right-hand sides", ratios, 1)
}

func figureIterations(e *experiment) *plots.Figure {
	const n, kappa = 200, 30.0
	bound := plots.Series{Name: "2e^{−2k/√κ}, the bound"}
	easy := plots.Series{Name: "error ‖c̃−c‖_{A}/‖c‖_{A}, uniform spectrum"}
	hard := plots.Series{Name: "error, Chebyshev's points"}
	g := e.g.Sub("figure")
	random := values(n, func(i int) float64 { return 1 + (kappa-1)*float64(i)/(n-1) })
	a, b := designed(g.Sub("easy"), random), designed(g.Sub("hard"), chebyshev(n, kappa))
	for k := 1; k <= 24; k++ {
		add(&bound, k, 2*math.Exp(-2*float64(k)/math.Sqrt(kappa)))
		add(&easy, k, solveError(e, a, g, k))
		add(&hard, k, solveError(e, b, g, k))
	}
	f := plots.Sweep("The count ⌈(√κ/2)·ln(2/ε)⌉: κ = 30", "iterations k", "‖c̃−c‖_{A} / ‖c‖_{A}", nil, bound, hard,
		easy)
	f.X.Log = false
	return f
}

// PredictionBound returns the bound √k(x,x)·‖r‖₂/(2√λ) on |f(x)−f̃(x)| for a residual r = y−(K+λI)c̃
// against the exact K.
//
// Proof. f−f̃ = k_xᵀA⁻¹r, and ‖A⁻¹k_x‖₂² ≤ k(x,x)·max_μ μ/(μ+λ)² ≤ k(x,x)/(4λ), since k_xk_xᵀ ≼ k(x,x)·K.
func PredictionBound(diag, residual, lambda float64) float64 {
	return math.Sqrt(diag) * residual / (2 * math.Sqrt(lambda))
}

func checkPrediction(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		size := g.Sub("sizes")
		k := manyKernels[i%len(manyKernels)]
		x := cloud(g, 6+size.IntN(0, 10), 2+size.IntN(1, 3), 0.8)
		lambda := spread(g.Sub("lambda"), 1e-3, 10)
		ratio, verified := e.predicted(k, x, cloud(g.Sub("new"), 5, x.D, 0.8), lambda, g)
		t.atMost("|f−f̃| over its bound", ratio, 1+1e-6)
		t.atMost("|f−f̃| over the bound of package verify", verified, 1+1e-6)
	})
	var tight []float64
	for _, lambda := range []float64{0.01, 0.5, 4} {
		x := points.NewDense(1, 1, []float64{math.Sqrt(lambda)}) // k(x,x) = x² = λ
		ratio, _ := e.predicted(plain(1), x, x, lambda, e.g.Sub("tight"))
		tight = append(tight, ratio)
	}
	e.atMost("|f−f̃| over its bound, where it is met", tight, 1+1e-9)
}

// predicted returns the largest |f−f̃| over the bound, and over that of package verify, at the
// points x and z, for the coefficients of a solve that is stopped after two iterations.
func (e *experiment) predicted(k kernel.Kernel, x, z *points.Dense, lambda float64,
	g rng.Stream) (ratio, verified float64) {
	a := shifted(evaluated(k, x), lambda)
	y := vector(g.Sub("y"), x.N)
	exact := solution(a, y)
	op := e.stored(k, x, lambda)
	c := must(e.parts.Solve(e.ctx, op, precond.Identity{N: x.N}, mat.DenseCopyOf(y),
		&pcg.Options{Tol: spread(g.Sub("tol"), 1e-2, 0.5), MaxIter: 2})).X
	if x.N == 1 { // two iterations find the solution
		c.Scale(0.5, c)
	}
	left := mat.Norm(residual(a, c.ColView(0), y), 2)
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
			ratio = math.Max(ratio, diff/e.parts.PredictionBound(k.Eval(at.Row(i), at.Row(i)), left, lambda))
			verified = math.Max(verified, diff/p.Bound[i])
		}
	}
	return ratio, verified
}

// LeaveOneOut returns the leave-one-out residuals y_i − f₋ᵢ(x_i) = c_i/(A⁻¹)_ii, f₋ᵢ being fitted
// without point i, from the coefficients c of all points and diag A⁻¹, A = K+λI. Allen's PRESS; see
// also G. Wahba, Spline Models for Observational Data, SIAM 1990, section 4.2.
func LeaveOneOut(c, diag []float64) []float64 {
	out := make([]float64, len(c))
	for i := range out {
		out[i] = c[i] / diag[i]
	}
	return out
}

func checkLeaveOneOut(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		size := g.Sub("sizes")
		k := manyKernels[i%len(manyKernels)]
		x := cloud(g, 2+size.IntN(0, 8), 1+size.IntN(1, 3), 0.8)
		lambda := spread(g.Sub("lambda"), 1e-2, 10)
		y := vector(g.Sub("y"), x.N)
		c := e.fitted(k, x, lambda, y)
		inv := inverted(shifted(evaluated(k, x), lambda))
		want := e.parts.LeaveOneOut(c, values(x.N, func(i int) float64 { return inv.At(i, i) }))
		for i := range x.N {
			left := func(v []float64, d int) []float64 { return slices.Delete(slices.Clone(v), i*d, (i+1)*d) }
			rest := points.NewDense(x.N-1, x.D, left(x.Data, x.D))
			cr := e.fitted(k, rest, lambda, mat.NewVecDense(rest.N, left(y.RawVector().Data, 1)))
			f := 0.0
			for j, v := range cr {
				f += v * k.Eval(rest.Row(j), x.Row(i))
			}
			t.atMost("|y_i − f₋ᵢ(x_i) − c_i/(A⁻¹)_ii|/‖y‖₂", math.Abs(y.AtVec(i)-f-want[i])/mat.Norm(y, 2), 1e-6)
		}
	})
}

// fitted returns c = (K+λI)⁻¹y by the project's K and PCG.
func (e *experiment) fitted(k kernel.Kernel, x *points.Dense, lambda float64, y *mat.VecDense) []float64 {
	a := shifted(e.kernel(k, x, gram.Float64), lambda)
	return mat.Col(nil, 0, e.solve(a, precond.Identity{N: x.N}, y, &pcg.Options{Tol: 1e-12}))
}

// fixedStep is the distance of 16-bit numbers on [0, 1].
const fixedStep = 1.0 / 65535

// storedError returns E = K_stored − K for n points.
func (e *experiment) storedError(n int, g rng.Stream) (err16, k *mat.SymDense) {
	kernel := kernel.Gaussian{Sigma: uniform(g.Sub("sigma"), 1, 3)}
	x := cloud(g, n, 5, 0.9)
	stored := e.kernel(kernel, x, gram.Fixed16)
	k = evaluated(kernel, x)
	return less(stored, k), k
}

func checkFixed16(e *experiment) {
	const n = 100
	e.try("trial", func(_ int, g rng.Stream, t *trial) {
		d, k := e.storedError(n, g)
		t.atMost("|E_ij| over h/2", largest(d)/(fixedStep/2), 1.1) // beside rounding to h: distances in float32
		rms := math.Sqrt(frobenius(d) / (n * (n - 1)))
		t.mean("mean of rms(E) over h/√12", rms/(fixedStep/math.Sqrt(12)), 1)
		size := norm(d)
		edge := size / (2 * rms * math.Sqrt(n))
		t.atMost("‖E‖₂ over 2·rms·√n", edge, 1.15)
		t.atMost("2·rms·√n over ‖E‖₂", 1/edge, 1.3)
		lambda := spread(g.Sub("lambda"), 3*size, 1e-2)
		a := shifted(k, lambda)
		stored := mat.NewSymDense(n, nil)
		stored.AddSym(a, d)
		y := vector(g.Sub("y"), n)
		x, r, chol := mat.NewVecDense(n, nil), mat.VecDenseCopyOf(y), cholesky(stored)
		for j := 1.0; j <= 3; j++ {
			well(chol.SolveVecTo(r, r))
			x.AddVec(x, r)
			r = residual(a, x, y)
			rate := math.Max(math.Pow(size/(lambda-size), j), 1e-10)
			t.atMost(fmt.Sprintf("residual after %g solves over (‖E‖₂/(λ−‖E‖₂))^%g", j, j),
				mat.Norm(r, 2)/mat.Norm(y, 2)/rate, 1+1e-6)
		}
	})
}

func figureFixed16(e *experiment) *plots.Figure {
	semicircle := plots.Series{Name: "2·h/√12·√n"}
	seen := plots.Series{Name: "‖E‖₂, median and 5 to 95 %", Style: plots.Points}
	sizes := []int{16, 32, 64, 128, 256}
	for _, n := range sizes {
		out := e.sample(fmt.Sprintf("figure %d", n), max(minTrials, e.trials/8), 1,
			func(_ int, g rng.Stream, out []float64) {
				d, _ := e.storedError(n, g)
				out[0] = norm(d)
			})
		addDraws(&seen, float64(n), out[0])
		add(&semicircle, n, 2*fixedStep/math.Sqrt(12*1.0)*math.Sqrt(float64(n)))
	}
	f := plots.Sweep("K in 16-bit fixed point", "n", "‖E‖₂", nil, semicircle, seen)
	f.X.Ticks = ticks(sizes)
	return f
}
