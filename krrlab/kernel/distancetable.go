package kernel

import (
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// maxTableDistance is the largest squared distance of a table, in units of Scale². With a larger limit more data sets
// have a table, but the table takes more of the cache. The table in float32 has at most 16 KiB.
const maxTableDistance = 4096

// DistanceTable holds the values of a Radial kernel k for all squared distances of points.Bytes, which are integers
// times Scale² (Bytes.Scale is the common factor of the coordinates). A table is possible if there are few of them, as
// for points with coordinates 0 and 1. Entries in float32 are then correctly rounded. Tile32 can also subtract a
// constant shift from k: the values of a wide kernel are close to some constant, and float32 resolves their differences
// from it better than the values themselves.
type DistanceTable struct {
	unit    float64   // Scale²
	values  []float64 // k at r² = i·unit
	shifted []float32 // k − shift at r² = i·unit
	shift   float64   // constant that Tile32 subtracts from k
}

// NewDistanceTable returns the table of k for the points x. It returns nil unless k is a Radial, x are points.Bytes,
// and no squared distance can exceed 4,096 units.
func NewDistanceTable(k Kernel, x points.Panel) *DistanceTable {
	r, radial := k.(Radial)
	unit, ok := points.ExactProductUnit(x.X, x.X)
	if _, d := x.X.Dims(); !radial || !ok || d > gemm.MaxBytesK || x.Len() == 0 {
		return nil
	}
	maxDistance := 2 * math.RoundToEven(slices.Max(x.Norms)/unit) // ‖x−z‖² ≤ ‖x‖²+‖z‖², as bytes are not negative
	if !(maxDistance <= maxTableDistance) {
		return nil
	}
	t := &DistanceTable{unit: unit, values: make([]float64, int(maxDistance)+1)}
	for i := range t.values {
		t.values[i] = float64(i) * unit
	}
	r.Profile(t.values, t.values)
	return t.WithShift(0)
}

// WithShift returns a table that shares the values of t, and whose Tile32 computes k − shift. Tile64 does not subtract
// shift.
func (t *DistanceTable) WithShift(shift float64) *DistanceTable {
	out := &DistanceTable{t.unit, t.values, make([]float32, len(t.values)), shift}
	for i, v := range t.values {
		if v -= shift; !(math.Abs(v) < 0x1p-126) { // subnormal numbers become 0, as in Tile32; NaN stays
			out.shifted[i] = float32(v)
		}
	}
	return out
}

// Shift returns the constant that Tile32 subtracts.
func (t *DistanceTable) Shift() float64 { return t.shift }

// Tile64 sets dst[a*ld+b] = k(x_a, z_b), without the shift, with the same bits as the function Tile64.
func (t *DistanceTable) Tile64(dst []float64, ld int, x, z points.Panel, w *Workspace) {
	nz := z.Len()
	inner := buffer.Grow(&w.intProducts, x.Len()*nz)
	fillFromTable(dst, ld, inner, nz, t.values, t.unit, x, z, w)
}

// Tile32 sets dst[a*ld+b] = k(x_a, z_b) − Shift, computed in float64 and rounded to float32. Subnormal results are 0.
func (t *DistanceTable) Tile32(dst []float32, ld int, x, z points.Panel, w *Workspace) {
	fillFromTable(dst, ld, points.Int32View(dst), ld, t.shifted, t.unit, x, z, w)
}

// fillFromTable sets dst to the values of the table at the squared distances ‖x‖²+‖z‖²−2xᵀz, in multiples of unit. The
// inner products are computed in inner, in rows of length stride; inner may share the memory of dst, whose rows have
// the length ld.
func fillFromTable[T realNumber](dst []T, ld int, inner []int32, stride int, table []T, unit float64,
	x, z points.Panel, w *Workspace) {
	points.IntegerInner32(inner, stride, x.X, z.X, &w.pairs) // exact, because NewDistanceTable checked the points
	xNorms, zNorms := w.integerNorms(x, z, unit)
	zNorms32 := buffer.Grow(&w.intNorms, len(zNorms))
	for b, v := range zNorms {
		zNorms32[b] = int32(v)
	}
	for a, v := range xNorms {
		xNorm := int32(v)
		// These local slices have equal length, so that the loop has no bounds checks.
		row, zNorms32 := dst[a*ld:a*ld+len(zNorms32)], zNorms32
		for b, product := range inner[a*stride : a*stride+len(zNorms32)] {
			row[b] = table[xNorm+zNorms32[b]-2*product]
		}
	}
}
