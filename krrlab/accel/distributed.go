package accel

import "cmp"

// TileOrder is the order of the tiles of a factorization, and the width of the block columns of a DistributedMatrix.
const TileOrder = tileOrder

// DistributedMatrix is a symmetric positive definite matrix of order N, which Potrf replaces by its Cholesky factor.
// Its block columns are distributed cyclically over the ranks: rank j mod Size owns block column j. Each rank stores
// 4N²/Size bytes of the matrix, and 8·TileOrder·N bytes for one block column received from another rank. The methods
// are collective: all ranks must call them together. The results have the same bits as those of Dpotrf and Dtrtri in
// one process.
type DistributedMatrix struct{ distributed[float64] }

// distributed is a DistributedMatrix in the number format T.
type distributed[T float] struct {
	N    int // order of the matrix
	Rank int // rank of this process
	Size int // number of ranks
	// Columns[j] holds the rows of block column j from row j·TileOrder on, row-major without gaps. Only elements on and
	// below the diagonal are used. It is nil if another rank owns the column.
	Columns [][]T
	// Broadcast is a collective function that sets x on every rank to its value on rank root. It may be nil for one
	// rank.
	Broadcast func(x []T, root int) error

	Stride       int   // stride of the rows of Columns; 0 if they have no gaps
	inverseRows  [][]T // block rows of the inverse up to the diagonal that this rank owns
	columnBuffer []T   // scratch memory for one block column
}

// NewDistributedMatrix returns a zero matrix of order n for the given rank of size ranks. For broadcast, see the field
// Broadcast.
func NewDistributedMatrix(n, rank, size int, broadcast func(x []float64, root int) error) *DistributedMatrix {
	d := &DistributedMatrix{distributed[float64]{
		N: n, Rank: rank, Size: size, Broadcast: broadcast, columnBuffer: make([]float64, n*min(n, TileOrder)),
	}}
	d.Columns, d.inverseRows = make([][]float64, d.blocks()), make([][]float64, d.blocks())
	for j := range d.Columns {
		if d.ownsColumn(j) {
			d.Columns[j] = make([]float64, (n-j*TileOrder)*d.order(j))
		}
	}
	return d
}

// WrapMatrix returns the n×n matrix a, row-major with row stride lda, as a DistributedMatrix of one rank. Its methods
// overwrite a.
func WrapMatrix(n int, a []float64, lda int) *DistributedMatrix {
	return &DistributedMatrix{*wrap(n, a, lda)}
}

// Diagonal calls visit with a pointer to every diagonal element that this rank owns.
func (d *DistributedMatrix) Diagonal(visit func(v *float64)) {
	for j, col := range d.Columns {
		for row := 0; row < d.order(j) && col != nil; row++ {
			visit(&col[row*(cmp.Or(d.Stride, d.order(j))+1)])
		}
	}
}

// wrap returns a as a matrix of one rank, which owns all columns. The inverse overwrites a.
func wrap[T float](n int, a []T, lda int) *distributed[T] {
	d := &distributed[T]{N: n, Size: 1, Stride: lda}
	for j := range d.blocks() {
		d.Columns = append(d.Columns, a[j*tileOrder*(lda+1):])
		d.inverseRows = append(d.inverseRows, a[j*tileOrder*lda:])
	}
	return d
}

// blocks returns the number of block columns.
func (d *distributed[T]) blocks() int { return (d.N + tileOrder - 1) / tileOrder }

// order returns the order of tile (i, i).
func (d *distributed[T]) order(i int) int { return min(tileOrder, d.N-i*tileOrder) }

// ownsColumn reports whether this rank owns block column j of the matrix and block row j of the inverse.
func (d *distributed[T]) ownsColumn(j int) bool { return j%d.Size == d.Rank }

// column returns block column j and the stride of its rows. If another rank owns it, column returns a buffer for it.
func (d *distributed[T]) column(j int) ([]T, int) {
	if d.ownsColumn(j) {
		return d.tile(j, j)
	}
	return d.columnBuffer[:(d.N-j*tileOrder)*d.order(j)], d.order(j)
}

// tile returns the elements of block column j from tile (i, j) on, and their stride.
func (d *distributed[T]) tile(i, j int) ([]T, int) {
	ld := cmp.Or(d.Stride, d.order(j))
	return d.Columns[j][(i-j)*tileOrder*ld:], ld
}

// row returns the elements of block row i of the inverse from tile (i, j) on, and their stride.
func (d *distributed[T]) row(i, j int) ([]T, int) {
	return d.inverseRows[i][j*tileOrder:], cmp.Or(d.Stride, i*tileOrder+d.order(i))
}

// loadTile copies tile (i, j) of the matrix to t, which has no gaps between rows.
func (d *distributed[T]) loadTile(i, j int, t []T) {
	width := d.order(j)
	a, lda := d.tile(i, j)
	for r := range d.order(i) {
		copy(t[r*width:(r+1)*width], a[r*lda:r*lda+width])
	}
}

// storeTile copies t, which has no gaps between rows, to tile (i, j) of the inverse. It returns that tile and its
// stride.
func (d *distributed[T]) storeTile(i, j int, t []T) ([]T, int) {
	width := d.order(j)
	a, lda := d.row(i, j)
	for r := range d.order(i) {
		copy(a[r*lda:r*lda+width], t[r*width:(r+1)*width])
	}
	return a, lda
}

// releaseColumn frees block column j and allocates block row j of the inverse. It does nothing to a wrapped matrix,
// whose inverse overwrites it.
func (d *distributed[T]) releaseColumn(j int) {
	if d.Stride == 0 {
		d.Columns[j], d.inverseRows[j] = nil, make([]T, d.order(j)*(j*tileOrder+d.order(j)))
	}
}

// broadcast sets x to its value on the rank that owns block column j, or block row j of the inverse.
func (d *distributed[T]) broadcast(x []T, j int) error {
	if d.Broadcast == nil {
		return nil
	}
	return d.Broadcast(x, j%d.Size)
}

// Potrf replaces A by its Cholesky factor L, A = LLᵀ; see Dpotrf. It returns the index and the value of the first pivot
// that is not positive, or N and 0 if all pivots are positive. The error is one of Broadcast.
func (d *DistributedMatrix) Potrf() (index int, pivot float64, err error) {
	return tileOperations64().cholesky(&d.distributed)
}

// Invert computes L⁻¹ and passes its rows, in ascending order, to visit on every rank: row i from column 0 to the
// diagonal. The slice is valid until visit returns. Invert consumes the factor: d has no columns afterwards. The error
// is one of Broadcast.
func (d *DistributedMatrix) Invert(visit func(i int, row []float64)) error {
	if err := invert(&d.distributed); err != nil {
		return err
	}
	for i, rows := range d.inverseRows {
		width := i*TileOrder + d.order(i)
		if d.inverseRows[i] = nil; rows == nil {
			rows = d.columnBuffer[:d.order(i)*width]
		}
		if err := d.broadcast(rows, i); err != nil {
			return err
		}
		for r := range d.order(i) {
			visit(i*TileOrder+r, rows[r*width:][:i*TileOrder+r+1])
		}
	}
	return nil
}
