package theory

import (
	"fmt"
	"math"
)

// Iterations returns the number of iterations of preconditioned conjugate gradients,
// from a start at zero, after which the error is at most eps times the first one in
// the norm of the system, ‖c̃−c‖_A ≤ ε‖c‖_A, when κ(M⁻¹A) ≤ kappa:
//
//	T = ⌈(√κ/2)·ln(2/ε)⌉.
//
// It bounds the error, not the residual ‖y−Ac̃‖₂ that the stopping test looks at
// (erratum 11); for ‖y−Ac̃‖₂ ≤ τ‖y‖₂ ask for ε = τ/√κ(A). The bound is Chebyshev's; the
// true number is often far smaller. Iterations panics unless κ ≥ 1 and 0 < ε < 2.
//
// Paper, Theorem 1 (there κ = 3); Shewchuk 1994.
func Iterations(kappa, eps float64) int {
	if !(kappa >= 1) || math.IsInf(kappa, 1) || !(eps > 0 && eps < 2) {
		panic(fmt.Sprintf("theory: Iterations(κ=%g, ε=%g): want κ ≥ 1 and 0 < ε < 2", kappa, eps))
	}
	return int(math.Ceil(math.Sqrt(kappa) / 2 * math.Log(2/eps)))
}

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
