package kernel

import (
	"slices"

	"github.com/krrlab/lab/krrlab/points"
)

// Origin returns the mean m of the points of p if they lie far from zero beside their spread,
//
//	max‖x_i−m‖² < max‖x_i‖²/16,
//
// and k is known to depend on x−z only; else nil. Distances formed from inner products are
// then to be formed of points.Shift(·, m), points to be compared with those of p moved by
// the same m: the error ε·max‖x‖² becomes ε·max‖x−m‖². In the usual case a few points are
// looked at.
func Origin(k Kernel, p points.Panel) []float64 {
	n, d := p.X.Dims()
	if n == 0 || !ShiftInvariant(k) {
		return nil
	}
	maxSq := slices.Max(p.Norms)
	first, row := make([]float64, d), make([]float64, d)
	p.X.RowTo(first, 0)
	for i := range n {
		p.X.RowTo(row, i)
		if !(4*dist2(row, first) < maxSq) { // ‖x_i−x_0‖ ≤ 2·max‖x−m‖ is below max‖x‖/2
			return nil
		}
	}
	mean := points.Mean(p.X)
	for _, v := range points.SqNorms(points.Shift(p.X, mean)) {
		if !(16*v < maxSq) {
			return nil
		}
	}
	return mean
}
