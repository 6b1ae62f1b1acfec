package gram

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Columns sets dst, n×len(idx), to the columns idx of K (without λ), as stored;
// a matrix that is recomputed forms just these columns, or the tiles if that is less. It panics
// if dst has another shape or an index is out of range, and returns ctx's error when ctx is done.
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
	if m.comm.Size() > 1 || m.leaves != nil { // where ranks are to gather it, or tiles are not there
		dst.Zero()
	}
	err := m.ops.columns(ctx, dst.RawMatrix(), idx)
	m.scale(dst.RawMatrix(), nil, idx)
	if err != nil || m.comm.Size() == 1 {
		return err
	}
	if raw := dst.RawMatrix(); raw.Stride == raw.Cols {
		return comm.Merge(ctx, m.comm, raw.Data[:raw.Rows*raw.Cols])
	}
	whole := mat.DenseCopyOf(dst)
	err = comm.Merge(ctx, m.comm, whole.RawMatrix().Data)
	dst.Copy(whole)
	return err
}

// DenseTo sets dst, n×n, to K (without λ). It panics if dst has another shape,
// and returns ctx's error when ctx is done.
func (m *Matrix) DenseTo(ctx context.Context, dst *mat.Dense) error {
	all := make([]int, m.tiling.n)
	for i := range all {
		all[i] = i
	}
	return m.Columns(ctx, all, dst)
}

func (e *engine[T]) columns(ctx context.Context, dst blas64.General, idx []int) error {
	form := e.pick
	// of many columns the tiles are less, if all are there: EntryError is that of entries in no tile, too
	if e.storage == Recompute && (2*len(idx) < e.n || e.points != nil) {
		form = e.formColumns
	}
	return form(ctx, dst, idx)
}

// pick is a column: column at of dst is column col of its block.
type pick struct{ at, col int }

// pick takes columns out of the tiles of this rank.
func (e *engine[T]) pick(ctx context.Context, dst blas64.General, idx []int) error {
	picks, shift := make([][]pick, e.blocks), e.shift
	for at, c := range idx {
		b, col := e.where(c)
		picks[b] = append(picks[b], pick{at, col})
	}
	take := func(tile []T, b, of int) { // the rows of block b of the columns in block of
		lo, hi := e.block(b)
		rows, cols, list := hi-lo, e.rows(of), picks[of]
		for a := range rows {
			out := dst.Data[e.point(lo+a)*dst.Stride:]
			if b < of { // the tile is that of the rows of `of`
				for _, k := range list {
					out[k.at] = float64(tile[k.col*rows+a]) + shift
				}
				continue
			}
			row := tile[a*cols : (a+1)*cols]
			for _, k := range list {
				out[k.at] = float64(row[k.col]) + shift
			}
		}
	}
	if e.storage == Recompute {
		return e.each(ctx, func(w *worker[T], p, i, j int) {
			tile := e.tile(w, p)
			take(tile, i, j)
			if i != j {
				take(tile, j, i)
			}
		})
	}
	workers := make([]worker[T], accel.Threads())
	return accel.ForEach(ctx, e.blocks, func(who, b int) { // the rows of one block at a time stay in a cache
		for of, list := range picks {
			if p, ok := e.at(max(b, of), min(b, of)); ok && len(list) > 0 {
				take(e.tile(&workers[who], p), b, of)
			}
		}
	})
}

// Part sets dst, len(rows)×len(cols), to K(rows, cols) (without λ), formed again as the tiles are, by this rank alone.
// An entry has the bits of Columns formed likewise, of the same columns. It panics if an index is out of range, and
// returns ctx's error when ctx is done.
func (m *Matrix) Part(ctx context.Context, rows, cols []int, dst blas64.General) error {
	err := m.ops.part(ctx, dst, rows, cols)
	m.scale(dst, rows, cols)
	return err
}

func (e *engine[T]) part(ctx context.Context, dst blas64.General, rows, cols []int) error {
	// A library has other code for small products, which may give other bits, by the place in them: of few columns rows
	// go where they lie in their blocks, of many one after the other; those of the last block, which may be shorter, apart.
	const many = 16
	packed, count := (len(cols)-1)%e.size >= many-1, 0
	var pieces [2][][]int // rows of dst, −1 for none
	used := make([][2]int, e.size)
	for a, i := range rows {
		b := e.blockOf(e.place(i))
		lo, hi := e.block(b)
		at, size, k := e.place(i)-lo, e.size, 0
		if b == e.blocks-1 {
			size, k = hi-lo, 1
		} else if packed {
			at, count = count%size, count+1
		}
		q := used[at][k]
		if used[at][k]++; q == len(pieces[k]) {
			pieces[k] = append(pieces[k], slices.Repeat([]int{-1}, size))
		}
		pieces[k][q][at] = a
	}
	all := slices.Concat(pieces[:]...)
	for b := range all {
		if kernel.ByPairs(e.k) { // no library
			all[b] = slices.DeleteFunc(all[b], func(a int) bool { return a < 0 })
		}
	}
	return e.formed(ctx, dst, cols, len(all), func(b int) (points.Panel, []int, []int) {
		of := make([]int, len(all[b]))
		for at, a := range all[b] {
			of[at] = rows[max(a, 0)]
		}
		return e.pointsOf(of), of, all[b]
	})
}

// formColumns forms k(x_i, x_c) for the columns c of idx, a block of rows at a time: on ranks
// block b is rank b mod P's.
func (e *engine[T]) formColumns(ctx context.Context, dst blas64.General, idx []int) error {
	lie := e.lie()
	return e.formed(ctx, dst, idx, len(e.panels), func(b int) (x points.Panel, of, at []int) {
		if !e.has(b) {
			return x, nil, nil
		}
		lo, hi := e.block(b)
		return e.panels[b], lie[lo:hi], lie[lo:hi]
	})
}

// formed forms k(x_i, x_c) for the columns c of idx and the points i of blocks of rows: block returns x, the points,
// and their rows of dst, −1 for none.
func (e *engine[T]) formed(ctx context.Context, dst blas64.General, idx []int, blocks int,
	block func(b int) (x points.Panel, of, at []int)) error {
	workers, _ := e.forming.Get().([]worker[T])
	if len(workers) < accel.Threads() {
		workers = make([]worker[T], accel.Threads())
	}
	defer e.forming.Put(workers)
	for k0 := 0; k0 < len(idx); k0 += e.size {
		part := idx[k0:min(k0+e.size, len(idx))]
		z := e.pointsOf(part)
		err := accel.ForEach(ctx, blocks, func(who, b int) {
			x, of, at := block(b)
			w := &workers[who]
			tile := buffer.Grow(&w.tile, len(of)*len(part))
			if len(of) > 0 {
				e.fill(tile, len(part), x, z, &w.kernel)
			}
			for r, i := range of {
				if at[r] < 0 {
					continue
				}
				out := dst.Data[at[r]*dst.Stride+k0:]
				for k, v := range tile[r*len(part) : (r+1)*len(part)] {
					if part[k] == i {
						v = T(e.diag[e.place(i)] - e.shift)
					}
					out[k] = float64(v) + e.shift
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pointsOf returns the points idx with their norms: where they lie, if they do together.
func (e *engine[T]) pointsOf(idx []int) points.Panel {
	norms := make([]float64, len(idx))
	first, start := e.where(idx[0])
	together := true
	for k, i := range idx {
		b, at := e.where(i)
		norms[k] = e.panels[b].Norms[at]
		together = together && b == first && at == start+k
	}
	if together {
		return e.panels[first].Slice(start, start+len(idx))
	}
	return points.Panel{X: points.Gather(e.x, idx), Norms: norms}
}

// EntryError returns a certain ε such that every entry (i, j) that Columns, Part and Diag give is
// K_ij to ε√(K_ii·K_jj), in exact arithmetic with the points as they are; +Inf
// where none is known: of K as stored (Exact has one), and of a user-defined kernel, of whose rounding
// nothing is known.
func (m *Matrix) EntryError() float64 {
	if !m.choice.Certain || !kernel.BuiltIn(m.k) {
		return math.Inf(1)
	}
	return kernel.EntryError(m.k, m.choice.Arithmetic, m.frame.Summary) + m.scaleError()
}

// scaleError bounds the relative error of multiplying an entry by two factors.
func (m *Matrix) scaleError() float64 {
	if m.factors == nil {
		return 0
	}
	return 0x1p-51
}
