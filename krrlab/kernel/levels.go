package kernel

import (
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// mostLevels is the largest squared distance, in units of Scale², of a table.
const mostLevels = 4096

// Levels are the values of a Radial at the squared distances of points.Bytes, which are whole numbers times Scale²:
// where these are few, as for points of 0 and 1, one table has them all. Entries in float32 are correctly rounded then,
// and can be those of k − c: a wide kernel has values near some c, from which float32 tells differences that it does
// not tell from 0.
type DistanceTable struct {
	unit  float64
	wide  []float64 // k at r² = i·unit
	less  []float32 // k − shift
	shift float64
}

// NewLevels returns the table of k for the points x, which have the given squared norms; nil unless k is a Radial, x is
// points.Bytes, and no squared distance can be more than 4,096 units.
func NewDistanceTable(k Kernel, x points.Points, norms []float64) *DistanceTable {
	r, radial := k.(Radial)
	unit, ok := points.ExactProductUnit(x, x)
	if _, d := x.Dims(); !radial || !ok || d > gemm.BytesDepth || len(norms) == 0 {
		return nil
	}
	most := 2 * math.Round(slices.Max(norms)/unit)
	if !(most <= mostLevels) {
		return nil
	}
	l := &DistanceTable{unit: unit, wide: make([]float64, int(most)+1)}
	for i := range l.wide {
		l.wide[i] = float64(i) * unit
	}
	r.Profile(l.wide, l.wide)
	return l.Minus(0)
}

// Less returns the table whose Tile32 gives k − shift.
func (l *DistanceTable) Minus(shift float64) *DistanceTable {
	out := &DistanceTable{l.unit, l.wide, make([]float32, len(l.wide)), shift}
	for i, v := range l.wide {
		if v -= shift; !(math.Abs(v) < 0x1p-126) { // no subnormal numbers, as in Tile32; NaN stays
			out.less[i] = float32(v)
		}
	}
	return out
}

// Shift returns what Tile32 leaves out.
func (l *DistanceTable) Shift() float64 { return l.shift }

// Tile64 is the Tile64 of the kernel, with the same bits.
func (l *DistanceTable) Tile64(dst []float64, ld int, x, z points.Panel, w *Workspace) {
	nz := z.Len()
	inner := buffer.Grow(&w.ints, x.Len()*nz)
	look(dst, ld, inner, nz, l.wide, l.unit, x, z, w)
}

// Tile32 sets dst[a*ld+b] = k(x_a, z_b) − Shift, rounded once.
func (l *DistanceTable) Tile32(dst []float32, ld int, x, z points.Panel, w *Workspace) {
	look(dst, ld, points.Int32View(dst), ld, l.less, l.unit, x, z, w)
}

// look sets dst to the numbers of the table at the squared distances. inner, of rows of length step, takes the inner
// products; it may be the memory of dst.
func look[T float](dst []T, ld int, inner []int32, step int, table []T, unit float64, x, z points.Panel, w *Workspace) {
	points.InnerInt(inner, step, x.X, z.X, &w.pairs) // x and z are some of the points of the table
	xx, zz := w.wholeNorms(x, z, unit)
	sq := buffer.Grow(&w.sq, len(zz))
	for b, v := range zz {
		sq[b] = int32(v)
	}
	for a, v := range xx {
		xx := int32(v)
		row, sq := dst[a*ld:a*ld+len(sq)], sq
		for b, p := range inner[a*step : a*step+len(sq)] {
			row[b] = table[xx+sq[b]-2*p]
		}
	}
}
