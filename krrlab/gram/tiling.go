package gram

// ref is a tile: its block row i ≥ block column j.
type ref struct{ i, j int32 }

// tiling cuts n points into blocks and orders the tiles of the lower half.
//
// Tiles go by diagonals: (0,0), (1,1), …, then (1,0), (2,1), …, then (2,0), …
// Neighbors in this order contribute to different blocks of y, but for the
// first subdiagonal, where they share one; so workers that take neighboring
// tiles seldom wait for each other.
type tiling struct {
	n, size, blocks int
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

// block returns the points [lo, hi) of block b.
func (t *tiling) block(b int) (lo, hi int) { return b * t.size, min((b+1)*t.size, t.n) }

// rows returns the number of points of block b.
func (t *tiling) rows(b int) int { lo, hi := t.block(b); return hi - lo }

// at returns the position of tile (i, j), i ≥ j, in the order: diagonal o = i−j
// starts after o diagonals of lengths B, B−1, …
func (t *tiling) at(i, j int) int {
	o := i - j
	return o*t.blocks - o*(o-1)/2 + j
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
