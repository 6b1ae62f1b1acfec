package kernel

import (
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// medianSampleSize is the largest number of points whose distances MedianDistance computes.
const medianSampleSize = 1000

// MedianDistance returns the median distance of all pairs of points, ‖x_i−x_j‖₁ if l1 is true and ‖x_i−x_j‖₂ otherwise.
// If there are more than 1,000 points, it uses 1,000 of them drawn at random, always the same. The median is a common
// initial value of a bandwidth σ (the "median heuristic"). It is computed by PositiveMedian, and is 0 if all points are
// equal.
func MedianDistance(x points.Points, l1 bool) float64 {
	n, _ := x.Dims()
	if n > medianSampleSize {
		x, n = points.Gather(x, rng.New(0).Sub("median distance").Perm(n)[:medianSampleSize]), medianSampleSize
	}
	term, pairSums := func(difference float64) float64 { return difference * difference }, points.SqDist64
	if l1 {
		term, pairSums = math.Abs, points.AccurateL1Dist64
	}
	sums := make([]float64, n*n)           // row i holds Σ_c term(x_ic−x_jc) for all j, or at least for j < i
	if sparse, ok := x.(*points.CSR); ok { // takes time proportional to the nonzeros
		for i := range n {
			for j := range i {
				sums[i*n+j] = points.SparseSum(sparse, i, sparse, j, term)
			}
		}
	} else {
		pairSums(sums, n, x, x, new(points.Workspace))
	}
	distances := sums[:0] // overwrites sums: entry i(i−1)/2+j is never behind the entry i·n+j that is read
	for i := range n {
		for _, s := range sums[i*n : i*n+i] {
			if !l1 {
				s = math.Sqrt(s)
			}
			distances = append(distances, s)
		}
	}
	return PositiveMedian(distances)
}

// PositiveMedian sorts the nonnegative numbers v and returns their median, for an even count the larger of the two
// middle numbers. If this median is 0, PositiveMedian returns the median of the positive numbers, or 0 if there are
// none.
func PositiveMedian(v []float64) float64 {
	slices.Sort(v)
	if len(v) > 0 && v[len(v)/2] > 0 {
		return v[len(v)/2]
	}
	start, _ := slices.BinarySearch(v, math.SmallestNonzeroFloat64)
	if v = v[start:]; len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}
