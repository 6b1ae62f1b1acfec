package kernel

import (
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// medianOf is the number of points whose distances MedianDistance takes.
const medianOf = 1000

// MedianDistance returns the median of ‖x_i−x_j‖₂, or of ‖x_i−x_j‖₁ if l1 is set, over all pairs of the points, or of
// 1,000 of them drawn at random, always the same: a common first guess of a bandwidth σ (the "median heuristic"), as
// Middle has it: 0 if all points are the same.
func MedianDistance(x points.Points, l1 bool) float64 {
	n, _ := x.Dims()
	if n > medianOf {
		x, n = points.Gather(x, rng.New(0).Sub("median distance").Perm(n)[:medianOf]), medianOf
	}
	term, sums := func(e float64) float64 { return e * e }, points.SqDist64
	if l1 {
		term, sums = math.Abs, points.SumDist64
	}
	tile := make([]float64, n*n)
	if sparse, ok := x.(*points.CSR); ok { // in the time that their entries take
		for i := range n {
			for j := range i {
				tile[i*n+j] = points.SparseSum(sparse, i, sparse, j, term)
			}
		}
	} else {
		sums(tile, n, x, x, new(points.Workspace))
	}
	dist := tile[:0]
	for i := range n {
		for _, s := range tile[i*n : i*n+i] {
			if !l1 {
				s = math.Sqrt(s)
			}
			dist = append(dist, s)
		}
	}
	return PositiveMedian(dist)
}

// Middle sorts numbers that are not negative and returns the median, or, if that is 0, as where most points are alike,
// the median of those above 0; 0 if there are none.
func PositiveMedian(v []float64) float64 {
	slices.Sort(v)
	if len(v) > 0 && v[len(v)/2] > 0 {
		return v[len(v)/2]
	}
	first, _ := slices.BinarySearch(v, math.SmallestNonzeroFloat64)
	if v = v[first:]; len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}
