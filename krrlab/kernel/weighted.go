package kernel

import (
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// DrawWeighted draws about count of the weighted points without replacement. It returns them in increasing order with
// their probabilities
//
//	π_i = min(1, count·(1/n + w_i/Σw)/2).
//
// A sum over all points is estimated by Σ v_i/π_i over the drawn ones. The two terms of π_i ensure that the estimate
// misses neither a heavy point nor a large number of light ones. The draw is systematic, in a random order of the
// points (W. G. Cochran, Sampling Techniques, 3rd ed., section 9A.10).
func DrawWeighted(x *points.Weighted, count int, g rng.Stream) (drawn []int, probabilities []float64) {
	n, total := len(x.Factors), 0.0
	for _, factor := range x.Factors { // factor² is the weight
		total += factor * factor
	}
	probability := func(i int) float64 {
		factor := x.Factors[i]
		return min(1, float64(count)*(1/float64(n)+factor*factor/total)/2)
	}
	position := g.Sub("start").Float64(0)
	for _, i := range g.Perm(n) {
		if position += probability(i); position >= 1 {
			position--
			drawn = append(drawn, i)
		}
	}
	slices.Sort(drawn)
	for _, i := range drawn {
		probabilities = append(probabilities, probability(i))
	}
	return drawn, probabilities
}
