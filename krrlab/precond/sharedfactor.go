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

// FactorBytes returns the memory of each rank for a factor of s features that sharers ranks share: stored, after New,
// and forming, during New. They are 8s² and 16s² bytes divided by the number of sharers. With several sharers, L⁻¹ is
// stored by rows and by columns, and forming includes messages from other ranks and blocks of ZᵀZ.
func FactorBytes(s, sharers int) (stored, forming int64) {
	stored = 8 * int64(s) * int64(s) / int64(sharers)
	if forming = 2 * stored; sharers > 1 {
		forming += 8*int64(s)*accel.TileOrder +
			max(8*reducedBlocks*gramOrder*gramOrder, 4*int64(s)*int64(s)/reducedBlocks)
	}
	return stored, forming
}

// linv is L⁻¹, stored twice for contiguous access. rows[b] are the rows of block b, up to their diagonal; columns[b]
// are the columns of block b, from their diagonal on. A block has colBlock rows or columns. In one process both are
// parts of one array, and stride is its row stride. If ranks share L⁻¹, each has some of the blocks, without gaps, and
// stride is 0.
type linv struct {
	rows, columns [][]float64
	s, stride     int
	hasBlock      func(b int) bool // whether this rank has block b; nil if it has all blocks
}

// newLinv returns the L⁻¹ of order s without blocks.
func newLinv(s int) *linv {
	blocks := (s + colBlock - 1) / colBlock
	return &linv{rows: make([][]float64, blocks), columns: make([][]float64, blocks), s: s}
}

// block returns the range c0, …, c1-1 of the rows or columns of block b.
func (d *linv) block(b int) (c0, c1 int) { return b * colBlock, min((b+1)*colBlock, d.s) }

// newShared returns an s×s matrix of zeros that is distributed over the ranks.
func (k *rowDistribution) newShared(ctx context.Context, s int) *accel.DistributedMatrix {
	return accel.NewDistributedMatrix(s, k.comm.Rank(), k.comm.Size(), func(x []float64, root int) error {
		return comm.BroadcastFloats(ctx, k.comm, x, root)
	})
}

// invertShared sets w.linv and w.statDim from the distributed Cholesky factor m. The ranks exchange the rows of L⁻¹,
// and each copies its blocks.
func (w *Woodbury) invertShared(m *accel.DistributedMatrix) error {
	d := newLinv(w.s)
	d.hasBlock = func(b int) bool { return b%m.Size == m.Rank }
	var norm float64 // ‖L⁻¹‖_F²
	err := m.Invert(func(i int, row []float64) {
		norm += sumSquares(row)
		for b := range i/colBlock + 1 {
			c0, c1 := d.block(b)
			if !d.hasBlock(b) {
				continue
			}
			if i == c0 {
				d.rows[b], d.columns[b] = make([]float64, (c1-c0)*c1), make([]float64, (w.s-c0)*(c1-c0))
			}
			copy(d.columns[b][(i-c0)*(c1-c0):], row[c0:min(c1, i+1)])
			if i < c1 {
				copy(d.rows[b][(i-c0)*c1:], row)
			}
		}
	})
	w.linv, w.statDim = d, float64(w.s)-w.lambdaP*norm
	return err
}

// gatherBlocks completes x, t×s, on all ranks. On entry, each rank has the columns of the blocks for which hasBlock is
// true.
func (p *application) gatherBlocks(ctx context.Context, x []float64) error {
	d := p.w.linv
	if d == nil || d.hasBlock == nil {
		return nil
	}
	for b := range d.rows {
		c0, c1 := d.block(b)
		for row := 0; row < p.t && !d.hasBlock(b); row++ {
			clear(x[row*d.s+c0 : row*d.s+c1])
		}
	}
	return comm.MergeDisjoint(ctx, p.w.distribution.comm, x)
}

// bytes returns the memory of L⁻¹ on this rank, for a shared L⁻¹.
func (d *linv) bytes() (n int64) {
	for _, x := range slices.Concat(d.rows, d.columns) {
		n += 8 * int64(len(x))
	}
	return n
}
