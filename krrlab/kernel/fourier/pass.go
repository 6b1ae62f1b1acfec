package fourier

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// blockRows is the largest number of points of a cell that are multiplied together. With more, the scratch memory
// exceeds the cache; with fewer, the matrix products are slower.
const blockRows = 256

// tensor is an array of numbers for all products over the axes of cos 0, sin 0, cos θ, sin θ, … up to a frequency: sums
// of such products over points, or the coefficients of a sum of them.
type tensor struct {
	widths [MaxDim]int // along each axis; 1 along an axis that the points do not have
	data   []float64   // row-major, the last axis fastest
}

// newTensor returns a tensor of zeros with frequencies up to factor times the top frequencies of the series.
func (s *Series) newTensor(factor int) tensor {
	w := s.tensorWidths(factor)
	return tensor{widths: w, data: make([]float64, w[0]*w[1]*w[2])}
}

// tensorWidths returns the widths of the tensor that newTensor returns.
func (s *Series) tensorWidths(factor int) [MaxDim]int {
	w := [MaxDim]int{1, 1, 1}
	for a := range s.axes {
		w[tensorAxis(a, len(s.axes))] = functionCount(factor * s.axes[a].topFrequency)
	}
	return w
}

// tensorAxis returns the axis of a tensor that stands for axis a of points in d dimensions. With d < 3 the first axis
// of the tensor is empty, because the rows of cells along the second axis are divided among threads.
func tensorAxis(a, d int) int { return a + min(1, MaxDim-d) }

// pass is one pass over points, which evaluates tensors at them and sums others over them.
//
// In each cell the cosines and sines of an axis are combinations of Chebyshev polynomials, of which there are few. The
// axes are treated one after the other: the first for a slab of cells, the second for a row of cells in it, the last
// for a cell. Ranks and threads share the rows of a slab. The sums of the rows are added in the order of the rows.
type pass struct {
	comm              comm.Comm         // the ranks that share the pass
	points            points.Points     // the points, known to all ranks
	expansions        [MaxDim]expansion // cells and polynomials of each axis
	starts            []int             // points of cell k are order[starts[k]:starts[k+1]]
	order             []int32           // the points, cell by cell
	evaluated, summed []tensor          // tensors to evaluate at the points, and to add sums over the points to
	use               pointUse          // called for each point
	workers           []*passWorker     // one for each thread; nil before its first row
}

// pointUse takes the values of the evaluated tensors at point i, and sets the coefficients of the point in the sums. It
// is called once for each point, and for different points at the same time. If tensors are evaluated, every rank calls
// it for all points, and otherwise for the points whose sums it computes.
type pointUse func(i int, values, coefficients []float64)

// pass evaluates the evaluated tensors at the points and adds the sums over the points to the summed ones. Their
// frequencies are at most those of the series times factor. The order of all sums depends on the points alone, so that
// the bits do not depend on the number of threads and ranks.
func (s *Series) pass(ctx context.Context, x points.Points, factor int, evaluated, summed []tensor,
	use pointUse) error {
	n, _ := x.Dims()
	if n > math.MaxInt32 {
		return fmt.Errorf("a Fourier series takes at most %d points, not %d", math.MaxInt32, n)
	}
	p := &pass{comm: s.options.Comm, points: x, evaluated: evaluated, summed: summed, use: use,
		workers: make([]*passWorker, accel.Threads())}
	p.expansions, _ = s.expansions(factor, n, len(evaluated)+len(summed))
	if err := p.sort(ctx); err != nil {
		return err
	}
	for axisIndex := range p.expansions {
		p.expansions[axisIndex].setBessel()
	}
	for cell := range p.expansions[0].cells {
		if err := p.processSlab(ctx, cell); err != nil {
			return err
		}
	}
	return p.broadcastSums(ctx)
}

// sort orders the points by their cells.
func (p *pass) sort(ctx context.Context) error {
	const pointsPerTask = 1024
	n, d := p.points.Dims()
	e := &p.expansions
	cells := make([]int32, n)
	err := accel.ForEach(ctx, (n+pointsPerTask-1)/pointsPerTask, func(_, task int) {
		row := make([]float64, d)
		for i := task * pointsPerTask; i < min((task+1)*pointsPerTask, n); i++ {
			p.points.RowTo(row, i)
			cell := 0
			for a, v := range row {
				index, _ := e[tensorAxis(a, d)].locate(v)
				cell = cell*e[tensorAxis(a, d)].cells + index
			}
			cells[i] = int32(cell)
		}
	})

	// A counting sort keeps the points of a cell in the order of their indices.
	p.starts, p.order = make([]int, e[0].cells*e[1].cells*e[2].cells+1), make([]int32, n)
	for _, cell := range cells {
		p.starts[cell+1]++
	}
	for cell := range len(p.starts) - 1 {
		p.starts[cell+1] += p.starts[cell]
	}
	nextIndex := slices.Clone(p.starts) // next free index of order for each cell
	for i, cell := range cells {
		p.order[nextIndex[cell]] = int32(i)
		nextIndex[cell]++
	}
	return err
}

// passWorker is the scratch memory of one goroutine. In the shapes, b is the number of points of a block, p is the
// number of products of polynomials of the first two axes, and l is the number of polynomials of the last axis.
type passWorker struct {
	point                []float64              // coordinates of one point
	factors              [MaxDim]blas64.General // polynomials of each axis at the points, b×(number of polynomials)
	pairs                blas64.General         // products of the polynomials of the first two axes, b×p
	scaled               blas64.General         // polynomials of the last axis times the coefficients of a sum, b×l
	product              blas64.General         // polynomials of the last axis times an evaluated tensor, b×p
	values, coefficients blas64.General         // values of evaluated tensors, coefficients in summed ones, b×tensors
	rows                 []blas64.General       // evaluated tensors in a row of cells, p×(width of the last axis)
	evaluated, summed    []blas64.General       // tensors in the polynomials of a cell, p×l
	second, third        []float64              // scratch memory of expansion.coefficients
}

// worker returns the scratch memory of the goroutine with the given index.
func (p *pass) worker(index int) *passWorker {
	if w := p.workers[index]; w != nil {
		return w
	}
	_, d := p.points.Dims()
	e := &p.expansions
	pairs := e[0].terms * e[1].terms
	w := &passWorker{point: make([]float64, d), pairs: zeroMatrix(blockRows, pairs),
		scaled:  zeroMatrix(blockRows, e[2].terms),
		product: zeroMatrix(blockRows, pairs), values: zeroMatrix(blockRows, len(p.evaluated)),
		coefficients: zeroMatrix(blockRows, len(p.summed))}
	for axisIndex := range e {
		w.factors[axisIndex] = zeroMatrix(blockRows, e[axisIndex].terms)
	}
	for _, t := range p.evaluated {
		w.rows = append(w.rows, zeroMatrix(pairs, t.widths[2]))
		w.evaluated = append(w.evaluated, zeroMatrix(pairs, e[2].terms))
	}
	for range p.summed {
		w.summed = append(w.summed, zeroMatrix(pairs, e[2].terms))
	}
	p.workers[index] = w
	return w
}

// processRow evaluates and sums the points of one row of a slab, cell by cell, and adds the results to s.sums[row].
func (p *pass) processRow(worker int, s *slab, row int) {
	e := &p.expansions
	starts := p.rowStarts(s.cell, row)
	w := p.worker(worker)
	if len(p.evaluated) > 0 {
		second := e[1].coefficients(row, &w.second)
		for j, t := range p.evaluated {
			for k := range e[0].terms {
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, submatrix(second, 0, second.Rows, 0, t.widths[1]),
					matrix(t.widths[1], t.widths[2], s.evaluated[j].Data[k*s.evaluated[j].Stride:]), 0,
					submatrix(w.rows[j], k*second.Rows, second.Rows, 0, t.widths[2]))
			}
		}
	}
	for cell := range e[2].cells {
		if start, end := starts[cell], starts[cell+1]; start < end {
			p.processCell(w, s, cell, start, end, s.sums[row])
		}
	}
}

// processCell evaluates and sums the points order[start:end] of one cell, and adds the results to sums, one for each
// summed tensor.
func (p *pass) processCell(w *passWorker, s *slab, cell, start, end int, sums []blas64.General) {
	third := p.expansions[2].coefficients(cell, &w.third)
	for j, t := range p.evaluated {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, w.rows[j], submatrix(third, 0, third.Rows, 0, t.widths[2]), 0,
			w.evaluated[j])
	}
	for j := range sums {
		clear(w.summed[j].Data)
	}
	for ; start < end; start += blockRows {
		p.processBlock(w, s, start, min(start+blockRows, end))
	}
	for j, t := range p.summed {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, w.summed[j], submatrix(third, 0, third.Rows, 0, t.widths[2]), 1,
			sums[j])
	}
}

// processBlock evaluates and sums the points order[start:end] of a cell, at most blockRows, and adds the results to
// w.summed.
func (p *pass) processBlock(w *passWorker, s *slab, start, end int) {
	members, rows := p.order[start:end], end-start
	head := func(g blas64.General) blas64.General { return submatrix(g, 0, rows, 0, g.Cols) }
	row := func(g blas64.General, k int) []float64 { return g.Data[k*g.Stride : k*g.Stride+g.Cols] }

	// Compute the polynomials of each axis at the points, and the products of those of the first two axes.
	for k, i := range members {
		p.points.RowTo(w.point, int(i))
		for axisIndex := range w.factors {
			x := 0.0
			if a := axisIndex - tensorAxis(0, len(w.point)); a >= 0 && a < len(w.point) {
				_, x = p.expansions[axisIndex].locate(w.point[a])
			}
			chebyshev(row(w.factors[axisIndex], k), x)
		}
		pairs, second := row(w.pairs, k), row(w.factors[1], k)
		for q, factor := range row(w.factors[0], k) {
			for l, v := range second {
				pairs[q*len(second)+l] = factor * v
			}
		}
	}

	for j, tensor := range w.evaluated {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, head(w.factors[2]), tensor, 0, head(w.product))
		for k := range members {
			w.values.Data[k*w.values.Stride+j] = blas64.Dot(blas64.Vector{N: w.pairs.Cols, Inc: 1,
				Data: row(w.pairs, k)}, blas64.Vector{N: w.pairs.Cols, Inc: 1, Data: row(w.product, k)})
		}
	}
	for k, i := range members {
		p.use(int(i), row(w.values, k), row(w.coefficients, k))
		s.storeValues(start+k, row(w.values, k))
	}

	for j, tensor := range w.summed {
		for k := range members {
			factor, scaled := w.coefficients.Data[k*w.coefficients.Stride+j], row(w.scaled, k)
			for l, v := range row(w.factors[2], k) {
				scaled[l] = factor * v
			}
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, head(w.pairs), head(w.scaled), 1, tensor)
	}
}
