package kernel

import (
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Placement describes how points are shifted before inner products are formed, and their norms afterwards.
type Placement struct {
	Original points.Panel // the points as given
	Shift    []float64    // vector subtracted from all points; nil if they are not shifted
	Panel    points.Panel // the shifted points
	Summary  PointSummary // properties of Panel
}

// NewPlacement shifts the points by their mean m if three conditions hold: k is known to depend on x−z only, products
// of the points as given are not already exact (HasExactProducts), and the points are far from the origin compared with
// their spread,
//
//	max‖x_i−m‖² < max‖x_i‖²/16.
//
// In distances formed from inner products the error ε·max‖x‖² then becomes ε·max‖x−m‖². The factor 16 is a judgment.
// Usually a few points suffice to see that no shift is needed.
func NewPlacement(k Kernel, x points.Points) Placement {
	p := points.NewPanel(x)
	if m := originShift(k, p); m != nil {
		moved := points.NewPanel(points.Shift(x, m))
		return Placement{p, m, moved, SummaryOf(moved)}
	}
	return Placement{p, nil, p, SummaryOf(p)}
}

// Apply returns the panel of other points z, shifted like the points of p.
func (p Placement) Apply(z points.Points) points.Panel {
	if p.Shift != nil {
		z = points.Shift(z, p.Shift)
	}
	return points.NewPanel(z)
}

// SummaryWith returns the summary for kernel entries between the points of p and the panel z that Apply returned.
func (p Placement) SummaryWith(z points.Panel) PointSummary {
	e := p.Summary
	e.MaxSq = max(e.MaxSq, slices.Max(z.Norms))
	_, e.ExactBytes = points.ExactProductUnit(p.Panel.X, z.X)
	return e
}

// Accurate returns the arithmetic of the function Accurate for the points of p, and the placement for tiles in that
// arithmetic. With Differences the points are not shifted, because shifting rounds.
func (p Placement) Accurate(k Kernel, accuracy float64) (Placement, Arithmetic) {
	arith, _ := Accurate(k, p.Summary, accuracy)
	if arith == Differences && p.Shift != nil {
		return Placement{p.Original, nil, p.Original, SummaryOf(p.Original)}, arith
	}
	return p, arith
}

// originShift returns the mean by which NewPlacement shifts the points, or nil.
func originShift(k Kernel, p points.Panel) []float64 {
	n, d := p.X.Dims()
	if !ShiftInvariant(k) || HasExactProducts(k, p.X) {
		return nil
	}
	maxSq := slices.Max(p.Norms)
	firstRow, row := make([]float64, d), make([]float64, d)
	p.X.RowTo(firstRow, 0)
	for i := range n {
		p.X.RowTo(row, i)
		// A shift requires max‖x−m‖ < max‖x‖/4, so ‖x_i−x_0‖ ≤ 2·max‖x−m‖ < max‖x‖/2.
		if !(4*squaredDistance(row, firstRow) < maxSq) {
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
