package simd

import "unsafe"

// blockCols is the number of columns of a tile taken one way together: with five right-hand
// sides 20 kB of x or y, which stay in the first cache for all rows of a chunk.
const blockCols = 512

// Forward sets u += T·x, rows×t, for a tile and float64 vectors by columns: x[c*xs+j] and u[c*us+r]. See Both.
func Forward[T number](rows, cols int, tile []T, ld int, x []float64, xs int, u []float64, us, t int) {
	k := current()
	p := pick[*passes[T, float64]](k.forward, k.forward64)
	checkTile(rows, cols, len(tile), ld, t)
	checkBlock(cols, t, len(x), xs)
	checkBlock(rows, t, len(u), us)
	p.run(true, false, rows, cols, tile, ld, x, nil, xs, nil, u, us, t)
}

// Backward sets y += Tᵀ·z, cols×t, for a tile and float64 vectors by columns: y[c*ys+j] and z[c*zs+r]. See Both.
func Backward[T number](rows, cols int, tile []T, ld int, y []float64, ys int, z []float64, zs, t int, w *Workspace) {
	k := current()
	p := pick[*passes[T, float64]](k.backward, k.backward64)
	checkTile(rows, cols, len(tile), ld, t)
	checkBlock(cols, t, len(y), ys)
	checkBlock(rows, t, len(z), zs)
	_, py, stride := apart(&w.v64, cols, t)
	for c := range t {
		copy(py[c*stride:c*stride+cols], y[c*ys:c*ys+cols])
	}
	p.run(false, true, rows, cols, tile, ld, nil, py, stride, z, nil, zs, t)
	for c := range t {
		copy(y[c*ys:c*ys+cols], py[c*stride:c*stride+cols])
	}
}

// piece is a part of a tile that is taken through all passes together: m rows and k columns
// from row r and column c on.
type piece struct{ r, c, m, k int }

// pieceOf returns the i-th of the pieces of rows×body entries: Forward goes along the rows, as
// sums of few rows are at work, Backward down the columns.
func pieceOf(i, rows, body int, forward bool) piece {
	down, across := (rows+chunkRows-1)/chunkRows, (body+blockCols-1)/blockCols
	r, c := i%down*chunkRows, i/down*blockCols
	if forward {
		r, c = i/across*chunkRows, i%across*blockCols
	}
	return piece{r, c, max(0, min(chunkRows, rows-r)), max(0, min(blockCols, body-c))}
}

// oneWay multiplies one way by body columns, a multiple of the lanes. During the passes over
// a piece the next one is fetched.
func (p *passes[T, V]) oneWay(forward bool, rows, body int, tile []T, ld int, x, y []V, stride int, z, u []V,
	rowStride, t int) {
	if rows == 0 || body == 0 || t == 0 {
		return
	}
	a := pieceOf(0, rows, body, forward)
	for i := 1; a.m > 0 && a.k > 0; i++ {
		next := pieceOf(i, rows, body, forward)
		total := 0 // groups of all passes
		for c := 0; c < t; c += p.take(t - c) {
			total += a.m / p.rows[p.take(t-c)]
		}
		done, fetched := 0, 0 // groups, and rows of the next piece
		for c := 0; c < t; {
			k := p.take(t - c)
			r, ahead := a.r, next.r*ld+next.c
			multiply := func(f pass[T, V], groups, from, step int) {
				if groups > 0 {
					f(groups, a.k, &tile[r*ld+a.c], ld, at(x, c*stride+a.c), at(y, c*stride+a.c), stride,
						at(z, c*rowStride+r), at(u, c*rowStride+r), rowStride, &tile[min(from, len(tile)-1)],
						step*ld*int(unsafe.Sizeof(tile[0])))
				}
			}
			groups := a.m / p.rows[k]
			streamed, wide := 0, 0
			if total > 0 {
				streamed, wide = share((next.m*(done+groups)+total-1)/total-fetched, groups, p.rows[k])
			}
			multiply(p.stream[k], streamed, ahead+fetched*ld, p.rows[k])
			r, fetched = r+streamed*p.rows[k], fetched+streamed*p.rows[k]
			multiply(p.wide[k], wide, ahead+fetched*ld, 1)
			r, fetched = r+wide*p.rows[k], fetched+wide
			multiply(p.wide[k], groups-streamed-wide, r*ld+a.c, 0)
			r += (groups - streamed - wide) * p.rows[k]
			multiply(p.narrow[k], a.r+a.m-r, r*ld+a.c, 0)
			done, c = done+groups, c+k
		}
		a = next
	}
}

// share returns how many of the groups, of rows rows each, have as many rows fetched beside them,
// and how many have one, for want rows in all.
func share(want, groups, rows int) (streamed, wide int) {
	if want > groups {
		streamed = min(groups, (want-groups+rows-2)/(rows-1))
	}
	return streamed, max(0, min(groups-streamed, want-streamed*rows))
}
