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
	assembly := current()
	p := pick[*passes[T, float64]](assembly.forward, assembly.forward64)
	checkOneWay(len(tile), ld, x, u)
	p.run(&tileProduct[T, float64]{sums: true, rows: u.Cols, cols: x.Cols, tile: tile, ld: ld, x: x.Data,
		stride: x.Stride, u: u.Data, rowStride: u.Stride, t: x.Rows})
}

// AddTransposeProduct adds Z·T to Y. Y is t×cols and Z is t×rows; the tile T is that of AddProduct. Thus y_c += Tᵀ·z_c
// for row c of Y and of Z. w is scratch memory, which no other call may use at the same time.
func AddTransposeProduct[T number](tile []T, ld int, y, z blas64.General, w *Workspace) {
	assembly := current()
	p := pick[*passes[T, float64]](assembly.backward, assembly.backward64)
	checkOneWay(len(tile), ld, y, z)
	_, spreadY, stride := spreadColumns(&w.v64, y.Cols, y.Rows)
	for c := range y.Rows {
		copy(spreadY[c*stride:c*stride+y.Cols], y.Data[c*y.Stride:c*y.Stride+y.Cols])
	}
	p.run(&tileProduct[T, float64]{adds: true, rows: z.Cols, cols: y.Cols, tile: tile, ld: ld, y: spreadY,
		stride: stride, z: z.Data, rowStride: z.Stride, t: y.Rows})
	for c := range y.Rows {
		copy(y.Data[c*y.Stride:c*y.Stride+y.Cols], spreadY[c*stride:c*stride+y.Cols])
	}
}

// checkOneWay panics if a tile with stride ld in a slice of the given length does not fit byCols, t×cols, and byRows,
// t×rows.
func checkOneWay(length, ld int, byCols, byRows blas64.General) {
	if byCols.Rows != byRows.Rows {
		panic(fmt.Sprintf("simd: %d vectors of columns and %d of rows", byCols.Rows, byRows.Rows))
	}
	checkTile(byRows.Cols, byCols.Cols, length, ld, byRows.Rows)
	for _, vectors := range []blas64.General{byCols, byRows} {
		if vectors.Stride < vectors.Cols || vectors.Rows > 0 &&
			len(vectors.Data) < (vectors.Rows-1)*vectors.Stride+vectors.Cols {
			panic(fmt.Sprintf("simd: %d numbers for %d vectors of %d with stride %d", len(vectors.Data), vectors.Rows,
				vectors.Cols, vectors.Stride))
		}
	}
}

// piece is a block of a tile that goes through all passes before the next piece does. Its first entry is at (row, col).
type piece struct{ row, col, rows, cols int }

// pieceAt returns the i-th piece of the columns before bodyEnd; pieces after the last are empty. AddProduct takes the
// pieces row by row, so that it works on the sums of few rows at a time. AddTransposeProduct takes them column by
// column.
func (a *tileProduct[T, V]) pieceAt(i, bodyEnd int) piece {
	rowPieces, colPieces := (a.rows+chunkRows-1)/chunkRows, (bodyEnd+blockCols-1)/blockCols
	row, col := i%rowPieces*chunkRows, i/rowPieces*blockCols
	if a.sums {
		row, col = i/colPieces*chunkRows, i%colPieces*blockCols
	}
	return piece{row, col, max(0, min(chunkRows, a.rows-row)), max(0, min(blockCols, bodyEnd-col))}
}

// oneWay computes one product for the columns before bodyEnd, which is a multiple of p.lanes. A pass over a piece
// serves p.take vectors (rows of X or Z). It goes through the piece in groups of p.rows[vectors] rows: the first groups
// each prefetch as many rows of the next piece as they have (stream), later ones one row each (wide), until all passes
// together have prefetched the next piece. The remaining groups, and the rows that fill no group (narrow), prefetch
// nothing new.
func (p *passes[T, V]) oneWay(bodyEnd int, a *tileProduct[T, V]) {
	if a.rows == 0 || bodyEnd == 0 || a.t == 0 {
		return
	}
	thisPiece := a.pieceAt(0, bodyEnd)
	for i := 1; thisPiece.rows > 0 && thisPiece.cols > 0; i++ {
		nextPiece := a.pieceAt(i, bodyEnd)
		totalGroups := 0 // in all passes over this piece
		for side := 0; side < a.t; side += p.take(a.t - side) {
			totalGroups += thisPiece.rows / p.rows[p.take(a.t-side)]
		}
		doneGroups, fetchedRows := 0, 0 // groups in earlier passes, and prefetched rows of the next piece
		for side := 0; side < a.t; {
			vectors := p.take(a.t - side)
			row, nextOffset := thisPiece.row, nextPiece.row*a.ld+nextPiece.col
			multiply := func(passFunc pass[T, V], groups, fetchOffset, step int) {
				if groups > 0 {
					offset := side*a.stride + thisPiece.col
					passFunc(groups, thisPiece.cols, &a.tile[row*a.ld+thisPiece.col], a.ld, addressOf(a.x, offset),
						addressOf(a.y, offset), a.stride, addressOf(a.z, side*a.rowStride+row),
						addressOf(a.u, side*a.rowStride+row), a.rowStride,
						&a.tile[min(fetchOffset, len(a.tile)-1)], step*a.ld*int(unsafe.Sizeof(a.tile[0])))
				}
			}
			groups := thisPiece.rows / p.rows[vectors]
			streamed, wide := 0, 0
			if totalGroups > 0 {
				wantedRows := (nextPiece.rows*(doneGroups+groups)+totalGroups-1)/totalGroups - fetchedRows
				streamed, wide = fetchGroups(wantedRows, groups, p.rows[vectors])
			}
			multiply(p.stream[vectors], streamed, nextOffset+fetchedRows*a.ld, p.rows[vectors])
			row, fetchedRows = row+streamed*p.rows[vectors], fetchedRows+streamed*p.rows[vectors]
			multiply(p.wide[vectors], wide, nextOffset+fetchedRows*a.ld, 1)
			row, fetchedRows = row+wide*p.rows[vectors], fetchedRows+wide
			multiply(p.wide[vectors], groups-streamed-wide, row*a.ld+thisPiece.col, 0)
			row += (groups - streamed - wide) * p.rows[vectors]
			multiply(p.narrow[vectors], thisPiece.row+thisPiece.rows-row, row*a.ld+thisPiece.col, 0)
			doneGroups, side = doneGroups+groups, side+vectors
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
