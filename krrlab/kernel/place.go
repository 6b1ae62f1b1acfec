package kernel

import (
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Place is where points lie as inner products are formed of them: the one answer to whether they are moved first,
// what their norms are then, and what EntryError has to know.
type Placement struct {
	Original points.Panel // the points as they are
	Shift    []float64    // taken off them; nil for none
	Panel    points.Panel // the points moved
	Summary  PointSummary // of Panel
}

// NewPlace moves points by their mean m where they lie far from zero beside their spread,
//
//	max‖x_i−m‖² < max‖x_i‖²/16,
//
// and k is known to depend on x−z only, and not exact as they are (Whole): in distances formed from inner products the
// error ε·max‖x‖² becomes ε·max‖x−m‖². In the usual case a few points are looked at.
func NewPlacement(k Kernel, x points.Points) Placement {
	p := points.NewPanel(x)
	if m := origin(k, p); m != nil {
		moved := points.NewPanel(points.Shift(x, m))
		return Placement{p, m, moved, SummaryOf(moved)}
	}
	return Placement{p, nil, p, SummaryOf(p)}
}

// Of returns points that are to be compared with those of the place, moved likewise.
func (p Placement) Apply(z points.Points) points.Panel {
	if p.Shift != nil {
		z = points.Shift(z, p.Shift)
	}
	return points.NewPanel(z)
}

// With returns the extent of entries between the place and points that Of returned.
func (p Placement) SummaryWith(z points.Panel) PointSummary {
	e := p.Summary
	e.MaxSq = max(e.MaxSq, slices.Max(z.Norms))
	_, e.ExactBytes = points.ExactProductUnit(p.Panel.X, z.X)
	return e
}

// Accurate is the function Accurate for the place. The place that it returns is the one for tiles in that
// arithmetic: differences are formed of the points as they are, as moving them rounds.
func (p Placement) Accurate(k Kernel, accuracy float64) (Placement, Arithmetic) {
	arith, _ := Accurate(k, p.Summary, accuracy)
	if arith == Differences && p.Shift != nil {
		return Placement{p.Original, nil, p.Original, SummaryOf(p.Original)}, arith
	}
	return p, arith
}

// origin returns the mean by which NewPlace moves the points, or nil.
func origin(k Kernel, p points.Panel) []float64 {
	n, d := p.X.Dims()
	if !ShiftInvariant(k) || HasExactProducts(k, p.X) {
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
