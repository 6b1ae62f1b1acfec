package fourier

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// slab is a slab of cells that a pass processes: its rows, the ranks that own them, and their results.
type slab struct {
	cell            int                // index of the slab along the first axis
	start, end      int                // the points of the slab are order[start:end]
	evaluated       []blas64.General   // each evaluated tensor, (polynomials of the first axis)×(widths of the others)
	owners          []int              // rank that owns each row; −1 for a row without points
	sums            [][]blas64.General // sum of each row and tensor, (polynomials of two axes)×(width of the last)
	sumStorage      []float64          // memory of all sums, one row after the other
	rankSumCounts   []int              // number of elements of sumStorage that each rank computes
	values          []float64          // evaluated tensors at the points, point by point; nil in one process
	rankValueCounts []int              // number of elements of values that each rank computes
}

// processSlab evaluates and sums the points of one slab of cells, and adds the results to the summed tensors. All ranks
// must call it.
func (p *pass) processSlab(ctx context.Context, cell int) error {
	s, scratch := p.newSlab(cell), []float64(nil)
	if s.start == s.end {
		return nil
	}
	coefficients := p.expansions[0].coefficients(cell, &scratch)
	for _, t := range p.evaluated {
		product := zeroMatrix(coefficients.Rows, t.widths[1]*t.widths[2])
		multiply(blas.NoTrans, blas.NoTrans, submatrix(coefficients, 0, coefficients.Rows, 0, t.widths[0]),
			matrix(t.widths[0], product.Cols, t.data), 0, product)
		s.evaluated = append(s.evaluated, product)
	}
	err := accel.ForEach(ctx, len(s.owners), func(worker, row int) {
		if s.owners[row] == p.comm.Rank() {
			p.processRow(worker, s, row)
		}
	})
	if err == nil {
		err = p.exchange(ctx, s)
	}
	if err != nil {
		return err
	}
	p.addRows(s, coefficients)
	return ctx.Err()
}

// newSlab returns a slab whose rows are divided among the ranks, in order, so that each rank has about the same number
// of points.
func (p *pass) newSlab(cell int) *slab {
	e, ranks := &p.expansions, p.comm.Size()
	rows := e[1].cells
	s := &slab{cell: cell, start: p.rowStarts(cell, 0)[0], owners: make([]int, rows),
		sums:          make([][]blas64.General, rows),
		rankSumCounts: make([]int, ranks), rankValueCounts: make([]int, ranks)}
	s.end = p.starts[(cell+1)*rows*e[2].cells]
	pairs, width := e[0].terms*e[1].terms, 0 // a row has pairs·width sums
	for _, t := range p.summed {
		width += t.widths[2]
	}
	occupied := 0
	for row := range rows {
		starts := p.rowStarts(cell, row)
		start, end := starts[0], starts[len(starts)-1]
		if s.owners[row] = -1; start < end {
			owner := ranks * (start - s.start) / (s.end - s.start)
			s.owners[row] = owner
			s.rankSumCounts[owner] += pairs * width
			s.rankValueCounts[owner] += (end - start) * len(p.evaluated)
			occupied++
		}
	}
	s.sumStorage = make([]float64, occupied*pairs*width)
	free := s.sumStorage
	for row, owner := range s.owners {
		for _, t := range p.summed {
			if owner >= 0 {
				s.sums[row] = append(s.sums[row], matrix(pairs, t.widths[2], free))
				free = free[pairs*t.widths[2]:]
			}
		}
	}
	if ranks > 1 {
		s.values = make([]float64, (s.end-s.start)*len(p.evaluated))
	}
	return s
}

// rowStarts returns the places in order where the cells of a row of a slab start, and where the last one ends.
func (p *pass) rowStarts(slab, row int) []int {
	e := &p.expansions
	return p.starts[(slab*e[1].cells+row)*e[2].cells:][:e[2].cells+1]
}

// storeValues keeps the values of the evaluated tensors at the point order[position] for the other ranks.
func (s *slab) storeValues(position int, values []float64) {
	if s.values != nil {
		copy(s.values[(position-s.start)*len(values):], values)
	}
}

// exchange gathers the sums and values of a slab on all ranks, and calls use for the points of the rows of other ranks.
func (p *pass) exchange(ctx context.Context, s *slab) error {
	if p.comm.Size() == 1 {
		return nil
	}
	if len(s.sumStorage) > 0 {
		if err := p.comm.AllGather(ctx, s.sumStorage, s.rankSumCounts); err != nil {
			return err
		}
	}
	if len(s.values) == 0 {
		return nil
	}
	if err := p.comm.AllGather(ctx, s.values, s.rankValueCounts); err != nil {
		return err
	}
	return accel.ForEach(ctx, len(s.owners), func(_, row int) {
		if owner := s.owners[row]; owner < 0 || owner == p.comm.Rank() {
			return
		}
		starts, unused := p.rowStarts(s.cell, row), make([]float64, len(p.summed))
		for position := starts[0]; position < starts[len(starts)-1]; position++ {
			p.use(int(p.order[position]), s.values[(position-s.start)*len(p.evaluated):][:len(p.evaluated)], unused)
		}
	})
}

// addRows adds the sums of the rows of a slab to the summed tensors. slabCoefficients are the coefficients of the slab
// along the first axis.
func (p *pass) addRows(s *slab, slabCoefficients blas64.General) {
	if len(p.summed) == 0 {
		return
	}
	second, scratch := &p.expansions[1], []float64(nil)
	slabs := make([]blas64.General, len(p.summed))
	for j, t := range p.summed {
		slabs[j] = zeroMatrix(slabCoefficients.Rows, t.widths[1]*t.widths[2])
	}
	for row, sums := range s.sums {
		if sums == nil {
			continue
		}
		coefficients := second.coefficients(row, &scratch)
		for j, t := range p.summed {
			columns := submatrix(coefficients, 0, second.terms, 0, t.widths[1])
			accel.Each(slabCoefficients.Rows, func(_, k int) {
				blas64.Gemm(blas.Trans, blas.NoTrans, 1, columns,
					submatrix(sums[j], k*second.terms, second.terms, 0, t.widths[2]), 1,
					matrix(t.widths[1], t.widths[2], slabs[j].Data[k*slabs[j].Stride:]))
			})
		}
	}
	for j, t := range p.summed {
		multiply(blas.Trans, blas.NoTrans, submatrix(slabCoefficients, 0, slabCoefficients.Rows, 0, t.widths[0]),
			slabs[j], 1, matrix(t.widths[0], slabs[j].Cols, t.data))
	}
}

// broadcastSums copies the summed tensors of the first rank to all ranks, because other processors may round
// differently.
func (p *pass) broadcastSums(ctx context.Context) error {
	for _, t := range p.summed {
		if p.comm.Size() > 1 {
			if err := comm.BroadcastFloats(ctx, p.comm, t.data, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// onFirstRank computes results on the first rank, and copies them, or the error, to all ranks.
func (s *Series) onFirstRank(ctx context.Context, results []float64, compute func() error) (err error) {
	ranks := s.options.Comm
	if ranks.Rank() == 0 {
		err = compute()
	}
	if err = comm.Agree(ctx, ranks, err); err == nil && ranks.Size() > 1 {
		err = comm.BroadcastFloats(ctx, ranks, results, 0)
	}
	return err
}
