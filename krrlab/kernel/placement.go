package kernel

import (
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Placement holds the points of a kernel matrix with their norms and weights, shifted if that makes inner products more
// accurate. Tiles and their error bounds are computed from it.
type Placement struct {
	Original points.Panel // the points as given
	Shift    []float64    // vector subtracted from all points; nil if they are not shifted
	Panel    points.Panel // the shifted points
	Summary  PointSummary // properties of Panel
	k        Kernel       // the kernel of the matrix
}

// PointSummary holds the properties of the points of a panel on which EntryError depends.
type PointSummary struct {
	Dim        int     // d
	MaxSq      float64 // largest ‖x‖²
	Sparse     bool    // the points are points.CSR
	Shifted    bool    // the points are points.Shifted, whose coordinates are rounded
	ExactBytes bool    // the points of both sides of a tile are points.Bytes of the same scale
}

// SummaryOf returns the summary of a panel, for tiles whose rows and columns are points of this panel.
func SummaryOf(p points.Panel) PointSummary {
	_, d := p.X.Dims()
	_, sparse := p.X.(*points.CSR)
	_, shifted := p.X.(*points.Shifted)
	_, bytes := p.X.(*points.Bytes)
	return PointSummary{d, slices.Max(p.Norms), sparse, shifted, bytes}
}

// HasExactProducts reports whether tiles of k for the summarized points are formed from exact inner products: the
// points are points.Bytes, and k is a function of ‖x−z‖₂² or xᵀz.
func HasExactProducts(k Kernel, summary PointSummary) bool {
	return summary.ExactBytes && usesInnerProducts(k)
}

// NewPlacement shifts the points by their mean m if three conditions hold: k is known to depend on x−z only, inner
// products of the points as given are not already exact (HasExactProducts), and the points are far from the origin
// compared with their spread,
//
//	max‖x_i−m‖² < max‖x_i‖²/16.
//
// With unit roundoff ε, the error ε·max‖x‖² of distances formed from inner products then becomes ε·max‖x−m‖². The
// factor 16 is a judgment. Usually the first few points show that no shift is needed.
func NewPlacement(k Kernel, x points.Points) Placement {
	original := points.NewPanel(x)
	p := unshifted(k, original)
	if m := p.originShift(); m != nil {
		panel := points.NewPanel(points.Shift(x, m))
		return Placement{original, m, panel, SummaryOf(panel), k}
	}
	return p
}

// unshifted returns the placement of points that are not shifted.
func unshifted(k Kernel, x points.Panel) Placement { return Placement{x, nil, x, SummaryOf(x), k} }

// Mean returns the mean of the points as given.
func (p Placement) Mean() []float64 {
	if p.Shift != nil {
		return p.Shift
	}
	return points.Mean(p.Original.X)
}

// Diag returns w_i·k(x_i, x_i) for all points in float64. See the function Diag.
func (p Placement) Diag() []float64 { return diagonal(p.k, p.Original) }

// DiagonalBounds returns a vector s with |k(x_i, x_j)|·√(w_i·w_j) ≤ √(s_i·s_j). It returns diag, the result of Diag, if
// k is known to be positive semi-definite. Otherwise k is a Precomputed, and s_i is the largest |K_ij| of the row of
// x_i, times the weight of the point.
func (p Placement) DiagonalBounds(diag []float64) []float64 {
	if k := AsPrecomputed(p.k); k != nil {
		return p.Original.MultiplyByWeights(k.rowMaximaOf(p.Original.X))
	}
	return diag
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
	summary := p.Summary
	summary.MaxSq = max(summary.MaxSq, slices.Max(z.Norms))
	_, summary.ExactBytes = points.ExactProductUnit(p.Panel.X, z.X)
	return summary
}

// WithAccuracy returns the placement for tiles whose EntryError should be at most accuracy, and the arithmetic that
// ChooseArithmetic selects for them. With Differences the points are not shifted, because shifting rounds.
func (p Placement) WithAccuracy(accuracy float64) (Placement, Arithmetic) {
	arith, _ := ChooseArithmetic(p.k, p.Summary, accuracy)
	if arith == Differences {
		return unshifted(p.k, p.Original), arith
	}
	return p, arith
}

// originShift returns the mean by which NewPlacement shifts the points, or nil. p is the placement of the points as
// given.
func (p Placement) originShift() []float64 {
	if !ShiftInvariant(p.k) || HasExactProducts(p.k, p.Summary) {
		return nil
	}
	x := p.Original.X
	n, d := x.Dims()
	firstRow, row := make([]float64, d), make([]float64, d)
	x.RowTo(firstRow, 0)
	for i := range n {
		x.RowTo(row, i)
		// A shift requires max‖x−m‖ < max‖x‖/4, so ‖x_i−x_0‖ ≤ 2·max‖x−m‖ < max‖x‖/2.
		if !(4*squaredDistance(row, firstRow) < p.Summary.MaxSq) {
			return nil
		}
	}
	mean := p.Mean()
	for _, v := range points.SqNorms(points.Shift(x, mean)) {
		if !(16*v < p.Summary.MaxSq) {
			return nil
		}
	}
	return mean
}
