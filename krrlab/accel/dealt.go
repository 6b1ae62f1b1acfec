package accel

// TileOrder is the order of the tiles by which matrices are factored, and the width of the block columns of a Dealt.
const TileOrder = tileOrder

// Dealt is a symmetric positive definite matrix of order N, and then its Cholesky factor, whose block columns are dealt
// to ranks in turn: 4N²/Size bytes each, and 8·TileOrder·N for a column that another rank has sent. All ranks call its
// methods together; results have the bits of Dpotrf and Dtrtri in one process.
type Dealt struct {
	N, Rank, Size int
	// Columns are the rows of each block column J from J·TileOrder on, row-major without gaps, of which on and below the
	// diagonal the matrix counts; nil for those of other ranks.
	Columns [][]float64
	// Share is a collective that sets x to what it is at rank root.
	Share func(x []float64, root int) error

	room []float64
}

// NewDealt returns a matrix of zeros.
func NewDealt(n, rank, size int, share func(x []float64, root int) error) *Dealt {
	d := &Dealt{N: n, Rank: rank, Size: size, Share: share, room: make([]float64, n*min(n, TileOrder))}
	m := d.layout(nil)
	d.Columns = make([][]float64, m.blocks())
	for j := range d.Columns {
		if m.has(j) {
			d.Columns[j] = make([]float64, (n-j*TileOrder)*m.order(j))
		}
	}
	return d
}

func (d *Dealt) layout(rows [][]float64) *layout[float64] {
	m := &layout[float64]{n: d.N}
	m.has = func(j int) bool { return j%d.Size == d.Rank }
	m.tile = func(i, j int) ([]float64, int) { return d.Columns[j][(i-j)*TileOrder*m.order(j):], m.order(j) }
	m.row = func(i, j int) ([]float64, int) { return rows[i][j*TileOrder:], i*TileOrder + m.order(i) }
	m.room = func(j int) ([]float64, int) {
		if m.has(j) {
			return m.tile(j, j)
		}
		return d.room[:(d.N-j*TileOrder)*m.order(j)], m.order(j)
	}
	m.send = func(panel []float64, j int) error { return d.Share(panel, j%d.Size) }
	return m
}

// Potrf replaces A by L, A = LLᵀ, as Dpotrf. It returns the index of the first pivot that is not positive, N if all are,
// and that pivot.
func (d *Dealt) Potrf() (at int, pivot float64, err error) {
	m := d.layout(nil)
	if at, err = tiles64().cholesky(m); err != nil || at == d.N {
		return at, 0, err
	}
	panel, ld := m.room(at / TileOrder)
	return at, panel[at%TileOrder*(ld+1)], nil
}

// Invert gives L⁻¹ to all ranks, row by row in their order: row i from its first number to its diagonal, valid until
// use returns. It leaves d without columns.
func (d *Dealt) Invert(use func(i int, row []float64)) error {
	rows := make([][]float64, len(d.Columns))
	m := d.layout(rows)
	width := func(i int) int { return i*TileOrder + m.order(i) }
	m.send = func(panel []float64, j int) error {
		if d.Columns[j] = nil; m.has(j) { // the panel is the last use of a column, and the first of a row
			rows[j] = make([]float64, m.order(j)*width(j))
		}
		return d.Share(panel, j%d.Size)
	}
	if err := invert(m); err != nil {
		return err
	}
	for i, x := range rows {
		if rows[i] = nil; !m.has(i) {
			x = d.room[:m.order(i)*width(i)]
		}
		if err := d.Share(x, i%d.Size); err != nil {
			return err
		}
		for r := range m.order(i) {
			use(i*TileOrder+r, x[r*width(i):][:i*TileOrder+r+1])
		}
	}
	return nil
}
