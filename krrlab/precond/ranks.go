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
	d := &rowDistribution{comm: c}
	for _, rows := range counts {
		d.n += int(rows)
	}
	lo, hi := comm.RowRange(d.n, RankRows, c.Rank(), c.Size())
	if z.N != hi-lo || d.n < 1 || z.D < 1 {
		panic(fmt.Sprintf("precond: Z is %d×%d, with %d rows at rank %d of %d, want %d", d.n, z.D, z.N, c.Rank(),
			c.Size(), hi-lo))
	}
	d.firstRow, d.count = lo, hi-lo
	peaks := make([]float64, c.Size()*z.D)
	err := d.columnPeaks(ctx, peaks[c.Rank()*z.D:][:z.D], z)
	if err = comm.Agree(ctx, c, err); err != nil {
		return nil, err
	}
	if err := comm.MergeDisjoint(ctx, c, peaks); err != nil {
		return nil, err
	}
	d.scale = make([]float64, z.D)
	for j := range d.scale {
		var peak float64
		for rank := range c.Size() {
			peak = max(peak, peaks[rank*z.D+j])
		}
		_, exp := math.Frexp(peak) // Frexp(0) returns the exponent 0
		d.scale[j] = math.Ldexp(1, -exp)
	}
	return d, nil
}

// units returns the number of units of RankRows rows of this rank.
func (d *rowDistribution) units() int { return (d.count + RankRows - 1) / RankRows }

// columnPeaks sets peaks_j to max_i|Z_ij| over the rows of this rank. It returns an error if a number is not finite.
func (d *rowDistribution) columnPeaks(ctx context.Context, peaks []float64, z *points.Dense32) error {
	const signBit = 1 << 31
	maxBitsOfWorkers := make([][]uint32, accel.Threads()) // bits of max|Z_ij|, which are ordered like the numbers
	err := accel.ForEachBlock(ctx, d.count, RankRows, func(worker, i0, i1 int) {
		buffer.Grow(&maxBitsOfWorkers[worker], z.D) // initially zero
		maxBits := maxBitsOfWorkers[worker]
		for i := i0; i < i1; i++ {
			for j, v := range z.Row(i) {
				maxBits[j] = max(maxBits[j], math.Float32bits(v)&^signBit)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, maxBits := range maxBitsOfWorkers {
		for j, bits := range maxBits {
			v := math.Float32frombits(bits)
			if v-v != 0 {
				return d.notFinite(z)
			}
			peaks[j] = max(peaks[j], float64(v))
		}
	}
	return nil
}

// notFinite returns an error that names the first number of z that is not finite.
func (d *rowDistribution) notFinite(z *points.Dense32) error {
	for i := range d.count {
		for j, v := range z.Row(i) {
			if v-v != 0 {
				return fmt.Errorf("precond: Z has %v in row %d, feature %d", v, d.firstRow+i, j)
			}
		}
	}
	return nil
}

// project sets v = Zᵀr. Products of units of rows with blocks of columns are added in fixed point, with the bound
// |(Zᵀr)_kc| ≤ max_i|Z_ik|·‖r_c‖₁. A common bound for all columns of Z would be too coarse for columns of small norm,
// and M⁻¹ would amplify their errors.
func (a *application) project(ctx context.Context) error {
	s, t, d := a.w.s, a.t, a.w.distribution
	clear(a.sums)
	clear(a.columnNorms)
	rowBlockNorms := buffer.Grow(&a.rowBlockNorms, (d.n+normRows-1)/normRows*t)
	if err := accel.ForEach(ctx, len(rowBlockNorms)/t, a.normBody); err != nil {
		return err
	}
	for i, v := range rowBlockNorms {
		a.columnNorms[i%t] += v
	}
	for c, v := range a.columnNorms {
		a.formats[c] = comm.NewFixedPoint(v * (1 + 1e-3)) // the margin is for rounding of the products
	}
	if err := accel.ForEach(ctx, d.units()*a.colBlocks, a.projectBody); err != nil {
		return err
	}
	if err := d.comm.AllReduceInt64(ctx, a.sums); err != nil {
		return err
	}
	for c, format := range a.formats {
		for j, v := range a.sums[c*s : (c+1)*s] {
			a.v[c*s+j] = format.Value(v) / d.scale[j]
		}
	}
	return nil
}

// normRows is the number of rows in one unit of work of sumNorms.
const normRows = 8 * RankRows

// sumNorms sets the part of rowBlockNorms for one block of normRows rows of r to the sums of |r_ic| over the block, for
// each column c. Every rank has all rows of r.
func (a *application) sumNorms(_, block int) {
	sum := a.rowBlockNorms[block*a.t : (block+1)*a.t]
	clear(sum)
	for i := block * normRows; i < min((block+1)*normRows, a.w.n); i++ {
		for c, v := range a.r.Data[i*a.r.Stride : i*a.r.Stride+a.t] {
			sum[c] += math.Abs(v)
		}
	}
}

// expand sets dst to λ_p⁻¹(r − Zv), or to ridge·r + Zv. Each rank computes its own rows, and then all rows are
// gathered.
func (a *application) expand(ctx context.Context) error {
	d, t := a.w.distribution, a.t
	if err := accel.ForEach(ctx, d.panels(), a.expandBody); err != nil {
		return err
	}
	if a.dst.Stride == t {
		return d.comm.AllGather(ctx, a.dst.Data[:d.n*t], a.counts)
	}
	if d.comm.Size() == 1 {
		return nil
	}
	buffer.Grow(&a.contiguousDst, d.n*t)
	for i := d.firstRow; i < d.firstRow+d.count; i++ {
		copy(a.contiguousDst[i*t:(i+1)*t], a.dst.Data[i*a.dst.Stride:])
	}
	if err := d.comm.AllGather(ctx, a.contiguousDst, a.counts); err != nil {
		return err
	}
	for i := range d.n {
		copy(a.dst.Data[i*a.dst.Stride:i*a.dst.Stride+t], a.contiguousDst[i*t:])
	}
	return nil
}

// unitPanels is the number of panels of rowBlock rows in a unit of RankRows rows.
const unitPanels = (RankRows + rowBlock - 1) / rowBlock

// panels returns the number of panels of this rank.
func (d *rowDistribution) panels() int { return d.units() * unitPanels }

// panelRange returns the range i0, …, i1-1 of the rows of a panel, counted from the first row of this rank. Panels of
// the last unit may be empty.
func (d *rowDistribution) panelRange(panel int) (i0, i1 int) {
	unit := panel / unitPanels * RankRows
	i0 = min(unit+panel%unitPanels*rowBlock, d.count)
	return i0, min(i0+rowBlock, unit+RankRows, d.count)
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
func (a *application) projectUnit(worker, task int) {
	space, s, t, d := &a.workers[worker], a.w.s, a.t, a.w.distribution
	i0 := task / a.colBlocks * RankRows
	i1 := min(i0+RankRows, d.count)
	rt := blas64.General{Rows: t, Cols: i1 - i0, Stride: i1 - i0, Data: space.rt}
	for i := i0; i < i1; i++ {
		start := (d.firstRow + i) * a.r.Stride
		for c, v := range a.r.Data[start : start+t] {
			rt.Data[c*rt.Stride+i-i0] = v
		}
	}
	b := task % a.colBlocks
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	out := blas64.General{Rows: t, Cols: c1 - c0, Stride: colBlock, Data: space.out}
	a.w.timesZ(a, out, rt, i0, c0, &space.simd) // Z_pᵀr_p
	a.locks[b].Lock()
	for c, format := range a.formats {
		format.AddScaled(a.sums[c*s+c0:c*s+c1], out.Data[c*colBlock:c*colBlock+c1-c0], d.scale[c0:])
	}
	a.locks[b].Unlock()
}
