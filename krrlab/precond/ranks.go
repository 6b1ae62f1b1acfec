package precond

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

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
	n      int // rows of Z at all ranks
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
	w, fast, err := beginRanks(ctx, c, n, z, lambdaP, o)
	if err != nil {
		return nil, err
	}
	clock := time.Now()
	if w.factor, err = w.ranks.gram(ctx, z, 0, fast, lambdaP); err != nil {
		return nil, err
	}
	w.seconds.Gram = time.Since(clock).Seconds()
	return w, w.finishRanks(ctx, z)
}

// NewFromGramOnRanks is NewOnRanks with ZᵀZ known, by GrowOnRanks.
func NewFromGramOnRanks(ctx context.Context, c comm.Comm, n int, z *points.Dense32, g *Gram, lambdaP float64, o *Options) (*Woodbury, error) {
	if g.s != z.D {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features for %d", g.s, z.D))
	}
	w, _, err := beginRanks(ctx, c, n, z, lambdaP, o)
	if err != nil {
		return nil, err
	}
	w.factor = append([]float64(nil), g.data...)
	return w, w.finishRanks(ctx, z)
}

// NewOuterOnRanks is NewOuter for n×s features of which each rank has its rows, as of
// NewOnRanks: all ranks call its methods together.
func NewOuterOnRanks(ctx context.Context, c comm.Comm, n int, z *points.Dense32) (*Outer, error) {
	r, err := newRanks(ctx, c, n, z)
	if err != nil {
		return nil, err
	}
	return &Outer{&Woodbury{n: n, s: z.D, form: FormL, src: feature32{z}, ranks: r}}, nil
}

// beginRanks is begin on ranks.
func beginRanks(ctx context.Context, c comm.Comm, n int, z *points.Dense32, lambdaP float64, o *Options) (w *Woodbury, fast bool, err error) {
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Form == FormU {
		return nil, false, fmt.Errorf("precond: the form U is not for ranks: take another form")
	}
	if opt.Form == AutoForm { // one of L and L⁻¹, as for n > 2s
		opt.Form = choose(max(n, 2*z.D+1), z.D, cmpOr(opt.RHS, 1), cmpOr(opt.Iterations, 100), opt.StatDim)
	}
	if w, err = begin(n, z, lambdaP, &opt); err != nil {
		return nil, false, err
	}
	w.ranks, err = newRanks(ctx, c, n, z)
	return w, opt.Fast, err
}

// newRanks returns what is known of the ranks with the rows z of Z; max|Z| is that of all.
func newRanks(ctx context.Context, c comm.Comm, n int, z *points.Dense32) (*ranks, error) {
	lo, hi := comm.Rows(n, RankRows, c.Rank(), c.Size())
	if z.N != hi-lo {
		panic(fmt.Sprintf("precond: %d rows of Z at rank %d of %d, want %d", z.N, c.Rank(), c.Size(), hi-lo))
	}
	k := &ranks{comm: c, n: n, first: lo, rows: hi - lo, counts: func(width int) []int {
		return comm.Counts(n, RankRows, c.Size(), width)
	}}
	peak := 0.0
	for i := range z.N {
		for _, v := range z.Row(i) {
			if a := math.Abs(float64(v)); !(a <= peak) {
				peak = max(peak, a) // NaN from the first one on
			}
		}
	}
	peaks := make([]float64, c.Size())
	peaks[c.Rank()] = peak
	if err := c.AllReduce(ctx, peaks); err != nil {
		return nil, err
	}
	for r, v := range peaks {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("precond: Z has %v in the rows of rank %d", v, r)
		}
		k.peak = max(k.peak, v)
	}
	k.peak *= 1 + 1e-3 // rounding of products
	return k, nil
}

// finishRanks is finish on ranks. Where bits of the factor show outside of what is gathered,
// in eigenvalues and eigenvectors, all ranks get those of the first.
func (w *Woodbury) finishRanks(ctx context.Context, z *points.Dense32) error {
	c := w.ranks.comm
	if err := comm.Agree(ctx, c, w.finish(ctx, z)); err != nil {
		return err
	}
	if w.form != FormEigen {
		return nil
	}
	for _, x := range [][]float64{w.sigma2, w.factor} {
		if err := comm.ShareNumbers(ctx, c, x, 0); err != nil {
			return err
		}
	}
	w.statEigen()
	return nil
}

// newSums makes room for sums over ranks.
func (p *solve) newSums() {
	p.sums = &sums{locks: make([]sync.Mutex, p.colBlocks)}
	p.rankBody = p.gatherRanks
}

// projectRanks sets v = Zᵀr.
func (p *solve) projectRanks(ctx context.Context) error {
	s, t, k := p.w.s, p.t, p.w.ranks
	if p.sums == nil {
		p.newSums()
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
	if p.sums == nil {
		p.newSums()
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
