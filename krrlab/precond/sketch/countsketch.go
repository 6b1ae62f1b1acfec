package sketch

import (
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// CountSketch is the distribution of the sparsest sketches (Charikar, Chen and
// Farach-Colton 2004): column j of S has the single entry g(j) = ±1 in row h(j),
//
//	(Sx)_b = Σ_{j: h(j)=b} g(j)·x_j,
//
// with h uniform on the s rows. Here all h(j) and g(j) are independent, which is more than
// the pairwise h and 4-wise g that its mean and variance need.
type CountSketch struct{}

// CountSketchOperator is a draw of CountSketch. It holds 4m bytes.
type CountSketchOperator struct {
	m, s  int
	table []uint32 // table[j] = 2·h(j) + [g(j) = −1]
}

var (
	_ Dist     = CountSketch{}
	_ Operator = (*CountSketchOperator)(nil)
)

func (CountSketch) String() string { return "countsketch" }

// Sample implements Dist: 2·h(j) + [g(j) = −1] = g.Sub("countsketch").IntN(j, 2s).
func (d CountSketch) Sample(m, s int, g rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	o := &CountSketchOperator{m: m, s: s, table: make([]uint32, m)}
	g = g.Sub("countsketch")
	for j := range o.table {
		o.table[j] = uint32(g.IntN(uint64(j), 2*s))
	}
	return o, nil
}

// Dims implements Operator.
func (o *CountSketchOperator) Dims() (m, s int) { return o.m, o.s }

// Hash returns h(j) and g(j).
func (o *CountSketchOperator) Hash(j int) (h int, g float64) {
	v := o.table[j]
	return int(v >> 1), 1 - 2*float64(v&1)
}

// Apply32 implements Operator.
func (o *CountSketchOperator) Apply32(dst []float32, ldd int, src []float32, lds, rows int, w *Workspace) {
	count(o, dst, ldd, src, lds, rows, buffer.Grow(&w.row32, 2*o.s))
}

// Apply64 implements Operator.
func (o *CountSketchOperator) Apply64(dst []float64, ldd int, src []float64, lds, rows int, w *Workspace) {
	count(o, dst, ldd, src, lds, rows, buffer.Grow(&w.row64, 2*o.s))
}

// count sums what is added to a bucket and what is taken from it side by side in both,
// and so needs no signs.
func count[T float](o *CountSketchOperator, dst []T, ldd int, src []T, lds, rows int, both []T) {
	checkApply(o, len(dst), ldd, len(src), lds, rows)
	for r := range rows {
		clear(both)
		for j, v := range src[r*lds : r*lds+o.m] {
			both[o.table[j]] += v
		}
		out := dst[r*ldd : r*ldd+o.s]
		for b := range out {
			out[b] = both[2*b] - both[2*b+1]
		}
	}
}
