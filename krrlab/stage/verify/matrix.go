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
	N, D       int     // number and dimension of the points
	Largest    float64 // max_i k(x_i, x_i)
	EntryError float64 // δ, a bound of the error of an entry
	Stored     bool    // K is stored; otherwise its rows are formed again for each product
	// Weights are the weights w_i of the rows, for Apply and Residual; nil means ones.
	Weights []float64

	function  *function
	x         []float64 // points, n×d
	diag      []float64 // k(x_i, x_i)
	entries   []float64 // this rank's rows of K; nil if K is not stored
	sqNorms   []float64 // ‖x_i‖², if most coordinates are zero, for s = ‖x‖²+‖z‖²−2xᵀz; else nil
	maxSqNorm float64   // the largest of sqNorms
	// Progress, if not nil, is called with the number of completed rows in each pass over K.
	Progress func(completed, total int)

	comm comm.Comm
}

// New returns K for the points x, and stores it if that takes at most memory bytes on each rank, 8n²/P on P ranks. The
// rows of K are distributed over the ranks of c in groups of 16, and each rank forms and stores its own. All ranks have
// the points and call the methods together; all of them get the same bits for any number of ranks. A nil c means
// comm.Alone(). New returns an error if there are no points, or if k(x, x) is not finite.
func New(ctx context.Context, c comm.Comm, spec kernel.Spec, x points.Points, memory int64,
	progress func(completed, total int)) (*Matrix, error) {
	function, err := newFunction(spec)
	if err != nil {
		return nil, err
	}
	c = comm.OrAlone(c)
	n, d := x.Dims()
	if n < 1 || d < 1 {
		return nil, fmt.Errorf("verify: %d points of dimension %d", n, d)
	}
	m := &Matrix{N: n, D: d, function: function, x: dense(x), diag: make([]float64, n), Progress: progress, comm: c}
	for i := range n {
		m.diag[i] = function.diagonal(m.x[i*d : (i+1)*d])
		m.Largest = max(m.Largest, m.diag[i])
	}
	if math.IsInf(m.Largest, 0) || math.IsNaN(m.Largest) {
		return nil, fmt.Errorf("verify: k(x, x) is %v", m.Largest)
	}
	m.skipZeros()
	m.EntryError = m.entryError(m.Largest, m.maxSqNorm)
	return m, m.storeRows(ctx, memory)
}

// storeRows forms and stores this rank's rows of K, if all ranks have the memory for it. A single rank forms the lower
// triangle and copies it to the upper one, which has the same bits; several ranks form whole rows.
func (m *Matrix) storeRows(ctx context.Context, memory int64) error {
	n, size := m.N, m.comm.Size()
	localRows := min(((n+groupRows-1)/groupRows+size-1)/size*groupRows, n) // the most rows of a rank
	budget, err := comm.SmallestBudget(ctx, m.comm, accel.Budget{Limit: max(1, memory)})
	if err != nil || !budget.Fits(8*int64(localRows)*int64(n)) {
		return err
	}
	k := make([]float64, localRows*n)
	err = m.forEachGroup(ctx, n, func(lo, hi int) {
		dst := make([][]float64, hi-lo)
		for i := lo; i < hi; i++ {
			end := n
			if size == 1 {
				end = i + 1
			}
			dst[i-lo] = k[m.storageRow(i)*n:][:end]
		}
		m.formRows(dst, lo)
	})
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	m.entries, m.Stored = k, true
	if size > 1 {
		return nil
	}
	// Copy the lower triangle to the upper one, in square tiles that fit into the cache.
	return accel.ForEach(ctx, (n+sumBlock-1)/sumBlock, func(_, b int) {
		for i0 := b * sumBlock; i0 < n; i0 += sumBlock {
			for i := i0; i < min(i0+sumBlock, n); i++ {
				for j := b * sumBlock; j < min((b+1)*sumBlock, i); j++ {
					k[j*n+i] = k[i*n+j]
				}
			}
		}
	})
}

// formRows sets dst[r] to row lo+r of K, or to its first entries if dst[r] is shorter. It must include the diagonal.
func (m *Matrix) formRows(dst [][]float64, lo int) {
	z := make([][]float64, len(dst))
	for r := range z {
		z[r] = m.x[(lo+r)*m.D:][:m.D]
	}
	m.kernelRows(dst, z)
	for r, row := range dst {
		row[lo+r] = m.diag[lo+r]
	}
}

// storageRow returns the index of row i of K in entries: group g is group g/P of its rank.
func (m *Matrix) storageRow(i int) int {
	return i/groupRows/m.comm.Size()*groupRows + i%groupRows
}

// gatherSums adds the lists over the ranks, in place, and is collective. Before the call each number is on one rank,
// and 0 on the others. gatherSums returns err, or the error of another rank, if either is not nil.
func (m *Matrix) gatherSums(ctx context.Context, err error, lists ...[]float64) error {
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	for _, x := range lists {
		if err := comm.MergeDisjoint(ctx, m.comm, x); err != nil {
			return err
		}
	}
	return nil
}

// dense returns the coordinates of the points, n×d.
func dense(x points.Points) []float64 {
	n, d := x.Dims()
	out := make([]float64, n*d)
	for i := range n {
		x.RowTo(out[i*d:(i+1)*d], i)
	}
	return out
}

// groupRows is the number of rows of K that are formed together, so that each point is read once for all of them.
const groupRows = 16

// forEachGroup calls body for this rank's groups of the rows i < n, on all threads. It begins with the last groups,
// which take longest if only the lower triangle is formed.
func (m *Matrix) forEachGroup(ctx context.Context, n int, body func(lo, hi int)) error {
	groups, rank, size := (n+groupRows-1)/groupRows, m.comm.Rank(), m.comm.Size()
	tasks := (groups - rank + size - 1) / size // groups rank, rank+P, …
	var completed atomic.Int64
	return accel.ForEach(ctx, tasks, func(_, b int) {
		lo := (rank + (tasks-1-b)*size) * groupRows
		body(lo, min(lo+groupRows, n))
		// the rows of all ranks, as if they were equally fast
		if c := int(completed.Add(groupRows)) * size; m.Progress != nil && b%8 == 7 {
			m.Progress(min(c, n), n)
		}
	})
}

// skipZeros makes products of rows skip zeros if at least half of the coordinates are zero. It does nothing for kernels
// that are not functions of ‖x−z‖₂² or xᵀz.
func (m *Matrix) skipZeros() {
	zeros := 0
	for _, v := range m.x {
		if v == 0 {
			zeros++
		}
	}
	if 2*zeros < len(m.x) || !m.function.squares && m.function.degree == 0 {
		return
	}
	m.sqNorms = make([]float64, m.N)
	for i := range m.sqNorms {
		m.sqNorms[i] = newSparseRow(m.x[i*m.D : (i+1)*m.D]).sqNorm
		m.maxSqNorm = max(m.maxSqNorm, m.sqNorms[i])
	}
}

// kernelRows sets dst_r to k(z_r, x_j), j < len(dst_r). It processes a block of points x_j for all r at a time.
func (m *Matrix) kernelRows(dst, z [][]float64) {
	rowLength := 0
	rows := make([]sparseRow, len(z))
	for r := range z {
		rowLength = max(rowLength, len(dst[r]))
		if m.sqNorms != nil {
			rows[r] = newSparseRow(z[r])
		}
	}
	step := max(4, (1<<14)/m.D&^3) // 128 kB of points
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
			for j, s := range segment {
				if m.sqNorms != nil && m.function.squares {
					s = max(0, rows[r].sqNorm+m.sqNorms[j0+j]-2*s) // ‖x‖²+‖z‖²−2xᵀz
				}
				segment[j] = m.function.finish(s)
			}
		}
	}
}

// Mul sets dst_i = Σ_j K_ij v_j for t vectors, with one pass over K. dst and v are n×t row by row.
func (m *Matrix) Mul(ctx context.Context, dst, v []float64, t int) error {
	return m.mul(ctx, dst, v, t, func(row []float64) []float64 { return row })
}

// mulAbs sets dst_i = Σ_j |K_ij| v_j for t vectors, as Mul does for K.
func (m *Matrix) mulAbs(ctx context.Context, dst, v []float64, t int) error {
	if !m.function.signed {
		return m.Mul(ctx, dst, v, t)
	}
	return m.mul(ctx, dst, v, t, func(row []float64) []float64 {
		row = slices.Clone(row)
		for j, k := range row {
			row[j] = math.Abs(k)
		}
		return row
	})
}

// mul multiplies by K with each row transformed.
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

// rows returns rows lo … hi−1 of K. They are a group of this rank.
func (m *Matrix) rows(lo, hi int) [][]float64 {
	out := make([][]float64, hi-lo)
	for r := range out {
		if m.entries == nil {
			out[r] = make([]float64, m.N)
		} else {
			out[r] = m.entries[m.storageRow(lo+r)*m.N:][:m.N]
		}
	}
	if m.entries == nil {
		m.formRows(out, lo)
	}
	return out
}

// blockedDot sets dst = Σ_j row_j·v_j, summed in blocks. Each v_j has t numbers.
func blockedDot(dst, row, v []float64, t int) {
	clear(dst)
	if t == 1 {
		for j0 := 0; j0 < len(row); j0 += sumBlock {
			var p float64
			for j, k := range row[j0:min(j0+sumBlock, len(row))] {
				p += k * v[j0+j]
			}
			dst[0] += p
		}
		return
	}
	blockSum := make([]float64, t)
	for j0 := 0; j0 < len(row); j0 += sumBlock {
		clear(blockSum)
		for j := j0; j < min(j0+sumBlock, len(row)); j++ {
			k := row[j]
			for c, x := range v[j*t : (j+1)*t] {
				blockSum[c] += k * x
			}
		}
		for c, p := range blockSum {
			dst[c] += p
		}
	}
}

// sumError returns (n/256+260)·u, a bound of the error of a sum of n products in blocks, relative to the sum of their
// magnitudes.
func (m *Matrix) sumError() float64 { return (float64(m.N)/sumBlock + 260) * unitRoundoff }
