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

// RankRows is the number of rows in one unit of the distribution of Z over ranks (comm.RowRange). ZᵀZ and Zᵀr are sums
// of products of such units. Threads and ranks therefore add the same terms, however many there are.
const RankRows = 512

// rowDistribution describes the distribution of the rows of Z over the ranks.
type rowDistribution struct {
	comm     comm.Comm
	n        int       // the number of rows of Z on all ranks
	firstRow int       // the index in Z of the first row of this rank
	count    int       // the number of rows of this rank
	scale    []float64 // for each column k a power of two with max_i|Z_ik|·scale_k ≤ 1 over all rows of Z
}

// newRowDistribution returns the distribution of a Z of which this rank has the rows z. It returns an error if Z has a
// number that is not finite, and panics if z does not have the rows that comm.RowRange determines.
func newRowDistribution(ctx context.Context, c comm.Comm, z *points.Dense32) (*rowDistribution, error) {
	c = comm.OrAlone(c)
	counts := make([]int64, c.Size())
	counts[c.Rank()] = int64(z.N)
	if err := c.AllReduceInt64(ctx, counts); err != nil {
		return nil, err
	}
	k := &rowDistribution{comm: c}
	for _, m := range counts {
		k.n += int(m)
	}
	lo, hi := comm.RowRange(k.n, RankRows, c.Rank(), c.Size())
	if z.N != hi-lo || k.n < 1 || z.D < 1 {
		panic(fmt.Sprintf("precond: Z is %d×%d, with %d rows at rank %d of %d, want %d", k.n, z.D, z.N, c.Rank(),
			c.Size(), hi-lo))
	}
	k.firstRow, k.count = lo, hi-lo
	peaks := make([]float64, c.Size()*z.D)
	err := k.columnPeaks(ctx, peaks[c.Rank()*z.D:][:z.D], z)
	if err = comm.Agree(ctx, c, err); err != nil {
		return nil, err
	}
	if err := comm.MergeDisjoint(ctx, c, peaks); err != nil {
		return nil, err
	}
	k.scale = make([]float64, z.D)
	for j := range k.scale {
		var peak float64
		for r := range c.Size() {
			peak = max(peak, peaks[r*z.D+j])
		}
		_, exp := math.Frexp(peak) // Frexp(0) returns the exponent 0
		k.scale[j] = math.Ldexp(1, -exp)
	}
	return k, nil
}

// units returns the number of units of RankRows rows of this rank.
func (k *rowDistribution) units() int { return (k.count + RankRows - 1) / RankRows }

// columnPeaks sets peaks_j to max_i|Z_ij| over the rows of this rank. It returns an error if a number is not finite.
func (k *rowDistribution) columnPeaks(ctx context.Context, peaks []float64, z *points.Dense32) error {
	const signBit = 1 << 31
	workers := make([][]uint32, accel.Threads()) // bits of max|Z_ij|, which are ordered like the numbers
	err := accel.ForEachBlock(ctx, k.count, RankRows, func(worker, i0, i1 int) {
		buffer.Grow(&workers[worker], z.D) // initially zero
		maxBits := workers[worker]
		for i := i0; i < i1; i++ {
			for j, v := range z.Row(i) {
				maxBits[j] = max(maxBits[j], math.Float32bits(v)&^signBit)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, maxBits := range workers {
		for j, b := range maxBits {
			v := math.Float32frombits(b)
			if v-v != 0 {
				return k.notFinite(z)
			}
			peaks[j] = max(peaks[j], float64(v))
		}
	}
	return nil
}

// notFinite returns an error that names the first number of z that is not finite.
func (k *rowDistribution) notFinite(z *points.Dense32) error {
	for i := range k.count {
		for j, v := range z.Row(i) {
			if v-v != 0 {
				return fmt.Errorf("precond: Z has %v in row %d, feature %d", v, k.firstRow+i, j)
			}
		}
	}
	return nil
}

// project sets v = Zᵀr. Products of units of rows with blocks of columns are added in fixed point, with the bound
// |(Zᵀr)_kc| ≤ max_i|Z_ik|·‖r_c‖₁. A common bound for all columns of Z would be too coarse for columns of small norm,
// and M⁻¹ would amplify their errors.
func (p *application) project(ctx context.Context) error {
	s, t, k := p.w.s, p.t, p.w.distribution
	clear(p.sums)
	clear(p.norm)
	norms := buffer.Grow(&p.norms, (k.n+normRows-1)/normRows*t)
	if err := accel.ForEach(ctx, len(norms)/t, p.normBody); err != nil {
		return err
	}
	for q, v := range norms {
		p.norm[q%t] += v
	}
	for c, v := range p.norm {
		p.fixed[c] = comm.NewFixedPoint(v * (1 + 1e-3)) // the margin is for rounding of the products
	}
	if err := accel.ForEach(ctx, k.units()*p.colBlocks, p.projectBody); err != nil {
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

// normRows is the number of rows in one unit of work of sumNorms.
const normRows = 8 * RankRows

// sumNorms sums |r_ic| over block q of normRows rows of r. Every rank has all rows of r.
func (p *application) sumNorms(_, q int) {
	sum := p.norms[q*p.t : (q+1)*p.t]
	clear(sum)
	for i := q * normRows; i < min((q+1)*normRows, p.w.n); i++ {
		for c, v := range p.r.Data[i*p.r.Stride : i*p.r.Stride+p.t] {
			sum[c] += math.Abs(v)
		}
	}
}

// expand sets dst to λ_p⁻¹(r − Zv), or to ridge·r + Zv. Each rank computes its own rows, and then all rows are
// gathered.
func (p *application) expand(ctx context.Context) error {
	k, t := p.w.distribution, p.t
	if err := accel.ForEach(ctx, k.panels(), p.expandBody); err != nil {
		return err
	}
	if p.dst.Stride == t {
		return k.comm.AllGather(ctx, p.dst.Data[:k.n*t], p.counts)
	}
	if k.comm.Size() == 1 {
		return nil
	}
	buffer.Grow(&p.dense, k.n*t)
	for i := k.firstRow; i < k.firstRow+k.count; i++ {
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

// unitPanels is the number of panels of rowBlock rows in a unit of RankRows rows.
const unitPanels = (RankRows + rowBlock - 1) / rowBlock

// panels returns the number of panels of this rank.
func (k *rowDistribution) panels() int { return k.units() * unitPanels }

// panel returns the rows i0, …, i1-1 of panel q, counted from the first row of this rank; panels of the last unit may
// be empty.
func (k *rowDistribution) panel(q int) (i0, i1 int) {
	unit := q / unitPanels * RankRows
	i0 = min(unit+q%unitPanels*rowBlock, k.count)
	return i0, min(i0+rowBlock, unit+RankRows, k.count)
}

// syncFactor returns an error if finish failed with err on any rank. For FormEigen it also replaces the eigenvalues and
// eigenvectors by those of rank 0, because their bits may differ between ranks and are visible to callers.
func (w *Woodbury) syncFactor(ctx context.Context, err error) error {
	c := w.distribution.comm
	if err := comm.Agree(ctx, c, err); err != nil || w.form != FormEigen {
		return err
	}
	for _, x := range [][]float64{w.sigma2, w.factor} {
		if err := comm.BroadcastFloats(ctx, c, x, 0); err != nil {
			return err
		}
	}
	w.setFromEigenvalues()
	return nil
}

// projectUnit adds the product of r with a unit of rows and a block of columns of Z to sums.
func (p *application) projectUnit(worker, task int) {
	w, s, t, k := &p.workers[worker], p.w.s, p.t, p.w.distribution
	i0 := task / p.colBlocks * RankRows
	i1 := min(i0+RankRows, k.count)
	rt := blas64.General{Rows: t, Cols: i1 - i0, Stride: i1 - i0, Data: w.rt}
	for i := i0; i < i1; i++ {
		start := (k.firstRow + i) * p.r.Stride
		for c, v := range p.r.Data[start : start+t] {
			rt.Data[c*rt.Stride+i-i0] = v
		}
	}
	b := task % p.colBlocks
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	out := blas64.General{Rows: t, Cols: c1 - c0, Stride: colBlock, Data: w.out}
	p.w.timesZ(p, out, rt, i0, c0, &w.simd) // Z_pᵀr_p
	p.locks[b].Lock()
	for c, f := range p.fixed {
		f.AddScaled(p.sums[c*s+c0:c*s+c1], out.Data[c*colBlock:c*colBlock+c1-c0], k.scale[c0:])
	}
	p.locks[b].Unlock()
}
