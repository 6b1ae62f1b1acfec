package lambdap

import (
	"fmt"
	"math"
	"slices"
)

// Bound returns the bound of κ(M⁻¹A), A = K+λI and M = ZZᵀ+λ_pI, that follows from η ≥ ‖K−ZZᵀ‖₂,
//
//	κ ≤ max(1, (λ+η)/λ_p) · max(1, (λ_p+η)/λ),
//
// which is (1+η/λ)(1+η/λ_p) for |λ−λ_p| ≤ η, (λ_p+η)/λ for larger λ_p, and (λ+η)/λ_p for smaller λ_p. It panics unless
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

// defaultGrid returns points values of λ_p from λ/100 to 100(λ+η), equally spaced in their logarithms. Three marked
// values are added: λ, 10λ (a rule of thumb of Avron, Clarkson and Woodruff) and λ+η (the minimum of Bound). They
// replace values within a quarter of a spacing.
func defaultGrid(lambda, eta float64, points int) []float64 {
	lo, hi := math.Log(lambda/100), math.Log(100*(lambda+eta))
	step := (hi - lo) / float64(points-1)
	grid := slices.Compact(slices.Sorted(slices.Values([]float64{lambda, 10 * lambda, lambda + eta})))
	markedCount := len(grid)
	for i := range points {
		logLambdaP := lo + float64(i)*step
		if !slices.ContainsFunc(grid[:markedCount],
			func(marked float64) bool { return math.Abs(math.Log(marked)-logLambdaP) < step/4 }) {
			grid = append(grid, math.Exp(logLambdaP))
		}
	}
	slices.Sort(grid)
	return grid
}
