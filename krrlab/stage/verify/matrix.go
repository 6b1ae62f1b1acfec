package verify

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// block is the number of terms summed before a sum of sums takes over.
const block = 256

// Matrix is K of n points, row by row.
type Matrix struct {
	N, D    int
	Largest float64 // max_i k(x_i, x_i)
	Entry   float64 // δ: bound of the error of an entry
	Stored  bool

	f    *function
	x    []float64 // n×d
	diag []float64
	k    []float64 // n×n, or nil: rows are formed again for each product
	sq   []float64 // ‖x_i‖², where most coordinates are zero and s = ‖x‖²+‖z‖²−2xᵀz
	norm float64   // the largest of them
	// Progress, if not nil, is called with the rows done of each pass over K.
	Progress func(done, total int)

	comm comm.Comm
}

// New takes the points, and forms K where its 8n² bytes are at most memory. The rows of K are dealt
// to the ranks of c, in groups of 16, each of which forms and holds its own where the 8n²/P bytes
// are at most the memory of each. All ranks have the points and call the methods together, which
// give all of them the same bits for any number of ranks. A nil c means comm.Alone().
func New(ctx context.Context, c comm.Comm, spec kernel.Spec, x points.Points, memory int64,
	progress func(done, total int)) (*Matrix, error) {
	f, err := newFunction(spec)
	if err != nil {
		return nil, err
	}
	c = comm.OrAlone(c)
	n, d := x.Dims()
	if n < 1 || d < 1 {
		return nil, fmt.Errorf("verify: %d points of dimension %d", n, d)
	}
	m := &Matrix{N: n, D: d, f: f, x: dense(x), diag: make([]float64, n), Progress: progress, comm: c}
	for i := range n {
		m.diag[i] = f.own(m.x[i*d : (i+1)*d])
		m.Largest = max(m.Largest, m.diag[i])
	}
	if math.IsInf(m.Largest, 0) || math.IsNaN(m.Largest) {
		return nil, fmt.Errorf("verify: k(x, x) is %v", m.Largest)
	}
	m.thin()
	m.Entry = f.entry(d, m.Largest, m.sq != nil, m.norm)
	return m, m.hold(ctx, memory)
}

// hold forms this rank's rows of K, where all ranks have the memory for theirs: one rank the lower half, which has the
// bits of the upper one, more of them whole rows.
func (m *Matrix) hold(ctx context.Context, memory int64) error {
	n, size := m.N, m.comm.Size()
	own := min(((n+group-1)/group+size-1)/size*group, n) // at most
	const short, enough = 1, 2
	state := int64(enough)
	if 8*int64(own)*int64(n) > memory {
		state = short
	}
	if state, err := comm.Least(ctx, m.comm, state); err != nil || state == short {
		return err
	}
	k := make([]float64, own*n)
	err := m.each(ctx, n, func(lo, hi int) {
		dst := make([][]float64, hi-lo)
		for i := lo; i < hi; i++ {
			end := n
			if size == 1 {
				end = i + 1
			}
			dst[i-lo] = k[m.place(i)*n:][:end]
		}
		m.form(dst, lo)
	})
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	m.k, m.Stored = k, true
	if size > 1 {
		return nil
	}
	return accel.ForEach(ctx, (n+block-1)/block, func(_, b int) { // the upper half
		for i0 := b * block; i0 < n; i0 += block {
			for i := i0; i < min(i0+block, n); i++ {
				for j := b * block; j < min((b+1)*block, i); j++ {
					k[j*n+i] = k[i*n+j]
				}
			}
		}
	})
}

// form sets dst to rows lo, … of K, or their beginnings.
func (m *Matrix) form(dst [][]float64, lo int) {
	z := make([][]float64, len(dst))
	for r := range z {
		z[r] = m.x[(lo+r)*m.D:][:m.D]
	}
	m.values(dst, z)
	for r, row := range dst {
		row[lo+r] = m.diag[lo+r]
	}
}

// place returns where row i of K is kept: group g is group g/P of its rank.
func (m *Matrix) place(i int) int {
	return i/group/m.comm.Size()*group + i%group
}

// gather completes the lists, of which one rank has each number and the others 0, unless
// err, or that of another rank, is not nil.
func (m *Matrix) gather(ctx context.Context, err error, lists ...[]float64) error {
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	for _, x := range lists {
		if err := comm.Merge(ctx, m.comm, x); err != nil {
			return err
		}
	}
	return nil
}

func dense(x points.Points) []float64 {
	n, d := x.Dims()
	out := make([]float64, n*d)
	for i := range n {
		x.RowTo(out[i*d:(i+1)*d], i)
	}
	return out
}

// group is how many rows of K are formed together, so that points are read once for all.
const group = 16

// each runs body for groups of the rows i < n on all threads, from the last, which are longest;
// on ranks for this one's groups.
func (m *Matrix) each(ctx context.Context, n int, body func(lo, hi int)) error {
	all, rank, size := (n+group-1)/group, m.comm.Rank(), m.comm.Size()
	tasks := (all - rank + size - 1) / size // groups rank, rank+P, …
	var done atomic.Int64
	return accel.ForEach(ctx, tasks, func(_, b int) {
		lo := (rank + (tasks-1-b)*size) * group
		body(lo, min(lo+group, n))
		if c := int(done.Add(group)) * size; m.Progress != nil && b%8 == 7 {
			m.Progress(min(c, n), n)
		}
	})
}

// thin makes products of rows skip zeros where at least half of the coordinates are.
func (m *Matrix) thin() {
	zeros := 0
	for _, v := range m.x {
		if v == 0 {
			zeros++
		}
	}
	if 2*zeros < len(m.x) || !m.f.squares && m.f.degree == 0 {
		return
	}
	m.sq = make([]float64, m.N)
	for i := range m.sq {
		m.sq[i] = newGather(m.x[i*m.D : (i+1)*m.D]).sq
		m.norm = max(m.norm, m.sq[i])
	}
}

// values sets dst_r to k(z_r, x_j), j < len(dst_r), some points x_j at a time for all r.
func (m *Matrix) values(dst, z [][]float64) {
	most := 0
	rows := make([]gather, len(z))
	for r := range z {
		most = max(most, len(dst[r]))
		if m.sq != nil {
			rows[r] = newGather(z[r])
		}
	}
	step := max(4, (1<<14)/m.D&^3) // 128 kB of points
	for j0 := 0; j0 < most; j0 += step {
		x := m.x[j0*m.D:]
		for r := range z {
			if j0 >= len(dst[r]) {
				continue
			}
			part := dst[r][j0:min(j0+step, len(dst[r]))]
			if m.sq == nil {
				m.f.sum(part, z[r], x)
			} else {
				sparseProducts(part, rows[r], x, m.D)
			}
			for j, s := range part {
				if m.sq != nil && m.f.squares {
					s = max(0, rows[r].sq+m.sq[j0+j]-2*s) // ‖x‖²+‖z‖²−2xᵀz
				}
				part[j] = m.f.finish(s)
			}
		}
	}
}

// Mul sets dst_i = Σ_j |K_ij| v_j or Σ_j K_ij v_j for t vectors, dst and v being n×t row by
// row, with one pass over K.
func (m *Matrix) Mul(ctx context.Context, dst, v []float64, t int, absolute bool) error {
	clear(dst)
	err := m.each(ctx, m.N, func(lo, hi int) {
		for i, row := range m.rows(lo, hi) {
			i += lo
			if absolute && m.f.signed {
				row = append([]float64(nil), row...)
				for j, k := range row {
					row[j] = math.Abs(k)
				}
			}
			combine(dst[i*t:(i+1)*t], row, v, t)
		}
	})
	return m.gather(ctx, err, dst)
}

// rows returns rows lo … hi−1 of K.
func (m *Matrix) rows(lo, hi int) [][]float64 {
	out := make([][]float64, hi-lo)
	for r := range out {
		if m.k == nil {
			out[r] = make([]float64, m.N)
		} else {
			out[r] = m.k[m.place(lo+r)*m.N:][:m.N]
		}
	}
	if m.k == nil {
		m.form(out, lo)
	}
	return out
}

// combine sets dst = Σ_j row_j·v_j, v_j being t numbers, in blocks.
func combine(dst, row, v []float64, t int) {
	clear(dst)
	if t == 1 {
		for j0 := 0; j0 < len(row); j0 += block {
			var p float64
			for j, k := range row[j0:min(j0+block, len(row))] {
				p += k * v[j0+j]
			}
			dst[0] += p
		}
		return
	}
	part := make([]float64, t)
	for j0 := 0; j0 < len(row); j0 += block {
		clear(part)
		for j := j0; j < min(j0+block, len(row)); j++ {
			k := row[j]
			for c, x := range v[j*t : (j+1)*t] {
				part[c] += k * x
			}
		}
		for c, p := range part {
			dst[c] += p
		}
	}
}

// sumError returns (n/256+260)·u, the relative error of a sum of n products in blocks.
func (m *Matrix) sumError() float64 { return (float64(m.N)/block + 260) * unit }
