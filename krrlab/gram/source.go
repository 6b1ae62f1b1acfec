package gram

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// float is the type of an entry as it is multiplied.
type float interface{ float32 | float64 }

// source gives the tiles of K as numbers of type T. A storage is an
// implementation of source: one that packs its tiles unpacks them into the
// worker's scratch.
type source[T float] interface {
	// form computes tile p into its place. It is called once for each tile, by
	// several workers at once for different tiles.
	form(w *worker[T], p int) error
	// tile returns tile p, row-major without gaps. It stays valid until w's next call.
	tile(w *worker[T], p int) []T
	// empty reports whether nothing of tile p is kept.
	empty(p int) bool
	// bytes is the memory that the tiles take.
	bytes() int64
}

// multiplier is a source that multiplies by its tiles as they are packed: it sets
// yi = T·xj and yj = Tᵀ·xi as tileMul does.
type multiplier[T float] interface {
	multiply(w *worker[T], p int, yi, yj []T, rows, cols int, xi, xj []T, t int)
}

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

// grid is what a tile is formed of: the kernel and the blocks of points.
type grid[T float] struct {
	*tiling
	k      kernel.Kernel
	x      points.Points  // in their own order
	panels []points.Panel // the blocks
	diag   []float64      // k(x_i, x_i) by place
	fill   func(dst []T, ld int, k kernel.Kernel, x, z points.Panel, w *kernel.Workspace)
	shift  float64 // tiles are those of K less this
}

func (g *grid[T]) of() *grid[T] { return g }

// formTo forms tile p in dst.
func (g *grid[T]) formTo(dst []T, p int, w *kernel.Workspace) {
	r := g.order[p]
	x, z := g.panels[r.i], g.panels[r.j]
	cols := z.Len()
	g.fill(dst, cols, g.k, x, z, w)
	if r.i != r.j {
		return
	}
	lo, _ := g.block(int(r.i))
	for a := range cols { // exactly symmetric, with the exact diagonal
		for b := range a {
			dst[b*cols+a] = dst[a*cols+b]
		}
		dst[a*cols+a] = T(g.diag[lo+a] - g.shift)
	}
}

// kept holds every tile: whole, or if entries below some size are dropped, those that are left.
type kept[T float] struct {
	grid[T]
	tiles []tile[T]
	check bool  // look for NaN and Inf: the kernel is user-defined
	drop  *drop // nil for nothing
}

// tile has all entries where bits is nil, and else those whose bit is set, row by row.
type tile[T float] struct {
	bits    []uint16 // (cols+15)/16 for each row
	entries []T
}

func (s *kept[T]) form(w *worker[T], p int) error {
	r := s.order[p]
	size := s.rows(int(r.i)) * s.rows(int(r.j))
	var t []T
	if s.drop == nil {
		t = make([]T, size)
	} else {
		t = buffer.Grow(&w.tile, size)
	}
	s.formTo(t, p, &w.kernel)
	if s.check {
		for q, v := range t {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return s.badEntry(p, q, f, "")
			}
		}
	}
	if s.drop == nil {
		s.tiles[p].entries = t
	} else {
		s.pack(w, p, t)
	}
	return nil
}

// badEntry says that entry q of tile p cannot be stored.
func (g *grid[T]) badEntry(p, q int, v float64, want string) error {
	r := g.order[p]
	i0, _ := g.block(int(r.i))
	j0, _ := g.block(int(r.j))
	cols := g.rows(int(r.j))
	return fmt.Errorf("gram: kernel %v of points %d and %d is %v%s", g.k, g.point(i0+q/cols), g.point(j0+q%cols), v, want)
}

func (s *kept[T]) tile(w *worker[T], p int) []T {
	if t := &s.tiles[p]; t.bits == nil {
		return t.entries
	}
	return s.unpack(w, p)
}

func (s *kept[T]) empty(p int) bool { return len(s.tiles[p].entries) == 0 }

func (s *kept[T]) bytes() (sum int64) {
	for _, t := range s.tiles {
		sum += int64(len(t.entries))*sizeOf[T]() + 2*int64(len(t.bits))
	}
	return sum
}

// recomputed holds no tile.
type recomputed[T float] struct{ grid[T] }

func (s *recomputed[T]) form(*worker[T], int) error { return nil }

func (s *recomputed[T]) empty(int) bool { return false }

func (s *recomputed[T]) tile(w *worker[T], p int) []T {
	r := s.order[p]
	t := buffer.Grow(&w.tile, s.rows(int(r.i))*s.rows(int(r.j)))
	s.formTo(t, p, &w.kernel)
	return t
}

func (s *recomputed[T]) bytes() int64 { return 0 }

// sizeOf returns the number of bytes of a T.
func sizeOf[T float]() int64 {
	if _, ok := any(T(0)).(float32); ok {
		return 4
	}
	return 8
}

// fixedOne is the 16-bit number that stands for 1.
const fixedOne = 1<<16 - 1

// packed holds every tile in 16 bits: entry v in [0, 1] as round(65535·v).
type packed struct {
	grid[float32]
	tiles [][]uint16
	check bool // look for values outside [0, 1]: the kernel is user-defined
}

func (s *packed) form(w *worker[float32], p int) error {
	r := s.order[p]
	t := buffer.Grow(&w.tile, s.rows(int(r.i))*s.rows(int(r.j)))
	s.formTo(t, p, &w.kernel)
	if s.check {
		for q, v := range t {
			if !(v >= 0 && v <= 1) {
				return s.badEntry(p, q, float64(v), ", outside the [0, 1] of fixed16: take float32")
			}
		}
	}
	s.tiles[p] = make([]uint16, len(t))
	simd.Narrow(s.tiles[p], t, fixedOne)
	return nil
}

func (s *packed) empty(int) bool { return false }

func (s *packed) tile(w *worker[float32], p int) []float32 {
	t := buffer.Grow(&w.tile, len(s.tiles[p]))
	simd.Widen(t, s.tiles[p])
	for q, v := range t {
		t[q] = v / fixedOne
	}
	return t
}

func (s *packed) multiply(w *worker[float32], p int, yi, yj []float32, rows, cols int, xi, xj []float32, t int) {
	clear(yi)
	clear(yj)
	simd.Both(rows, cols, s.tiles[p], cols, xj, yj, xi, yi, t, &w.simd)
	for _, y := range [][]float32{yi, yj} {
		for k := range y {
			y[k] *= 1.0 / fixedOne
		}
	}
}

func (s *packed) bytes() (sum int64) {
	for _, t := range s.tiles {
		sum += 2 * int64(len(t))
	}
	return sum
}
