package gram

import (
	"slices"
	"sort"

	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// ref is a tile: its block row i ≥ block column j.
type ref struct{ i, j int32 }

// tiling cuts n points into blocks and orders the tiles of the lower half that there are: all, or those of pairs of
// leaves of a tree, whose order of the points is then the one of all blocks. A point's number in it is its place.
//
// Tiles go by diagonals: (0,0), (1,1), …, then (1,0), (2,1), …, then (2,0), …
// Neighbors in this order contribute to different blocks of y, but for the
// first subdiagonal, where they share one; so workers that take neighboring
// tiles seldom wait for each other.
type tiling struct {
	n, size, blocks int    // of at most size points each
	starts          []int  // first places of leaves, and n; nil for blocks of size
	points          []int  // by place; nil where place i is point i's
	places          []int  // of the points; nil likewise
	order           []ref  // of the tiles, those of this rank; nil until deal
	mark            uint64 // a number that only the same tiles of leaves have, but for a chance of 2⁻⁶⁴
	share
}

// newTiling cuts n points into blocks of the given size, whose tiles are dealt to ranks in turn.
func newTiling(n, size int, own share) *tiling {
	return &tiling{n: n, size: size, blocks: (n + size - 1) / size, share: own}
}

// deal sets order, which takes as much memory as (n/size)²/2 tiles ask for: only where they are formed.
func (t *tiling) deal() {
	if t.order == nil {
		order := make([]ref, 0, t.tiles())
		t.each(func(r ref) { order = append(order, r) })
		t.order = order
	}
}

// tiles returns the number of tiles of this rank.
func (t *tiling) tiles() int {
	if t.starts != nil {
		return len(t.order)
	}
	return t.of(t.blocks * (t.blocks + 1) / 2)
}

// each calls f with the tiles of this rank in their order.
func (t *tiling) each(f func(r ref)) {
	for _, r := range t.order {
		f(r)
	}
	for o, q := 0, t.rank; t.order == nil && o < t.blocks; o++ {
		for first := t.diagonal(o); q < first+t.blocks-o; q += t.share.size {
			f(ref{int32(q - first + o), int32(q - first)})
		}
	}
}

// diagonal returns the position in the order of all tiles of the first with i−j = o: those before have B, B−1, … tiles.
func (t *tiling) diagonal(o int) int { return o*t.blocks - o*(o-1)/2 }

// treeTiling has the tiles of pairs of leaves.
func treeTiling(leaves *tree.Tree, near []tree.Pair, own share) *tiling {
	t := &tiling{n: len(leaves.Order), blocks: leaves.Leaves(), starts: leaves.Start, points: leaves.Order, share: own}
	for b := range t.blocks {
		t.size = max(t.size, t.rows(b))
	}
	t.places = make([]int, t.n)
	for place, i := range t.points {
		t.places[i] = place
	}
	all := make([]ref, len(near))
	for q, p := range near {
		all[q] = ref{int32(p.A), int32(p.B)}
	}
	slices.SortFunc(all, compareTiles)
	t.order = make([]ref, 0, own.of(len(all)))
	for q, r := range all {
		t.mark = mix(t.mark, uint64(r.i)<<32|uint64(r.j))
		if own.has(q) {
			t.order = append(t.order, r)
		}
	}
	return t
}

func compareTiles(a, b ref) int {
	if o := (a.i - a.j) - (b.i - b.j); o != 0 {
		return int(o)
	}
	return int(a.j - b.j)
}

// block returns the places [lo, hi) of block b.
func (t *tiling) block(b int) (lo, hi int) {
	if t.starts != nil {
		return t.starts[b], t.starts[b+1]
	}
	return b * t.size, min((b+1)*t.size, t.n)
}

// rows returns the number of points of block b.
func (t *tiling) rows(b int) int { lo, hi := t.block(b); return hi - lo }

// blockOf returns the block of a place.
func (t *tiling) blockOf(place int) int {
	if t.starts != nil {
		return sort.SearchInts(t.starts, place+1) - 1
	}
	return place / t.size
}

// where returns the block of a point, and its place in that.
func (t *tiling) where(point int) (b, at int) {
	place := t.place(point)
	b = t.blockOf(place)
	lo, _ := t.block(b)
	return b, place - lo
}

// point returns the point of a place.
func (t *tiling) point(place int) int {
	if t.points != nil {
		return t.points[place]
	}
	return place
}

// lie returns the points by place.
func (t *tiling) lie() []int {
	lie := make([]int, t.n)
	for place := range lie {
		lie[place] = t.point(place)
	}
	return lie
}

// place is the inverse of point.
func (t *tiling) place(point int) int {
	if t.places != nil {
		return t.places[point]
	}
	return point
}

// placed returns numbers of the points by place.
func placed[T any](t *tiling, v []T) []T {
	if t.points == nil {
		return v
	}
	w := make([]T, len(v))
	for place, i := range t.points {
		w[place] = v[i]
	}
	return w
}

// at returns the position of tile (i, j), i ≥ j, among those of this rank, if it is there.
func (t *tiling) at(i, j int) (int, bool) {
	if t.starts != nil {
		return slices.BinarySearchFunc(t.order, ref{int32(i), int32(j)}, compareTiles)
	}
	q := t.diagonal(i-j) + j
	return q / t.share.size, t.has(q)
}

// entries returns the number of entries of all tiles of this rank.
func (t *tiling) entries() int64 {
	var sum int64
	t.each(func(r ref) { sum += int64(t.rows(int(r.i))) * int64(t.rows(int(r.j))) })
	return sum
}
