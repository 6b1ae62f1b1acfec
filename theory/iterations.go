package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
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

var iterations = Claim{
	Name: "iterations", Place: "Theorem 1 (Shewchuk 1994)", Kind: Bound,
	Statement: "‖c̃−c‖_A ≤ ε‖c‖_A after ⌈(√κ/2)·ln(2/ε)⌉ iterations of PCG from zero, κ = κ(M⁻¹A). It bounds the error, not the residual.",
	Measured:  "the error over ε after that count with the project's PCG, for random spectra, and for spectra at Chebyshev's points, the hardest ones.",
	Fails:     "a count that is too low by a factor, √κ/4 say, or a loop that loses an iteration's step.",
	run:       checkIterations, figure: figureIterations,
}

func checkIterations(e *experiment) {
	out := e.sample("trial", e.trials, 2, func(i int, g rng.Stream, out []float64) {
		const n = 30
		kappa, eps := spread(g.Sub("kappa"), 0, 1.5, 300), spread(g.Sub("epsilon"), 0, 1e-4, 0.3)
		m := precond.Identity{N: n}
		random := values(n, func(i int) float64 { return 1 + (kappa-1)*g.Sub("eigenvalues").Float64(uint64(i)) })
		random[0], random[1] = 1, kappa
		for j, v := range [][]float64{random, chebyshev(n, kappa)} {
			a := designed(g.Sub("basis", uint64(j)), v)
			out[j] = solveError(e, a, m, g, e.parts.Iterations(kappa, eps)) / eps
		}
	})
	e.atMost("‖c̃−c‖_A/‖c‖_A over ε, random spectra", out[0], 1)
	e.atMost("‖c̃−c‖_A/‖c‖_A over ε, Chebyshev's points", out[1], 1)
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
			eps := 2 * math.Exp(-2*float64(k)/math.Sqrt(kappa)) * (1 + 1e-12)
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
			eps = math.Min(eps, 1)
			ratios = append(ratios, solveErrorFor(e, a, precond.Identity{N: k + 1}, y, e.parts.Iterations(kappa, eps))/eps)
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
	m := precond.Identity{N: n}
	random := values(n, func(i int) float64 { return 1 + (kappa-1)*float64(i)/(n-1) })
	a, b := designed(g.Sub("easy"), random), designed(g.Sub("hard"), chebyshev(n, kappa))
	for k := 1; k <= 24; k++ {
		add(&bound, k, 2*math.Exp(-2*float64(k)/math.Sqrt(kappa)))
		add(&easy, k, solveError(e, a, m, g, k))
		add(&hard, k, solveError(e, b, m, g, k))
	}
	f := plots.Sweep("The count ⌈(√κ/2)·ln(2/ε)⌉: κ = 30", "iterations k", "‖c̃−c‖_{A} / ‖c‖_{A}", nil, bound, hard, easy)
	f.X.Log = false
	return f
}
