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

// scales returns powers of two with √k(x_i, x_i)·scale_i ≤ 1, and then as K is positive
// semi-definite |k(x_i, x_j)|·scale_i·scale_j ≤ 1.
func (m *Matrix) scales() []float64 {
	floor := slices.Max(m.sizes) * 0x1p-60 // for what rounding leaves beside a diagonal of 0
	scales := make([]float64, len(m.sizes))
	for i, v := range m.sizes {
		root := math.Sqrt(max(math.Abs(v), floor) * (1 + 1e-3)) // rounding of tiles and products
		if !kernel.BuiltIn(m.k) {
			root *= ownSlack
		}
		_, exp := math.Frexp(root)
		scales[i] = math.Ldexp(1, -exp)
	}
	return scales
}

// ownSlack² is by how much entries of a user-defined kernel may exceed the diagonal: it
// may turn out not to be positive semi-definite.
const ownSlack = 1 << 5

// share is the part of a tiling that a rank has.
type share struct{ rank, size int }

// has reports whether tile, or block of rows, number q is this rank's: neighbors in the order
// lie on one diagonal, so all ranks have tiles of all kinds, and as many entries as each
// other but for one tile.
func (s share) has(q int) bool { return q%s.size == s.rank }

// of returns how many of n tiles this rank has.
func (s share) of(n int) int { return (n - s.rank + s.size - 1) / s.size }

// agree is choose by rank 0, for all.
func (m *Matrix) agree(ctx context.Context, o *Options, d int) (c Choice, err error) {
	if o.Memory, err = comm.Least(ctx, m.comm, o.Memory); err != nil {
		return c, err
	}
	var b bytes.Buffer
	if m.comm.Rank() == 0 {
		if c, err = m.choose(ctx, o, d); err == nil {
			err = gob.NewEncoder(&b).Encode(c)
		}
	}
	if err = comm.Agree(ctx, m.comm, err); err != nil {
		return c, err
	}
	text, err := comm.Share(ctx, m.comm, b.Bytes(), 0)
	if err != nil || m.comm.Rank() == 0 {
		return c, err
	}
	var got Choice
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&got); err != nil {
		return c, fmt.Errorf("gram: the choice of rank 0: %w", err)
	}
	return got, nil
}

// RankBytes returns Bytes of the matrix of n points in tiles of the default size on the rank
// that holds the most of them, of the given number. It panics for Auto.
func RankBytes(n int, s Storage, ranks int) int64 {
	if s == Auto || n < 1 || ranks < 1 {
		panic(fmt.Sprintf("gram: %d points as %v on %d ranks", n, s, ranks))
	}
	o := (*Options)(nil).settled(n, 1)
	t := tiling{n: n, size: o.TileSize, blocks: (n + o.TileSize - 1) / o.TileSize}
	tiles, size, last := t.blocks*(t.blocks+1)/2, int64(t.size), int64(t.rows(t.blocks-1))
	// The tile of diagonal o in the last block row belongs to rank (o(B−1) − o(o−1)/2 + B−1) mod P, of period 2P in o.
	missing := make([]int64, ranks) // entries that the last block row has less than full tiles
	for o := range min(t.blocks, 2*ranks) {
		count := int64((t.blocks - o + 2*ranks - 1) / (2 * ranks)) // diagonals o, o+2P, o+4P, …
		less := count * size * (size - last)
		if o == 0 { // the tile on the diagonal lacks columns, too
			less += last * (size - last)
		}
		missing[(t.diagonal(o)+t.blocks-1-o)%ranks] += less
	}
	var most int64
	width := map[Storage]int64{Float64: 8, Float32: 4, Fixed16: 2}[s]
	for r, less := range missing {
		held := int64(share{r, ranks}.of(tiles))
		most = max(most, tablesOf(int64(n), held, int64(t.blocks))+width*(held*size*size-less))
	}
	return most
}
