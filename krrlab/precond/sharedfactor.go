package precond

import (
	"context"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// maxReplicatedOrder is the largest number of features for which the ranks of FormLInv replicate the factor. Above it,
// the ranks share one factor. Up to it, the 16s² bytes during construction, at most 64 MiB, and the time to compute the
// factor matter less than the two additional collectives that each solve with a shared factor needs.
var maxReplicatedOrder = 2048

// RanksPerFactor returns the number of ranks that share one factor, if New is called for n points, s features and t
// columns. All ranks share the factor of FormLInv with more than 2,048 features. Otherwise every rank has the whole
// factor, and RanksPerFactor returns 1.
func RanksPerFactor(form Form, n, s, t, ranks int) int {
	if form == AutoForm {
		form = cheaperForm(n, s, t)
	}
	if form == FormLInv && s > maxReplicatedOrder {
		return ranks
	}
	return 1
}

// FactorBytes returns the bytes that each rank needs for a factor of order s, if the given number of sharers, which are
// ranks, share one factor: stored is the memory after New, 8s²/sharers, and forming is the peak during New,
// 16s²/sharers. With several sharers, forming also includes messages from other ranks and blocks of ZᵀZ.
func FactorBytes(s, sharers int) (stored, forming int64) {
	stored = 8 * int64(s) * int64(s) / int64(sharers)
	if forming = 2 * stored; sharers > 1 {
		forming += 8*int64(s)*accel.TileOrder +
			max(8*reducedBlocks*gramOrder*gramOrder, 4*int64(s)*int64(s)/reducedBlocks)
	}
	return stored, forming
}

// linv is L⁻¹, accessible by rows and by columns. rows[b] has the rows of block b, up to the diagonal block; columns[b]
// has the columns of block b, from the diagonal block on. A block has colBlock rows or columns. In one process, both
// are parts of one array, and stride is the row stride of the array. If ranks share L⁻¹, it is stored twice for
// contiguous access: each rank has some of the blocks, each in an array without gaps, and stride is 0.
type linv struct {
	rows, columns [][]float64
	s, stride     int
	hasBlock      func(b int) bool // whether this rank has block b; nil if it has all blocks
}

// newLinv returns a linv of order s whose blocks are not set.
func newLinv(s int) *linv {
	blocks := (s + colBlock - 1) / colBlock
	return &linv{rows: make([][]float64, blocks), columns: make([][]float64, blocks), s: s}
}

// blockRange returns the range c0, …, c1-1 of the rows or columns of block b.
func (l *linv) blockRange(b int) (c0, c1 int) { return b * colBlock, min((b+1)*colBlock, l.s) }

// newShared returns an s×s matrix of zeros that is distributed over the ranks.
func (d *rowDistribution) newShared(ctx context.Context, s int) *accel.DistributedMatrix {
	return accel.NewDistributedMatrix(s, d.comm.Rank(), d.comm.Size(), func(x []float64, root int) error {
		return comm.BroadcastFloats(ctx, d.comm, x, root)
	})
}

// invertShared sets w.linv and w.statDim from the distributed Cholesky factor. The ranks exchange the rows of L⁻¹, and
// each rank copies the blocks that it stores.
func (w *Woodbury) invertShared(factor *accel.DistributedMatrix) error {
	inv := newLinv(w.s)
	inv.hasBlock = func(b int) bool { return b%factor.Size == factor.Rank }
	var sqNorm float64 // ‖L⁻¹‖_F²
	err := factor.Invert(func(i int, row []float64) {
		sqNorm += sumSquares(row)
		for b := range i/colBlock + 1 {
			c0, c1 := inv.blockRange(b)
			if !inv.hasBlock(b) {
				continue
			}
			if i == c0 {
				inv.rows[b], inv.columns[b] = make([]float64, (c1-c0)*c1), make([]float64, (w.s-c0)*(c1-c0))
			}
			copy(inv.columns[b][(i-c0)*(c1-c0):], row[c0:min(c1, i+1)])
			if i < c1 {
				copy(inv.rows[b][(i-c0)*c1:], row)
			}
		}
	})
	w.linv, w.statDim = inv, float64(w.s)-w.lambdaP*sqNorm
	return err
}

// gatherBlocks completes x, t×s, on all ranks. On entry, each rank has computed the columns of x in its blocks, those
// for which hasBlock is true.
func (a *application) gatherBlocks(ctx context.Context, x []float64) error {
	inv := a.w.linv
	if inv == nil || inv.hasBlock == nil {
		return nil
	}
	for b := range inv.rows {
		c0, c1 := inv.blockRange(b)
		for row := 0; row < a.t && !inv.hasBlock(b); row++ {
			clear(x[row*inv.s+c0 : row*inv.s+c1])
		}
	}
	return comm.MergeDisjoint(ctx, a.w.distribution.comm, x)
}

// bytes returns the memory of the blocks of this rank. It must be called only if ranks share L⁻¹.
func (l *linv) bytes() (n int64) {
	for _, x := range slices.Concat(l.rows, l.columns) {
		n += 8 * int64(len(x))
	}
	return n
}
