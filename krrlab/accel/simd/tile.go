package simd

import (
	"fmt"
	"unsafe"

	"gonum.org/v1/gonum/blas/gonum"
)

type (
	// number is the type of the elements of vectors.
	number interface{ float32 | float64 }
	// entry is the type of the entries of a tile.
	entry interface{ uint16 | float32 | float64 }
)

// pass multiplies groups of rows of a tile by k right-hand sides. cols is a multiple of the lanes of a register. The
// columns of x and y have the given stride, those of z and u have rowStride. A pointer that the pass does not use may
// be nil.
//
// Each iteration of the loop also loads entries into the cache, from the address prefetch. A pass that forms both
// products prefetches one row of the columns of the iteration, or as many bytes as it reads; the next iteration
// prefetches step bytes later. A pass that forms one product prefetches, during each group, cols columns of one row, or
// of as many rows as the group has, with stride ld; the next group prefetches step bytes later.
type pass[T entry, V number] = func(groups, cols int, tile *T, ld int, x, y *V, stride int, z, u *V, rowStride int,
	prefetch *T, step int)

// maxPassSides is the largest number of right-hand sides of any pass.
const maxPassSides = 6

// passes holds the passes of one kind, indexed by the number k of right-hand sides. wide[k] and stream[k] take rows[k]
// rows at a time, and narrow[k] takes one row.
type passes[T entry, V number] struct {
	lanes    int // columns of one iteration of the loop
	maxSides int // largest number of right-hand sides of one pass
	rows     [maxPassSides + 1]int
	// A wide pass prefetches at most one row for each group, a stream pass as many rows as the group has.
	wide, stream, narrow [maxPassSides + 1]pass[T, V]
}

// chunkRows is the number of rows of a tile that go through all passes before the next rows do. It must be a multiple
// of 2, 3 and 4. For a tile of 512 columns in float32, a chunk takes 48 kB, a tenth of the second cache. A larger chunk
// may not stay in that cache; with a smaller one the loops have more overhead. The first chunk of a tile is not
// prefetched.
const chunkRows = 24

// fetchRows is the number of rows between the row that a single pass reads and the row that it prefetches.
const fetchRows = 8

// take returns the number of right-hand sides of the next pass if the given number remains. It makes the number of
// passes as small as possible and their sizes about equal.
func (p *passes[T, V]) take(remaining int) int {
	passCount := (remaining + p.maxSides - 1) / p.maxSides
	return (remaining + passCount - 1) / passCount
}

// tileProduct holds the arguments of a product with a tile T of rows×cols: u += T·x if sums is set, and y += Tᵀ·z if
// adds is set, for t right-hand sides.
type tileProduct[T entry, V number] struct {
	sums, adds bool
	rows, cols int
	tile       []T
	ld         int // stride of the rows of tile
	x, y       []V // cols×t
	stride     int // stride of the columns of x and y
	z, u       []V // rows×t
	rowStride  int // stride of the columns of z and u
	t          int
}

// run computes the product a. p is nil if the path in use has no passes; then the portable code does all the work.
func (p *passes[T, V]) run(a *tileProduct[T, V]) {
	body := 0 // number of columns that the passes compute
	switch {
	case p == nil:
	case a.sums && a.adds:
		body = a.cols - a.cols%p.lanes
		p.twoWay(body, a)
	default:
		body = a.cols - a.cols%p.lanes
		p.oneWay(body, a)
	}
	if body < a.cols {
		portable(body, a)
	}
}

// twoWay computes both products for the first body columns, a multiple of p.lanes.
func (p *passes[T, V]) twoWay(body int, a *tileProduct[T, V]) {
	if a.t == 0 {
		return
	}
	chunk := chunkRows
	if p.take(a.t) == a.t { // one pass: all rows but the last few, after which there is nothing to prefetch
		chunk = max(chunk, (a.rows-fetchRows)/chunkRows*chunkRows)
	}
	for r0 := 0; body > 0 && r0 < a.rows; r0 += chunk {
		m := min(chunk, a.rows-r0)
		fetchOffset, step := p.fetch(r0, m, body, a)
		for c := 0; c < a.t; {
			k := p.take(a.t - c)
			groups := m / p.rows[k]
			r1 := r0 + groups*p.rows[k]
			multiply := func(f pass[T, V], r, groups, fetchOffset, step int) {
				f(groups, body, &a.tile[r*a.ld], a.ld, addressOf(a.x, c*a.stride), addressOf(a.y, c*a.stride), a.stride,
					addressOf(a.z, c*a.rowStride+r), addressOf(a.u, c*a.rowStride+r), a.rowStride,
					&a.tile[fetchOffset], step)
			}
			if groups > 0 {
				f := p.wide[k]
				if step > p.rowBytes() {
					f = p.stream[k]
				}
				multiply(f, r0, groups, min(fetchOffset, len(a.tile)-1), step)
				fetchOffset += groups * (body / p.lanes) * step / int(unsafe.Sizeof(a.tile[0]))
			}
			if singleRows := r0 + m - r1; singleRows > 0 {
				multiply(p.narrow[k], r1, singleRows, r0*a.ld, 0)
			}
			c += k
		}
	}
}

// rowBytes returns the number of bytes of a row of the tile that one iteration of the loop reads.
func (p *passes[T, V]) rowBytes() int { return max(64, p.lanes*int(unsafe.Sizeof(T(0)))) }

// fetch returns the offset in the tile of the first entry to prefetch during the passes over rows r0 … r0+m-1, and the
// number of bytes by which each iteration advances. All passes prefetch at the same rate.
func (p *passes[T, V]) fetch(r0, m, body int, a *tileProduct[T, V]) (offset, step int) {
	if p.take(a.t) == a.t { // a single pass
		return min(r0+fetchRows, a.rows-min(m, fetchRows)) * a.ld, p.rows[a.t] * p.lanes * int(unsafe.Sizeof(T(0)))
	}
	iterations := 0
	for c := 0; c < a.t; {
		k := p.take(a.t - c)
		iterations += m / p.rows[k] * (body / p.lanes)
		c += k
	}
	bytes := min(chunkRows, a.rows-r0-m) * a.ld * int(unsafe.Sizeof(T(0)))
	if iterations == 0 || bytes == 0 {
		return r0 * a.ld, 0
	}
	return (r0 + m) * a.ld, (bytes + iterations - 1) / iterations
}

// addressOf returns the address of x[i], or nil if x is nil.
func addressOf[V number](x []V, i int) *V {
	if x == nil {
		return nil
	}
	return &x[i]
}

// portable computes the product a for the columns j0, …, a.cols-1 of the tile.
func portable[T entry, V number](j0 int, a *tileProduct[T, V]) {
	for r := range a.rows {
		row := a.tile[r*a.ld+j0 : r*a.ld+a.cols]
		for c := range a.t {
			start, end, i := c*a.stride+j0, c*a.stride+a.cols, c*a.rowStride+r
			switch {
			case a.sums && a.adds:
				a.u[i] += dotAndAddRow(row, a.x[start:end], a.y[start:end], a.z[i])
			case a.sums:
				a.u[i] += dotRow(row, a.x[start:end])
			default:
				f, yc := a.z[i], a.y[start:end]
				for j, v := range row {
					yc[j] += V(v) * f
				}
			}
		}
	}
}

// dotAndAddRow adds z·row to y and returns rowᵀx.
func dotAndAddRow[T entry, V number](row []T, x, y []V, z V) V {
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

// dotRow returns rowᵀx.
func dotRow[T entry, V number](row []T, x []V) V {
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

// AddBothProducts computes two products with a tile T, rows×cols, stored by rows of stride ld:
//
//	u += T·x  (rows×t)   and   y += Tᵀ·z  (cols×t).
//
// The vectors are stored by columns: x[c*cols+j], y[c*cols+j], z[c*rows+r], u[c*rows+r]. The vectors are float32 for
// tiles of float32 and of 16-bit numbers, and float64 for tiles of float64. 16-bit entries are integers 0 … 65535,
// which are converted in registers. AddBothProducts does not allocate once w has been used for tiles of that size. It
// panics if a slice is too short or ld < cols.
func AddBothProducts[T entry, V number](rows, cols int, tile []T, ld int, x, y, z, u []V, t int, w *Workspace) {
	k := current()
	p, buf := pick[*passes[T, V]](k.both32, k.both16, k.both64), pick[*[]V](&w.v32, &w.v64)
	checkTile(rows, cols, len(tile), ld, t)
	checkVectors(cols*t, len(x), len(y))
	checkVectors(rows*t, len(z), len(u))
	px, py, stride := spreadColumns(buf, cols, t)
	for c := range t {
		copy(px[c*stride:c*stride+cols], x[c*cols:(c+1)*cols])
		clear(py[c*stride : c*stride+cols])
	}
	p.run(&tileProduct[T, V]{sums: true, adds: true, rows: rows, cols: cols, tile: tile, ld: ld, x: px, y: py,
		stride: stride, z: z, u: u, rowStride: rows, t: t})
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

// pick returns the argument whose type is P.
func pick[P any](values ...any) P {
	for _, v := range values {
		if p, ok := v.(P); ok {
			return p
		}
	}
	panic(fmt.Sprintf("simd: no %T", *new(P)))
}

// Workspace is the scratch memory of one goroutine. The zero value is ready; it grows on demand.
type Workspace struct {
	v32 []float32
	v64 []float64
}

// Bytes returns the size of the scratch memory.
func (w *Workspace) Bytes() int64 { return 4*int64(cap(w.v32)) + 8*int64(cap(w.v64)) }

// Distances between vectors in bytes, modulo the size of a page. A load waits for an earlier store that has not reached
// the cache yet if the last 12 bits of their addresses are equal. In the loop of a pass, loads of x and y follow the
// stores of y at addresses some hundred bytes higher. The distance between columns must therefore not be slightly less
// than a multiple of the page size.
const (
	page        = 4096
	pageOffset1 = 1344 // distance between columns, first choice
	pageOffset2 = 3392 // second choice
	xyOffset    = 704  // distance between x and y
)

// spreadColumns returns cols×t vectors x and y in buf, which it enlarges if necessary. Their columns have the returned
// stride, and the distances above.
func spreadColumns[T number](buf *[]T, cols, t int) (x, y []T, stride int) {
	size := int(unsafe.Sizeof(T(0)))
	stride = cols / (page / size) * (page / size)
	for stride < cols { // the smallest stride ≥ cols that is pageOffset1 or pageOffset2 modulo a page
		offset := stride % (page / size) * size
		switch {
		case offset < pageOffset1:
			stride += (pageOffset1 - offset) / size
		case offset < pageOffset2:
			stride += (pageOffset2 - offset) / size
		default:
			stride += (page - offset) / size
		}
	}
	need := 2*stride*t + 3*page/size
	if cap(*buf) < need {
		*buf = make([]T, need)
	}
	*buf = (*buf)[:cap(*buf)]
	b := *buf
	pageOffset := func(i int) int { return int(uintptr(unsafe.Pointer(&b[i])) % page) }
	i := (page - pageOffset(0)) % page / size // to the start of a page
	j := i + stride*t
	j += (page + xyOffset - pageOffset(j)) % page / size
	return b[i : i+stride*t], b[j : j+stride*t], stride
}

// checkTile panics if the shape of a tile is invalid or does not fit a slice of the given length.
func checkTile(rows, cols, length, ld, t int) {
	if rows < 0 || cols < 0 || t < 0 || ld < cols {
		panic(fmt.Sprintf("simd: tile of %d×%d with stride %d for %d right-hand sides", rows, cols, ld, t))
	}
	if rows > 0 && length < (rows-1)*ld+cols {
		panic(fmt.Sprintf("simd: %d numbers for a tile of %d×%d with stride %d", length, rows, cols, ld))
	}
}

// checkVectors panics if a or b, the lengths of two slices, are less than want.
func checkVectors(want, a, b int) {
	if a < want || b < want {
		panic(fmt.Sprintf("simd: vectors of %d and %d numbers, want %d", a, b, want))
	}
}
