package gram

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// Sparse is what is left out of a K that is next to nothing for most pairs of points: the tiles of pairs of leaves of a
// tree (package tree) between which the kernel is below Far everywhere are never formed, and of those that are formed
// entries below Least are not kept. What is left out is E ≥ 0 with ‖E‖₂ ≤ max_i Σ_j E_ij ≤ Dropped, or with weights
// ‖SES‖₂ ≤ max_i w_i·Σ_j E_ij ≤ Dropped (‖·‖₂ is at most the largest row sum of any similar matrix, here S²E), summed
// while it is left out: the bound of the kernel between two leaves for tiles, the entries themselves for others. It is certain if
// the kernel decreases as it says.
type Sparsity struct {
	Leaves  int     // of the tree
	Leaf    int     // its points at most
	Far     float64 // tiles with a bound below are not formed
	Least   float64 // entries below are not kept; 0 where tiles are kept whole
	Formed  float64 // share of the n² entries that are evaluated
	Kept    float64 // and kept
	Dropped float64
	Told    bool // that the kernel decreases is known from a user-defined kernel only

	laid *laid // as Look has cut the points; nil where that is to be done again
}

// laid is how the points are cut into leaves, and which tiles there are.
type laid struct {
	leaves *tree.Tree
	tiling *tiling
	lost   []float64
}

// What decides that tiles are left out, and how.
const (
	leafSize    = 256 // points: tiles of few entries cost more than they save
	leastSparse = 1 << 12
	mostFormed  = 0.4  // share of entries above which all tiles are formed
	tailRows    = 128  // that tell Least
	tailSafety  = 4    // by how much other rows may drop more than these
	tailBlock   = 1024 // points at a time
	wholeTile   = 0.75 // share of its entries above which a tile is kept whole
	budget      = 0.25 // part of the accuracy that Dropped may take
)

// dropped returns Sparse.Dropped, 0 of all tiles.
func (c *Choice) dropped() float64 {
	if c.Sparse == nil {
		return 0
	}
	return c.Sparse.Dropped
}

// Formed returns the share of the n² entries that are evaluated, 1 of all tiles.
func (c *Choice) Formed() float64 {
	if c.Sparse == nil {
		return 1
	}
	return c.Sparse.Formed
}

// leave decides whether tiles are left out, and cuts the points into leaves if so. What is dropped is to be at most the
// budget of the accuracy preferred: half of it for tiles, by construction, and half for entries, by a
// sample of the rows, and where that misleads by construction too (form).
func (m *Matrix) leave(ctx context.Context, s *sample, o *Options) (*Sparsity, error) {
	most, _ := kernel.TailBound(m.k)
	target, n := o.MaxDroppedNorm/m.heaviest(), float64(m.tiling.n)
	far := target / 2 / n
	switch {
	case o.SameAs != nil && o.SameAs.Sparse == nil:
		return nil, nil
	case o.SameAs != nil:
		c := *o.SameAs.Sparse
		return &c, m.leaveOut(ctx, &c)
	case o.Tiles == SparseTiles && (most == nil || !(target > 0)):
		return nil, fmt.Errorf("gram: sparse tiles are for kernels that decrease with the distance and λ > 0, and %v "+
			"with λ = %v is not one: take dense tiles", m.k, m.lambda)
	case o.Tiles == DenseTiles || most == nil || !(target > 0):
		return nil, nil
	case o.Tiles == AutoTiles && (m.tiling.n < leastSparse || s.share(far) > mostFormed):
		return nil, nil
	}
	dense := m.tiling
	c := &Sparsity{Leaf: min(leafSize, m.tiling.size), Far: far, Dropped: o.MaxDroppedNorm, Told: !kernel.BuiltIn(m.k)}
	if err := m.leaveOut(ctx, c); err != nil {
		return nil, err
	}
	if o.Tiles == AutoTiles && c.Formed > mostFormed {
		m.tiling, m.leaves = dense, nil
		return nil, nil
	}
	c.Kept = c.Formed
	if o.Storage == Fixed16 || o.Storage == Recompute {
		return c, nil
	}
	var err error
	c.Least, c.Kept, err = m.tail(ctx, s.idx[:s.random], target/2/tailSafety)
	c.Kept = min(c.Kept, c.Formed)
	return c, err
}

// share returns the share of the pairs of the sample's random points with entries of at least v.
func (s *sample) share(v float64) float64 {
	count := 0
	for i := range s.random {
		for _, e := range s.k[i*len(s.idx) : i*len(s.idx)+i] {
			if e >= v {
				count++
			}
		}
	}
	return float64(count) / max(1, float64(s.random*(s.random-1)/2))
}

// leaveOut makes the tiling of the pairs of leaves that are not far apart, and completes c but for what is kept.
func (m *Matrix) leaveOut(ctx context.Context, c *Sparsity) (err error) {
	if m.leaves == nil {
		if m.leaves, err = tree.New(ctx, m.x, c.Leaf); err != nil {
			return err
		}
	}
	most, by := kernel.TailBound(m.k)
	near, lost, _, err := m.leaves.Pairs(ctx, m.leaves, by, most, c.Far)
	if err != nil {
		return err
	}
	m.tiling, m.lost = treeTiling(m.leaves, near, m.tiling.share), lost
	c.laid = &laid{m.leaves, m.tiling, lost}
	c.Leaves = m.leaves.Leaves()
	var formed float64
	for _, p := range near {
		e := float64(m.tiling.rows(p.A)) * float64(m.tiling.rows(p.B))
		if formed += e; p.A != p.B {
			formed += e
		}
	}
	c.Formed = formed / float64(m.tiling.n) / float64(m.tiling.n)
	return nil
}

// cut makes the tiling of the choice, where it is not there, and sees to it that all ranks have the same.
func (m *Matrix) cut(ctx context.Context) error {
	c := &m.choice
	if c.Sparse == nil {
		return nil
	}
	s := *c.Sparse
	c.Sparse = &s
	if m.leaves == nil && s.laid != nil {
		m.leaves, m.tiling, m.lost = s.laid.leaves, s.laid.tiling, s.laid.lost
	}
	if m.leaves == nil {
		if err := m.leaveOut(ctx, &s); err != nil {
			return err
		}
	}
	c.Tile = m.tiling.size
	if m.comm.Size() == 1 {
		return nil
	}
	own := int64(m.tiling.mark)
	sum := []int64{own}
	if err := m.comm.AllReduceInt64(ctx, sum); err != nil {
		return err
	}
	if sum[0] != own*int64(m.comm.Size()) {
		return fmt.Errorf("gram: the ranks have cut the points into different tiles: their processors round " +
			"differently; take dense tiles (--tiles dense)")
	}
	return nil
}

// leaveOutAs leaves out tiles where another matrix of the points does, so that the bound of what is dropped is at most
// the target; none where it is only told that the kernel decreases, as residuals are to notice if it does not.
func (m *Matrix) leaveOutAs(other *Matrix, target float64) {
	if other.leaves == nil || other.choice.Sparse.Told || !(target > 0) {
		return
	}
	m.leaves = other.leaves
	c := &Sparsity{Leaf: other.choice.Sparse.Leaf, Far: target / m.heaviest() / float64(m.tiling.n)}
	if m.leaveOut(context.Background(), c) == nil {
		c.Kept, m.choice.Sparse = c.Formed, c
		c.Dropped = m.mostLost(nil, 0)
	}
}

// tail returns the largest power of two of at most the target below which the entries of a row sum to no more than
// that, on rows drawn from the given points, and the share of entries that are not below.
func (m *Matrix) tail(ctx context.Context, drawn []int, target float64) (least, kept float64, err error) {
	const octaves, together = 256, 8
	var idx []int
	for q := range min(tailRows, len(drawn)) {
		idx = append(idx, drawn[q*len(drawn)/min(tailRows, len(drawn))])
	}
	_, top := math.Frexp(slices.Max(m.diag))
	x := m.frame.Panel
	rows := points.Panel{X: points.Gather(x.X, idx)}
	rows.Norms = points.SqNorms(rows.X)
	type scratch struct {
		w    kernel.Workspace
		tile []float64
	}
	sums, counts := make([][octaves]float64, len(idx)), make([][octaves]int, len(idx))
	workers := make([]scratch, accel.Threads())
	err = accel.ForEach(ctx, (len(idx)+together-1)/together, func(who, b int) {
		w, lo, hi := &workers[who], b*together, min((b+1)*together, len(idx))
		for j := 0; j < m.tiling.n; j += tailBlock {
			z := x.Slice(j, min(j+tailBlock, m.tiling.n))
			t := buffer.Grow(&w.tile, (hi-lo)*z.Len())
			kernel.Tile64(t, z.Len(), m.k, rows.Slice(lo, hi), z, kernel.Float64, &w.w)
			for q, v := range t {
				_, e := math.Frexp(v)
				at := max(0, min(top-e, octaves-1))
				sums[lo+q/z.Len()][at] += v
				counts[lo+q/z.Len()][at]++
			}
		}
	})
	at := octaves - 1 // octaves from here on are dropped
	for ; at > 1 && math.Ldexp(1, top-at+1) <= target; at-- {
		var worst float64
		for i := range sums {
			var sum float64
			for _, v := range sums[i][at-1:] {
				sum += v
			}
			worst = max(worst, sum)
		}
		if worst > target {
			break
		}
	}
	for i := range counts {
		for _, v := range counts[i][:at] {
			kept += float64(v) / float64(m.tiling.n) / float64(len(idx))
		}
	}
	return math.Ldexp(1, top-at), kept, err
}

// drop is what entries below a size come to, in units of 2⁻²⁴ of it, by place: integers, so that the order does not
// matter.
type drop struct {
	least float64
	rows  []atomic.Int64
}

func newDrop(least float64, n int) *drop { return &drop{least, make([]atomic.Int64, n)} }

// lose adds v to a row, with what rounding of sums in float32 may have taken.
func (d *drop) lose(place int, v float64) {
	if v > 0 {
		d.rows[place].Add(int64(math.Ceil(v * (1 + 0x1p-10) / (d.least * 0x1p-24))))
	}
}

// pack keeps tile p, which is t.
func (e *engine[T]) pack(w *worker[T], p int, t []T) {
	r := e.order[p]
	rows, cols := e.rows(int(r.i)), e.rows(int(r.j))
	words := (cols + 15) / 16
	bits, values, lost := make([]uint16, rows*words), buffer.Grow(&w.values, rows*cols), buffer.Grow(&w.lost, rows+cols)
	clear(lost)
	held := 0
	for a := range rows {
		n, sum := simd.Pack(values[held:], bits[a*words:(a+1)*words], t[a*cols:(a+1)*cols], T(e.drop.least),
			lost[rows:])
		held += n
		lost[a] = sum
	}
	if float64(held) > wholeTile*float64(rows*cols) {
		e.entries[p] = slices.Clone(t)
		return
	}
	e.words[p], e.entries[p] = bits, slices.Clone(values[:held])
	i0, _ := e.block(int(r.i))
	j0, _ := e.block(int(r.j))
	for a, v := range lost[:rows] {
		e.drop.lose(i0+a, float64(v))
	}
	if r.i == r.j {
		return
	}
	for b, v := range lost[rows:] {
		e.drop.lose(j0+b, float64(v))
	}
}

// unpack returns tile p whole.
func (e *engine[T]) unpack(w *worker[T], p int) []T {
	r := e.order[p]
	rows, cols := e.rows(int(r.i)), e.rows(int(r.j))
	t, words := buffer.Grow(&w.tile, rows*cols), (cols+15)/16
	at := 0
	for a := range rows {
		at += simd.Unpack(t[a*cols:(a+1)*cols], e.words[p][a*words:(a+1)*words], e.entries[p][at:])
	}
	return t
}

// leftOut returns what of the tiles of this rank was dropped, by place, and then how many entries are kept, those off
// the diagonal tiles twice; nil where nothing is dropped.
func (e *engine[T]) leftOut() []int64 {
	if e.drop == nil {
		return nil
	}
	out := make([]int64, e.n+1)
	for i := range e.drop.rows {
		out[i] = e.drop.rows[i].Load()
	}
	for p, t := range e.entries {
		k := int64(len(t))
		if out[e.n] += k; e.order[p].i != e.order[p].j {
			out[e.n] += k
		}
	}
	return out
}

// mostLost returns the largest sum of a row of what is left out, times its weight, by tiles and by entries, these in
// that unit.
func (m *Matrix) mostLost(entries []int64, unit float64) (most float64) {
	for b, v := range m.lost {
		lo, hi := m.tiling.block(b)
		var worst int64
		if entries != nil {
			worst = slices.Max(entries[lo:hi])
		}
		weight := 1.0
		if m.factors != nil {
			weight = 0
			for place := lo; place < hi; place++ {
				f := m.factors[m.tiling.point(place)]
				weight = max(weight, f*f)
			}
		}
		most = max(most, weight*(v+float64(worst)*unit))
	}
	return most * (1 + 0x1p-30)
}

// settleDropped replaces what was expected to be dropped by what was, on all ranks, and reports whether it is no more.
func (m *Matrix) settleDropped(ctx context.Context) (bool, error) {
	c := m.choice.Sparse
	if c == nil {
		return true, nil
	}
	entries, before := m.ops.leftOut(), c.Dropped
	if entries != nil {
		if err := m.comm.AllReduceInt64(ctx, entries); err != nil {
			return false, err
		}
		c.Kept = float64(entries[m.tiling.n]) / float64(m.tiling.n) / float64(m.tiling.n)
	}
	c.Dropped = m.mostLost(entries, c.Least*0x1p-24)
	m.choice.Error += c.Dropped - before
	return c.Dropped <= before, nil
}
