package kernel

import (
	"cmp"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// unitRoundoff is the unit roundoff u of float64.
const unitRoundoff = 0x1p-53

// EntryError bounds |k̂(x,z) − k(x,z)|/√(k(x,x)·k(z,z)) for an entry k̂ of a tile that Tile64 computes, for points with
// the given summary. The bound is proved, for any order in which the BLAS sums products, if simd.Exp64 is accurate to
// one ulp. With u = 2⁻⁵³ and dimension d, it is:
//
//	Differences  (d+16)u, as r² has a relative error of (d+3)u and |r²·∂k/∂r²| ≤ 1
//	Float64      4(d+12)u·max‖x‖²·s + 16u with s ≥ |∂k/∂r²| (Radial.Slope), as ‖x‖²+‖z‖²−2xᵀz has an error
//	             of (d+6)u·(‖x‖+‖z‖)², and points shifted by their mean the same error again
//	Laplacian    (d+16)u; for sparse or shifted points as Float64, with ‖x‖₁ ≤ √d‖x‖₂
//	ExactBytes   the bound of Differences, or of the polynomial, with d = 3: r² or xᵀz is an integer times Scale²
//	polynomial   (q(d+4)+8)u with the degree q, as the base has an error of (d+4)u of γ‖x‖‖z‖+c, whose q-th power is
//	             at most √(k(x,x)·k(z,z))
//
// Kernels with values in [0, 1] never have an error above 1. A user-defined kernel is defined by its computed values:
// the error of Eval, and of Profile at the r² of Differences, is 0 by definition. From inner products, a user-defined
// Radial has at most the error of Float64 with s/k(x,x) for s, provided that its Slope is correct, and never an error
// above 2. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
func EntryError(k Kernel, arith Arithmetic, summary PointSummary) float64 {
	d := float64(summary.Dim)
	if HasExactProducts(k, summary) {
		d, arith = 3, Differences // the sum over the coordinates is exact: few roundings remain
	}
	if bounder, ok := k.(entryErrorBounder); ok && BuiltIn(k) {
		return bounder.entryError(d, arith, summary)
	}
	r, ok := k.(Radial)
	if !ok {
		return 0
	}
	// atOrigin is k(x, x), maxError the trivial bound, and rounding the bound with Differences.
	atOrigin, maxError, rounding := 1.0, 1.0, (d+16)*unitRoundoff
	if !BuiltIn(k) {
		atOrigin, maxError, rounding = atZero(r), 2, 0
	}
	switch {
	case arith == Differences:
		return rounding
	case summary.MaxSq == 0: // avoids 0·∞ if the slope is infinite
		return cancellationError(d, 0)
	}
	return min(maxError, cancellationError(d, summary.MaxSq*r.Slope()/atOrigin))
}

// entryErrorBounder is a kernel of this package with a special error bound for EntryError, for points of dimension dim.
type entryErrorBounder interface {
	entryError(dim float64, arith Arithmetic, summary PointSummary) float64
}

// cancellationError bounds the error of a kernel of dim-dimensional points whose argument is formed from inner products
// (see Float64 in EntryError). change is max‖x‖² times a bound of |∂k/∂r²|, or a bound of |∂k/∂r| times one of ‖x‖₁.
func cancellationError(dim, change float64) float64 {
	return 4*(dim+12)*unitRoundoff*change + 16*unitRoundoff
}

// ChooseArithmetic returns Float64 if EntryError is then at most accuracy, and otherwise Differences, with the bound of
// EntryError. It always returns Float64 for kernels that are not functions of x−z, and for exact products of bytes.
func ChooseArithmetic(k Kernel, summary PointSummary, accuracy float64) (arith Arithmetic, bound float64) {
	bound = EntryError(k, Float64, summary)
	if bound <= accuracy || !ShiftInvariant(k) || HasExactProducts(k, summary) {
		return Float64, bound
	}
	return Differences, EntryError(k, Differences, summary)
}

// ProbeRows chooses the points from whose tiles the error of a whole kernel matrix is estimated. It draws one random
// point from each of parts equal parts of the points, and adds the outlierCount points of largest norm, for which inner
// products are least accurate. The random points come first, and randomCount is their number. If there are at most
// parts+outlierCount points, ProbeRows returns all of them and counts all as random.
func ProbeRows(norms []float64, parts, outlierCount int, g rng.Stream) (idx []int, randomCount int) {
	n := len(norms)
	if n <= parts+outlierCount {
		for i := range n {
			idx = append(idx, i)
		}
		return idx, n
	}
	for part := range parts {
		lo, hi := int(int64(part)*int64(n)/int64(parts)), int(int64(part+1)*int64(n)/int64(parts))
		idx = append(idx, lo+g.IntN(uint64(part), hi-lo))
	}

	// The largest norm comes first, and of equal norms the smaller index.
	compareNorms := func(a, b int) int { return cmp.Or(cmp.Compare(norms[b], norms[a]), a-b) }
	var outliers []int
	for i := range n {
		if len(outliers) < outlierCount || outlierCount > 0 && compareNorms(i, outliers[outlierCount-1]) < 0 {
			index, _ := slices.BinarySearchFunc(outliers, i, compareNorms)
			outliers = slices.Insert(outliers, index, i)[:min(len(outliers)+1, outlierCount)]
		}
	}
	for _, i := range outliers {
		if _, drawn := slices.BinarySearch(idx[:parts], i); !drawn {
			idx = append(idx, i)
		}
	}
	return idx, parts
}
