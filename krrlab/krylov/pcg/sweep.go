package pcg

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// sweep goes over the rows of n×t blocks on all threads, in pieces of rowBlock rows, which a cache
// holds. What a piece sums to is added in the order of the rows, so that sums have the same bits
// for any number of threads.
type sweep struct {
	sums  []float64   // of the pieces under way
	work  [][]float64 // of each worker
	n     int
	from  int // first piece of those under way
	size  int // of a sum
	task  rowTask
	piece func(worker, q int)
}

// rowTask is what a sweep does with rows i0, …, i1-1. It adds to sum, zero at first, and may use work,
// of t numbers a row.
type rowTask interface {
	rows(i0, i1 int, sum, work []float64)
}

// run sets dst to the sum over n rows, with scratch of t numbers a row.
func (s *sweep) run(dst []float64, n, t int, task rowTask) {
	pieces, threads := (n+rowBlock-1)/rowBlock, accel.Threads()
	s.n, s.size, s.task = n, len(dst), task
	wave := min(pieces, max(2*threads, n/max(1, s.size))) // sums of n numbers at most, but for large t
	if len(s.sums) < wave*s.size {
		s.sums = make([]float64, wave*s.size)
	}
	for len(s.work) < threads {
		s.work = append(s.work, nil)
	}
	for w := range s.work[:min(threads, pieces)] {
		if need := min(n, rowBlock) * t; len(s.work[w]) < need {
			s.work[w] = make([]float64, need)
		}
	}
	if s.piece == nil {
		s.piece = s.one
	}
	clear(dst)
	for s.from = 0; s.from < pieces; s.from += wave {
		count := min(wave, pieces-s.from)
		_ = accel.ForEach(context.Background(), count, s.piece) // pieces are short: a context is asked between products
		for q := range count {
			for j, v := range s.sum(q) {
				dst[j] += v
			}
		}
	}
}

// sum returns that of piece q of those under way.
func (s *sweep) sum(q int) []float64 { return s.sums[q*s.size : (q+1)*s.size] }

// one does piece q of those under way.
func (s *sweep) one(worker, q int) {
	i0, sum := (s.from+q)*rowBlock, s.sum(q)
	clear(sum)
	s.task.rows(i0, min(i0+rowBlock, s.n), sum, s.work[worker])
}

// cross sets dst = XᵀY, k×k, for two n×k blocks with contiguous rows.
func (s *solver) cross(dst []float64, x, y *mat.Dense) {
	_, k := x.Dims()
	s.left, s.right, s.new = x.RawMatrix().Data, y.RawMatrix().Data, k
	s.sweep.run(dst[:k*k], s.n, s.t, (*crossRows)(s))
}

type crossRows solver

func (s *crossRows) rows(i0, i1 int, sum, _ []float64) {
	k := s.new
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, rowsOf(s.left, i0, i1, k), rowsOf(s.right, i0, i1, k), 0,
		rowsOf(sum, 0, k, k))
}

// times sets the n×k block at the start of buf to add + XF, X the n×old block there and F old×k; a
// nil add is 0.
func (s *solver) times(buf []float64, old, k int, f, add []float64) {
	if k == 0 {
		return
	}
	s.left, s.right, s.by, s.old, s.new = buf, add, f, old, k
	s.sweep.run(nil, s.n, s.t, (*timesRows)(s))
	for i := 1; i < s.n && k < old; i++ {
		copy(buf[i*k:(i+1)*k], buf[i*old:])
	}
}

type timesRows solver

func (s *timesRows) rows(i0, i1 int, _, work []float64) {
	k := s.new
	out := work[:(i1-i0)*k]
	clear(out)
	if s.right != nil {
		copy(out, s.right[i0*k:i1*k])
	}
	thin(1, rowsOf(s.left, i0, i1, s.old), rowsOf(s.by, 0, s.old, k), rowsOf(out, 0, i1-i0, k))
	for i := i0; i < i1; i++ {
		copy(s.left[i*s.old:i*s.old+k], out[(i-i0)*k:])
	}
}

// thin adds c·XF to dst, some rows at a time: gonum's product of more starts goroutines.
func thin(c float64, x, f, dst blas64.General) {
	const some = 128
	for i := 0; i < x.Rows; i += some {
		end := min(i+some, x.Rows)
		blas64.Gemm(blas.NoTrans, blas.NoTrans, c, rowsOf(x.Data, i, end, x.Cols), f, 1,
			rowsOf(dst.Data, i, end, dst.Cols))
	}
}

// rowsOf returns rows i0, …, i1-1 of a matrix with k columns and contiguous rows.
func rowsOf(x []float64, i0, i1, k int) blas64.General {
	return blas64.General{Rows: i1 - i0, Cols: k, Stride: k, Data: x[i0*k : i1*k]}
}
