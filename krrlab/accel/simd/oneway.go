package simd

import (
	"fmt"
	"unsafe"

	"gonum.org/v1/gonum/blas/blas64"
)

// blockCols is the number of columns of a piece of a tile when only one product is formed. With five right-hand sides,
// the piece uses 20 kB of x or y, which stay in the first-level cache for all rows of a chunk. More columns would
// exceed that cache.
const blockCols = 512

// AddProduct adds X·Tᵀ to U. X is t×cols and U is t×rows; the tile T is rows×cols and stored by rows of stride ld. Thus
// u_c += T·x_c for row c of X and of U. AddProduct panics if a slice is too short or a stride too small.
func AddProduct[T number](tile []T, ld int, x, u blas64.General) {
	k := current()
	p := pick[*passes[T, float64]](k.forward, k.forward64)
	checkOneWay(len(tile), ld, x, u)
	p.run(&tileProduct[T, float64]{sums: true, rows: u.Cols, cols: x.Cols, tile: tile, ld: ld, x: x.Data,
		stride: x.Stride, u: u.Data, rowStride: u.Stride, t: x.Rows})
}

// AddTransposeProduct adds Z·T to Y. Y is t×cols and Z is t×rows; the tile T is that of AddProduct. Thus y_c += Tᵀ·z_c
// for row c of Y and of Z. w is scratch memory, which no other call may use at the same time.
func AddTransposeProduct[T number](tile []T, ld int, y, z blas64.General, w *Workspace) {
	k := current()
	p := pick[*passes[T, float64]](k.backward, k.backward64)
	checkOneWay(len(tile), ld, y, z)
	_, py, stride := spreadColumns(&w.v64, y.Cols, y.Rows)
	for c := range y.Rows {
		copy(py[c*stride:c*stride+y.Cols], y.Data[c*y.Stride:c*y.Stride+y.Cols])
	}
	p.run(&tileProduct[T, float64]{adds: true, rows: z.Cols, cols: y.Cols, tile: tile, ld: ld, y: py, stride: stride,
		z: z.Data, rowStride: z.Stride, t: y.Rows})
	for c := range y.Rows {
		copy(y.Data[c*y.Stride:c*y.Stride+y.Cols], py[c*stride:c*stride+y.Cols])
	}
}

// checkOneWay panics if a tile with stride ld in a slice of the given length does not fit byCols, t×cols, and byRows,
// t×rows.
func checkOneWay(length, ld int, byCols, byRows blas64.General) {
	if byCols.Rows != byRows.Rows {
		panic(fmt.Sprintf("simd: %d vectors of columns and %d of rows", byCols.Rows, byRows.Rows))
	}
	checkTile(byRows.Cols, byCols.Cols, length, ld, byRows.Rows)
	for _, v := range []blas64.General{byCols, byRows} {
		if v.Stride < v.Cols || v.Rows > 0 && len(v.Data) < (v.Rows-1)*v.Stride+v.Cols {
			panic(fmt.Sprintf("simd: %d numbers for %d vectors of %d with stride %d", len(v.Data), v.Rows, v.Cols,
				v.Stride))
		}
	}
}

// piece is a block of a tile that goes through all passes before the next one does: m rows and k columns that start at
// row r and column c.
type piece struct{ r, c, m, k int }

// piece returns the i-th piece of the columns before bodyEnd; pieces after the last are empty. AddProduct takes the
// pieces row by row, so that it works on the sums of few rows at a time. AddTransposeProduct takes them column by
// column.
func (a *tileProduct[T, V]) piece(i, bodyEnd int) piece {
	down, across := (a.rows+chunkRows-1)/chunkRows, (bodyEnd+blockCols-1)/blockCols
	r, c := i%down*chunkRows, i/down*blockCols
	if a.sums {
		r, c = i/across*chunkRows, i%across*blockCols
	}
	return piece{r, c, max(0, min(chunkRows, a.rows-r)), max(0, min(blockCols, bodyEnd-c))}
}

// oneWay computes one product for the columns before bodyEnd, which is a multiple of p.lanes. A pass over a piece
// serves as many vectors (rows of X or Z) as p.take says. It goes through the piece in groups of p.rows[vectors] rows:
// the first groups each prefetch as many rows of the next piece as they have (stream), later ones one row each (wide),
// until all passes together have prefetched the next piece. The remaining groups, and the rows that fill no group
// (narrow), prefetch nothing new.
func (p *passes[T, V]) oneWay(bodyEnd int, a *tileProduct[T, V]) {
	if a.rows == 0 || bodyEnd == 0 || a.t == 0 {
		return
	}
	thisPiece := a.piece(0, bodyEnd)
	for i := 1; thisPiece.m > 0 && thisPiece.k > 0; i++ {
		nextPiece := a.piece(i, bodyEnd)
		totalGroups := 0 // in all passes over this piece
		for c := 0; c < a.t; c += p.take(a.t - c) {
			totalGroups += thisPiece.m / p.rows[p.take(a.t-c)]
		}
		doneGroups, fetchedRows := 0, 0 // groups in earlier passes, and prefetched rows of the next piece
		for c := 0; c < a.t; {
			vectors := p.take(a.t - c)
			r, nextOffset := thisPiece.r, nextPiece.r*a.ld+nextPiece.c
			multiply := func(f pass[T, V], groups, fetchOffset, step int) {
				if groups > 0 {
					j := c*a.stride + thisPiece.c
					f(groups, thisPiece.k, &a.tile[r*a.ld+thisPiece.c], a.ld, addressOf(a.x, j), addressOf(a.y, j),
						a.stride, addressOf(a.z, c*a.rowStride+r), addressOf(a.u, c*a.rowStride+r), a.rowStride,
						&a.tile[min(fetchOffset, len(a.tile)-1)], step*a.ld*int(unsafe.Sizeof(a.tile[0])))
				}
			}
			groups := thisPiece.m / p.rows[vectors]
			streamed, wide := 0, 0
			if totalGroups > 0 {
				wantedRows := (nextPiece.m*(doneGroups+groups)+totalGroups-1)/totalGroups - fetchedRows
				streamed, wide = fetchGroups(wantedRows, groups, p.rows[vectors])
			}
			multiply(p.stream[vectors], streamed, nextOffset+fetchedRows*a.ld, p.rows[vectors])
			r, fetchedRows = r+streamed*p.rows[vectors], fetchedRows+streamed*p.rows[vectors]
			multiply(p.wide[vectors], wide, nextOffset+fetchedRows*a.ld, 1)
			r, fetchedRows = r+wide*p.rows[vectors], fetchedRows+wide
			multiply(p.wide[vectors], groups-streamed-wide, r*a.ld+thisPiece.c, 0)
			r += (groups - streamed - wide) * p.rows[vectors]
			multiply(p.narrow[vectors], thisPiece.r+thisPiece.m-r, r*a.ld+thisPiece.c, 0)
			doneGroups, c = doneGroups+groups, c+vectors
		}
		thisPiece = nextPiece
	}
}

// fetchGroups distributes the prefetching of wantedRows rows over groups of the given number of rows. It returns how
// many groups prefetch as many rows as they have (streamed), and how many prefetch one row (wide).
func fetchGroups(wantedRows, groups, rows int) (streamed, wide int) {
	if wantedRows > groups {
		// The least number for which streamed·rows + (groups−streamed) ≥ wantedRows.
		streamed = min(groups, (wantedRows-groups+rows-2)/(rows-1))
	}
	return streamed, max(0, min(groups-streamed, wantedRows-streamed*rows))
}
