package simd

import (
	"fmt"
	"unsafe"

	"gonum.org/v1/gonum/blas/gonum"
)

type (
	number interface{ float32 | float64 }          // of vectors
	entry  interface{ uint16 | float32 | float64 } // of a tile
)

// pass multiplies groups of rows of a tile by k right-hand sides, cols columns, a
// multiple of the lanes of a register. x and y have columns of the given stride, z and u
// of rowStride. Each turn of the loop fetches from memory what is ahead. Both ways that is a
// row of its columns or as much as it reads, and the next turn fetches step bytes on. One way
// it is, beside each group, cols columns of one row or of as many as the group has, with
// stride ld, and the next group fetches step bytes on. Pointers that a way of passing has no
// use for may be nil.
type pass[T entry, V number] = func(groups, cols int, tile *T, ld int, x, y *V, stride int, z, u *V, rowStride int,
	ahead *T, step int)

// mostSides is the largest number of right-hand sides of a pass.
const mostSides = 6

// passes are the passes of one kind: wide[k] and stream[k] take rows[k] rows at a time,
// narrow[k] one.
type passes[T entry, V number] struct {
	lanes int // columns of one turn of the loop
	most  int // right-hand sides of one pass
	rows  [mostSides + 1]int
	// wide passes fetch up to a row ahead for each group, streaming ones up to all rows.
	wide, stream, narrow [mostSides + 1]pass[T, V]
}

// chunkRows is the number of rows of a tile taken through all passes together, a multiple of
// 2, 3 and 4: 48 kB of a tile of 512 columns in float32, a tenth of the second cache. What
// lies ahead of the first rows of a tile, as many, is not fetched before they are read.
const chunkRows = 24

// fetchRows is how far a single pass fetches ahead.
const fetchRows = 8

// take returns how many of the right-hand sides left the next pass takes: as few passes
// as can be, and about as many in each.
func (p *passes[T, V]) take(left int) int {
	n := (left + p.most - 1) / p.most
	return (left + n - 1) / n
}

// run adds T·x to u, sums, and Tᵀ·z to y, adds, or both; p is nil where there are no passes.
func (p *passes[T, V]) run(sums, adds bool, rows, cols int, tile []T, ld int, x, y []V, stride int, z, u []V,
	rowStride, t int) {
	body := 0
	switch {
	case p == nil:
	case sums && adds:
		body = cols - cols%p.lanes
		p.both(rows, body, tile, ld, x, y, stride, z, u, rowStride, t)
	default:
		body = cols - cols%p.lanes
		p.oneWay(sums, rows, body, tile, ld, x, y, stride, z, u, rowStride, t)
	}
	if body < cols {
		portable(sums, adds, rows, body, cols, tile, ld, x, y, stride, z, u, rowStride, t)
	}
}

// both multiplies both ways by body columns, a multiple of the lanes.
func (p *passes[T, V]) both(rows, body int, tile []T, ld int, x, y []V, stride int, z, u []V, rowStride, t int) {
	if t == 0 {
		return
	}
	chunk := chunkRows
	if p.take(t) == t { // one pass: all rows but the last few, for which nothing is ahead
		chunk = max(chunk, (rows-fetchRows)/chunkRows*chunkRows)
	}
	for r0 := 0; body > 0 && r0 < rows; r0 += chunk {
		m := min(chunk, rows-r0)
		ahead, step := p.fetch(r0, m, rows, body, ld, t)
		for c := 0; c < t; {
			k := p.take(t - c)
			groups := m / p.rows[k]
			r1 := r0 + groups*p.rows[k]
			if groups > 0 {
				f := p.wide[k]
				if step > p.row() {
					f = p.stream[k]
				}
				f(groups, body, &tile[r0*ld], ld, at(x, c*stride), at(y, c*stride), stride, at(z, c*rowStride+r0),
					at(u, c*rowStride+r0), rowStride, &tile[min(ahead, len(tile)-1)], step)
				ahead += groups * (body / p.lanes) * step / int(unsafe.Sizeof(tile[0]))
			}
			if rest := r0 + m - r1; rest > 0 {
				p.narrow[k](rest, body, &tile[r1*ld], ld, at(x, c*stride), at(y, c*stride), stride,
					at(z, c*rowStride+r1), at(u, c*rowStride+r1), rowStride, &tile[r0*ld], 0)
			}
			c += k
		}
	}
}

// row is the number of bytes of a tile's row that one turn of the loop reads.
func (p *passes[T, V]) row() int { return max(64, p.lanes*int(unsafe.Sizeof(T(0)))) }

// fetch returns the first entry to fetch ahead during the passes over rows r0 … r0+m-1, and
// by how many bytes to go on at each turn, so that all passes fetch at the same pace.
func (p *passes[T, V]) fetch(r0, m, rows, body, ld, t int) (first, step int) {
	if p.take(t) == t { // one pass
		return min(r0+fetchRows, rows-min(m, fetchRows)) * ld, p.rows[t] * p.lanes * int(unsafe.Sizeof(T(0)))
	}
	turns := 0
	for c := 0; c < t; {
		k := p.take(t - c)
		turns += m / p.rows[k] * (body / p.lanes)
		c += k
	}
	bytes := min(chunkRows, rows-r0-m) * ld * int(unsafe.Sizeof(T(0)))
	if turns == 0 || bytes == 0 {
		return r0 * ld, 0
	}
	return (r0 + m) * ld, (bytes + turns - 1) / turns
}

// at returns the address of x[i], nil if x is.
func at[V number](x []V, i int) *V {
	if x == nil {
		return nil
	}
	return &x[i]
}

// portable multiplies by columns j0, …, cols-1 of the tile.
func portable[T entry, V number](sums, adds bool, rows, j0, cols int, tile []T, ld int, x, y []V, stride int, z, u []V,
	rowStride, t int) {
	for r := range rows {
		row := tile[r*ld+j0 : r*ld+cols]
		for c := range t {
			from, to, at := c*stride+j0, c*stride+cols, c*rowStride+r
			switch {
			case sums && adds:
				u[at] += rowBoth(row, x[from:to], y[from:to], z[at])
			case sums:
				u[at] += rowForward(row, x[from:to])
			default:
				f, yc := z[at], y[from:to]
				for j, a := range row {
					yc[j] += V(a) * f
				}
			}
		}
	}
}

// rowBoth adds z·row to y and returns rowᵀx.
func rowBoth[T entry, V number](row []T, x, y []V, z V) V {
	var s [4]V
	j := 0
	for ; j+4 <= len(row); j += 4 {
		a, b, w := row[j:j+4:j+4], x[j:j+4:j+4], y[j:j+4:j+4]
		t0, t1, t2, t3 := V(a[0]), V(a[1]), V(a[2]), V(a[3])
		s[0] += t0 * b[0]
		s[1] += t1 * b[1]
		s[2] += t2 * b[2]
		s[3] += t3 * b[3]
		w[0] += t0 * z
		w[1] += t1 * z
		w[2] += t2 * z
		w[3] += t3 * z
	}
	for ; j < len(row); j++ {
		s[0] += V(row[j]) * x[j]
		y[j] += V(row[j]) * z
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// rowForward returns rowᵀx.
func rowForward[T entry, V number](row []T, x []V) V {
	var s [4]V
	j := 0
	for ; j+4 <= len(row); j += 4 {
		a, b := row[j:j+4:j+4], x[j:j+4:j+4]
		s[0] += V(a[0]) * b[0]
		s[1] += V(a[1]) * b[1]
		s[2] += V(a[2]) * b[2]
		s[3] += V(a[3]) * b[3]
	}
	for ; j < len(row); j++ {
		s[0] += V(row[j]) * x[j]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// Both sets, for the tile T in rows of stride ld, rows×cols,
//
//	u += T·x  (rows×t)   and   y += Tᵀ·z  (cols×t)
//
// with vectors by columns: x[c*cols+j], y[c*cols+j], z[c*rows+r], u[c*rows+r]. Vectors are float32 for tiles of float32
// and of 16-bit numbers, which are taken as whole numbers 0 … 65535 and converted in registers, and float64 for tiles
// of float64. It allocates nothing once w has served tiles of that size. It panics if a slice is too short or ld <
// cols.
func Both[T entry, V number](rows, cols int, tile []T, ld int, x, y, z, u []V, t int, w *Workspace) {
	k := current()
	p, buf := pick[*passes[T, V]](k.both32, k.both16, k.both64), pick[*[]V](&w.v32, &w.v64)
	checkTile(rows, cols, len(tile), ld, t)
	checkVectors(cols*t, len(x), len(y))
	checkVectors(rows*t, len(z), len(u))
	px, py, stride := apart(buf, cols, t)
	for c := range t {
		copy(px[c*stride:c*stride+cols], x[c*cols:(c+1)*cols])
		clear(py[c*stride : c*stride+cols])
	}
	p.run(true, true, rows, cols, tile, ld, px, py, stride, z, u, rows, t)
	for c := range t {
		addTo(y[c*cols:(c+1)*cols], py[c*stride:c*stride+cols])
	}
}

// addTo sets b += a.
func addTo[V number](b, a []V) {
	switch b := any(b).(type) {
	case []float32:
		gonum.Implementation{}.Saxpy(len(b), 1, any(a).([]float32), 1, b, 1)
	case []float64:
		gonum.Implementation{}.Daxpy(len(b), 1, any(a).([]float64), 1, b, 1)
	}
}

// pick returns the value of type P.
func pick[P any](of ...any) P {
	for _, v := range of {
		if p, ok := v.(P); ok {
			return p
		}
	}
	panic(fmt.Sprintf("simd: no %T", *new(P)))
}

// Workspace is the scratch memory of one worker. The zero value is ready; it grows on
// demand. It must not be shared by goroutines that run at the same time.
type Workspace struct {
	v32 []float32
	v64 []float64
}

// Bytes returns the size of the scratch.
func (w *Workspace) Bytes() int64 { return 4*int64(cap(w.v32)) + 8*int64(cap(w.v64)) }

// Distances in bytes modulo a page. A load whose address has the last 12 bits of a store
// that is still on its way to the cache waits for it. In the loop of a pass the stores of
// y are followed by loads of x and y some hundred bytes on, so that columns must not
// follow each other by a little less than whole pages.
const (
	page    = 4096
	apart1  = 1344 // from column to column, or
	apart2  = 3392
	between = 704 // from x to y
)

// apart returns places for cols×t vectors x and y, by columns of that stride, in buf.
func apart[T number](buf *[]T, cols, t int) (x, y []T, stride int) {
	size := int(unsafe.Sizeof(T(0)))
	stride = cols / (page / size) * (page / size)
	for stride < cols { // the least stride ≥ cols that is apart1 or apart2 bytes beyond a page
		rest := stride % (page / size) * size
		switch {
		case rest < apart1:
			stride += (apart1 - rest) / size
		case rest < apart2:
			stride += (apart2 - rest) / size
		default:
			stride += (page - rest) / size
		}
	}
	need := 2*stride*t + 3*page/size
	if cap(*buf) < need {
		*buf = make([]T, need)
	}
	*buf = (*buf)[:cap(*buf)]
	b := *buf
	offset := func(i int) int { return int(uintptr(unsafe.Pointer(&b[i])) % page) }
	i := (page - offset(0)) % page / size // to the start of a page
	j := i + stride*t
	j += (page + between - offset(j)) % page / size
	return b[i : i+stride*t], b[j : j+stride*t], stride
}

func checkTile(rows, cols, length, ld, t int) {
	if rows < 0 || cols < 0 || t < 0 || ld < cols {
		panic(fmt.Sprintf("simd: tile of %d×%d with stride %d for %d right-hand sides", rows, cols, ld, t))
	}
	if rows > 0 && length < (rows-1)*ld+cols {
		panic(fmt.Sprintf("simd: %d numbers for a tile of %d×%d with stride %d", length, rows, cols, ld))
	}
}

func checkVectors(want, a, b int) {
	if a < want || b < want {
		panic(fmt.Sprintf("simd: vectors of %d and %d numbers, want %d", a, b, want))
	}
}

// checkBlock checks t columns of n numbers of that stride.
func checkBlock(n, t, length, stride int) {
	if stride < n || t > 0 && length < (t-1)*stride+n {
		panic(fmt.Sprintf("simd: %d numbers for %d columns of %d with stride %d", length, t, n, stride))
	}
}
