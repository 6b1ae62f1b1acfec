package estimate

import (
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// StudentHalfWidth returns the half-width, in standard errors, of the two-sided interval of Student's t with the given
// number of degrees of freedom. The interval contains the true value with probability confidence.
func StudentHalfWidth(confidence, degrees float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile(0.5 + confidence/2)
}

// GroupedMean returns the mean of the values v_i of all rows i, and the standard error of the mean if the groups of
// rows are drawn independently. groupOf[i] is the first row of the group of row i; nil means that each row is its own
// group.
func GroupedMean(v []float64, groupOf []int) (mean, standardError float64) {
	mean, n := stat.Mean(v, nil), float64(len(v))
	sums := make([]float64, len(v)) // sums of the deviations from the mean of each group, at the first row of the group
	for i, value := range v {
		if groupOf != nil {
			sums[groupOf[i]] += value - mean
		} else {
			sums[i] = value - mean
		}
	}
	return mean, floats.Norm(sums, 2) / n
}
