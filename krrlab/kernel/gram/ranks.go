package gram

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// rowScales returns powers of two with √k(x_i, x_i)·scale_i ≤ 1. If K is positive semi-definite, this implies |k(x_i,
// x_j)|·scale_i·scale_j ≤ 1.
func (m *Matrix) rowScales() []float64 {
	smallest := slices.Max(m.diagonalBounds) * 0x1p-60 // bounds the rounding errors in the row of a zero diagonal entry
	scales := make([]float64, len(m.diagonalBounds))
	for i, v := range m.diagonalBounds {
		// The factor 1.001 is a margin for rounding in tiles and products: a judgment.
		root := math.Sqrt(max(math.Abs(v), smallest) * (1 + 1e-3))
		if !kernel.BuiltIn(m.k) {
			root *= userKernelSlack
		}
		_, exp := math.Frexp(root)
		scales[i] = math.Ldexp(1, -exp)
	}
	return scales
}

// userKernelSlack² is the factor by which entries of a user-defined kernel may exceed the bound √(k_ii·k_jj), because
// the kernel may turn out not to be positive semi-definite. A larger value costs digits of every product; a smaller one
// rejects more kernels.
const userKernelSlack = 1 << 5

// cyclicDistribution identifies the tiles of one rank, out of size ranks in total.
type cyclicDistribution struct{ rank, size int }

// owns reports whether tile number q, or block of rows number q, belongs to this rank. Neighboring tiles lie on one
// diagonal, so all ranks have tiles from all diagonals, and the numbers of entries of two ranks differ by at most one
// tile.
func (d cyclicDistribution) owns(q int) bool { return q%d.size == d.rank }

// count returns how many of n tiles belong to this rank.
func (d cyclicDistribution) count(n int) int { return (n - d.rank + d.size - 1) / d.size }

// chooseOnRanks returns the choice of rank 0 on every rank. The memory budget is that of the rank with the least free
// memory.
func (m *Matrix) chooseOnRanks(ctx context.Context, o *Options) (c Choice, err error) {
	if o.Memory, err = comm.SmallestBudget(ctx, m.comm, o.Memory); err != nil {
		return c, err
	}
	var buffer bytes.Buffer
	if m.comm.Rank() == 0 {
		if c, err = m.choose(ctx, o); err == nil {
			err = gob.NewEncoder(&buffer).Encode(c)
		}
	}
	if err = comm.Agree(ctx, m.comm, err); err != nil {
		return c, err
	}
	encoded, err := comm.BroadcastBytes(ctx, m.comm, buffer.Bytes(), 0)
	if err != nil || m.comm.Rank() == 0 {
		return c, err
	}
	var choice Choice
	if err := gob.NewDecoder(bytes.NewReader(encoded)).Decode(&choice); err != nil {
		return c, fmt.Errorf("gram: the choice of rank 0: %w", err)
	}
	return choice, nil
}

// RankBytes returns Matrix.Bytes for n points in tiles of the default size, distributed over the given number of ranks,
// on the rank that stores most. It panics for Auto.
func RankBytes(n int, storage Storage, ranks int) int64 {
	if storage == Auto || n < 1 || ranks < 1 {
		panic(fmt.Sprintf("gram: %d points as %v on %d ranks", n, storage, ranks))
	}
	options := (*Options)(nil).withDefaults(n, 1)
	t := tiling{n: n, size: options.TileSize, blocks: (n + options.TileSize - 1) / options.TileSize}
	tiles, size, lastRows := t.blocks*(t.blocks+1)/2, int64(t.size), int64(t.rows(t.blocks-1))
	// With B blocks and P ranks, the tile of diagonal o in the last block row belongs to rank (o(B−1) − o(o−1)/2 + B−1)
	// mod P, which has the period 2P in o.
	missing := make([]int64, ranks) // by rank, the entries that its tiles in the last block row lack to be full
	for diagonal := range min(t.blocks, 2*ranks) {
		count := int64((t.blocks - diagonal + 2*ranks - 1) / (2 * ranks)) // diagonals o, o+2P, o+4P, …
		missingEntries := count * size * (size - lastRows)
		if diagonal == 0 { // the tile on the diagonal lacks columns, too
			missingEntries += lastRows * (size - lastRows)
		}
		missing[(t.diagonalStart(diagonal)+t.blocks-1-diagonal)%ranks] += missingEntries
	}
	var maxBytes int64
	for rank, missingEntries := range missing {
		ownTiles := int64(cyclicDistribution{rank, ranks}.count(tiles))
		entries := ownTiles*size*size - missingEntries
		maxBytes = max(maxBytes, tableBytesFor(int64(n), ownTiles, int64(t.blocks))+storage.entryBytes()*entries)
	}
	return maxBytes
}
