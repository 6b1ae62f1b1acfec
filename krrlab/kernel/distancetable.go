package kernel

import (
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// maxTableLevels is the largest squared distance of a table, in units of Scale². With a larger limit more data sets
// have a table, and the table takes more cache.
const maxTableLevels = 4096

// DistanceTable holds the values of a Radial for all squared distances of points.Bytes: integers times Scale². A table
// is possible if these are few, as for points with coordinates 0 and 1. Entries in float32 are then correctly rounded.
// They can also be those of k − shift: a wide kernel has values near some constant, and float32 resolves the
// differences from it better than the values.
type DistanceTable struct {
	unit    float64   // Scale²
	values  []float64 // k at r² = i·unit
	shifted []float32 // k − shift at r² = i·unit
	shift   float64
}

// NewDistanceTable returns the table of k for the points x with the given squared norms. It returns nil unless k is a
// Radial, x is points.Bytes, and no squared distance can exceed 4,096 units.
func NewDistanceTable(k Kernel, x points.Points, norms []float64) *DistanceTable {
	r, radial := k.(Radial)
	unit, ok := points.ExactProductUnit(x, x)
	if _, d := x.Dims(); !radial || !ok || d > gemm.MaxBytesK || len(norms) == 0 {
		return nil
	}
	maxLevel := 2 * math.Round(slices.Max(norms)/unit)
	if !(maxLevel <= maxTableLevels) {
		return nil
	}
	l := &DistanceTable{unit: unit, values: make([]float64, int(maxLevel)+1)}
	for i := range l.values {
		l.values[i] = float64(i) * unit
	}
	r.Profile(l.values, l.values)
	return l.Minus(0)
}

// Minus returns a table whose Tile32 computes k − shift.
func (l *DistanceTable) Minus(shift float64) *DistanceTable {
	out := &DistanceTable{l.unit, l.values, make([]float32, len(l.values)), shift}
	for i, v := range l.values {
		if v -= shift; !(math.Abs(v) < 0x1p-126) { // subnormal numbers become 0, as in Tile32; NaN stays
			out.shifted[i] = float32(v)
		}
	}
	return out
}

// Shift returns the constant that Tile32 subtracts.
func (l *DistanceTable) Shift() float64 { return l.shift }

// Tile64 computes the same bits as the function Tile64 for the kernel.
func (l *DistanceTable) Tile64(dst []float64, ld int, x, z points.Panel, w *Workspace) {
	nz := z.Len()
	inner := buffer.Grow(&w.intProducts, x.Len()*nz)
	fillFromTable(dst, ld, inner, nz, l.values, l.unit, x, z, w)
}

// Tile32 sets dst[a*ld+b] = k(x_a, z_b) − Shift, rounded once.
func (l *DistanceTable) Tile32(dst []float32, ld int, x, z points.Panel, w *Workspace) {
	fillFromTable(dst, ld, points.Int32View(dst), ld, l.shifted, l.unit, x, z, w)
}

// fillFromTable sets dst to the values of the table at the squared distances of x and z. The inner products are
// computed in inner, in rows of length stride; inner may share the memory of dst.
func fillFromTable[T realNumber](dst []T, ld int, inner []int32, stride int, table []T, unit float64,
	x, z points.Panel, w *Workspace) {
	points.InnerInt(inner, stride, x.X, z.X, &w.pairs) // exact, because NewDistanceTable checked the points
	xNorms, zNorms := w.integerNorms(x, z, unit)
	sq := buffer.Grow(&w.intNorms, len(zNorms))
	for b, v := range zNorms {
		sq[b] = int32(v)
	}
	for a, v := range xNorms {
		xNorms := int32(v)
		row, sq := dst[a*ld:a*ld+len(sq)], sq
		for b, p := range inner[a*stride : a*stride+len(sq)] {
			row[b] = table[xNorms+sq[b]-2*p]
		}
	}
}
