package kernel

import (
	"cmp"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// unit is the unit roundoff of float64.
const unit = 0x1p-53

// EntryError bounds |k̂(x,z) − k(x,z)|/√(k(x,x)·k(z,z)) for an entry k̂ of Tile64, for points with summary e. The bound
// is proved, for any order in which the BLAS sums products, if simd.Exp64 is accurate to one ulp. With u = 2⁻⁵³:
//
//	Differences  (d+16)u, as r² has a relative error of (d+3)u and |r²·∂k/∂r²| ≤ 1
//	Float64      4(d+12)u·max‖x‖²·s + 16u with s ≥ |∂k/∂r²| (Radial.Slope), as ‖x‖²+‖z‖²−2xᵀz has an error
//	             of (d+6)u·(‖x‖+‖z‖)², and points shifted by their mean the same error again
//	Laplacian    (d+16)u; for sparse or shifted points as Float64, with ‖x‖₁ ≤ √d‖x‖₂
//	ExactBytes   as Differences or the polynomial of d = 3: r² or xᵀz is an integer times Scale²
//	polynomial   (q(d+4)+8)u, as the base has an error of (d+4)u of γ‖x‖‖z‖+c, whose q-th power is
//	             at most √(k(x,x)·k(z,z))
//
// Kernels with values in [0, 1] never have an error above 1. A user-defined kernel is defined by its computed values:
// the error of Eval, and of Profile at the r² of Differences, is 0 by definition. From inner products, a user-defined
// Radial has at most the error of Float64 with s/k(x,x) for s, provided that its Slope is correct, and never an error
// above 2. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
func EntryError(k Kernel, arith Arithmetic, e PointSummary) float64 {
	d := float64(e.Dim)
	if HasExactProducts(k, e) {
		d, arith = 3, Differences // exact sums count as those of few coordinates
	}
	if b, ok := k.(entryErrorBounder); ok && BuiltIn(k) {
		return b.entryError(d, arith, e)
	}
	r, ok := k.(Radial)
	if !ok {
		return 0
	}
	atOrigin, maxError, rounding := 1.0, 1.0, (d+16)*unit // k(x, x), the trivial bound, and the bound with Differences
	if !BuiltIn(k) {
		atOrigin, maxError, rounding = atZero(r), 2, 0
	}
	switch {
	case arith == Differences:
		return rounding
	case e.MaxSq == 0: // avoids 0·∞ if the slope is infinite
		return cancellationError(d, 0)
	}
	return min(maxError, cancellationError(d, e.MaxSq*r.Slope()/atOrigin))
}

// entryErrorBounder is a kernel of this package with a special error bound for EntryError, for points of dimension dim.
type entryErrorBounder interface {
	entryError(dim float64, arith Arithmetic, e PointSummary) float64
}

// cancellationError bounds the error of a kernel of dim-dimensional points whose argument is formed from inner products
// (see Float64 in EntryError). size is max‖x‖² times a bound of |∂k/∂r²|, or of |∂k/∂r| times a bound of ‖x‖₁.
func cancellationError(dim, size float64) float64 { return 4*(dim+12)*unit*size + 16*unit }

// ChooseArithmetic returns Float64 if EntryError is then at most accuracy, and otherwise Differences, with the bound of
// EntryError. It always returns Float64 for kernels that are not functions of x−z, and for exact products of bytes.
func ChooseArithmetic(k Kernel, e PointSummary, accuracy float64) (arith Arithmetic, bound float64) {
	bound = EntryError(k, Float64, e)
	if bound <= accuracy || !ShiftInvariant(k) || HasExactProducts(k, e) {
		return Float64, bound
	}
	return Differences, EntryError(k, Differences, e)
}

// ProbeRows chooses points from whose tiles the error of the whole matrix is estimated: one random point from each of
// `random` equal parts of the points, and the `far` points of largest norm, for which inner products are least
// accurate. The random points come first, and randomCount is their number. If there are at most random+far points,
// ProbeRows returns all of them and counts all as random.
func ProbeRows(norms []float64, random, far int, g rng.Stream) (idx []int, randomCount int) {
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

	// The largest norm comes first, and of equal norms the smaller index.
	compareNorms := func(a, b int) int { return cmp.Or(cmp.Compare(norms[b], norms[a]), a-b) }
	var outliers []int
	for i := range n {
		if len(outliers) < far || far > 0 && compareNorms(i, outliers[far-1]) < 0 {
			index, _ := slices.BinarySearchFunc(outliers, i, compareNorms)
			outliers = slices.Insert(outliers, index, i)[:min(len(outliers)+1, far)]
		}
	}
	for _, i := range outliers {
		if _, drawn := slices.BinarySearch(idx[:random], i); !drawn {
			idx = append(idx, i)
		}
	}
	return idx, random
}
