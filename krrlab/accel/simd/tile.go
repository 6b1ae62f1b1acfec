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
	bodyEnd := 0 // the passes compute the columns before this one
	switch {
	case p == nil:
	case a.sums && a.adds:
		bodyEnd = a.cols - a.cols%p.lanes
		p.twoWay(bodyEnd, a)
	default:
		bodyEnd = a.cols - a.cols%p.lanes
		p.oneWay(bodyEnd, a)
	}
	if bodyEnd < a.cols {
		portable(bodyEnd, a)
	}
}

// twoWay computes both products for the first bodyEnd columns, a multiple of p.lanes.
func (p *passes[T, V]) twoWay(bodyEnd int, a *tileProduct[T, V]) {
	if a.t == 0 {
		return
	}
	chunk := chunkRows
	if p.take(a.t) == a.t { // one pass: all rows but the last few, after which there is nothing to prefetch
		chunk = max(chunk, (a.rows-fetchRows)/chunkRows*chunkRows)
	}
	for r0 := 0; bodyEnd > 0 && r0 < a.rows; r0 += chunk {
		m := min(chunk, a.rows-r0)
		fetchOffset, step := p.fetch(r0, m, bodyEnd, a)
		for c := 0; c < a.t; {
			sides := p.take(a.t - c)
			groups := m / p.rows[sides]
			r1 := r0 + groups*p.rows[sides]
			multiply := func(passFunc pass[T, V], r, groups, fetchOffset, step int) {
				passFunc(groups, bodyEnd, &a.tile[r*a.ld], a.ld, addressOf(a.x, c*a.stride), addressOf(a.y, c*a.stride),
					a.stride, addressOf(a.z, c*a.rowStride+r), addressOf(a.u, c*a.rowStride+r), a.rowStride,
					&a.tile[fetchOffset], step)
			}
			if groups > 0 {
				passFunc := p.wide[sides]
				if step > p.rowBytes() {
					passFunc = p.stream[sides]
				}
				multiply(passFunc, r0, groups, min(fetchOffset, len(a.tile)-1), step)
				fetchOffset += groups * (bodyEnd / p.lanes) * step / int(unsafe.Sizeof(a.tile[0]))
			}
			if singleRows := r0 + m - r1; singleRows > 0 {
				multiply(p.narrow[sides], r1, singleRows, r0*a.ld, 0)
			}
			c += sides
		}
	}
}

// rowBytes returns the number of bytes of a row of the tile that one iteration of the loop reads.
func (p *passes[T, V]) rowBytes() int { return max(64, p.lanes*int(unsafe.Sizeof(T(0)))) }

// fetch returns the offset in the tile of the first entry to prefetch during the passes over rows r0 … r0+m-1, and the
// number of bytes by which each iteration advances. All passes prefetch at the same rate.
func (p *passes[T, V]) fetch(r0, m, bodyEnd int, a *tileProduct[T, V]) (offset, step int) {
	if p.take(a.t) == a.t { // a single pass
		return min(r0+fetchRows, a.rows-min(m, fetchRows)) * a.ld, p.rows[a.t] * p.lanes * int(unsafe.Sizeof(T(0)))
	}
	iterations := 0
	for c := 0; c < a.t; {
		sides := p.take(a.t - c)
		iterations += m / p.rows[sides] * (bodyEnd / p.lanes)
		c += sides
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
				zr, yColumn := a.z[i], a.y[start:end]
				for j, entry := range row {
					yColumn[j] += V(entry) * zr
				}
			}
		}
	}
}

// dotAndAddRow adds z·row to y and returns rowᵀx.
func dotAndAddRow[T entry, V number](row []T, x, y []V, z V) V {
	var sums [4]V
	j := 0
	for ; j+4 <= len(row); j += 4 {
		rowEntries, xEntries, yEntries := row[j:j+4:j+4], x[j:j+4:j+4], y[j:j+4:j+4]
		t0, t1, t2, t3 := V(rowEntries[0]), V(rowEntries[1]), V(rowEntries[2]), V(rowEntries[3])
		sums[0] += t0 * xEntries[0]
		sums[1] += t1 * xEntries[1]
		sums[2] += t2 * xEntries[2]
		sums[3] += t3 * xEntries[3]
		yEntries[0] += t0 * z
		yEntries[1] += t1 * z
		yEntries[2] += t2 * z
		yEntries[3] += t3 * z
	}
	for ; j < len(row); j++ {
		sums[0] += V(row[j]) * x[j]
		y[j] += V(row[j]) * z
	}
	return (sums[0] + sums[1]) + (sums[2] + sums[3])
}

// dotRow returns rowᵀx.
func dotRow[T entry, V number](row []T, x []V) V {
	var sums [4]V
	j := 0
	for ; j+4 <= len(row); j += 4 {
		rowEntries, xEntries := row[j:j+4:j+4], x[j:j+4:j+4]
		sums[0] += V(rowEntries[0]) * xEntries[0]
		sums[1] += V(rowEntries[1]) * xEntries[1]
		sums[2] += V(rowEntries[2]) * xEntries[2]
		sums[3] += V(rowEntries[3]) * xEntries[3]
	}
	for ; j < len(row); j++ {
		sums[0] += V(row[j]) * x[j]
	}
	return (sums[0] + sums[1]) + (sums[2] + sums[3])
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
	assembly := current()
	p, buffer := pick[*passes[T, V]](assembly.both32, assembly.both16, assembly.both64), pick[*[]V](&w.v32, &w.v64)
	checkTile(rows, cols, len(tile), ld, t)
	checkVectors(cols*t, len(x), len(y))
	checkVectors(rows*t, len(z), len(u))
	spreadX, spreadY, stride := spreadColumns(buffer, cols, t)
	for c := range t {
		copy(spreadX[c*stride:c*stride+cols], x[c*cols:(c+1)*cols])
		clear(spreadY[c*stride : c*stride+cols])
	}
	p.run(&tileProduct[T, V]{sums: true, adds: true, rows: rows, cols: cols, tile: tile, ld: ld, x: spreadX, y: spreadY,
		stride: stride, z: z, u: u, rowStride: rows, t: t})
	for c := range t {
		addTo(y[c*cols:(c+1)*cols], spreadY[c*stride:c*stride+cols])
	}
}

// addTo sets dst += src.
func addTo[V number](dst, src []V) {
	switch dst := any(dst).(type) {
	case []float32:
		gonum.Implementation{}.Saxpy(len(dst), 1, any(src).([]float32), 1, dst, 1)
	case []float64:
		gonum.Implementation{}.Daxpy(len(dst), 1, any(src).([]float64), 1, dst, 1)
	}
}

// pick returns the first value whose type is P, and panics if there is none.
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

// spreadColumns returns cols×t vectors x and y in buffer, which it enlarges if necessary. Their columns have the
// returned stride. The distances of the columns and of x and y are those of the constants above.
func spreadColumns[T number](buffer *[]T, cols, t int) (x, y []T, stride int) {
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
	length := 2*stride*t + 3*page/size
	if cap(*buffer) < length {
		*buffer = make([]T, length)
	}
	*buffer = (*buffer)[:cap(*buffer)]
	numbers := *buffer
	pageOffset := func(i int) int { return int(uintptr(unsafe.Pointer(&numbers[i])) % page) }
	xStart := (page - pageOffset(0)) % page / size // to the start of a page
	yStart := xStart + stride*t
	yStart += (page + xyOffset - pageOffset(yStart)) % page / size
	return numbers[xStart : xStart+stride*t], numbers[yStart : yStart+stride*t], stride
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
