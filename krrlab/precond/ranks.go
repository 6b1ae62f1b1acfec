package precond

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
)

// RankRows is the number of rows of Z that ranks are dealt together (comm.Rows), and of
// which ZᵀZ and Zᵀr are partial sums: what is added over the ranks is the same for any
// number of them.
const RankRows = 512

// ranks is what a Woodbury knows of the ranks that have the rows of Z.
type ranks struct {
	comm   comm.Comm
	first  int // row of M that the first row of this rank's Z is
	rows   int // of this rank
	peak   float64
	counts func(width int) []int // numbers of each rank in n×width
	sent   comm.Traffic          // of products with Z
}

// sums are Zᵀr in fixed point: |(Zᵀr)_kc| ≤ max|Z|·‖r_c‖₁.
type sums struct {
	v     []int64 // t×s
	fixed []comm.Fixed
	locks []sync.Mutex // of the blocks of columns of Z
	out   [][]float64  // a worker's t×colBlock
	dense []float64    // of a dst with gaps
}

// NewOnRanks is New for n×s features of which each rank has the rows that comm.Rows deals it
// in units of RankRows. ZᵀZ is summed once over all ranks, the s×s factor is held by every
// one: 8s² bytes. SolveTo takes n×t matrices that all ranks have, and gives them back to
// all: one all-reduce of st integers and one all-gather of n×t numbers. All sums over
// rows are taken in fixed point, so that the result has the same bits for any number of
// ranks. FormU is not for ranks. All ranks call the methods together.
func NewOnRanks(ctx context.Context, c comm.Comm, n int, z *points.Dense32, lambdaP float64, o *Options) (*Woodbury, error) {
	lo, hi := comm.Rows(n, RankRows, c.Rank(), c.Size())
	if z.N != hi-lo {
		panic(fmt.Sprintf("precond: %d rows of Z at rank %d of %d, want %d", z.N, c.Rank(), c.Size(), hi-lo))
	}
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Form == FormU {
		return nil, fmt.Errorf("precond: the form U is not for ranks: take another form")
	}
	if opt.Form == AutoForm { // one of L and L⁻¹, as for n > 2s
		opt.Form = choose(max(n, 2*z.D+1), z.D, cmpOr(opt.RHS, 1), cmpOr(opt.Iterations, 100), opt.StatDim)
	}
	w, err := begin(n, z, lambdaP, &opt)
	if err != nil {
		return nil, err
	}
	w.ranks = &ranks{comm: c, first: lo, rows: hi - lo, counts: func(width int) []int {
		return comm.Counts(n, RankRows, c.Size(), width)
	}}
	clock := time.Now()
	if err := w.gramRanks(ctx, z, opt.Fast); err != nil {
		return nil, err
	}
	w.seconds.Gram = time.Since(clock).Seconds()
	if err := comm.Agree(ctx, c, w.finish(ctx, z)); err != nil {
		return nil, err
	}
	return w, nil
}

// gramRanks sets the lower triangle of w.factor to ZᵀZ of all ranks.
func (w *Woodbury) gramRanks(ctx context.Context, z *points.Dense32, fast bool) error {
	c, s := w.ranks.comm, w.s
	peaks := make([]float64, c.Size())
	for i := range z.N {
		for _, v := range z.Row(i) {
			if a := math.Abs(float64(v)); !(a <= peaks[c.Rank()]) {
				peaks[c.Rank()] = a
			}
		}
	}
	if err := c.AllReduce(ctx, peaks); err != nil {
		return err
	}
	for r, v := range peaks {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("precond: Z has %v in the rows of rank %d", v, r)
		}
		w.ranks.peak = max(w.ranks.peak, v)
	}
	w.ranks.peak *= 1 + 1e-3 // rounding of products
	bound := float64(w.n) * w.ranks.peak * w.ranks.peak
	if fast {
		norm, err := w.squareNorm(ctx, z, comm.FixedFor(float64(s)*bound))
		if err != nil {
			return err
		}
		fast = fastBound(norm, w.n, s) <= w.lambdaP/10
	}
	sum, fixed := make([]int64, s*s), comm.FixedFor(bound)
	form := gramPanels
	if fast {
		form = gramPanels32
	}
	if err := comm.Agree(ctx, c, form(ctx, sum, fixed, z)); err != nil {
		return err
	}
	w.factor = make([]float64, s*s)
	strip := make([]int64, 0, min(gramOrder, s)*s)
	for i0 := 0; i0 < s; i0 += gramOrder { // the lower triangle, a strip of blocks at a time
		i1 := min(i0+gramOrder, s)
		strip = strip[:0]
		for i := i0; i < i1; i++ {
			strip = append(strip, sum[i*s:i*s+i1]...)
		}
		if err := c.AllReduceInt64(ctx, strip); err != nil {
			return err
		}
		for i := i0; i < i1; i++ {
			for j := range i1 {
				w.factor[i*s+j] = fixed.Value(strip[(i-i0)*i1+j])
			}
		}
	}
	return nil
}

// squareNorm returns ‖Z‖_F² of all ranks.
func (w *Woodbury) squareNorm(ctx context.Context, z *points.Dense32, f comm.Fixed) (float64, error) {
	norm := []int64{0}
	for _, v := range points.SqNorms(z) {
		f.Add(norm, []float64{v})
	}
	err := w.ranks.comm.AllReduceInt64(ctx, norm)
	return f.Value(norm[0]), err
}

// gramPanels adds ZᵀZ of this rank's rows to sum: the float64 products of panels of
// RankRows rows, each turned into fixed point.
func gramPanels(ctx context.Context, sum []int64, f comm.Fixed, z *points.Dense32) error {
	s := z.D
	blocks := gramBlocks(0, s)
	panel := make([]float64, min(RankRows, z.N)*s)
	parts := make([][]float64, accel.Threads())
	for p0 := 0; p0 < z.N; p0 += RankRows {
		rows := min(RankRows, z.N-p0)
		err := accel.ForEach(ctx, rows, func(_, i int) { widen(panel[i*s:(i+1)*s], z.Row(p0+i)) })
		if err != nil {
			return err
		}
		err = accel.ForEach(ctx, len(blocks), func(worker, q int) {
			b := blocks[q]
			parts[worker] = grow(parts[worker], b.rows*b.cols)
			x := blas64.General{Rows: rows, Cols: b.rows, Stride: s, Data: panel[b.i:]}
			y := blas64.General{Rows: rows, Cols: b.cols, Stride: s, Data: panel[b.j:]}
			out := blas64.General{Rows: b.rows, Cols: b.cols, Stride: b.cols, Data: parts[worker]}
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, out) // Z_pIᵀZ_pJ
			for i := range b.rows {
				f.Add(sum[(b.i+i)*s+b.j:], out.Data[i*b.cols:(i+1)*b.cols])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gramPanels32 is gramPanels with float32 products.
func gramPanels32(ctx context.Context, sum []int64, f comm.Fixed, z *points.Dense32) error {
	s := z.D
	blocks := gramBlocks(0, s)
	up := f.Scale()
	parts := make([][]float32, accel.Threads())
	return accel.ForEach(ctx, len(blocks), func(worker, q int) {
		b := blocks[q]
		if parts[worker] == nil {
			parts[worker] = make([]float32, min(gramOrder, s)*min(gramOrder, s))
		}
		out := blas32.General{Rows: b.rows, Cols: b.cols, Stride: b.cols, Data: parts[worker]}
		for p0 := 0; p0 < z.N && ctx.Err() == nil; p0 += RankRows {
			rows := min(RankRows, z.N-p0)
			x := blas32.General{Rows: rows, Cols: b.rows, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.i:]}
			y := blas32.General{Rows: rows, Cols: b.cols, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.j:]}
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, out) // Z_pIᵀZ_pJ
			for i := range b.rows {
				dst := sum[(b.i+i)*s+b.j : (b.i+i)*s+b.j+b.cols]
				for j, v := range out.Data[i*b.cols : (i+1)*b.cols] {
					dst[j] += int64(float64(v) * up)
				}
			}
		}
	})
}

// projectRanks sets v = Zᵀr.
func (p *solve) projectRanks(ctx context.Context) error {
	s, t, k := p.w.s, p.t, p.w.ranks
	if p.sums == nil {
		p.sums = &sums{locks: make([]sync.Mutex, p.colBlocks)}
		p.rankBody = p.gatherRanks
	}
	q := p.sums
	for len(q.out) < len(p.workers) {
		q.out = append(q.out, nil)
	}
	if cap(q.v) < t*s {
		q.v, q.fixed = make([]int64, t*s), make([]comm.Fixed, t)
	}
	q.v, q.fixed = q.v[:t*s], q.fixed[:t]
	clear(q.v)
	for c := range t {
		var norm float64 // ‖r_c‖₁
		for i := range p.w.n {
			norm += math.Abs(p.r.Data[i*p.r.Stride+c])
		}
		q.fixed[c] = comm.FixedFor(k.peak * norm * (1 + 1e-3))
	}
	units := (k.rows + RankRows - 1) / RankRows
	if err := accel.ForEach(ctx, units*p.colBlocks, p.rankBody); err != nil {
		return err
	}
	before := k.comm.Traffic()
	if err := k.comm.AllReduceInt64(ctx, q.v); err != nil {
		return err
	}
	k.sent = k.sent.Plus(k.comm.Traffic().Sub(before))
	for c, f := range q.fixed {
		for j, v := range q.v[c*s : (c+1)*s] {
			p.v[c*s+j] = f.Value(v)
		}
	}
	return nil
}

// gatherRanks adds the product of a unit of rows and a block of columns of Z to v.
func (p *solve) gatherRanks(worker, task int) {
	w, s, t, k := &p.workers[worker], p.w.s, p.t, p.w.ranks
	b := task % p.colBlocks
	i0 := task / p.colBlocks * RankRows
	i1 := min(i0+RankRows, k.rows)
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	rows, cols := i1-i0, c1-c0
	for i := range rows {
		at := (k.first + i0 + i) * p.r.Stride
		for c, v := range p.r.Data[at : at+t] {
			w.rt[c*rows+i] = v
		}
	}
	q := p.sums
	q.out[worker] = grow(q.out[worker], t*colBlock)
	out := q.out[worker]
	clear(out)
	z := p.w.src.(feature32).z
	simd.Backward(rows, cols, z.Data[i0*z.Stride+c0:], z.Stride, out, colBlock, w.rt, rows, t, &w.simd) // Z_pᵀr_p
	q.locks[b].Lock()
	defer q.locks[b].Unlock()
	for c, f := range q.fixed {
		f.Add(q.v[c*s+c0:c*s+c1], out[c*colBlock:c*colBlock+cols])
	}
}

// expandRanks is expand for this rank's rows, and gathers them all.
func (p *solve) expandRanks(ctx context.Context) error {
	k, t := p.w.ranks, p.t
	units := (k.rows + RankRows - 1) / RankRows
	if err := accel.ForEach(ctx, units*unitPanels, p.scatterBody); err != nil {
		return err
	}
	before := k.comm.Traffic()
	defer func() { k.sent = k.sent.Plus(k.comm.Traffic().Sub(before)) }()
	if p.dst.Stride == t {
		return k.comm.AllGather(ctx, p.dst.Data[:p.w.n*t], k.counts(t))
	}
	q := p.sums
	q.dense = grow(q.dense, p.w.n*t)
	for i := k.first; i < k.first+k.rows; i++ {
		copy(q.dense[i*t:(i+1)*t], p.dst.Data[i*p.dst.Stride:])
	}
	if err := k.comm.AllGather(ctx, q.dense, k.counts(t)); err != nil {
		return err
	}
	for i := range p.w.n {
		copy(p.dst.Data[i*p.dst.Stride:i*p.dst.Stride+t], q.dense[i*t:])
	}
	return nil
}

// unitPanels is the number of panels of rowBlock rows that a unit of RankRows is cut into.
const unitPanels = (RankRows + rowBlock - 1) / rowBlock

// panel returns the rows of Z of a panel, and where they begin in M.
func (p *solve) panel(q int) (i0, i1, first int) {
	k := p.w.ranks
	if k == nil {
		return q * rowBlock, min((q+1)*rowBlock, p.w.n), 0
	}
	unit := q / unitPanels * RankRows
	i0 = min(unit+q%unitPanels*rowBlock, k.rows)
	return i0, min(i0+rowBlock, unit+RankRows, k.rows), k.first
}

// SolveBytes returns what a rank that has the given number of Z's rows hands to others for a
// solve with t columns: st integers and its rows of the result.
func SolveBytes(s, t, rows int) int64 { return 8 * (int64(s) + int64(rows)) * int64(t) }

// Traffic returns what this rank has handed to others for solves and products; nothing
// without ranks.
func (w *Woodbury) Traffic() comm.Traffic {
	if w.ranks == nil {
		return comm.Traffic{}
	}
	return w.ranks.sent
}
