package gram

import (
	"slices"
	"sort"

	"github.com/krrlab/lab/krrlab/tree"
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
	n, size, blocks int   // of at most size points each
	starts          []int // first places of leaves, and n; nil for blocks of size
	points          []int // by place; nil where place i is point i's
	places          []int // of the points; nil likewise
	order           []ref
	share
}

// newTiling cuts n points into blocks of the given size, whose tiles are dealt to ranks in turn.
func newTiling(n, size int, own share) *tiling {
	b := (n + size - 1) / size
	t := &tiling{n: n, size: size, blocks: b, order: make([]ref, 0, b*(b+1)/2), share: own}
	for o := range b {
		for j := range b - o {
			t.order = append(t.order, ref{int32(j + o), int32(j)})
		}
	}
	return t
}

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
	for _, p := range near {
		t.order = append(t.order, ref{int32(p.A), int32(p.B)})
	}
	slices.SortFunc(t.order, compareTiles)
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

// point returns the point of a place.
func (t *tiling) point(place int) int {
	if t.points != nil {
		return t.points[place]
	}
	return place
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

// at returns the position of tile (i, j), i ≥ j, in the order, if it is there. In that of all tiles diagonal o = i−j
// starts after o diagonals of lengths B, B−1, …
func (t *tiling) at(i, j int) (int, bool) {
	if t.starts != nil {
		return slices.BinarySearchFunc(t.order, ref{int32(i), int32(j)}, compareTiles)
	}
	o := i - j
	return o*t.blocks - o*(o-1)/2 + j, true
}

// held returns how many tiles this rank has.
func (t *tiling) held() int { return (len(t.order) - t.rank + t.share.size - 1) / t.share.size }

// nth returns the position in the order of tile number q of this rank.
func (t *tiling) nth(q int) int { return t.rank + q*t.share.size }

// entries returns the number of entries of all tiles of this rank.
func (t *tiling) entries() int64 {
	var sum int64
	for q := range t.held() {
		r := t.order[t.nth(q)]
		sum += int64(t.rows(int(r.i))) * int64(t.rows(int(r.j)))
	}
	return sum
}
