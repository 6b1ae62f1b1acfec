package simd

import "unsafe"

// blockCols is the number of columns of a piece of a tile when only one product is formed. With five right-hand sides,
// the piece uses 20 kB of x or y, which stay in the first cache for all rows of a chunk. More columns would exceed that
// cache.
const blockCols = 512

// Forward computes u += T·x, rows×t, for a tile T and float64 vectors stored by columns: x[c*xs+j] and u[c*us+r]. See
// Both.
func Forward[T number](rows, cols int, tile []T, ld int, x []float64, xs int, u []float64, us, t int) {
	k := current()
	p := pick[*passes[T, float64]](k.forward, k.forward64)
	checkTile(rows, cols, len(tile), ld, t)
	checkBlock(cols, t, len(x), xs)
	checkBlock(rows, t, len(u), us)
	p.run(&tileProduct[T, float64]{true, false, rows, cols, tile, ld, x, nil, xs, nil, u, us, t})
}

// Backward computes y += Tᵀ·z, cols×t, for a tile T and float64 vectors stored by columns: y[c*ys+j] and z[c*zs+r]. See
// Both.
func Backward[T number](rows, cols int, tile []T, ld int, y []float64, ys int, z []float64, zs, t int, w *Workspace) {
	k := current()
	p := pick[*passes[T, float64]](k.backward, k.backward64)
	checkTile(rows, cols, len(tile), ld, t)
	checkBlock(cols, t, len(y), ys)
	checkBlock(rows, t, len(z), zs)
	_, py, stride := spreadColumns(&w.v64, cols, t)
	for c := range t {
		copy(py[c*stride:c*stride+cols], y[c*ys:c*ys+cols])
	}
	p.run(&tileProduct[T, float64]{false, true, rows, cols, tile, ld, nil, py, stride, z, nil, zs, t})
	for c := range t {
		copy(y[c*ys:c*ys+cols], py[c*stride:c*stride+cols])
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
					f(groups, current.k, &a.tile[r*a.ld+current.c], a.ld, addressOf(a.x, j), addressOf(a.y, j), a.stride,
						addressOf(a.z, c*a.rowStride+r), addressOf(a.u, c*a.rowStride+r), a.rowStride,
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
