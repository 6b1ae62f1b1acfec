package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// sumBlock is the number of products that are summed before the sum is added to the total. It limits the rounding
// error.
const sumBlock = 256

// Matrix is the kernel matrix K of n points, processed row by row.
type Matrix struct {
	N, D        int     // number and dimension of the points
	MaxDiagonal float64 // largest diagonal entry, max_i k(x_i, x_i)
	EntryError  float64 // bound of the rounding error of an entry of K, δ
	Stored      bool    // whether K is stored; otherwise its rows are formed again for each product
	// Weights are the weights w_i of the rows, for Apply and Residual; nil means ones.
	Weights []float64

	function *kernelFunction
	x        []float64 // points, n×d
	diag     []float64 // k(x_i, x_i)
	entries  []float64 // this rank's rows of K; nil if K is not stored
	// sqNorms has ‖x_i‖², from which ‖x−z‖² = ‖x‖²+‖z‖²−2xᵀz is computed without the zeros of x if at least half of all
	// coordinates are zero; nil: zeros are not skipped.
	sqNorms   []float64
	maxSqNorm float64 // largest of sqNorms
	// Progress, if not nil, is called with the number of completed rows in each pass over K.
	Progress func(completed, total int)

	comm comm.Comm
}

// New returns the matrix K of the kernel spec for the points x. It stores K if this takes at most memory bytes on each
// rank, 8n²/P bytes on P ranks. The rows of K are distributed over the ranks in groups of 16; each rank forms and
// stores its own groups. All ranks have all points and call New and the methods together. They get the same bits for
// any number of ranks. Nil ranks mean one process. progress, if not nil, becomes Matrix.Progress. New returns an error
// if there are no points, if k(x, x) is not finite, or if the kernel is unknown.
func New(ctx context.Context, ranks comm.Comm, spec kernel.Spec, x points.Points, memory int64,
	progress func(completed, total int)) (*Matrix, error) {
	function, err := newKernelFunction(spec)
	if err != nil {
		return nil, err
	}
	ranks = comm.OrAlone(ranks)
	n, d := x.Dims()
	if n < 1 || d < 1 {
		return nil, fmt.Errorf("verify: %d points of dimension %d", n, d)
	}
	m := &Matrix{N: n, D: d, function: function, x: coordinates(x), diag: make([]float64, n), Progress: progress,
		comm: ranks}
	for i := range n {
		m.diag[i] = function.diagonal(m.x[i*d : (i+1)*d])
		m.MaxDiagonal = max(m.MaxDiagonal, m.diag[i])
	}
	if math.IsInf(m.MaxDiagonal, 0) || math.IsNaN(m.MaxDiagonal) {
		return nil, fmt.Errorf("verify: k(x, x) is %v", m.MaxDiagonal)
	}
	m.skipZeros()
	m.EntryError = m.entryError(m.MaxDiagonal, m.maxSqNorm)
	return m, m.storeRows(ctx, memory)
}

// storeRows forms and stores this rank's rows of K if all ranks have enough memory for their rows. A single rank forms
// the lower triangle and copies it to the upper one; several ranks form whole rows, whose bits are the same.
func (m *Matrix) storeRows(ctx context.Context, memory int64) error {
	n, size := m.N, m.comm.Size()
	localRows := min(((n+groupRows-1)/groupRows+size-1)/size*groupRows, n) // the largest number of rows of a rank
	budget, err := comm.SmallestBudget(ctx, m.comm, accel.Budget{Limit: max(1, memory)})
	if err != nil || !budget.Fits(8*int64(localRows)*int64(n)) {
		return err
	}
	entries := make([]float64, localRows*n)
	err = m.forEachGroup(ctx, n, func(lo, hi int) {
		dst := make([][]float64, hi-lo)
		for i := lo; i < hi; i++ {
			end := n
			if size == 1 {
				end = i + 1
			}
			dst[i-lo] = entries[m.storageRow(i)*n:][:end]
		}
		m.formRows(dst, lo)
	})
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	m.entries, m.Stored = entries, true
	if size > 1 {
		return nil
	}
	// Copy the lower triangle to the upper one, in square tiles that fit into the cache.
	const tile = 256
	return accel.ForEach(ctx, (n+tile-1)/tile, func(_, tileColumn int) {
		for i0 := tileColumn * tile; i0 < n; i0 += tile {
			for i := i0; i < min(i0+tile, n); i++ {
				for j := tileColumn * tile; j < min((tileColumn+1)*tile, i); j++ {
					entries[j*n+i] = entries[i*n+j]
				}
			}
		}
	})
}

// formRows sets dst[r] to the first len(dst[r]) entries of row firstRow+r of K, which must include the diagonal entry.
func (m *Matrix) formRows(dst [][]float64, firstRow int) {
	z := make([][]float64, len(dst))
	for r := range z {
		z[r] = m.x[(firstRow+r)*m.D:][:m.D]
	}
	m.kernelRows(dst, z)
	for r, row := range dst {
		row[firstRow+r] = m.diag[firstRow+r]
	}
}

// storageRow returns the index in m.entries of row i of K. On P ranks, group g of rows is group g/P of its rank.
func (m *Matrix) storageRow(i int) int {
	return i/groupRows/m.comm.Size()*groupRows + i%groupRows
}

// gatherSums replaces each list by the sum of the lists of all ranks. Before the call each number must be 0 on all
// ranks but one. All ranks call it together. It returns err, or the error of another rank, if either is not nil.
func (m *Matrix) gatherSums(ctx context.Context, err error, lists ...[]float64) error {
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	for _, list := range lists {
		if err := comm.MergeDisjoint(ctx, m.comm, list); err != nil {
			return err
		}
	}
	return nil
}

// coordinates returns the coordinates of the points, n×d by rows.
func coordinates(x points.Points) []float64 {
	n, d := x.Dims()
	rows := make([]float64, n*d)
	for i := range n {
		x.RowTo(rows[i*d:(i+1)*d], i)
	}
	return rows
}

// groupRows is the number of rows of K that are formed together, so that each point is read once for all of them.
const groupRows = 16

// forEachGroup calls body for each of this rank's groups of the rows i < n, on all threads; lo and hi are the first row
// of the group and the row after it. It begins with the last groups, which take longest if only the lower triangle is
// formed.
func (m *Matrix) forEachGroup(ctx context.Context, n int, body func(lo, hi int)) error {
	groups, rank, size := (n+groupRows-1)/groupRows, m.comm.Rank(), m.comm.Size()
	groupsOfRank := (groups - rank + size - 1) / size // the groups rank, rank+size, rank+2·size, …
	var completed atomic.Int64
	return accel.ForEach(ctx, groupsOfRank, func(_, task int) {
		lo := (rank + (groupsOfRank-1-task)*size) * groupRows
		body(lo, min(lo+groupRows, n))
		// The progress of the other ranks is assumed to be that of this rank.
		if completedRows := int(completed.Add(groupRows)) * size; m.Progress != nil && task%8 == 7 {
			m.Progress(min(completedRows, n), n)
		}
	})
}

// skipZeros sets sqNorms and maxSqNorm, so that inner products of points skip zeros, if at least half of the
// coordinates are zero. It does nothing for kernels that are not functions of ‖x−z‖₂² or xᵀz.
func (m *Matrix) skipZeros() {
	zeros := 0
	for _, v := range m.x {
		if v == 0 {
			zeros++
		}
	}
	if 2*zeros < len(m.x) || !m.function.usesSquares && m.function.degree == 0 {
		return
	}
	m.sqNorms = make([]float64, m.N)
	for i := range m.sqNorms {
		m.sqNorms[i] = newSparseRow(m.x[i*m.D : (i+1)*m.D]).sqNorm
		m.maxSqNorm = max(m.maxSqNorm, m.sqNorms[i])
	}
}

// kernelRows sets dst[r] to k(z_r, x_j) for j < len(dst[r]). To use the cache, it computes the entries of all rows r
// for one block of points x_j before those of the next block.
func (m *Matrix) kernelRows(dst, z [][]float64) {
	rowLength := 0
	rows := make([]sparseRow, len(z))
	for r := range z {
		rowLength = max(rowLength, len(dst[r]))
		if m.sqNorms != nil {
			rows[r] = newSparseRow(z[r])
		}
	}
	step := max(4, (1<<14)/m.D&^3) // points in a block: 128 kB, and a multiple of 4 for sumRowsByFour
	for j0 := 0; j0 < rowLength; j0 += step {
		x := m.x[j0*m.D:]
		for r := range z {
			if j0 >= len(dst[r]) {
				continue
			}
			segment := dst[r][j0:min(j0+step, len(dst[r]))]
			if m.sqNorms == nil {
				m.function.fillSums(segment, z[r], x)
			} else {
				sparseProducts(segment, rows[r], x, m.D)
			}
			for j, sum := range segment {
				if m.sqNorms != nil && m.function.usesSquares {
					sum = max(0, rows[r].sqNorm+m.sqNorms[j0+j]-2*sum) // ‖x‖²+‖z‖²−2xᵀz
				}
				segment[j] = m.function.finish(sum)
			}
		}
	}
}

// Mul sets dst_i = Σ_j K_ij v_j for t vectors, with one pass over K. dst and v are n×t, stored by rows.
func (m *Matrix) Mul(ctx context.Context, dst, v []float64, t int) error {
	return m.mul(ctx, dst, v, t, func(row []float64) []float64 { return row })
}

// mulAbs sets dst_i = Σ_j |K_ij| v_j for t vectors, as Mul does for K.
func (m *Matrix) mulAbs(ctx context.Context, dst, v []float64, t int) error {
	if !m.function.mayBeNegative {
		return m.Mul(ctx, dst, v, t)
	}
	return m.mul(ctx, dst, v, t, func(row []float64) []float64 {
		row = slices.Clone(row)
		for j, entry := range row {
			row[j] = math.Abs(entry)
		}
		return row
	})
}

// mul sets dst to the product of v and the matrix whose rows are the transformed rows of K.
func (m *Matrix) mul(ctx context.Context, dst, v []float64, t int, transform func(row []float64) []float64) error {
	clear(dst)
	err := m.forEachGroup(ctx, m.N, func(lo, hi int) {
		for i, row := range m.rows(lo, hi) {
			i += lo
			blockedDot(dst[i*t:(i+1)*t], transform(row), v, t)
		}
	})
	return m.gatherSums(ctx, err, dst)
}

// rows returns rows lo to hi−1 of K, which must be a group of this rank.
func (m *Matrix) rows(lo, hi int) [][]float64 {
	rows := make([][]float64, hi-lo)
	for r := range rows {
		if m.entries == nil {
			rows[r] = make([]float64, m.N)
		} else {
			rows[r] = m.entries[m.storageRow(lo+r)*m.N:][:m.N]
		}
	}
	if m.entries == nil {
		m.formRows(rows, lo)
	}
	return rows
}

// blockedDot sets dst = Σ_j row_j·v_j, summed in blocks of sumBlock terms. dst and each v_j have t numbers.
func blockedDot(dst, row, v []float64, t int) {
	clear(dst)
	if t == 1 {
		for j0 := 0; j0 < len(row); j0 += sumBlock {
			var blockTotal float64
			for j, entry := range row[j0:min(j0+sumBlock, len(row))] {
				blockTotal += entry * v[j0+j]
			}
			dst[0] += blockTotal
		}
		return
	}
	blockSum := make([]float64, t)
	for j0 := 0; j0 < len(row); j0 += sumBlock {
		clear(blockSum)
		for j := j0; j < min(j0+sumBlock, len(row)); j++ {
			entry := row[j]
			for column, value := range v[j*t : (j+1)*t] {
				blockSum[column] += entry * value
			}
		}
		for column, blockTotal := range blockSum {
			dst[column] += blockTotal
		}
	}
}

// sumError returns (n/256+260)·u, a bound of the error of a sum of n products by blockedDot, relative to the sum of the
// magnitudes of the products. u is the unit roundoff.
func (m *Matrix) sumError() float64 { return (float64(m.N)/sumBlock + 260) * unitRoundoff }
