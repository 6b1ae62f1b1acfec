package lanczos

import (
	"fmt"
	"math"
)

// RitzIterations predicts, from the tridiagonal matrix T of the Lanczos process, the number of iterations of PCG until
// ‖r_k‖_{M⁻¹}/‖r_0‖_{M⁻¹} ≤ tau. alpha is the diagonal of T, and beta its off-diagonal including the last β_k; both
// have length k. The two methods are equivalent: for the same start, T = LDLᵀ with pivots d_j gives the residuals of
// PCG,
//
//	‖r_k‖_{M⁻¹} / ‖r_0‖_{M⁻¹} = Π_{j≤k} β_j/d_j.
//
// In exact arithmetic, the prediction is therefore exact for the right-hand side b = M^(1/2)v₁, as far as T extends.
// For a start v₁ that is uniform on the sphere, b has the direction of a random draw of covariance M, and the
// prediction for another draw is an estimate. For later iterations it assumes the asymptotic rate (√κ−1)/(√κ+1) with κ
// = kappa ≥ 1. The result is +Inf if a pivot is not positive before a residual is at most tau, or if κ is needed and
// not finite. RitzIterations panics unless 0 < tau < 1.
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
	sqrtKappa, lastResidual := math.Sqrt(kappa), 1.0
	if len(res) > 0 {
		lastResidual = res[len(res)-1]
	}
	return math.Ceil(float64(len(res)) + math.Log(tau/lastResidual)/math.Log((sqrtKappa-1)/(sqrtKappa+1)))
}

// Residuals returns ‖r_k‖_{M⁻¹}/‖r_0‖_{M⁻¹} for k = 1, 2, … from the tridiagonal matrix T of the Lanczos process (see
// RitzIterations). The list ends at the first 0, or at the first pivot that is not positive. The result definite
// reports whether all pivots are positive.
func Residuals(alpha, beta []float64) (res []float64, definite bool) {
	r, d := 1.0, 0.0
	for j, a := range alpha {
		d = a - pivotCorrection(beta, j, d) // d_j = α_j − β²_{j−1}/d_{j−1}
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

// pivotCorrection returns β²_{j−1}/d_{j−1}, and 0 for the first row.
func pivotCorrection(beta []float64, j int, d float64) float64 {
	if j == 0 {
		return 0
	}
	return beta[j-1] * beta[j-1] / d
}
