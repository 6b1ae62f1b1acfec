package pcg

import (
	"math"
	"slices"
)

const (
	fewest = 4 // iterations before the first forecast
	spread = 8 // a forecast after k iterations may be off by the factor 1 + spread/k
)

// Forecast predicts how many iterations more bring residuals, those after 0, 1, … iterations, to tol: by the
// rate of the last half of them, so that
//
//	mid = ln(r_k/τ)/rate,  rate = (ln r_h − ln r_k)/(k−h),  h = ⌊k/2⌋,
//
// each r being the least so far. low and high are mid divided and multiplied by 1+8/k. All are +Inf where
// the rate is not positive, and low is 0 and high +Inf for less than four iterations.
func Forecast(residuals []float64, tol float64) (low, mid, high float64) {
	k := len(residuals) - 1
	if k < 1 {
		return 0, math.Inf(1), math.Inf(1)
	}
	h := k / 2
	before := slices.Min(residuals[:h+1])
	last := min(before, slices.Min(residuals[h+1:]))
	if last <= tol {
		return 0, 0, 0
	}
	mid = math.Inf(1)
	if rate := math.Log(before/last) / float64(k-h); rate > 0 {
		mid = math.Log(last/tol) / rate
	}
	if k < fewest {
		return 0, mid, math.Inf(1)
	}
	f := 1 + spread/float64(k)
	return mid / f, mid, mid * f
}
