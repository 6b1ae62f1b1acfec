package precond

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// RankRows is the number of rows of Z that ranks are dealt together (comm.Rows), and of
// which ZᵀZ and Zᵀr are partial sums: what is added, by threads and by ranks, is the same for
// any number of them.
const RankRows = 512

// rows says which rows of Z this rank has.
type rows struct {
	comm  comm.Comm
	n     int       // rows of Z at all ranks
	first int       // row of M that the first row of this rank is
	own   int       // rows of this rank
	scale []float64 // powers of two: max_i|Z_ik|·scale_k ≤ 1 over the rows of all
}

// newRows returns what is known of Z, of which this rank has the rows z. It returns an error for
// a number that is not finite, and panics if the rows are not those that comm.Rows deals.
func newRows(ctx context.Context, c comm.Comm, z *points.Dense32) (*rows, error) {
	c = comm.OrAlone(c)
	counts := make([]int64, c.Size())
	counts[c.Rank()] = int64(z.N)
	if err := c.AllReduceInt64(ctx, counts); err != nil {
		return nil, err
	}
	k := &rows{comm: c}
	for _, m := range counts {
		k.n += int(m)
	}
	lo, hi := comm.Rows(k.n, RankRows, c.Rank(), c.Size())
	if z.N != hi-lo || k.n < 1 || z.D < 1 {
		panic(fmt.Sprintf("precond: Z is %d×%d, with %d rows at rank %d of %d, want %d", k.n, z.D, z.N, c.Rank(),
			c.Size(), hi-lo))
	}
	k.first, k.own = lo, hi-lo
	peaks := make([]float64, c.Size()*z.D)
	err := k.largest(ctx, peaks[c.Rank()*z.D:][:z.D], z)
	if err = comm.Agree(ctx, c, err); err != nil {
		return nil, err
	}
	if err := comm.Merge(ctx, c, peaks); err != nil {
		return nil, err
	}
	k.scale = make([]float64, z.D)
	for j := range k.scale {
		var peak float64
		for r := range c.Size() {
			peak = max(peak, peaks[r*z.D+j])
		}
		_, exp := math.Frexp(peak) // of 0 is 0
		k.scale[j] = math.Ldexp(1, -exp)
	}
	return k, nil
}

// units returns how many units of RankRows rows this rank has.
func (k *rows) units() int { return (k.own + RankRows - 1) / RankRows }

// largest sets peaks_j to max_i|Z_ij| of this rank's rows, or names a number that is not finite.
func (k *rows) largest(ctx context.Context, peaks []float64, z *points.Dense32) error {
	const sign = 1 << 31
	work := make([][]uint32, accel.Threads()) // bits of |Z_ij|, which are in the order of the numbers
	err := accel.ForEach(ctx, k.units(), func(worker, u int) {
		buffer.Grow(&work[worker], z.D) // zeros at first
		most := work[worker]
		i0, i1 := u*RankRows, min((u+1)*RankRows, k.own)
		for i := i0; i < i1; i++ {
			for j, v := range z.Row(i) {
				most[j] = max(most[j], math.Float32bits(v)&^sign)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, most := range work {
		for j, b := range most {
			v := math.Float32frombits(b)
			if v-v != 0 {
				return k.notFinite(z)
			}
			peaks[j] = max(peaks[j], float64(v))
		}
	}
	return nil
}

// notFinite names the first number of z that is not finite.
func (k *rows) notFinite(z *points.Dense32) error {
	for i := range k.own {
		for j, v := range z.Row(i) {
			if v-v != 0 {
				return fmt.Errorf("precond: Z has %v in row %d, feature %d", v, k.first+i, j)
			}
		}
	}
	return nil
}

// project sets v = Zᵀr: products of units of rows with blocks of columns are added in fixed point,
// |(Zᵀr)_kc| ≤ max_i|Z_ik|·‖r_c‖₁. (One bound for all columns of Z would cut off what short ones
// sum to, which M⁻¹ enlarges.)
func (p *solve) project(ctx context.Context) error {
	s, t, k := p.w.s, p.t, p.w.rows
	clear(p.sums)
	clear(p.norm)
	parts := buffer.Grow(&p.parts, (k.n+normRows-1)/normRows*t)
	if err := accel.ForEach(ctx, len(parts)/t, p.normBody); err != nil {
		return err
	}
	for q, v := range parts {
		p.norm[q%t] += v
	}
	for c, v := range p.norm {
		p.fixed[c] = comm.FixedFor(v * (1 + 1e-3)) // rounding of products
	}
	if err := accel.ForEach(ctx, k.units()*p.colBlocks, p.gatherBody); err != nil {
		return err
	}
	if err := k.comm.AllReduceInt64(ctx, p.sums); err != nil {
		return err
	}
	for c, f := range p.fixed {
		for j, v := range p.sums[c*s : (c+1)*s] {
			p.v[c*s+j] = f.Value(v) / k.scale[j]
		}
	}
	return nil
}

// normRows is of how many rows together norms are summed.
const normRows = 8 * RankRows

// norms sums |r_ic| over rows of all ranks.
func (p *solve) norms(_, q int) {
	sum := p.parts[q*p.t : (q+1)*p.t]
	clear(sum)
	for i := q * normRows; i < min((q+1)*normRows, p.w.n); i++ {
		for c, v := range p.r.Data[i*p.r.Stride : i*p.r.Stride+p.t] {
			sum[c] += math.Abs(v)
		}
	}
}

// expand sets dst to λ_p⁻¹(r − Zv), or to ridge·r + Zv: this rank's rows, and gathers them all.
func (p *solve) expand(ctx context.Context) error {
	k, t := p.w.rows, p.t
	if err := accel.ForEach(ctx, k.panels(), p.scatterBody); err != nil {
		return err
	}
	if p.dst.Stride == t {
		return k.comm.AllGather(ctx, p.dst.Data[:k.n*t], p.counts)
	}
	if k.comm.Size() == 1 {
		return nil
	}
	buffer.Grow(&p.dense, k.n*t)
	for i := k.first; i < k.first+k.own; i++ {
		copy(p.dense[i*t:(i+1)*t], p.dst.Data[i*p.dst.Stride:])
	}
	if err := k.comm.AllGather(ctx, p.dense, p.counts); err != nil {
		return err
	}
	for i := range k.n {
		copy(p.dst.Data[i*p.dst.Stride:i*p.dst.Stride+t], p.dense[i*t:])
	}
	return nil
}

// unitPanels is the number of panels of rowBlock rows that a unit of RankRows is cut into.
const unitPanels = (RankRows + rowBlock - 1) / rowBlock

// panels returns how many panels this rank has.
func (k *rows) panels() int { return k.units() * unitPanels }

// panel returns the rows of this rank in a panel; in the last unit there may be none.
func (k *rows) panel(q int) (i0, i1 int) {
	unit := q / unitPanels * RankRows
	i0 = min(unit+q%unitPanels*rowBlock, k.own)
	return i0, min(i0+rowBlock, unit+RankRows, k.own)
}

// agree is finish's error at any rank. Where bits of the factor show outside of what is gathered,
// in eigenvalues and eigenvectors, all ranks get those of the first.
func (w *Woodbury) agree(ctx context.Context, err error) error {
	c := w.rows.comm
	if err := comm.Agree(ctx, c, err); err != nil || w.form != FormEigen {
		return err
	}
	for _, x := range [][]float64{w.sigma2, w.factor} {
		if err := comm.ShareNumbers(ctx, c, x, 0); err != nil {
			return err
		}
	}
	w.statEigen()
	return nil
}

// gather adds the product of a unit of rows and a block of columns of Z to v.
func (p *solve) gather(worker, task int) {
	w, s, t, k := &p.workers[worker], p.w.s, p.t, p.w.rows
	i0 := task / p.colBlocks * RankRows
	i1 := min(i0+RankRows, k.own)
	rt := blas64.General{Rows: t, Cols: i1 - i0, Stride: i1 - i0, Data: w.rt}
	for i := i0; i < i1; i++ {
		at := (k.first + i) * p.r.Stride
		for c, v := range p.r.Data[at : at+t] {
			rt.Data[c*rt.Stride+i-i0] = v
		}
	}
	b := task % p.colBlocks
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	out := blas64.General{Rows: t, Cols: c1 - c0, Stride: colBlock, Data: w.out}
	p.w.backward(p, out, rt, i0, c0, &w.simd) // Z_pᵀr_p
	p.locks[b].Lock()
	for c, f := range p.fixed {
		f.AddScaled(p.sums[c*s+c0:c*s+c1], out.Data[c*colBlock:c*colBlock+c1-c0], k.scale[c0:])
	}
	p.locks[b].Unlock()
}
