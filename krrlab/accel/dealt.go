package accel

import "cmp"

// TileOrder is the order of the tiles by which matrices are factored, and the width of the block columns of a Dealt.
const TileOrder = tileOrder

// Dealt is a symmetric positive definite matrix of order N, and then its Cholesky factor, whose block columns are dealt
// to ranks in turn: 4N²/Size bytes each, and 8·TileOrder·N for a column that another rank has sent. All ranks call its
// methods together; results have the bits of Dpotrf and Dtrtri in one process.
type Dealt struct{ dealt[float64] }

type dealt[T real] struct {
	N, Rank, Size int
	// Columns are the rows of each block column J from J·TileOrder on, row-major without gaps, of which on and below
	// the diagonal the matrix counts; nil for those of other ranks.
	Columns [][]T
	// Share is a collective that sets x to what it is at rank root.
	Share func(x []T, root int) error

	Stride int   // of rows, 0 without gaps
	rows   [][]T // of the inverse, by blocks, up to the diagonal; those that are here
	room   []T   // for a column
}

// NewDealt returns a matrix of zeros.
func NewDealt(n, rank, size int, share func(x []float64, root int) error) *Dealt {
	d := &Dealt{dealt[float64]{N: n, Rank: rank, Size: size, Share: share, room: make([]float64, n*min(n, TileOrder))}}
	d.Columns, d.rows = make([][]float64, d.blocks()), make([][]float64, d.blocks())
	for j := range d.Columns {
		if d.has(j) {
			d.Columns[j] = make([]float64, (n-j*TileOrder)*d.order(j))
		}
	}
	return d
}

// Whole returns the n×n matrix a, row-major with row stride lda, in one process.
func Whole(n int, a []float64, lda int) *Dealt { return &Dealt{*whole(n, a, lda)} }

// Diagonal calls use with each number of the diagonal that is here.
func (d *Dealt) Diagonal(use func(v *float64)) {
	for j, col := range d.Columns {
		for r := 0; r < d.order(j) && col != nil; r++ {
			use(&col[r*(cmp.Or(d.Stride, d.order(j))+1)])
		}
	}
}

// whole returns a, in one process, as a matrix of which it has all columns, and rows of the inverse in the same place.
func whole[T real](n int, a []T, lda int) *dealt[T] {
	d := &dealt[T]{N: n, Size: 1, Stride: lda}
	for j := range d.blocks() {
		d.Columns, d.rows = append(d.Columns, a[j*tileOrder*(lda+1):]), append(d.rows, a[j*tileOrder*lda:])
	}
	return d
}

func (d *dealt[T]) blocks() int { return (d.N + tileOrder - 1) / tileOrder }

// order returns the order of tile (i, i).
func (d *dealt[T]) order(i int) int { return min(tileOrder, d.N-i*tileOrder) }

// has reports whether block column j is here, and block row j of the inverse.
func (d *dealt[T]) has(j int) bool { return j%d.Size == d.Rank }

// column returns block column j, or room for it, and the stride of its rows.
func (d *dealt[T]) column(j int) ([]T, int) {
	if d.has(j) {
		return d.tile(j, j)
	}
	return d.room[:(d.N-j*tileOrder)*d.order(j)], d.order(j)
}

func (d *dealt[T]) tile(i, j int) ([]T, int) {
	ld := cmp.Or(d.Stride, d.order(j))
	return d.Columns[j][(i-j)*tileOrder*ld:], ld
}

// row returns tile (i, j) of the inverse.
func (d *dealt[T]) row(i, j int) ([]T, int) {
	return d.rows[i][j*tileOrder:], cmp.Or(d.Stride, i*tileOrder+d.order(i))
}

// copyTile copies tile (i, j) to t, or t to that of the inverse, which it returns.
func (d *dealt[T]) copyTile(i, j int, t []T, back bool) ([]T, int) {
	at := d.tile
	if back {
		at = d.row
	}
	k, m := d.order(j), d.order(i)
	a, lda := at(i, j)
	for r := range m {
		if x, y := t[r*k:(r+1)*k], a[r*lda:r*lda+k]; back {
			copy(y, x)
		} else {
			copy(x, y)
		}
	}
	return a, lda
}

// turn makes room for row j of the inverse by giving up column j.
func (d *dealt[T]) turn(j int) {
	if d.Stride == 0 {
		d.Columns[j], d.rows[j] = nil, make([]T, d.order(j)*(j*tileOrder+d.order(j)))
	}
}

// share makes x what the rank has that has column, or row, j.
func (d *dealt[T]) share(x []T, j int) error {
	if d.Share == nil {
		return nil
	}
	return d.Share(x, j%d.Size)
}

// Potrf replaces A by L, A = LLᵀ, as Dpotrf. It returns the index of the first pivot that is not positive, with that
// pivot, or N.
func (d *Dealt) Potrf() (at int, pivot float64, err error) { return tiles64().cholesky(&d.dealt) }

// Invert gives L⁻¹ to all ranks, row by row in their order: row i from its first number to its diagonal, valid until
// use returns. It leaves d without columns.
func (d *Dealt) Invert(use func(i int, row []float64)) error {
	if err := invert(&d.dealt); err != nil {
		return err
	}
	for i, x := range d.rows {
		width := i*TileOrder + d.order(i)
		if d.rows[i] = nil; x == nil {
			x = d.room[:d.order(i)*width]
		}
		if err := d.share(x, i); err != nil {
			return err
		}
		for r := range d.order(i) {
			use(i*TileOrder+r, x[r*width:][:i*TileOrder+r+1])
		}
	}
	return nil
}
