package gram

import (
	"context"
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// entry is the number type in which tiles are multiplied.
type entry interface{ float32 | float64 }

// operations is the part of the engine that a Matrix uses. It does not depend on the number type of the tiles. The
// methods are documented at engine.
type operations interface {
	formAll(ctx context.Context, progress func(formed, total int)) error
	reuse(leading operations)
	mul(ctx context.Context, dst, src blas64.General, lambda float64) error
	columns(ctx context.Context, dst blas64.General, idx []int) error
	submatrix(ctx context.Context, dst blas64.General, rows, cols []int) error
	scanTiles(ctx context.Context, s *search) error
	tileBytes() int64
	droppedSums() []int64
}

// engine forms tiles of numbers of type T, stores them in the chosen format, and multiplies by them. The position of a
// point is its number in the order of the tiling.
type engine[T entry] struct {
	*tiling

	// fillTile sets dst[a*ld+b] = k(x_a, z_b) − shift for two blocks of points.
	fillTile func(dst []T, ld int, x, z points.Panel, w *kernel.Workspace)

	k       kernel.Kernel  // the kernel
	x       points.Points  // the points in the caller's order
	panels  []points.Panel // the points of each block, with norms
	diag    []float64      // k(x_i, x_i) by position
	shift   float64        // tiles store the entries of K − shift·11ᵀ
	storage Storage        // format of the stored tiles

	// packedWords holds 16-bit words for each tile of this rank. With Fixed16 they are the entries, round(65535·v) for
	// v in [0, 1]. If entries are dropped, they are a bitmap of (cols+15)/16 words per row, with a bit set for each
	// stored entry; the bitmap of a tile is nil if all its entries are stored.
	packedWords [][]uint16
	entries     [][]T           // the stored entries of each tile of this rank; nil with Recompute and Fixed16
	dropped     *droppedRowSums // sums of the dropped entries; nil if no entries are dropped
	comm        comm.Comm       // the ranks among which the tiles are distributed
	rowScale    []float64       // powers of two by position: |k(x_i, x_j)|·rowScale_i·rowScale_j ≤ 1
	factors     []float64       // √w_i by position: a product is S·tiles·S·src with S = diag(√w_i); nil without weights

	mu           sync.Mutex
	idleProducts []*product[T] // scratch memory of finished products, guarded by mu

	leading *engine[T] // engine of the first points, whose tiles formAll takes over; nil: none

	formWorkers sync.Pool // scratch memory []worker[T] for forming columns
}

// fixed16One is the 16-bit integer that represents the value 1.
const fixed16One = 1<<16 - 1

// worker is the scratch memory of one goroutine.
type worker[T entry] struct {
	kernel       kernel.Workspace
	tile         []T // an unpacked or recomputed tile
	values       []T // the stored entries of a tile while it is packed
	droppedSums  []T // sums of the dropped entries of a tile, by row and then by column
	yi, yj       []T // products with one tile
	simd         simd.Workspace
	candidateRow []float32 // entries of a row in a neighbor search
	candidates   []int32   // positions in candidateRow that may be neighbors
}

// buildEngine creates the engine for m.choice. No tile is formed yet.
func (m *Matrix) buildEngine() {
	c := &m.choice
	if c.usesFloat64() {
		m.ops = engineOf(m, func(dst []float64, ld int, x, z points.Panel, w *kernel.Workspace) {
			if m.table != nil {
				m.table.Tile64(dst, ld, x, z, w)
				return
			}
			kernel.Tile64(dst, ld, m.k, x, z, c.Arithmetic, w)
		})
		return
	}
	fill := func(dst []float32, ld int, x, z points.Panel, w *kernel.Workspace) {
		kernel.Tile32(dst, ld, m.k, x, z, c.Arithmetic, w)
	}
	if m.table != nil && c.Storage != Fixed16 {
		fill = m.table.WithShift(c.Shift).Tile32
	}
	m.ops = engineOf(m, fill)
}

// usesFloat64 reports whether entries are formed and multiplied in float64.
func (c *Choice) usesFloat64() bool {
	return c.Storage == Float64 || c.Storage == Recompute && c.Arithmetic != kernel.Float32
}

// engineOf returns an engine without tiles, with numbers of type T.
func engineOf[T entry](m *Matrix, fill func(dst []T, ld int, x, z points.Panel, w *kernel.Workspace)) *engine[T] {
	c := &m.choice
	m.tiling.assignTiles()
	e := &engine[T]{
		tiling: m.tiling, k: m.k, x: m.computedPoints(), diag: inTileOrder(m.tiling, m.diag), fillTile: fill,
		shift: c.Shift, storage: c.Storage, comm: m.comm, rowScale: inTileOrder(m.tiling, m.rowScales()),
	}
	if m.factors != nil {
		e.factors = inTileOrder(m.tiling, m.factors)
	}
	ordered := e.x
	if m.pointTree != nil {
		ordered = points.Gather(ordered, m.pointTree.Order)
	}
	panel := points.NewPanel(ordered)
	if c.Arithmetic == kernel.Float32 {
		panel = points.NewPanel32(ordered)
	}
	e.panels = make([]points.Panel, m.tiling.blocks)
	for b := range e.panels {
		e.panels[b] = panel.Slice(m.tiling.block(b))
	}
	if c.Sparse != nil && c.Sparse.EntryCutoff > 0 {
		e.dropped = newDroppedRowSums(c.Sparse.EntryCutoff, m.tiling.n)
	}
	if c.Storage == Fixed16 || e.dropped != nil {
		e.packedWords = make([][]uint16, len(m.tiling.order))
	}
	if c.Storage == Float32 || c.Storage == Float64 {
		e.entries = make([][]T, len(m.tiling.order))
	}
	return e
}

// forEachTile calls body from several workers with the index p and the blocks i ≥ j of each tile of this rank.
func (e *engine[T]) forEachTile(ctx context.Context, body func(w *worker[T], p, i, j int)) error {
	workers := make([]worker[T], accel.Threads())
	return accel.ForEach(ctx, len(e.order), func(thread, p int) {
		body(&workers[thread], p, int(e.order[p].i), int(e.order[p].j))
	})
}

// formAll forms and stores all tiles of this rank. With Recompute it does nothing.
func (e *engine[T]) formAll(ctx context.Context, progress func(formed, total int)) error {
	if e.storage == Recompute {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer e.reuse(nil)
	advance := accel.ProgressCounter(len(e.order), progress)
	err := e.forEachTile(ctx, func(w *worker[T], p, _, _ int) {
		if err := e.formTile(w, p); err != nil {
			cancel(err)
			return
		}
		advance(1)
	})
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// reuse makes formAll take over the entries of the engine leading, which has the same type and storage and only dense
// tiles. The points of leading must be the first points of e, in blocks of the same size. For nil nothing is taken
// over.
func (e *engine[T]) reuse(leading operations) { e.leading, _ = leading.(*engine[T]) }

// reuseTile takes over the entries of tile p from the leading engine. If that engine has all rows of the tile,
// reuseTile stores the same memory as tile p, and isComplete is true. Otherwise it copies the rows that the leading
// engine has to tile, the memory that allocate returns, and rows is their number, 0 without a leading engine.
func (e *engine[T]) reuseTile(p int, allocate func() []T) (tile []T, rows int, isComplete bool) {
	i, j := int(e.order[p].i), int(e.order[p].j)
	if e.leading == nil || i >= e.leading.blocks {
		return allocate(), 0, false
	}
	leadingIndex, _ := e.leading.indexOf(i, j)
	rows = e.leading.rows(i)
	switch isComplete = rows == e.rows(i); {
	case isComplete && e.storage == Fixed16:
		e.packedWords[p] = e.leading.packedWords[leadingIndex]
		return nil, rows, true
	case isComplete:
		e.entries[p] = e.leading.entries[leadingIndex]
		return nil, rows, true
	}
	tile = allocate()
	oldTile, oldCols, cols := e.leading.tile(new(worker[T]), leadingIndex), e.leading.rows(j), e.rows(j)
	for row := range rows {
		copy(tile[row*cols:], oldTile[row*oldCols:(row+1)*oldCols])
	}
	return tile, rows, false
}

// formTile computes and stores tile p.
func (e *engine[T]) formTile(w *worker[T], p int) error {
	tile, rows, isComplete := e.reuseTile(p, func() []T {
		if e.storage == Fixed16 || e.dropped != nil {
			return buffer.Grow(&w.tile, e.tileArea(p))
		}
		e.entries[p] = make([]T, e.tileArea(p))
		return e.entries[p]
	})
	if isComplete {
		return nil
	}
	e.formRowsTo(tile, p, rows, &w.kernel)
	if !kernel.BuiltIn(e.k) {
		if err := e.checkEntries(p, tile); err != nil {
			return err
		}
	}
	switch {
	case e.storage == Fixed16:
		e.packedWords[p] = make([]uint16, len(tile))
		simd.ToUint16(e.packedWords[p], any(tile).([]float32), fixed16One)
	case e.dropped != nil:
		e.packTile(w, p, tile)
	}
	return nil
}

// tileArea returns the number of entries of tile p.
func (e *engine[T]) tileArea(p int) int {
	return e.rows(int(e.order[p].i)) * e.rows(int(e.order[p].j))
}

// formRowsTo computes the rows of tile p from firstRow on in dst, which already has the earlier rows.
func (e *engine[T]) formRowsTo(dst []T, p, firstRow int, w *kernel.Workspace) {
	ref := e.order[p]
	x, z := e.panels[ref.i], e.panels[ref.j]
	cols := z.Len()
	if firstRow > 0 {
		x = x.Slice(firstRow, x.Len())
	}
	e.fillTile(dst[firstRow*cols:], cols, x, z, w)
	if ref.i != ref.j {
		return
	}
	lo, _ := e.block(int(ref.i))
	for a := range cols { // makes the tile exactly symmetric, with the exact diagonal
		for b := range a {
			dst[b*cols+a] = dst[a*cols+b]
		}
		dst[a*cols+a] = T(e.diag[lo+a] - e.shift)
	}
}

// checkEntries returns an error that names the first entry of tile p, with entries tile, that is not finite, or is
// outside [0, 1] for Fixed16.
func (e *engine[T]) checkEntries(p int, tile []T) error {
	for k, v := range tile {
		hint := ""
		switch {
		case e.storage == Fixed16 && !(v >= 0 && v <= 1):
			hint = ", outside the [0, 1] of fixed16: take float32"
		case v-v == 0: // finite
			continue
		}
		ref := e.order[p]
		i0, _ := e.block(int(ref.i))
		j0, _ := e.block(int(ref.j))
		cols := e.rows(int(ref.j))
		return fmt.Errorf("gram: kernel %v of points %d and %d is %v%s", e.k, e.point(i0+k/cols), e.point(j0+k%cols), v,
			hint)
	}
	return nil
}

// tile returns tile p, row-major without gaps. The result is valid until the next call with the same w.
func (e *engine[T]) tile(w *worker[T], p int) []T {
	switch {
	case e.storage == Recompute:
		tile := buffer.Grow(&w.tile, e.tileArea(p))
		e.formRowsTo(tile, p, 0, &w.kernel)
		return tile
	case e.storage == Fixed16:
		tile := buffer.Grow(&w.tile, e.tileArea(p))
		simd.FromUint16(any(tile).([]float32), e.packedWords[p])
		for k, v := range tile {
			tile[k] = v / fixed16One
		}
		return tile
	case e.packedWords != nil && e.packedWords[p] != nil:
		return e.unpackTile(w, p)
	}
	return e.entries[p]
}

// mulTile returns yi = T·xj, rows×t, and yj = Tᵀ·xi, cols×t, for tile p, in the memory of w. Blocks of vectors are
// stored by columns: entry (r, c) of xi is xi[c*rows+r]. The solver spends its time in this loop.
func (e *engine[T]) mulTile(w *worker[T], p int, xi, xj []T, t int) (yi, yj []T) {
	rows, cols := e.rows(int(e.order[p].i)), e.rows(int(e.order[p].j))
	yi, yj = buffer.Grow(&w.yi, len(xi)), buffer.Grow(&w.yj, len(xj))
	clear(yi)
	clear(yj)
	if e.storage != Fixed16 {
		simd.AddBothProducts(rows, cols, e.tile(w, p), cols, xj, yj, xi, yi, t, &w.simd)
		return yi, yj
	}
	simd.AddBothProducts(rows, cols, e.packedWords[p], cols, xj, yj, xi, yi, t, &w.simd)
	for _, y := range [][]T{yi, yj} {
		for k := range y {
			y[k] *= 1.0 / fixed16One
		}
	}
	return yi, yj
}

// tileBytes returns the memory of the stored tiles of this rank, in bytes.
func (e *engine[T]) tileBytes() (sum int64) {
	for _, tile := range e.entries {
		sum += int64(len(tile)) * sizeOf[T]()
	}
	for _, words := range e.packedWords {
		sum += 2 * int64(len(words))
	}
	return sum
}

// sizeOf returns the number of bytes of a T.
func sizeOf[T entry]() int64 {
	if _, ok := any(T(0)).(float32); ok {
		return 4
	}
	return 8
}
