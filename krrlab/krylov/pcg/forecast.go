package pcg

import (
	"math"
	"slices"
)

// RemainingIterations predicts the number of further iterations until the residual reaches τ = tol. residuals holds the
// norms of the residuals r_0, r_1, …, r_k after 0, 1, …, k iterations. The prediction expected assumes the convergence
// rate of the second half of them:
//
//	expected = ln(r_k/τ)/rate,  rate = (ln r_h − ln r_k)/(k−h),  h = ⌊k/2⌋,
//
// where each r is the smallest residual so far. The prediction low is optimistic: it assumes that chance made r_k too
// large, or r_h too small, by a factor of e, and replaces the rate by rate + 1/(k−h). Both are 0 if a residual is at
// most τ already. If the rate is 0, because the second half has no new smallest residual, expected is +Inf and low is
// finite. For k = 0, low is 0 and expected is +Inf.
func RemainingIterations(residuals []float64, tol float64) (low, expected float64) {
	k := len(residuals) - 1
	if k < 1 {
		return 0, math.Inf(1)
	}
	h := k / 2
	smallestAtHalf := slices.Min(residuals[:h+1])
	smallest := min(smallestAtHalf, slices.Min(residuals[h+1:]))
	if smallest <= tol {
		return 0, 0
	}
	logRemaining, logReduction, steps := math.Log(smallest/tol), math.Log(smallestAtHalf/smallest), float64(k-h)
	return logRemaining * steps / (logReduction + 1), logRemaining * steps / logReduction
}
