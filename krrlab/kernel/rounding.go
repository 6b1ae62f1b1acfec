package kernel

import (
	"cmp"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// unit is the unit roundoff of float64.
const unit = 0x1p-53

// Extent is what EntryError has to know of points as a tile's panels hold them.
type PointSummary struct {
	Dim        int     // d
	MaxSq      float64 // the largest ‖x‖²
	Sparse     bool
	Shifted    bool // by points.Shift, which rounds
	ExactBytes bool // points.Bytes, with others of the same scale
}

// ExtentOf returns the extent of a panel.
func SummaryOf(p points.Panel) PointSummary {
	_, d := p.X.Dims()
	_, sparse := p.X.(*points.CSR)
	_, moved := p.X.(*points.Shifted)
	_, whole := p.X.(*points.Bytes)
	return PointSummary{d, slices.Max(p.Norms), sparse, moved, whole}
}

// EntryError bounds |k̂(x,z) − k(x,z)|/√(k(x,x)·k(z,z)) for an entry of Tile64 of points of that
// extent. The bound is certain, in whatever order the BLAS sums products, if simd.Exp64 is right to an
// ulp:
//
//	Differences  (d+16)u, as r² is right to (d+3)u relative and |r²·∂k/∂r²| ≤ 1
//	Float64      4(d+12)u·max‖x‖²·s + 16u with s ≥ |∂k/∂r²| (Radial.Slope), as ‖x‖²+‖z‖²−2xᵀz is wrong by
//	             (d+6)u·(‖x‖+‖z‖)², and points moved to their mean by as much again
//	Laplacian    (d+16)u; where the points are sparse or moved, as Float64, of ‖x‖₁ ≤ √d‖x‖₂
//	whole        as Differences or the polynomial of d = 3: r² or xᵀz is an integer times Scale²
//	polynomial   (q(d+4)+8)u, as the base is wrong by (d+4)u of γ‖x‖‖z‖+c, whose q-th power is
//	             at most √(k(x,x)·k(z,z))
//
// u = 2⁻⁵³. Kernels in [0, 1] are never wrong by more than 1. A user-defined kernel is what its Eval
// returns, or its Profile of r² as Differences has it: 0. By inner products a Radial has an error of no
// more than (s/k(x,x) for s) as long as its Slope is right, and never of more than 2.
// Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
func EntryError(k Kernel, arith Arithmetic, e PointSummary) float64 {
	n := float64(e.Dim)
	if a := ArgumentOf(k); e.ExactBytes && (a == SquaredDistance || a == InnerProduct) {
		n, arith = 3, Differences
	}
	if b, ok := k.(erring); ok && BuiltIn(k) {
		return b.entryError(n, arith, e)
	}
	r, ok := k.(Radial)
	if !ok {
		return 0
	}
	one, most, rounding := 1.0, 1.0, (n+16)*unit
	if !BuiltIn(k) {
		one, most, rounding = atZero(r), 2, 0
	}
	switch {
	case arith == Differences:
		return rounding
	case e.MaxSq == 0: // where the slope may be infinite
		return cancelled(n, 0)
	}
	return min(most, cancelled(n, e.MaxSq*r.Slope()/one))
}

// erring is a kernel of this package with a bound of its own for EntryError, for points of dimension dim.
type erring interface {
	entryError(dim float64, arith Arithmetic, e PointSummary) float64
}

// cancelled bounds the error of a kernel of d-dimensional points whose argument is formed from inner products, where
// size is max‖x‖² times the steepest slope.
func cancelled(dim, size float64) float64 { return 4*(dim+12)*unit*size + 16*unit }

// Accurate returns Float64 if EntryError is then at most the given accuracy, and else Differences, with
// that error. Kernels that are no function of x−z have Float64 only, and so have whole products.
func Accurate(k Kernel, e PointSummary, accuracy float64) (arith Arithmetic, bound float64) {
	v := EntryError(k, Float64, e)
	if v <= accuracy || !ShiftInvariant(k) || e.ExactBytes && ArgumentOf(k) == SquaredDistance {
		return Float64, v
	}
	return Differences, EntryError(k, Differences, e)
}

// ProbeRows chooses points whose tiles tell the error of all: one at random from each of the given
// number of equal parts of the points, and the far ones of largest norm, for which inner products are
// least accurate. It returns all points if they are no more than that, and how many of those
// returned, the first ones, are the random ones.
func ProbeRows(norms []float64, random, far int, g rng.Stream) (idx []int, first int) {
	n := len(norms)
	if n <= random+far {
		for i := range n {
			idx = append(idx, i)
		}
		return idx, n
	}
	for k := range random {
		lo, hi := int(int64(k)*int64(n)/int64(random)), int(int64(k+1)*int64(n)/int64(random))
		idx = append(idx, lo+g.IntN(uint64(k), hi-lo))
	}
	farther := func(a, b int) int { return cmp.Or(cmp.Compare(norms[b], norms[a]), a-b) }
	var top []int
	for i := range n {
		if len(top) < far || far > 0 && farther(i, top[far-1]) < 0 {
			at, _ := slices.BinarySearchFunc(top, i, farther)
			top = slices.Insert(top, at, i)[:min(len(top)+1, far)]
		}
	}
	for _, i := range top {
		if _, taken := slices.BinarySearch(idx[:random], i); !taken {
			idx = append(idx, i)
		}
	}
	return idx, random
}
