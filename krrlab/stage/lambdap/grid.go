package lambdap

import (
	"fmt"
	"math"
	"slices"
)

// Bound returns the bound of κ(M⁻¹A), A = K+λI and M = ZZᵀ+λ_pI, that η ≥ ‖K−ZZᵀ‖₂ gives,
//
//	κ ≤ max(1, (λ+η)/λ_p) · max(1, (λ_p+η)/λ),
//
// that is (1+η/λ)(1+η/λ_p) for |λ−λ_p| ≤ η, (λ_p+η)/λ above, and (λ+η)/λ_p below. It panics unless
// λ, λ_p > 0 and η ≥ 0.
//
// Proof: A ≼ ZZᵀ+(λ+η)I ≼ max(1, (λ+η)/λ_p)·M, as ZZᵀ ≽ 0; and M ≼ K+(λ_p+η)I ≼
// max(1, (λ_p+η)/λ)·A, as K ≽ 0.
func Bound(lambda, lambdaP, eta float64) float64 {
	if !(lambda > 0 && lambdaP > 0 && eta >= 0) {
		panic(fmt.Sprintf("lambdap: bound for λ = %v, λ_p = %v, η = %v", lambda, lambdaP, eta))
	}
	return max(1, (lambda+eta)/lambdaP) * max(1, (lambdaP+eta)/lambda)
}

// gridOf returns points values of λ_p from λ/100 to 100(λ+η), equally spaced in their
// logarithms, and λ, 10λ (the paper's rule of thumb) and λ+η (where Bound is least), which replace what lies within a
// quarter of a spacing of them.
func gridOf(lambda, eta float64, points int) []float64 {
	lo, hi := math.Log(lambda/100), math.Log(100*(lambda+eta))
	step := (hi - lo) / float64(points-1)
	out := slices.Compact(slices.Sorted(slices.Values([]float64{lambda, 10 * lambda, lambda + eta})))
	marks := len(out)
	for i := range points {
		v := lo + float64(i)*step
		if !slices.ContainsFunc(out[:marks], func(m float64) bool { return math.Abs(math.Log(m)-v) < step/4 }) {
			out = append(out, math.Exp(v))
		}
	}
	slices.Sort(out)
	return out
}
