package pcg

import (
	"math"
	"slices"
)

// Forecast predicts how many iterations more bring residuals, those after 0, 1, … iterations, to tol: by the
// rate of the last half of them, so that
//
//	mid = ln(r_k/τ)/rate,  rate = (ln r_h − ln r_k)/(k−h),  h = ⌊k/2⌋,
//
// each r being the least so far. low is as if chance had kept r_k up, or r_h down, by a factor of e: by the rate
// +1/(k−h), so that residuals which have not fallen yet say little. mid is +Inf where the rate is not positive, and
// both are for a start alone, where low is 0.
func Forecast(residuals []float64, tol float64) (low, mid float64) {
	k := len(residuals) - 1
	if k < 1 {
		return 0, math.Inf(1)
	}
	h := k / 2
	before := slices.Min(residuals[:h+1])
	last := min(before, slices.Min(residuals[h+1:]))
	if last <= tol {
		return 0, 0
	}
	left, fell, over := math.Log(last/tol), math.Log(before/last), float64(k-h)
	return left * over / (fell + 1), left * over / fell
}
