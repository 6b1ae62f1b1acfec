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

// float is the type of an entry as it is multiplied.
type float interface{ float32 | float64 }

// operations is what a Matrix asks of its engine, whatever the type of its tiles.
type operations interface {
	formAll(ctx context.Context, progress func(done, total int)) error
	mul(ctx context.Context, dst, src blas64.General, lambda float64) error
	columns(ctx context.Context, dst blas64.General, idx []int) error
	part(ctx context.Context, dst blas64.General, rows, cols []int) error
	scan(ctx context.Context, s *search) error
	tileBytes() int64
	leftOut() []int64
}

// engine forms tiles as numbers of type T, keeps them as the storage says, and multiplies by them.
type engine[T float] struct {
	*tiling
	k       kernel.Kernel
	x       points.Points  // in their own order
	panels  []points.Panel // the blocks
	diag    []float64      // k(x_i, x_i) by place
	fill    func(dst []T, ld int, x, z points.Panel, w *kernel.Workspace)
	shift   float64 // the tiles are those of K − shift·11ᵀ
	storage Storage
	// Tiles of this rank as they are kept, none of Recompute. words are the entries of Fixed16, round(65535·v) for v in
	// [0, 1]; where entries are dropped (cols+15)/16 for each row, with a bit for each entry, set for those that are
	// kept, or nil where all are.
	words   [][]uint16
	entries [][]T
	drop    *drop     // what entries are dropped; nil for nothing
	comm    comm.Comm // that shares the tiles
	scale   []float64 // powers of two by place: |k(x_i, x_j)|·scale_i·scale_j ≤ 1
	factors []float64 // √w_i by place: a product is S·tiles·S·src, S = diag(√w_i); nil without weights

	mu   sync.Mutex
	idle []*product[T] // scratch of products that are over

	forming sync.Pool // of columns, []worker[T]
}

// fixedOne is the 16-bit number that stands for 1.
const fixedOne = 1<<16 - 1

// worker is the scratch memory of one worker.
type worker[T float] struct {
	kernel kernel.Workspace
	tile   []T // a tile that is not kept as it is
	values []T // those of it that are
	lost   []T // sums by row and by column of those that are not
	yi, yj []T // products with one tile
	simd   simd.Workspace
	row    []float32 // of a search, and the places of its candidates
	at     []int32
}

// build makes the engine that m.choice asks for, with no tile formed.
func (m *Matrix) build() {
	c := &m.choice
	if c.wide() {
		m.ops = engineOf(m, func(dst []float64, ld int, x, z points.Panel, w *kernel.Workspace) {
			if m.levels != nil {
				m.levels.Tile64(dst, ld, x, z, w)
				return
			}
			kernel.Tile64(dst, ld, m.k, x, z, c.Arithmetic, w)
		})
		return
	}
	fill := func(dst []float32, ld int, x, z points.Panel, w *kernel.Workspace) {
		kernel.Tile32(dst, ld, m.k, x, z, c.Arithmetic, w)
	}
	if m.levels != nil && c.Storage != Fixed16 {
		fill = m.levels.Minus(c.Shift).Tile32
	}
	m.ops = engineOf(m, fill)
}

// wide reports whether entries are formed, and multiplied, in float64.
func (c *Choice) wide() bool {
	return c.Storage == Float64 || c.Storage == Recompute && c.Arithmetic != kernel.Float32
}

func engineOf[T float](m *Matrix, fill func(dst []T, ld int, x, z points.Panel, w *kernel.Workspace)) *engine[T] {
	c := &m.choice
	m.tiling.deal()
	e := &engine[T]{
		tiling: m.tiling, k: m.k, x: m.view(c.Centred), diag: placed(m.tiling, m.diag), fill: fill,
		shift: c.Shift, storage: c.Storage, comm: m.comm, scale: placed(m.tiling, m.scales()),
	}
	if m.factors != nil {
		e.factors = placed(m.tiling, m.factors)
	}
	laid := e.x
	if m.leaves != nil {
		laid = points.Gather(laid, m.leaves.Order)
	}
	p := points.NewPanel(laid)
	if c.Arithmetic == kernel.Float32 {
		p = points.NewPanel32(laid)
	}
	e.panels = make([]points.Panel, m.tiling.blocks)
	for b := range e.panels {
		e.panels[b] = p.Slice(m.tiling.block(b))
	}
	if c.Sparse != nil && c.Sparse.Least > 0 {
		e.drop = newDrop(c.Sparse.Least, m.tiling.n)
	}
	if c.Storage == Fixed16 || e.drop != nil {
		e.words = make([][]uint16, len(m.tiling.order))
	}
	if c.Storage == Float32 || c.Storage == Float64 {
		e.entries = make([][]T, len(m.tiling.order))
	}
	return e
}

// each calls body with the position and the blocks of each tile of this rank, from many workers.
func (e *engine[T]) each(ctx context.Context, body func(w *worker[T], p, i, j int)) error {
	workers := make([]worker[T], accel.Threads())
	return accel.ForEach(ctx, len(e.order), func(who, p int) {
		body(&workers[who], p, int(e.order[p].i), int(e.order[p].j))
	})
}

func (e *engine[T]) formAll(ctx context.Context, progress func(done, total int)) error {
	if e.storage == Recompute {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	more := accel.Counter(len(e.order), progress)
	err := e.each(ctx, func(w *worker[T], p, _, _ int) {
		if err := e.form(w, p); err != nil {
			cancel(err)
			return
		}
		more(1)
	})
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// form computes tile p and keeps it.
func (e *engine[T]) form(w *worker[T], p int) error {
	t := buffer.Grow(&w.tile, e.area(p))
	if whole := e.storage != Fixed16 && e.drop == nil; whole {
		t = make([]T, len(t))
		e.entries[p] = t
	}
	e.formTo(t, p, &w.kernel)
	if !kernel.BuiltIn(e.k) {
		if err := e.check(p, t); err != nil {
			return err
		}
	}
	switch {
	case e.storage == Fixed16:
		e.words[p] = make([]uint16, len(t))
		simd.Narrow(e.words[p], any(t).([]float32), fixedOne)
	case e.drop != nil:
		e.pack(w, p, t)
	}
	return nil
}

// area returns the number of entries of tile p.
func (e *engine[T]) area(p int) int {
	return e.rows(int(e.order[p].i)) * e.rows(int(e.order[p].j))
}

// formTo forms tile p in dst.
func (e *engine[T]) formTo(dst []T, p int, w *kernel.Workspace) {
	r := e.order[p]
	x, z := e.panels[r.i], e.panels[r.j]
	cols := z.Len()
	e.fill(dst, cols, x, z, w)
	if r.i != r.j {
		return
	}
	lo, _ := e.block(int(r.i))
	for a := range cols { // exactly symmetric, with the exact diagonal
		for b := range a {
			dst[b*cols+a] = dst[a*cols+b]
		}
		dst[a*cols+a] = T(e.diag[lo+a] - e.shift)
	}
}

// check names an entry of tile p that cannot be kept.
func (e *engine[T]) check(p int, t []T) error {
	for q, v := range t {
		want := ""
		switch {
		case e.storage == Fixed16 && !(v >= 0 && v <= 1):
			want = ", outside the [0, 1] of fixed16: take float32"
		case v-v == 0:
			continue
		}
		r := e.order[p]
		i0, _ := e.block(int(r.i))
		j0, _ := e.block(int(r.j))
		cols := e.rows(int(r.j))
		return fmt.Errorf("gram: kernel %v of points %d and %d is %v%s", e.k, e.point(i0+q/cols), e.point(j0+q%cols), v,
			want)
	}
	return nil
}

// tile returns tile p, row-major without gaps. It stays valid until w's next call.
func (e *engine[T]) tile(w *worker[T], p int) []T {
	switch {
	case e.storage == Recompute:
		t := buffer.Grow(&w.tile, e.area(p))
		e.formTo(t, p, &w.kernel)
		return t
	case e.storage == Fixed16:
		t := buffer.Grow(&w.tile, e.area(p))
		simd.Widen(any(t).([]float32), e.words[p])
		for q, v := range t {
			t[q] = v / fixedOne
		}
		return t
	case e.words != nil && e.words[p] != nil:
		return e.unpack(w, p)
	}
	return e.entries[p]
}

// mulTile sets yi = T·xj, rows×t, and yj = Tᵀ·xi, cols×t, for tile p. Blocks of vectors are stored by columns: entry
// (r, c) of xi is xi[c*rows+r]. This is the loop in which the solver spends its time.
func (e *engine[T]) mulTile(w *worker[T], p int, yi, yj []T, rows, cols int, xi, xj []T, t int) {
	clear(yi)
	clear(yj)
	if e.storage != Fixed16 {
		simd.Both(rows, cols, e.tile(w, p), cols, xj, yj, xi, yi, t, &w.simd)
		return
	}
	simd.Both(rows, cols, e.words[p], cols, xj, yj, xi, yi, t, &w.simd)
	for _, y := range [][]T{yi, yj} {
		for k := range y {
			y[k] *= 1.0 / fixedOne
		}
	}
}

func (e *engine[T]) tileBytes() (sum int64) {
	for _, t := range e.entries {
		sum += int64(len(t)) * sizeOf[T]()
	}
	for _, w := range e.words {
		sum += 2 * int64(len(w))
	}
	return sum
}

// sizeOf returns the number of bytes of a T.
func sizeOf[T float]() int64 {
	if _, ok := any(T(0)).(float32); ok {
		return 4
	}
	return 8
}
