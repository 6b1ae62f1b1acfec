package gram

// ref is a tile: its block row i ≥ block column j, and how many tiles before it,
// in the order of the tiling, contribute to y_i and to y_j.
type ref struct {
	i, j       int32
	seqI, seqJ int32
}

// tiling cuts n points into blocks and orders the tiles of the lower half.
//
// Tiles go by diagonals: (0,0), (1,1), …, then (1,0), (2,1), …, then (2,0), …
// Neighbours in this order contribute to different blocks of y, but for the
// first subdiagonal, where they share one; so workers that take neighbouring
// tiles seldom wait for each other.
type tiling struct {
	n, size, blocks int
	order           []ref
	mine            []int // the tiles of this rank, ascending; nil for all
}

func newTiling(n, size int) *tiling {
	b := (n + size - 1) / size
	t := &tiling{n: n, size: size, blocks: b, order: make([]ref, 0, b*(b+1)/2)}
	seq := make([]int32, b)
	for o := range b {
		for j := range b - o {
			i := j + o
			r := ref{i: int32(i), j: int32(j), seqI: seq[i], seqJ: seq[j]}
			seq[i]++
			if i != j {
				seq[j]++
			}
			t.order = append(t.order, r)
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

// deal gives tile number q of the order to rank q mod size of the ranks: neighbours in the
// order lie on one diagonal, so all ranks have tiles of all kinds, and as many entries as
// each other but for one tile.
func (t *tiling) deal(rank, size int) {
	t.mine = make([]int, 0, len(t.order)/size+1)
	for q := rank; q < len(t.order); q += size {
		t.mine = append(t.mine, q)
	}
}

// held returns how many tiles this rank has.
func (t *tiling) held() int {
	if t.mine == nil {
		return len(t.order)
	}
	return len(t.mine)
}

// nth returns the position in the order of tile number q of this rank.
func (t *tiling) nth(q int) int {
	if t.mine == nil {
		return q
	}
	return t.mine[q]
}

// entries returns the number of entries of all tiles of this rank.
func (t *tiling) entries() int64 {
	var sum int64
	for q := range t.held() {
		r := t.order[t.nth(q)]
		sum += int64(t.rows(int(r.i))) * int64(t.rows(int(r.j)))
	}
	return sum
}
