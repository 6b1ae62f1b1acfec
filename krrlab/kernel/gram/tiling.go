package gram

import (
	"slices"
	"sort"

	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// tileRef identifies a tile by its block row i and block column j ≤ i.
type tileRef struct{ i, j int32 }

// tiling divides n points into blocks and orders the tiles of the lower triangle. Either all tiles exist and the blocks
// have equal size, or the blocks are the leaves of a tree and only some pairs of leaves have a tile. In the second case
// the points are reordered by the tree. The position of a point is its number in the order of the blocks, from 0.
//
// Tiles are ordered by diagonals: (0,0), (1,1), …, then (1,0), (2,1), …, then (2,0), … Neighbors in this order
// contribute to different blocks of y, except on the first subdiagonal, where they share one. Workers that process
// neighboring tiles therefore seldom wait for each other.
type tiling struct {
	n, size, blocks    int       // number of points, largest number of points of a block, and number of blocks
	starts             []int     // first position of each leaf, followed by n; nil if all blocks have size points
	points             []int     // index of the point at each position; nil if the points are not reordered
	positions          []int     // position of each point, the inverse of points; nil if the points are not reordered
	order              []tileRef // the tiles of this rank in order; nil until assignTiles
	checksum           uint64    // hash of the tiles of all ranks, for tilings by leaves
	cyclicDistribution           // the rank, and the number of ranks
}

// newTiling divides n points into blocks of the given size. The tiles are assigned to the ranks cyclically.
func newTiling(n, size int, distribution cyclicDistribution) *tiling {
	return &tiling{n: n, size: size, blocks: (n + size - 1) / size, cyclicDistribution: distribution}
}

// skipsTiles reports whether the tiling has only the tiles between some of the leaves of a tree.
func (t *tiling) skipsTiles() bool { return t.points != nil }

// assignTiles sets order. Its memory is proportional to the (n/size)²/2 tiles, so call assignTiles only before tiles
// are formed.
func (t *tiling) assignTiles() {
	if t.order == nil {
		order := make([]tileRef, 0, t.tileCount())
		t.visitTiles(func(ref tileRef) { order = append(order, ref) })
		t.order = order
	}
}

// tileCount returns the number of tiles of this rank.
func (t *tiling) tileCount() int {
	if t.starts != nil {
		return len(t.order)
	}
	return t.count(t.blocks * (t.blocks + 1) / 2)
}

// visitTiles calls visit with the tiles of this rank in order.
func (t *tiling) visitTiles(visit func(ref tileRef)) {
	for _, ref := range t.order {
		visit(ref)
	}
	for diagonal, k := 0, t.rank; t.order == nil && diagonal < t.blocks; diagonal++ {
		for start := t.diagonalStart(diagonal); k < start+t.blocks-diagonal; k += t.cyclicDistribution.size {
			visit(tileRef{int32(k - start + diagonal), int32(k - start)})
		}
	}
}

// diagonalStart returns the position, among all tiles in order, of the first tile with i−j = diagonal. The diagonals
// before it have B, B−1, … tiles.
func (t *tiling) diagonalStart(diagonal int) int { return diagonal*t.blocks - diagonal*(diagonal-1)/2 }

// newTreeTiling returns the tiling whose blocks are the leaves of a tree and whose tiles are the given pairs of leaves.
func newTreeTiling(leaves *tree.Tree, pairs []tree.Pair, distribution cyclicDistribution) *tiling {
	t := &tiling{n: len(leaves.Order), blocks: leaves.LeafCount(), starts: leaves.Start, points: leaves.Order,
		cyclicDistribution: distribution}
	for b := range t.blocks {
		t.size = max(t.size, t.rows(b))
	}
	t.positions = make([]int, t.n)
	for position, i := range t.points {
		t.positions[i] = position
	}
	refs := make([]tileRef, len(pairs))
	for k, pair := range pairs {
		refs[k] = tileRef{int32(pair.A), int32(pair.B)}
	}
	slices.SortFunc(refs, compareTiles)
	t.order = make([]tileRef, 0, distribution.count(len(refs)))
	for k, ref := range refs {
		t.checksum = mixHash(t.checksum, uint64(ref.i)<<32|uint64(ref.j))
		if distribution.owns(k) {
			t.order = append(t.order, ref)
		}
	}
	return t
}

// compareTiles orders tiles by diagonal and then by column.
func compareTiles(a, b tileRef) int {
	if diagonals := (a.i - a.j) - (b.i - b.j); diagonals != 0 {
		return int(diagonals)
	}
	return int(a.j - b.j)
}

// block returns the range [lo, hi) of the positions of block b.
func (t *tiling) block(b int) (lo, hi int) {
	if t.starts != nil {
		return t.starts[b], t.starts[b+1]
	}
	return b * t.size, min((b+1)*t.size, t.n)
}

// rows returns the number of points of block b.
func (t *tiling) rows(b int) int { lo, hi := t.block(b); return hi - lo }

// blockOf returns the block that contains a position.
func (t *tiling) blockOf(position int) int {
	if t.starts != nil {
		return sort.SearchInts(t.starts, position+1) - 1
	}
	return position / t.size
}

// locate returns the block of a point and the point's offset in that block.
func (t *tiling) locate(point int) (block, offset int) {
	position := t.position(point)
	block = t.blockOf(position)
	lo, _ := t.block(block)
	return block, position - lo
}

// point returns the index of the point at a position.
func (t *tiling) point(position int) int {
	if t.points != nil {
		return t.points[position]
	}
	return position
}

// pointOrder returns the indices of the points in the order of their positions.
func (t *tiling) pointOrder() []int {
	order := make([]int, t.n)
	for position := range order {
		order[position] = t.point(position)
	}
	return order
}

// position returns the position of a point. It is the inverse of point.
func (t *tiling) position(point int) int {
	if t.positions != nil {
		return t.positions[point]
	}
	return point
}

// inTileOrder returns the elements of v, one for each point, in the order of positions.
func inTileOrder[T any](t *tiling, v []T) []T {
	if t.points == nil {
		return v
	}
	ordered := make([]T, len(v))
	for position, i := range t.points {
		ordered[position] = v[i]
	}
	return ordered
}

// indexOf returns the index of tile (i, j), i ≥ j, among the tiles of this rank, and whether this rank has the tile.
func (t *tiling) indexOf(i, j int) (int, bool) {
	if t.starts != nil {
		return slices.BinarySearchFunc(t.order, tileRef{int32(i), int32(j)}, compareTiles)
	}
	k := t.diagonalStart(i-j) + j
	return k / t.cyclicDistribution.size, t.owns(k)
}

// entryCount returns the total number of entries of the tiles of this rank.
func (t *tiling) entryCount() int64 {
	var sum int64
	t.visitTiles(func(ref tileRef) { sum += int64(t.rows(int(ref.i))) * int64(t.rows(int(ref.j))) })
	return sum
}
