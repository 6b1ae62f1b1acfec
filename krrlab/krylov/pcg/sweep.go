package pcg

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// sweep processes the rows of n×t blocks on all threads, in pieces of rowBlock rows that fit into a cache. The sums of
// the pieces are added in row order, so the results have the same bits for any number of threads. Pieces are processed
// in waves, which limits the memory for their sums.
type sweep struct {
	sums         []float64   // sums of the pieces of the current wave
	work         [][]float64 // scratch memory of each worker
	n            int         // number of rows
	firstPiece   int         // index of the first piece of the current wave
	sumSize      int         // number of entries of a sum
	task         rowTask
	runPieceFunc func(worker, piece int) // runPiece; as a field it is allocated only once
}

// rowTask is the operation of a sweep. The method rows processes rows i0, …, i1-1 and adds to sum, which is initially
// zero. It may use work, which has t numbers per row.
type rowTask interface {
	rows(i0, i1 int, sum, work []float64)
}

// run sets dst to the sum of the task over n rows, with scratch memory of t numbers per row.
func (s *sweep) run(dst []float64, n, t int, task rowTask) {
	pieces, threads := (n+rowBlock-1)/rowBlock, accel.Threads()
	s.n, s.sumSize, s.task = n, len(dst), task
	wave := min(pieces, max(2*threads, n/max(1, s.sumSize))) // the sums have at most n entries, unless t is large
	if len(s.sums) < wave*s.sumSize {
		s.sums = make([]float64, wave*s.sumSize)
	}
	for len(s.work) < threads {
		s.work = append(s.work, nil)
	}
	for worker := range s.work[:min(threads, pieces)] {
		if size := min(n, rowBlock) * t; len(s.work[worker]) < size {
			s.work[worker] = make([]float64, size)
		}
	}
	if s.runPieceFunc == nil {
		s.runPieceFunc = s.runPiece
	}
	clear(dst)
	for s.firstPiece = 0; s.firstPiece < pieces; s.firstPiece += wave {
		count := min(wave, pieces-s.firstPiece)
		_ = accel.ForEach(context.Background(), count, s.runPieceFunc) // pieces are short, so ctx is not needed
		for piece := range count {
			for j, v := range s.sum(piece) {
				dst[j] += v
			}
		}
	}
}

// sum returns the sum of the given piece of the current wave.
func (s *sweep) sum(piece int) []float64 { return s.sums[piece*s.sumSize : (piece+1)*s.sumSize] }

// runPiece processes the given piece of the current wave.
func (s *sweep) runPiece(worker, piece int) {
	i0, sum := (s.firstPiece+piece)*rowBlock, s.sum(piece)
	clear(sum)
	s.task.rows(i0, min(i0+rowBlock, s.n), sum, s.work[worker])
}

// crossProduct sets dst = XᵀY, k×k, for two n×k blocks with contiguous rows.
func (s *solver) crossProduct(dst []float64, x, y *mat.Dense) {
	_, k := x.Dims()
	s.leftBlock, s.rightBlock, s.newWidth = x.RawMatrix().Data, y.RawMatrix().Data, k
	s.sweep.run(dst[:k*k], s.n, s.t, (*crossRows)(s))
}

// crossRows is a solver as the rowTask of crossProduct.
type crossRows solver

// rows implements rowTask.
func (s *crossRows) rows(i0, i1 int, sum, _ []float64) {
	k := s.newWidth
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, rowsOf(s.leftBlock, i0, i1, k), rowsOf(s.rightBlock, i0, i1, k), 0,
		rowsOf(sum, 0, k, k))
}

// multiplyBlock sets the n×k block at the start of buf to add + XF, where X is the n×oldWidth block in the same place
// and F is oldWidth×k. A nil add means 0.
func (s *solver) multiplyBlock(buf []float64, oldWidth, k int, f, add []float64) {
	if k == 0 {
		return
	}
	s.leftBlock, s.rightBlock, s.multiplier, s.oldWidth, s.newWidth = buf, add, f, oldWidth, k
	s.sweep.run(nil, s.n, s.t, (*productRows)(s))
	for i := 1; i < s.n && k < oldWidth; i++ {
		copy(buf[i*k:(i+1)*k], buf[i*oldWidth:])
	}
}

// productRows is a solver as the rowTask of multiplyBlock.
type productRows solver

// rows implements rowTask.
func (s *productRows) rows(i0, i1 int, _, work []float64) {
	k := s.newWidth
	out := work[:(i1-i0)*k]
	clear(out)
	if s.rightBlock != nil {
		copy(out, s.rightBlock[i0*k:i1*k])
	}
	addThinProduct(1, rowsOf(s.leftBlock, i0, i1, s.oldWidth), rowsOf(s.multiplier, 0, s.oldWidth, k),
		rowsOf(out, 0, i1-i0, k))
	for i := i0; i < i1; i++ {
		copy(s.leftBlock[i*s.oldWidth:i*s.oldWidth+k], out[(i-i0)*k:])
	}
}

// addThinProduct adds c·XF to dst in chunks of rows, because gonum's Gemm starts goroutines for larger matrices.
func addThinProduct(c float64, x, f, dst blas64.General) {
	const chunkRows = 128
	for i := 0; i < x.Rows; i += chunkRows {
		end := min(i+chunkRows, x.Rows)
		blas64.Gemm(blas.NoTrans, blas.NoTrans, c, rowsOf(x.Data, i, end, x.Cols), f, 1,
			rowsOf(dst.Data, i, end, dst.Cols))
	}
}

// rowsOf returns rows i0, …, i1-1 of a matrix with k columns and contiguous rows.
func rowsOf(x []float64, i0, i1, k int) blas64.General {
	return blas64.General{Rows: i1 - i0, Cols: k, Stride: k, Data: x[i0*k : i1*k]}
}
