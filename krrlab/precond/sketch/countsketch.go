package sketch

import (
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// CountSketch is a distribution of sketches S, s×m, with one nonzero entry in each column (Charikar, Chen and
// Farach-Colton 2004). Column j has the entry sign(j) = ±1 in row h(j):
//
//	(Sx)_b = Σ_{j: h(j)=b} sign(j)·x_j.
//
// h(j) is uniform on the s rows. All h(j) and sign(j) are independent here. For the mean and the variance of ‖Sx‖²
// alone, a pairwise independent h and a 4-wise independent sign would suffice.
type CountSketch struct{}

// CountSketchOperator is a draw of CountSketch. It takes 4m bytes.
type CountSketchOperator struct {
	m, s  int
	table []uint32 // table[j] = 2·h(j) + [sign(j) = −1]
}

var (
	_ Dist     = CountSketch{}
	_ Operator = (*CountSketchOperator)(nil)
)

// String implements Dist.
func (CountSketch) String() string { return "countsketch" }

// Sample implements Dist. Number j of the stream g.Sub("countsketch"), uniform on 0, …, 2s−1, determines column j: it
// is 2·h(j) if sign(j) = 1, and 2·h(j)+1 if sign(j) = −1.
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

// Hash returns h(j) and sign(j).
func (o *CountSketchOperator) Hash(j int) (h int, sign float64) {
	v := o.table[j]
	return int(v >> 1), 1 - 2*float64(v&1)
}

// Apply32 implements Operator.
func (o *CountSketchOperator) Apply32(rows Rows32, w *Workspace) {
	sumBuckets(o, rows, &w.row32)
}

// Apply64 implements Operator.
func (o *CountSketchOperator) Apply64(rows Rows64, w *Workspace) {
	sumBuckets(o, rows, &w.row64)
}

// sumBuckets applies o to the rows b. Numbers with sign +1 and with sign −1 are added to two adjacent sums per bucket,
// whose difference is the result; the inner loop therefore needs no multiplication by signs.
func sumBuckets[T float](o *CountSketchOperator, b rowBlock[T], buf *[]T) {
	b.check(o)
	sums := buffer.Grow(buf, 2*o.s)
	for row := range b.Count {
		clear(sums)
		for j, v := range b.Src[row*b.SrcStride : row*b.SrcStride+o.m] {
			sums[o.table[j]] += v
		}
		out := b.Dst[row*b.DstStride : row*b.DstStride+o.s]
		for i := range out {
			out[i] = sums[2*i] - sums[2*i+1]
		}
	}
}
