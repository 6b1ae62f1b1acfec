package gram

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Columns sets dst, n×len(idx), to the columns idx of K (without λ), as stored;
// a matrix that is recomputed forms just these columns. It panics if dst has
// another shape or an index is out of range, and returns ctx's error when ctx is
// done.
func (m *Matrix) Columns(ctx context.Context, idx []int, dst *mat.Dense) error {
	n := m.tiling.n
	if dn, dt := dst.Dims(); dn != n || dt != len(idx) {
		panic(fmt.Sprintf("gram: %d columns of a %d×%d matrix into %d×%d", len(idx), n, n, dn, dt))
	}
	for _, i := range idx {
		if i < 0 || i >= n {
			panic(fmt.Sprintf("gram: column %d of %d", i, n))
		}
	}
	return m.ops.columns(ctx, dst, idx)
}

// DenseTo sets dst, n×n, to K (without λ). It panics if dst has another shape,
// and returns ctx's error when ctx is done.
func (m *Matrix) DenseTo(ctx context.Context, dst *mat.Dense) error {
	n := m.tiling.n
	if dn, dt := dst.Dims(); dn != n || dt != n {
		panic(fmt.Sprintf("gram: a %d×%d matrix into %d×%d", n, n, dn, dt))
	}
	return m.ops.dense(ctx, dst)
}

func (e *engine[T]) dense(ctx context.Context, dst *mat.Dense) error {
	workers := make([]worker[T], accel.Threads())
	raw := dst.RawMatrix()
	e.clearTo(raw)
	err := accel.ForEach(ctx, e.held(), func(who, q int) {
		p := e.nth(q)
		r := e.order[p]
		i0, i1 := e.block(int(r.i))
		j0, j1 := e.block(int(r.j))
		tile := e.src.tile(&workers[who], p)
		for i := i0; i < i1; i++ {
			for j := j0; j < j1; j++ {
				v := float64(tile[(i-i0)*(j1-j0)+j-j0]) + e.shift
				a, b := e.point(i), e.point(j)
				raw.Data[a*raw.Stride+b] = v
				raw.Data[b*raw.Stride+a] = v
			}
		}
	})
	if err != nil {
		return err
	}
	return e.gather(ctx, raw)
}

func (e *engine[T]) columns(ctx context.Context, dst *mat.Dense, idx []int) error {
	raw := dst.RawMatrix()
	e.clearTo(raw)
	var err error
	if s, ok := e.src.(*recomputed[T]); ok {
		err = s.columns(ctx, dst, idx)
	} else {
		err = e.pickColumns(ctx, raw, idx)
	}
	if err != nil {
		return err
	}
	e.toPoints(raw)
	return e.gather(ctx, raw)
}

// toPoints brings rows that lie by place to those of the points.
func (e *engine[T]) toPoints(raw blas64.General) {
	if e.points == nil {
		return
	}
	row := func(i int) []float64 { return raw.Data[i*raw.Stride : i*raw.Stride+raw.Cols] }
	moved, held := make([]bool, e.n), make([]float64, raw.Cols)
	for first := range e.n { // the row of a place goes to its point, along each cycle
		if moved[first] {
			continue
		}
		copy(held, row(first))
		at := first
		for place := e.places[at]; place != first; at, place = place, e.places[place] {
			copy(row(at), row(place))
			moved[at] = true
		}
		copy(row(at), held)
		moved[at] = true
	}
}

// pickColumns takes columns out of the tiles that this rank holds.
func (e *engine[T]) pickColumns(ctx context.Context, raw blas64.General, idx []int) error {
	workers := make([]worker[T], accel.Threads())
	sorted := make([]pick, len(idx))
	for k, c := range idx {
		sorted[k] = pick{e.place(c), k}
	}
	slices.SortFunc(sorted, func(a, b pick) int { return cmp.Or(a.col-b.col, a.at-b.at) })
	return accel.ForEach(ctx, e.blocks, func(who, b int) {
		lo, hi := e.block(b)
		for q := 0; q < len(sorted); { // the columns of one block at a time
			bc := e.blockOf(sorted[q].col)
			c0, c1 := e.block(bc)
			q0 := q
			for q < len(sorted) && sorted[q].col < c1 {
				q++
			}
			id, ok := e.at(max(b, bc), min(b, bc))
			if !ok || !e.has(id) {
				continue
			}
			width := c1 - c0 // of a row of the tile
			if b < bc {
				width = hi - lo
			}
			dst := blas64.General{Rows: hi - lo, Stride: raw.Stride, Data: raw.Data[lo*raw.Stride:]}
			f := picking{dst, sorted[q0:q], c0, width, b < bc, e.shift}
			if s, ok := any(e.src).(*packed); ok { // as they lie, not converted as a whole
				pickFrom(f, s.tiles[id])
				f.unpack()
				continue
			}
			pickFrom(f, e.src.tile(&workers[who], id))
		}
	})
}

// picking fills rows of dst at the columns of the picks, all in the block of columns that
// starts at first, from a tile with rows of that width. Pick p is column p.col−first of the
// tile, or, with across, that row.
type picking struct {
	dst    blas64.General
	picks  []pick
	first  int
	width  int
	across bool
	shift  float64 // to add
}

// pickFrom takes the entries out of the tile.
func pickFrom[S uint16 | float32 | float64](f picking, tile []S) {
	for r := range f.dst.Rows {
		out := f.dst.Data[r*f.dst.Stride:]
		if f.across {
			for _, p := range f.picks {
				out[p.at] = float64(tile[(p.col-f.first)*f.width+r]) + f.shift
			}
			continue
		}
		row := tile[r*f.width : (r+1)*f.width]
		for _, p := range f.picks {
			out[p.at] = float64(row[p.col-f.first]) + f.shift
		}
	}
}

// unpack turns 16-bit numbers into what they stand for, the float32 that packed.tile gives.
func (f picking) unpack() {
	for r := range f.dst.Rows {
		out := f.dst.Data[r*f.dst.Stride:]
		for _, p := range f.picks {
			out[p.at] = float64(float32(out[p.at]) / fixedOne)
		}
	}
}

// pick is the place of a column of K and the column of dst that it goes to.
type pick struct{ col, at int }

// columns forms k(x_i, x_c) for the columns c of idx, a block of rows at a time: on ranks
// block b is rank b mod P's.
func (s *recomputed[T]) columns(ctx context.Context, dst *mat.Dense, idx []int) error {
	workers := make([]worker[T], accel.Threads())
	raw := dst.RawMatrix()
	for k0 := 0; k0 < len(idx); k0 += s.size {
		part := idx[k0:min(k0+s.size, len(idx))]
		z := s.gather(part)
		err := accel.ForEach(ctx, len(s.panels), func(who, b int) {
			if !s.has(b) {
				return
			}
			lo, hi := s.block(b)
			w := &workers[who]
			tile := buffer.Grow(&w.tile, (hi-lo)*len(part))
			s.fill(tile, len(part), s.k, s.panels[b], z, &w.kernel)
			for r := lo; r < hi; r++ {
				out := raw.Data[r*raw.Stride+k0:]
				for k, v := range tile[(r-lo)*len(part) : (r-lo+1)*len(part)] {
					out[k] = float64(v) + s.shift
				}
			}
			for k, i := range part {
				if c := s.place(i); c >= lo && c < hi {
					raw.Data[c*raw.Stride+k0+k] = float64(T(s.diag[c]-s.shift)) + s.shift
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gather returns the points idx with their norms.
func (s *grid[T]) gather(idx []int) points.Panel {
	norms := make([]float64, len(idx))
	for k, i := range idx {
		norms[k] = s.norm(i)
	}
	return points.Panel{X: points.Gather(s.x, idx), Norms: norms}
}

// norm returns the norm of point i.
func (s *grid[T]) norm(i int) float64 {
	place := s.place(i)
	b := s.blockOf(place)
	lo, _ := s.block(b)
	return s.panels[b].Norms[place-lo]
}

// EntryError returns a certain ε such that every entry (i, j) that Columns, DenseTo and Diag give is
// k(x_i, x_j) to ε√(k(x_i,x_i)·k(x_j,x_j)), in exact arithmetic with the points as they are; +Inf
// where none is known: of K as stored (Exact has one), and of a user-defined kernel, of whose rounding
// nothing is known.
func (m *Matrix) EntryError() float64 {
	if !m.choice.Certain || !kernel.BuiltIn(m.k) {
		return math.Inf(1)
	}
	return kernel.EntryError(m.k, m.choice.Arithmetic, m.extent())
}
