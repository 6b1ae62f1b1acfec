package kernel

import (
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Place is where points lie as inner products are formed of them: the one answer to whether they are moved first,
// what their norms are then, and what EntryError has to know.
type Place struct {
	Given  points.Panel // the points as they are
	Move   []float64    // taken off them; nil for none
	Panel  points.Panel // the points moved
	Extent Extent       // of Panel
}

// NewPlace moves points by their mean m where they lie far from zero beside their spread,
//
//	max‖x_i−m‖² < max‖x_i‖²/16,
//
// and k is known to depend on x−z only, and not exact as they are (Whole): in distances formed from inner products the
// error ε·max‖x‖² becomes ε·max‖x−m‖². In the usual case a few points are looked at.
func NewPlace(k Kernel, x points.Points) Place {
	p := points.NewPanel(x)
	if m := origin(k, p); m != nil {
		moved := points.NewPanel(points.Shift(x, m))
		return Place{p, m, moved, ExtentOf(moved)}
	}
	return Place{p, nil, p, ExtentOf(p)}
}

// Of returns points that are to be compared with those of the place, moved likewise.
func (p Place) Of(z points.Points) points.Panel {
	if p.Move != nil {
		z = points.Shift(z, p.Move)
	}
	return points.NewPanel(z)
}

// With returns the extent of entries between the place and points that Of returned.
func (p Place) With(z points.Panel) Extent {
	e := p.Extent
	e.MaxSq = max(e.MaxSq, slices.Max(z.Norms))
	_, e.Whole = points.SameBytes(p.Panel.X, z.X)
	return e
}

// Accurate is the function Accurate for the place. The place that it returns is the one for tiles in that
// arithmetic: differences are formed of the points as they are, as moving them rounds.
func (p Place) Accurate(k Kernel, accuracy float64) (Place, Arithmetic) {
	arith, _ := Accurate(k, p.Extent, accuracy)
	if arith == Differences && p.Move != nil {
		return Place{p.Given, nil, p.Given, ExtentOf(p.Given)}, arith
	}
	return p, arith
}

// origin returns the mean by which NewPlace moves the points, or nil.
func origin(k Kernel, p points.Panel) []float64 {
	n, d := p.X.Dims()
	if !ShiftInvariant(k) || Whole(k, p.X) {
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
