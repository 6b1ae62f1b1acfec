package kernel

import (
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
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
	tile, w := make([]float64, n*n), new(points.Workspace) // |·| or (·)², summed
	if sparse, ok := x.(*points.CSR); ok {
		for i := range n {
			for j := range i {
				tile[i*n+j] = sparseDistance(sparse, i, j, l1)
			}
		}
	} else if l1 {
		points.SumDist64(tile, n, x, x, w)
	} else {
		points.SqDist64(tile, n, x, x, w)
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
	return Middle(dist)
}

// Middle sorts numbers that are not negative and returns the median, or, if that is 0, as where most points are alike,
// the median of those above 0; 0 if there are none.
func Middle(v []float64) float64 {
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

// sparseDistance returns Σ|x_k−z_k|, or Σ(x_k−z_k)², of two rows, in the time that their entries take.
func sparseDistance(x *points.CSR, i, j int, l1 bool) (s float64) {
	ci, vi := x.Row(i)
	cj, vj := x.Row(j)
	for len(ci) > 0 && len(cj) > 0 {
		switch {
		case ci[0] < cj[0]:
			s += term(vi[0], l1)
			ci, vi = ci[1:], vi[1:]
		case ci[0] > cj[0]:
			s += term(vj[0], l1)
			cj, vj = cj[1:], vj[1:]
		default:
			s += term(vi[0]-vj[0], l1)
			ci, vi, cj, vj = ci[1:], vi[1:], cj[1:], vj[1:]
		}
	}
	for _, v := range append(vi[:len(vi):len(vi)], vj...) {
		s += term(v, l1)
	}
	return s
}

// term is |e| or e².
func term(e float64, l1 bool) float64 {
	if l1 {
		return math.Abs(e)
	}
	return e * e
}
