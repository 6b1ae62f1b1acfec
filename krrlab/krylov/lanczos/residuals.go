package lanczos

import (
	"fmt"
	"math"
)

// RitzIterations predicts from the tridiagonal T of the Lanczos process how many iterations PCG
// takes to a relative residual of tau. They are another form of one another: from the
// same start, T = LDLᵀ with pivots d_j gives PCG's residuals,
//
//	‖r_k‖_{M⁻¹} / ‖r_0‖_{M⁻¹} = Π_{j≤k} β_j/d_j,
//
// so this is what PCG does for a random right-hand side of covariance M. Beyond T the
// asymptotic rate (√κ−1)/(√κ+1) is assumed with κ = kappa. It is +Inf if T is not
// positive definite, or κ is not finite where it is needed; it panics unless 0 < τ < 1.
func RitzIterations(alpha, beta []float64, tau, kappa float64) float64 {
	if !(tau > 0 && tau < 1) {
		panic(fmt.Sprintf("lanczos: iterations to a residual of %g", tau))
	}
	res, definite := Residuals(alpha, beta)
	for j, r := range res {
		if r <= tau {
			return float64(j + 1)
		}
	}
	if !definite || math.IsInf(kappa, 1) || math.IsNaN(kappa) {
		return math.Inf(1)
	}
	root, last := math.Sqrt(kappa), 1.0
	if len(res) > 0 {
		last = res[len(res)-1]
	}
	return math.Ceil(float64(len(res)) + math.Log(tau/last)/math.Log((root-1)/(root+1)))
}

// Residuals returns ‖r_k‖_{M⁻¹}/‖r_0‖_{M⁻¹} for k = 1, 2, … from the tridiagonal T of the Lanczos process
// (RitzIterations), up to 0 or to where T is not positive definite, and whether it is.
func Residuals(alpha, beta []float64) (res []float64, definite bool) {
	r, d := 1.0, 0.0
	for j, a := range alpha {
		d = a - off(beta, j, d) // d_j = α_j − β²_{j−1}/d_{j−1}
		if !(d > 0) {
			return res, false
		}
		r *= beta[j] / d
		if res = append(res, r); r == 0 {
			break
		}
	}
	return res, true
}

// off returns β²_{j−1}/d_{j−1}, 0 for the first row.
func off(beta []float64, j int, d float64) float64 {
	if j == 0 {
		return 0
	}
	return beta[j-1] * beta[j-1] / d
}
