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

// Columns sets dst, n×len(idx), to the columns idx of the stored matrix K̃ (without λ), on all ranks. All ranks must
// call Columns. A recomputed matrix forms only these columns, or all tiles if that is cheaper. Columns panics if dst
// has another shape or an index is out of range. It returns ctx's error if ctx is done.
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
	if m.comm.Size() > 1 || m.pointTree != nil { // the entries of other ranks, and of skipped tiles, stay 0
		dst.Zero()
	}
	err := m.ops.columns(ctx, dst.RawMatrix(), idx)
	m.scale(dst.RawMatrix(), nil, idx)
	if err != nil || m.comm.Size() == 1 {
		return err
	}
	if raw := dst.RawMatrix(); raw.Stride == raw.Cols {
		return comm.MergeDisjoint(ctx, m.comm, raw.Data[:raw.Rows*raw.Cols])
	}
	contiguous := mat.DenseCopyOf(dst)
	err = comm.MergeDisjoint(ctx, m.comm, contiguous.RawMatrix().Data)
	dst.Copy(contiguous)
	return err
}

// DenseTo sets dst, n×n, to the stored matrix K̃ (without λ). It panics if dst has another shape, and returns ctx's
// error if ctx is done.
func (m *Matrix) DenseTo(ctx context.Context, dst *mat.Dense) error {
	indices := make([]int, m.tiling.n)
	for i := range indices {
		indices[i] = i
	}
	return m.Columns(ctx, indices, dst)
}

// columns sets dst to the columns idx, without weights. It leaves the entries of other ranks unchanged.
func (e *engine[T]) columns(ctx context.Context, dst blas64.General, idx []int) error {
	// Forming all tiles is cheaper than forming more than half of the columns, because a tile serves two blocks of K.
	// However, skipped tiles are not formed then, and EntryError has to hold for their entries, too.
	if e.storage == Recompute && (2*len(idx) < e.n || e.skipsTiles()) {
		return e.formColumns(ctx, dst, idx)
	}
	return e.pickColumns(ctx, dst, idx)
}

// columnPick maps a column of a block to a column of the result.
type columnPick struct {
	target int // column of the result
	offset int // column within its block
}

// pickColumns copies the columns idx out of the tiles of this rank, which have the entries K_ij − shift.
func (e *engine[T]) pickColumns(ctx context.Context, dst blas64.General, idx []int) error {
	picks, shift := make([][]columnPick, e.blocks), e.shift // picks[b]: the columns in block b
	for target, c := range idx {
		b, col := e.locate(c)
		picks[b] = append(picks[b], columnPick{target, col})
	}
	// copyRows copies the rows of block b in the picked columns of columnBlock, out of the tile of the two blocks.
	copyRows := func(tile []T, b, columnBlock int) {
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

	// Each task handles one block of rows, so that its part of dst stays in cache.
	workers := make([]worker[T], accel.Threads())
	return accel.ForEach(ctx, e.blocks, func(thread, b int) {
		for columnBlock, picked := range picks {
			if p, ok := e.indexOf(max(b, columnBlock), min(b, columnBlock)); ok && len(picked) > 0 {
				copyRows(e.tile(&workers[thread], p), b, columnBlock)
			}
		}
	})
}

// Submatrix sets dst, len(rows)×len(cols), to K(rows, cols) (without λ). One rank may call it alone: the calling rank
// computes all entries, with the same arithmetic as the tiles. An entry has the same bits as the entry that Columns
// computes for the same columns in a recomputed matrix. Submatrix panics if an index is out of range, and returns ctx's
// error if ctx is done.
func (m *Matrix) Submatrix(ctx context.Context, rows, cols []int, dst blas64.General) error {
	err := m.ops.submatrix(ctx, dst, rows, cols)
	m.scale(dst, rows, cols)
	return err
}

// submatrix implements Matrix.Submatrix, without weights.
func (e *engine[T]) submatrix(ctx context.Context, dst blas64.General, rows, cols []int) error {
	batches := e.rowBatches(rows, len(cols))
	return e.formBlocks(ctx, dst, cols, len(batches), func(b int) (points.Panel, []int, []int) {
		indices := make([]int, len(batches[b]))
		for slot, a := range batches[b] {
			indices[slot] = rows[max(a, 0)] // any row fills a free slot
		}
		return e.panelOf(indices), indices, batches[b]
	})
}

// rowBatches arranges rows in batches as large as a block, for a product with the given number of columns. A batch
// holds, for each of its slots, an index into rows, or −1 for a free slot.
//
// A BLAS may use other code for small products, and the bits of an entry may depend on its position in the product.
// With few columns in the last chunk of columns, each row therefore has the slot of its position in its own block. With
// more columns, the rows are packed one after the other. The rows of the last block, which may be shorter, have batches
// of that block's size.
func (e *engine[T]) rowBatches(rows []int, columns int) [][]int {
	const manyColumns = 16 // columns from which on products have the same bits at any position
	lastChunk := (columns-1)%e.size + 1
	packs, packedRows := lastChunk >= manyColumns, 0
	var batches [2][][]int              // batches of rows of full blocks, and of rows of the last block
	nextBatch := make([][2]int, e.size) // for each slot and both kinds, the first batch in which the slot is free
	for a, i := range rows {
		b := e.blockOf(e.position(i))
		lo, hi := e.block(b)
		slot, size, group := e.position(i)-lo, e.size, 0
		if b == e.blocks-1 {
			size, group = hi-lo, 1
		} else if packs {
			slot, packedRows = packedRows%size, packedRows+1
		}
		batch := nextBatch[slot][group]
		if nextBatch[slot][group]++; batch == len(batches[group]) {
			batches[group] = append(batches[group], slices.Repeat([]int{-1}, size))
		}
		batches[group][batch][slot] = a
	}
	all := slices.Concat(batches[:]...)
	if kernel.IsPairwise(e.k) { // evaluated pair by pair, so positions do not matter
		for b := range all {
			all[b] = slices.DeleteFunc(all[b], func(a int) bool { return a < 0 })
		}
	}
	return all
}

// formColumns forms k(x_i, x_c) for the columns c of idx, one block of rows at a time. Rank b mod P forms block b,
// where P is the number of ranks, and leaves the other blocks of dst unchanged.
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

// formBlocks sets dst to k(x_i, x_c) for the columns c of idx and the points i of several blocks of rows. For block b,
// the function block returns the points x, their indices i, and their rows of dst (−1 to skip a point).
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
			for a, i := range indices {
				if dstRows[a] < 0 {
					continue
				}
				dstRow := dst.Data[dstRows[a]*dst.Stride+chunkStart:]
				for k, v := range tile[a*len(chunk) : (a+1)*len(chunk)] {
					if chunk[k] == i { // the exact diagonal, as in the tiles
						v = T(e.diag[e.position(i)] - e.shift)
					}
					dstRow[k] = float64(v) + e.shift
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// panelOf returns the points idx, at least one, with their norms. It returns a slice of the panel of a block without
// copying if the points are contiguous there.
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

// EntryError returns a proved ε such that every entry (i, j) computed by Columns, Submatrix and Diag differs from K_ij,
// in exact arithmetic with the points as given, by at most ε√(K_ii·K_jj). It returns +Inf if no bound is known: if
// Choice().Certain is false, as for a stored matrix (the matrix of Exact has a bound), and for a user-defined kernel,
// whose rounding is unknown.
func (m *Matrix) EntryError() float64 {
	if !m.choice.Certain || !kernel.BuiltIn(m.k) {
		return math.Inf(1)
	}
	return kernel.EntryError(m.k, m.choice.Arithmetic, m.placement.Summary) + m.scaleError()
}

// scaleError bounds the relative error of multiplying an entry by two weight factors √w: the rounding of both factors
// and of two products, each at most 2⁻⁵³.
func (m *Matrix) scaleError() float64 {
	if m.factors == nil {
		return 0
	}
	return 4 * 0x1p-53
}
