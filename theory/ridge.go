package theory

import (
	"fmt"
	"math"
)

// RidgeBound returns a bound on κ(M⁻¹A) for A = K+λI and M = ZZᵀ+λ_pI, given
// η = ‖K−ZZᵀ‖₂:
//
//	κ ≤ (λ+η)/λ_p             for λ_p ≤ λ−η,
//	κ ≤ (1+η/λ)(1+η/λ_p)      for λ−η ≤ λ_p ≤ λ+η,
//	κ ≤ (λ_p+η)/λ             for λ_p ≥ λ+η.
//
// Proof. K and ZZᵀ are positive semi-definite and differ by at most η, so
// M ≼ K+(η+λ_p)I ≼ A·max(1, (η+λ_p)/λ) and A ≼ ZZᵀ+(η+λ)I ≼ M·max(1, (η+λ)/λ_p); the
// bound is the product of the two factors. It does not say where the true κ is least:
// that may be on either side of BestRidge. The paper has λ_p without a theory.
//
// RidgeBound panics unless λ > 0, λ_p > 0 and η ≥ 0.
func RidgeBound(lambda, lambdaP, eta float64) float64 {
	if !(lambda > 0 && lambdaP > 0 && eta >= 0) {
		panic(fmt.Sprintf("theory: RidgeBound(λ=%g, λ_p=%g, η=%g): want λ > 0, λ_p > 0, η ≥ 0", lambda, lambdaP, eta))
	}
	above := math.Max(1, (eta+lambdaP)/lambda) // M ≼ above·A
	below := math.Max(1, (eta+lambda)/lambdaP) // A ≼ below·M
	return above * below
}

// BestRidge returns the λ_p at which RidgeBound is least, λ+η, and the bound there,
// 1+2η/λ. It panics unless λ > 0 and η ≥ 0.
func BestRidge(lambda, eta float64) (lambdaP, bound float64) {
	return lambda + eta, RidgeBound(lambda, lambda+eta, eta)
}
