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

// Forward computes U += X·Tᵀ, u_c += T·x_c for every row c of X, t×cols, and of U, t×rows. The tile T, rows×cols, is
// stored by rows of stride ld. Forward panics if a slice is too short or a stride too small.
func Forward[T number](tile []T, ld int, x, u blas64.General) {
	k := current()
	p := pick[*passes[T, float64]](k.forward, k.forward64)
	checkOneWay(len(tile), ld, x, u)
	p.run(&tileProduct[T, float64]{sums: true, rows: u.Cols, cols: x.Cols, tile: tile, ld: ld, x: x.Data,
		stride: x.Stride, u: u.Data, rowStride: u.Stride, t: x.Rows})
}

// Backward computes Y += Z·T, y_c += Tᵀ·z_c for every row c of Y, t×cols, and of Z, t×rows. See Forward.
func Backward[T number](tile []T, ld int, y, z blas64.General, w *Workspace) {
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

// piece returns the i-th piece of the first body columns. Forward takes the pieces row by row, so that it works on the
// sums of few rows at a time. Backward takes them column by column.
func (a *tileProduct[T, V]) piece(i, body int) piece {
	down, across := (a.rows+chunkRows-1)/chunkRows, (body+blockCols-1)/blockCols
	r, c := i%down*chunkRows, i/down*blockCols
	if a.sums {
		r, c = i/across*chunkRows, i%across*blockCols
	}
	return piece{r, c, max(0, min(chunkRows, a.rows-r)), max(0, min(blockCols, body-c))}
}

// oneWay computes one product for the first body columns, a multiple of p.lanes. During the passes over a piece it
// prefetches the next piece.
func (p *passes[T, V]) oneWay(body int, a *tileProduct[T, V]) {
	if a.rows == 0 || body == 0 || a.t == 0 {
		return
	}
	current := a.piece(0, body)
	for i := 1; current.m > 0 && current.k > 0; i++ {
		nextPiece := a.piece(i, body)
		totalGroups := 0 // in all passes over the current piece
		for c := 0; c < a.t; c += p.take(a.t - c) {
			totalGroups += current.m / p.rows[p.take(a.t-c)]
		}
		doneGroups, fetchedRows := 0, 0 // groups in earlier passes, and prefetched rows of the next piece
		for c := 0; c < a.t; {
			k := p.take(a.t - c)
			r, nextOffset := current.r, nextPiece.r*a.ld+nextPiece.c
			multiply := func(f pass[T, V], groups, fetchOffset, step int) {
				if groups > 0 {
					j := c*a.stride + current.c
					f(groups, current.k, &a.tile[r*a.ld+current.c], a.ld, addressOf(a.x, j), addressOf(a.y, j),
						a.stride, addressOf(a.z, c*a.rowStride+r), addressOf(a.u, c*a.rowStride+r), a.rowStride,
						&a.tile[min(fetchOffset, len(a.tile)-1)], step*a.ld*int(unsafe.Sizeof(a.tile[0])))
				}
			}
			groups := current.m / p.rows[k]
			streamed, wide := 0, 0
			if totalGroups > 0 {
				wantedRows := (nextPiece.m*(doneGroups+groups)+totalGroups-1)/totalGroups - fetchedRows
				streamed, wide = fetchGroups(wantedRows, groups, p.rows[k])
			}
			multiply(p.stream[k], streamed, nextOffset+fetchedRows*a.ld, p.rows[k])
			r, fetchedRows = r+streamed*p.rows[k], fetchedRows+streamed*p.rows[k]
			multiply(p.wide[k], wide, nextOffset+fetchedRows*a.ld, 1)
			r, fetchedRows = r+wide*p.rows[k], fetchedRows+wide
			multiply(p.wide[k], groups-streamed-wide, r*a.ld+current.c, 0)
			r += (groups - streamed - wide) * p.rows[k]
			multiply(p.narrow[k], current.r+current.m-r, r*a.ld+current.c, 0)
			doneGroups, c = doneGroups+groups, c+k
		}
		current = nextPiece
	}
}

// fetchGroups distributes the prefetching of wantedRows rows over groups of the given number of rows. It returns how
// many groups prefetch as many rows as they have (streamed), and how many prefetch one row (wide).
func fetchGroups(wantedRows, groups, rows int) (streamed, wide int) {
	if wantedRows > groups {
		streamed = min(groups, (wantedRows-groups+rows-2)/(rows-1))
	}
	return streamed, max(0, min(groups-streamed, wantedRows-streamed*rows))
}
