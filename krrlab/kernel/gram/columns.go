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

// Columns sets dst, n×len(idx), to the columns idx of K (without λ) as stored. A recomputed matrix forms only these
// columns, or all tiles if that is cheaper. Columns panics if dst has another shape or an index is out of range. It
// returns ctx's error if ctx is done.
func (m *Matrix) Columns(ctx context.Context, idx []int, dst *mat.Dense) error {
	n := m.tiling.n
	if rows, cols := dst.Dims(); rows != n || cols != len(idx) {
		panic(fmt.Sprintf("gram: %d columns of a %d×%d matrix into %d×%d", len(idx), n, n, rows, cols))
	}
	for _, i := range idx {
		if i < 0 || i >= n {
			panic(fmt.Sprintf("gram: column %d of %d", i, n))
		}
	}
	if m.comm.Size() > 1 || m.leaves != nil { // ranks sum their entries, and skipped tiles leave zeros
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
	gathered := mat.DenseCopyOf(dst)
	err = comm.Merge(ctx, m.comm, gathered.RawMatrix().Data)
	dst.Copy(gathered)
	return err
}

// DenseTo sets dst, n×n, to K (without λ). It panics if dst has another shape, and returns ctx's error if ctx is done.
func (m *Matrix) DenseTo(ctx context.Context, dst *mat.Dense) error {
	indices := make([]int, m.tiling.n)
	for i := range indices {
		indices[i] = i
	}
	return m.Columns(ctx, indices, dst)
}

// columns sets dst to the columns idx of the entries on this rank.
func (e *engine[T]) columns(ctx context.Context, dst blas64.General, idx []int) error {
	form := e.pickColumns
	// Forming all tiles is cheaper than forming many columns, provided that no tile is skipped: EntryError also has to
	// hold for entries of skipped tiles.
	if e.storage == Recompute && (2*len(idx) < e.n || e.points != nil) {
		form = e.formColumns
	}
	return form(ctx, dst, idx)
}

// columnPick maps a column of a block to a column of the result.
type columnPick struct {
	target int // column of the result
	offset int // column within its block
}

// pickColumns copies the columns idx out of the tiles of this rank.
func (e *engine[T]) pickColumns(ctx context.Context, dst blas64.General, idx []int) error {
	picks, shift := make([][]columnPick, e.blocks), e.shift
	for target, c := range idx {
		b, col := e.locate(c)
		picks[b] = append(picks[b], columnPick{target, col})
	}
	copyRows := func(tile []T, b, columnBlock int) { // rows of block b, picked columns of columnBlock
		lo, hi := e.block(b)
		rows, cols, picked := hi-lo, e.rows(columnBlock), picks[columnBlock]
		for a := range rows {
			dstRow := dst.Data[e.point(lo+a)*dst.Stride:]
			if b < columnBlock { // the tile is stored transposed: its rows are the points of columnBlock
				for _, pick := range picked {
					dstRow[pick.target] = float64(tile[pick.offset*rows+a]) + shift
				}
				continue
			}
			row := tile[a*cols : (a+1)*cols]
			for _, pick := range picked {
				dstRow[pick.target] = float64(row[pick.offset]) + shift
			}
		}
	}
	if e.storage == Recompute {
		return e.forEachTile(ctx, func(w *worker[T], p, i, j int) {
			tile := e.tile(w, p)
			copyRows(tile, i, j)
			if i != j {
				copyRows(tile, j, i)
			}
		})
	}
	workers := make([]worker[T], accel.Threads())
	// one block of rows at a time, so that its part of dst stays in cache
	return accel.ForEach(ctx, e.blocks, func(thread, b int) {
		for columnBlock, picked := range picks {
			if p, ok := e.indexOf(max(b, columnBlock), min(b, columnBlock)); ok && len(picked) > 0 {
				copyRows(e.tile(&workers[thread], p), b, columnBlock)
			}
		}
	})
}

// Part sets dst, len(rows)×len(cols), to K(rows, cols) (without λ). This rank alone computes it, with the same
// arithmetic as the tiles. An entry has the same bits as the entry that Columns computes for the same columns in a
// recomputed matrix. Part panics if an index is out of range, and returns ctx's error if ctx is done.
func (m *Matrix) Part(ctx context.Context, rows, cols []int, dst blas64.General) error {
	err := m.ops.submatrix(ctx, dst, rows, cols)
	m.scale(dst, rows, cols)
	return err
}

// submatrix implements Matrix.Part, without weights.
func (e *engine[T]) submatrix(ctx context.Context, dst blas64.General, rows, cols []int) error {
	// A BLAS may use other code for small products, and the bits of an entry may depend on its position in the
	// product. The rows are therefore arranged in batches as large as a block. With few columns, each row has the
	// position that it has in its own block; with many columns, rows are packed one after the other. The rows of the
	// last block, which may be shorter, have batches of that block's size.
	const manyColumns = 16
	packed, count := (len(cols)-1)%e.size >= manyColumns-1, 0
	var pieces [2][][]int // batches for full blocks and for the last block: rows of dst by position, −1 for none
	used := make([][2]int, e.size)
	for a, i := range rows {
		b := e.blockOf(e.position(i))
		lo, hi := e.block(b)
		slot, size, group := e.position(i)-lo, e.size, 0
		if b == e.blocks-1 {
			size, group = hi-lo, 1
		} else if packed {
			slot, count = count%size, count+1
		}
		piece := used[slot][group]
		if used[slot][group]++; piece == len(pieces[group]) {
			pieces[group] = append(pieces[group], slices.Repeat([]int{-1}, size))
		}
		pieces[group][piece][slot] = a
	}
	batches := slices.Concat(pieces[:]...)
	for b := range batches {
		if kernel.ByPairs(e.k) { // pair by pair, positions do not matter
			batches[b] = slices.DeleteFunc(batches[b], func(a int) bool { return a < 0 })
		}
	}
	return e.formBlocks(ctx, dst, cols, len(batches), func(b int) (points.Panel, []int, []int) {
		indices := make([]int, len(batches[b]))
		for slot, a := range batches[b] {
			indices[slot] = rows[max(a, 0)]
		}
		return e.panelOf(indices), indices, batches[b]
	})
}

// formColumns forms k(x_i, x_c) for the columns c of idx, one block of rows at a time. Rank b mod P forms block b.
func (e *engine[T]) formColumns(ctx context.Context, dst blas64.General, idx []int) error {
	order := e.pointOrder()
	return e.formBlocks(ctx, dst, idx, len(e.panels), func(b int) (x points.Panel, indices, dstRows []int) {
		if !e.owns(b) {
			return x, nil, nil
		}
		lo, hi := e.block(b)
		return e.panels[b], order[lo:hi], order[lo:hi]
	})
}

// formBlocks forms k(x_i, x_c) for the columns c of idx and the points i of several blocks of rows. For block b, the
// function block returns the points x, their indices, and their rows of dst (−1 to skip a point).
func (e *engine[T]) formBlocks(ctx context.Context, dst blas64.General, idx []int, blocks int,
	block func(b int) (x points.Panel, indices, dstRows []int)) error {
	workers, _ := e.formWorkers.Get().([]worker[T])
	if len(workers) < accel.Threads() {
		workers = make([]worker[T], accel.Threads())
	}
	defer e.formWorkers.Put(workers)
	for chunkStart := 0; chunkStart < len(idx); chunkStart += e.size {
		chunk := idx[chunkStart:min(chunkStart+e.size, len(idx))]
		z := e.panelOf(chunk)
		err := accel.ForEach(ctx, blocks, func(thread, b int) {
			x, indices, dstRows := block(b)
			w := &workers[thread]
			tile := buffer.Grow(&w.tile, len(indices)*len(chunk))
			if len(indices) > 0 {
				e.fillTile(tile, len(chunk), x, z, &w.kernel)
			}
			for r, i := range indices {
				if dstRows[r] < 0 {
					continue
				}
				dstRow := dst.Data[dstRows[r]*dst.Stride+chunkStart:]
				for q, v := range tile[r*len(chunk) : (r+1)*len(chunk)] {
					if chunk[q] == i {
						v = T(e.diag[e.position(i)] - e.shift)
					}
					dstRow[q] = float64(v) + e.shift
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// panelOf returns the points idx with their norms. It returns a slice of the stored panel without copying if the points
// are contiguous there.
func (e *engine[T]) panelOf(idx []int) points.Panel {
	norms := make([]float64, len(idx))
	firstBlock, start := e.locate(idx[0])
	contiguous := true
	for k, i := range idx {
		b, offset := e.locate(i)
		norms[k] = e.panels[b].Norms[offset]
		contiguous = contiguous && b == firstBlock && offset == start+k
	}
	if contiguous {
		return e.panels[firstBlock].Slice(start, start+len(idx))
	}
	return points.Panel{X: points.Gather(e.x, idx), Norms: norms}
}

// EntryError returns a proved ε such that every entry (i, j) computed by Columns, Part and Diag differs from K_ij, in
// exact arithmetic with the points as given, by at most ε√(K_ii·K_jj). It returns +Inf if no bound is known: for a
// stored K (Exact has a bound), and for a user-defined kernel, whose rounding is unknown.
func (m *Matrix) EntryError() float64 {
	if !m.choice.Certain || !kernel.BuiltIn(m.k) {
		return math.Inf(1)
	}
	return kernel.EntryError(m.k, m.choice.Arithmetic, m.frame.Summary) + m.scaleError()
}

// scaleError bounds the relative error of multiplying an entry by two weight factors.
func (m *Matrix) scaleError() float64 {
	if m.factors == nil {
		return 0
	}
	return 0x1p-51
}
