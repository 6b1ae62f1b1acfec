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

// Sparsity describes a kernel matrix without its negligible entries. The blocks are the leaves of a tree of the points
// (package tree). A tile between two leaves is skipped if the kernel is below TileCutoff everywhere between them;
// within the other tiles, entries below EntryCutoff are dropped.
//
// The omitted part is E ≥ 0 with ‖E‖₂ ≤ max_i Σ_j E_ij ≤ DroppedNorm, or with weights ‖SES‖₂ ≤ max_i w_i·Σ_j E_ij ≤
// DroppedNorm, because ‖·‖₂ is at most the largest row sum of any similar matrix, here S²E. The row sums are
// accumulated while the tiles are formed. They contain the bound of the kernel between two leaves for each entry of a
// skipped tile, and the dropped entries themselves. The bound is proved if the kernel decreases with the distance as it
// claims.
type Sparsity struct {
	LeafCount         int     // number of leaves of the tree
	LeafSize          int     // largest number of points of a leaf
	TileCutoff        float64 // tiles in which the kernel is certainly below this value are skipped
	EntryCutoff       float64 // entries below this value are dropped; 0 if no entry is dropped
	FormedShare       float64 // share of the n² entries that are evaluated
	StoredShare       float64 // share of the n² entries that are stored
	DroppedNorm       float64 // bound of the 2-norm of the omitted entries
	AssumesDecreasing bool    // DroppedNorm relies on a user-defined kernel's claim that it decreases with the distance

	layout *layout // layout computed by Choose; nil if New has to compute it
}

// layout is the division of the points into leaves and the resulting tiles.
type layout struct {
	pointTree   *tree.Tree // its leaves are the blocks
	tiling      *tiling    // the tiles that are not skipped
	skippedSums []float64  // for each leaf, a bound of the row sums of its skipped tiles
}

// These constants are the parameters of sparse tiles.
const (
	maxLeafSize     = 256     // points of a leaf; smaller leaves skip more entries but have more overhead per entry
	minSparsePoints = 1 << 12 // fewest points for which AutoTiles considers sparse tiles
	maxFormedShare  = 0.4     // AutoTiles forms all tiles if a larger share of the entries has to be evaluated
	tailRows        = 128     // number of sampled rows that determine the entry cutoff
	tailSafety      = 4       // factor by which the dropped entries of other rows may exceed those of the sampled rows
	tailBlockRows   = 1024    // number of points whose entries in the sampled rows are formed at once
	maxPackedShare  = 0.75    // a tile with a larger share of entries above the cutoff is stored in full
	droppedBudget   = 0.25    // largest share of the preferred accuracy that omitted entries may use
)

// dropped returns the bound of the norm of the omitted entries. It is 0 if all tiles are formed.
func (c *Choice) dropped() float64 {
	if c.Sparse == nil {
		return 0
	}
	return c.Sparse.DroppedNorm
}

// FormedShare returns the share of the n² entries that are evaluated. It is 1 if all tiles are formed.
func (c *Choice) FormedShare() float64 {
	if c.Sparse == nil {
		return 1
	}
	return c.Sparse.FormedShare
}

// chooseSparsity decides whether tiles are sparse, and if so divides the points into leaves. It returns nil for dense
// tiles. The omitted entries may have the norm o.MaxDroppedNorm. Skipped tiles use at most half of it by construction
// of the tile cutoff. Dropped entries use the other half according to a sample of the rows; formTiles corrects the
// cutoff if the sample was misleading.
func (m *Matrix) chooseSparsity(ctx context.Context, s *sample, o *Options) (*Sparsity, error) {
	tailBound, _ := kernel.TailBound(m.k)
	target, n := o.MaxDroppedNorm/m.maxWeight(), float64(m.tiling.n)
	cutoff := target / 2 / n
	switch {
	case o.SameAs != nil && o.SameAs.Sparse == nil:
		return nil, nil
	case o.SameAs != nil:
		sparsity := *o.SameAs.Sparse
		return &sparsity, m.buildTreeTiling(ctx, &sparsity)
	case o.Tiles == SparseTiles && (tailBound == nil || !(target > 0)):
		return nil, fmt.Errorf("gram: sparse tiles are for kernels that decrease with the distance and λ > 0, and %v "+
			"with λ = %v is not one: take dense tiles", m.k, m.lambda)
	case o.Tiles == DenseTiles || tailBound == nil || !(target > 0):
		return nil, nil
	case o.Tiles == AutoTiles && (m.tiling.n < minSparsePoints || s.entryShare(cutoff) > maxFormedShare):
		return nil, nil
	}
	dense := m.tiling
	sparsity := &Sparsity{LeafSize: min(maxLeafSize, m.tiling.size), TileCutoff: cutoff, DroppedNorm: o.MaxDroppedNorm,
		AssumesDecreasing: !kernel.BuiltIn(m.k)}
	if err := m.buildTreeTiling(ctx, sparsity); err != nil {
		return nil, err
	}
	if o.Tiles == AutoTiles && sparsity.FormedShare > maxFormedShare {
		m.tiling, m.pointTree = dense, nil
		return nil, nil
	}
	sparsity.StoredShare = sparsity.FormedShare
	if o.Storage == Fixed16 || o.Storage == Recompute {
		return sparsity, nil
	}
	var err error
	sparsity.EntryCutoff, sparsity.StoredShare, err = m.entryCutoff(ctx, s.idx[:s.random], target/2/tailSafety)
	sparsity.StoredShare = min(sparsity.StoredShare, sparsity.FormedShare)
	return sparsity, err
}

// entryShare returns the share of the pairs of different random points of the sample with an entry of at least v.
func (s *sample) entryShare(v float64) float64 {
	count := 0
	for i := range s.random {
		for _, entry := range s.entries[i*len(s.idx) : i*len(s.idx)+i] {
			if entry >= v {
				count++
			}
		}
	}
	return float64(count) / max(1, float64(s.random*(s.random-1)/2))
}

// buildTreeTiling sets the tiling to the pairs of leaves whose tiles are not skipped. It sets all fields of sparsity
// except those about dropped entries.
func (m *Matrix) buildTreeTiling(ctx context.Context, sparsity *Sparsity) (err error) {
	if m.pointTree == nil {
		if m.pointTree, err = tree.New(ctx, m.x, sparsity.LeafSize); err != nil {
			return err
		}
	}
	tailBound, metric := kernel.TailBound(m.k)
	pairs, skippedSums, _, err := m.pointTree.Pairs(ctx, m.pointTree, metric, tailBound, sparsity.TileCutoff)
	if err != nil {
		return err
	}
	m.tiling, m.skippedSums = newTreeTiling(m.pointTree, pairs, m.tiling.cyclicDistribution), skippedSums
	sparsity.layout = &layout{m.pointTree, m.tiling, skippedSums}
	sparsity.LeafCount = m.pointTree.LeafCount()
	var formed float64
	for _, pair := range pairs {
		area := float64(m.tiling.rows(pair.A)) * float64(m.tiling.rows(pair.B))
		if formed += area; pair.A != pair.B {
			formed += area
		}
	}
	sparsity.FormedShare = formed / float64(m.tiling.n) / float64(m.tiling.n)
	return nil
}

// adoptTiling sets the tiling that belongs to the choice, computing it if necessary. It returns an error if the ranks
// have different tilings.
func (m *Matrix) adoptTiling(ctx context.Context) error {
	c := &m.choice
	if c.Sparse == nil {
		return nil
	}
	sparsity := *c.Sparse
	c.Sparse = &sparsity
	if m.pointTree == nil && sparsity.layout != nil {
		l := sparsity.layout
		m.pointTree, m.tiling, m.skippedSums = l.pointTree, l.tiling, l.skippedSums
	}
	if m.pointTree == nil {
		if err := m.buildTreeTiling(ctx, &sparsity); err != nil {
			return err
		}
	}
	c.Tile = m.tiling.size
	if m.comm.Size() == 1 {
		return nil
	}
	ownChecksum := int64(m.tiling.checksum)
	total := []int64{ownChecksum}
	if err := m.comm.AllReduceInt64(ctx, total); err != nil {
		return err
	}
	if total[0] != ownChecksum*int64(m.comm.Size()) {
		return fmt.Errorf("gram: the ranks have cut the points into different tiles: their processors round " +
			"differently; take dense tiles (--storage tiles=dense)")
	}
	return nil
}

// skipTilesOf gives m the tree of other, another matrix of the same points, and skips tiles so that the bound of the
// omitted entries is at most target. It skips no tile if only a user-defined kernel claims that it decreases: the true
// residuals computed with m then reveal a false claim.
func (m *Matrix) skipTilesOf(other *Matrix, target float64) {
	if other.pointTree == nil || other.choice.Sparse.AssumesDecreasing || !(target > 0) {
		return
	}
	m.pointTree = other.pointTree
	cutoff := target / m.maxWeight() / float64(m.tiling.n)
	sparsity := &Sparsity{LeafSize: other.choice.Sparse.LeafSize, TileCutoff: cutoff}
	if m.buildTreeTiling(context.Background(), sparsity) == nil {
		sparsity.StoredShare, m.choice.Sparse = sparsity.FormedShare, sparsity
		sparsity.DroppedNorm = m.maxDroppedSum(nil, 0)
	}
}

// entryCutoff returns the largest power of two ≤ target for which the entries below it sum to at most target in every
// sampled row, and the share of entries that are not below it. The rows are chosen among the drawn points.
func (m *Matrix) entryCutoff(ctx context.Context, drawn []int, target float64) (cutoff, storedShare float64,
	err error) {
	// Octave o contains the entries between 2^(topExponent−o−1) and 2^(topExponent−o); the last octave also contains
	// all smaller ones.
	const octaves, rowsPerTask = 256, 8
	var idx []int
	for k := range min(tailRows, len(drawn)) {
		idx = append(idx, drawn[k*len(drawn)/min(tailRows, len(drawn))])
	}
	_, topExponent := math.Frexp(slices.Max(m.diag))
	panel := m.placement.Panel
	rows := points.Panel{X: points.Gather(panel.X, idx)}
	rows.Norms = points.SqNorms(rows.X)
	type workerMemory struct {
		workspace kernel.Workspace
		tile      []float64
	}
	sums, counts := make([][octaves]float64, len(idx)), make([][octaves]int, len(idx))
	workers := make([]workerMemory, accel.Threads())
	err = accel.ForEach(ctx, (len(idx)+rowsPerTask-1)/rowsPerTask, func(thread, task int) {
		scratch, lo, hi := &workers[thread], task*rowsPerTask, min((task+1)*rowsPerTask, len(idx))
		for j := 0; j < m.tiling.n; j += tailBlockRows {
			z := panel.Slice(j, min(j+tailBlockRows, m.tiling.n))
			tile := buffer.Grow(&scratch.tile, (hi-lo)*z.Len())
			kernel.Tile64(tile, z.Len(), m.k, rows.Slice(lo, hi), z, kernel.Float64, &scratch.workspace)
			for k, v := range tile {
				_, exponent := math.Frexp(v)
				octave := max(0, min(topExponent-exponent, octaves-1))
				sums[lo+k/z.Len()][octave] += v
				counts[lo+k/z.Len()][octave]++
			}
		}
	})

	octave := octaves - 1 // entries of this octave and of smaller ones are dropped
	for ; octave > 1 && math.Ldexp(1, topExponent-octave+1) <= target; octave-- {
		var worst float64
		for i := range sums {
			var sum float64
			for _, v := range sums[i][octave-1:] {
				sum += v
			}
			worst = max(worst, sum)
		}
		if worst > target {
			break
		}
	}
	for i := range counts {
		for _, v := range counts[i][:octave] {
			storedShare += float64(v) / float64(m.tiling.n) / float64(len(idx))
		}
	}
	return math.Ldexp(1, topExponent-octave), storedShare, err
}

// droppedRowSums accumulates the dropped entries of each row, by position, in units of 2⁻²⁴·cutoff. The sums are
// integers and do not depend on the order of summation.
type droppedRowSums struct {
	cutoff float64        // entries below this value are dropped
	rows   []atomic.Int64 // sum of the dropped entries of each row
}

// newDroppedRowSums returns sums of zero for n rows.
func newDroppedRowSums(cutoff float64, n int) *droppedRowSums {
	return &droppedRowSums{cutoff, make([]atomic.Int64, n)}
}

// add adds v to the sum of a row, enlarged to cover the rounding error of sums in float32.
func (d *droppedRowSums) add(position int, v float64) {
	if v > 0 {
		d.rows[position].Add(int64(math.Ceil(v * (1 + 0x1p-10) / (d.cutoff * 0x1p-24))))
	}
}

// packTile stores tile p, whose entries are tile, without the entries below the cutoff.
func (e *engine[T]) packTile(w *worker[T], p int, tile []T) {
	ref := e.order[p]
	rows, cols := e.rows(int(ref.i)), e.rows(int(ref.j))
	rowWords := (cols + 15) / 16
	bits, values := make([]uint16, rows*rowWords), buffer.Grow(&w.values, rows*cols)
	droppedSums := buffer.Grow(&w.droppedSums, rows+cols)
	clear(droppedSums)
	packed := 0
	for a := range rows {
		rowBits, row := bits[a*rowWords:(a+1)*rowWords], tile[a*cols:(a+1)*cols]
		count, sum := simd.PackRow(values[packed:], rowBits, row, T(e.dropped.cutoff), droppedSums[rows:])
		packed += count
		droppedSums[a] = sum
	}
	if float64(packed) > maxPackedShare*float64(rows*cols) {
		e.entries[p] = slices.Clone(tile)
		return
	}
	e.packedWords[p], e.entries[p] = bits, slices.Clone(values[:packed])
	i0, _ := e.block(int(ref.i))
	j0, _ := e.block(int(ref.j))
	for a, v := range droppedSums[:rows] {
		e.dropped.add(i0+a, float64(v))
	}
	if ref.i == ref.j {
		return
	}
	for b, v := range droppedSums[rows:] {
		e.dropped.add(j0+b, float64(v))
	}
}

// unpackTile returns tile p with zeros for the dropped entries, in the memory of w.
func (e *engine[T]) unpackTile(w *worker[T], p int) []T {
	ref := e.order[p]
	rows, cols := e.rows(int(ref.i)), e.rows(int(ref.j))
	tile, words := buffer.Grow(&w.tile, rows*cols), (cols+15)/16
	start := 0
	for a := range rows {
		start += simd.UnpackRow(tile[a*cols:(a+1)*cols], e.packedWords[p][a*words:(a+1)*words], e.entries[p][start:])
	}
	return tile
}

// droppedSums returns, for the tiles of this rank, the sum of the dropped entries of each row by position, followed by
// the number of stored entries. Entries of tiles off the diagonal count twice. It returns nil if no entries are
// dropped.
func (e *engine[T]) droppedSums() []int64 {
	if e.dropped == nil {
		return nil
	}
	out := make([]int64, e.n+1)
	for i := range e.dropped.rows {
		out[i] = e.dropped.rows[i].Load()
	}
	for p, t := range e.entries {
		count := int64(len(t))
		if out[e.n] += count; e.order[p].i != e.order[p].j {
			out[e.n] += count
		}
	}
	return out
}

// maxDroppedSum returns the largest row sum of the omitted entries times the weight of the row: skipped tiles, and the
// dropped entries, whose sums by position are multiples of unit.
func (m *Matrix) maxDroppedSum(entries []int64, unit float64) (maxSum float64) {
	for b, v := range m.skippedSums {
		lo, hi := m.tiling.block(b)
		var worst int64
		if entries != nil {
			worst = slices.Max(entries[lo:hi])
		}
		weight := 1.0
		if m.factors != nil {
			weight = 0
			for position := lo; position < hi; position++ {
				factor := m.factors[m.tiling.point(position)]
				weight = max(weight, factor*factor)
			}
		}
		maxSum = max(maxSum, weight*(v+float64(worst)*unit))
	}
	return maxSum * (1 + 0x1p-30) // the factor covers the rounding of the sums
}

// updateDroppedNorm replaces the predicted norm of the omitted entries by the actual one, on all ranks. It reports
// whether the actual one is at most the predicted one.
func (m *Matrix) updateDroppedNorm(ctx context.Context) (bool, error) {
	sparsity := m.choice.Sparse
	if sparsity == nil {
		return true, nil
	}
	entries, predicted := m.ops.droppedSums(), sparsity.DroppedNorm
	if entries != nil {
		if err := m.comm.AllReduceInt64(ctx, entries); err != nil {
			return false, err
		}
		sparsity.StoredShare = float64(entries[m.tiling.n]) / float64(m.tiling.n) / float64(m.tiling.n)
	}
	sparsity.DroppedNorm = m.maxDroppedSum(entries, sparsity.EntryCutoff*0x1p-24)
	m.choice.Error += sparsity.DroppedNorm - predicted
	return sparsity.DroppedNorm <= predicted, nil
}
