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
// prediction for another draw is an estimate. For later iterations RitzIterations assumes the asymptotic rate
// (√κ−1)/(√κ+1) with κ = kappa ≥ 1. RitzIterations returns +Inf if a pivot is not positive before a residual is at most
// tau, or if κ is needed and not finite. RitzIterations panics unless 0 < tau < 1.
func RitzIterations(alpha, beta []float64, tau, kappa float64) float64 {
	if !(tau > 0 && tau < 1) {
		panic(fmt.Sprintf("lanczos: iterations to a residual of %g", tau))
	}
	residuals, isDefinite := Residuals(alpha, beta)
	for j, residual := range residuals {
		if residual <= tau {
			return float64(j + 1)
		}
	}
	if !isDefinite || math.IsInf(kappa, 1) || math.IsNaN(kappa) {
		return math.Inf(1)
	}
	sqrtKappa, lastResidual := math.Sqrt(kappa), 1.0
	if len(residuals) > 0 {
		lastResidual = residuals[len(residuals)-1]
	}
	return math.Ceil(float64(len(residuals)) + math.Log(tau/lastResidual)/math.Log((sqrtKappa-1)/(sqrtKappa+1)))
}

// Residuals returns ‖r_k‖_{M⁻¹}/‖r_0‖_{M⁻¹} for k = 1, 2, … from the tridiagonal matrix T of the Lanczos process (see
// RitzIterations). The list ends at the first 0, or at the first pivot that is not positive. The result isDefinite
// reports whether all pivots are positive.
func Residuals(alpha, beta []float64) (residuals []float64, isDefinite bool) {
	residual, pivot := 1.0, 0.0
	for j, alphaJ := range alpha {
		pivot = alphaJ - pivotCorrection(beta, j, pivot) // d_j = α_j − β²_{j−1}/d_{j−1}
		if !(pivot > 0) {
			return residuals, false
		}
		residual *= beta[j] / pivot
		if residuals = append(residuals, residual); residual == 0 {
			break
		}
	}
	return residuals, true
}

// pivotCorrection returns β²_{j−1}/d_{j−1}, where pivot is d_{j−1}, and 0 for the first row.
func pivotCorrection(beta []float64, j int, pivot float64) float64 {
	if j == 0 {
		return 0
	}
	return beta[j-1] * beta[j-1] / pivot
}
