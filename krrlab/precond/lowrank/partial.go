package lowrank

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	// pivotFloor is the largest residual diagonal entry, in units of k(x, x), that is regarded as rounding error: 16
	// unit roundoffs (2⁻²⁴) of float32, the precision of F and often of the stored K. A larger value ends the
	// factorization earlier.
	pivotFloor = 0x1p-20
	// traceFloor ends the factorization: the residual diagonal entries of the points that may still be drawn must sum
	// to more than traceFloor·tr K. A larger value ends it earlier.
	traceFloor = 0x1p-24

	panelRows   = 256 // rows of F that a worker processes together
	panelCols   = 512 // columns of F that a worker converts to float64 together
	productRows = 32  // rows of H that a worker updates together
)

// partialFactor is a partial Cholesky factor that grows by blocks of columns. Until it is complete, F is stored to 48
// bits, as the sum f + lowPart.
type partialFactor struct {
	*builder
	lowPart    []float32 // F minus its float32 rounding, len(rows)×rank
	nu         float64   // ν, the shift of the pivots in units of K_ii; see addProposals
	residuals  []float64 // K_ii − ‖F_i‖² of the rows of this rank, with F to 48 bits
	landmarks  []int
	isExcluded []bool // true for landmarks, and for points that were found to depend on them

	prefixSums []float64 // sum of the residuals of eligible points, over all rows of K up to and including each row
	blockSums  []float64 // sum of the same residuals over all rows before each block of precond.RankRows rows

	columns      []float64 // columns of K, len(rows)×block
	proposedRows []float64 // for each proposal a row of F in float64, and its residual
	// gatheredRows has the same rows in the order of the ranks, and later the rows of F at the accepted proposals.
	gatheredRows []float64
	h            []float64      // residual matrix H of the proposals
	l            []float64      // Cholesky factor L of the accepted proposals; see acceptProposals
	scratch      []panelScratch // one for each worker
}

// panelScratch holds the scratch memory of one worker.
type panelScratch struct {
	wide []float64 // panelRows rows and up to panelCols columns of F in float64
	row  []float64 // one row of the accepted columns
}

// newPartialFactor returns a partial factor without columns.
func newPartialFactor(b *builder) *partialFactor {
	block := b.block
	p := &partialFactor{builder: b, residuals: slices.Clone(b.residualDiag), nu: b.shift()}
	if p.lowPart = make([]float32, len(p.f.Data)); p.comm.Size() == 1 {
		p.lower = make([]float64, p.f.D*p.f.D)
	}
	p.isExcluded = make([]bool, p.n)
	p.prefixSums = make([]float64, len(p.rows))
	p.blockSums = make([]float64, (p.n+precond.RankRows-1)/precond.RankRows)
	p.columns = make([]float64, len(p.rows)*block)
	p.h, p.l = make([]float64, block*block), make([]float64, block*block)
	p.proposedRows, p.gatheredRows = make([]float64, block*(p.f.D+1)), make([]float64, block*(p.f.D+1))
	p.scratch = make([]panelScratch, accel.Threads())
	for i := range p.scratch {
		p.scratch[i].wide = make([]float64, panelRows*min(panelCols, p.f.D))
	}
	return p
}

// updatePrefixSums sets prefixSums and blockSums, and returns the sum of the residuals of all points that may be drawn.
// It returns 0 if the sum is at most traceFloor·tr K, the level of rounding.
func (p *partialFactor) updatePrefixSums(ctx context.Context) (sum float64, err error) {
	for local, i := range p.rows { // i is the row of K, local the row of this rank
		if i%precond.RankRows == 0 {
			sum = 0
		}
		if v := p.residuals[local]; !p.isExcluded[i] && v > pivotFloor*p.diag[i] {
			sum += v
		}
		p.prefixSums[local], p.blockSums[i/precond.RankRows] = sum, sum
	}
	if err := p.comm.AllGather(ctx, p.blockSums, comm.RowCounts(len(p.blockSums), 1, p.comm.Size(), 1)); err != nil {
		return 0, err
	}
	sum = 0
	for block, v := range p.blockSums {
		p.blockSums[block], sum = sum, sum+v
	}
	for local, i := range p.rows {
		p.prefixSums[local] += p.blockSums[i/precond.RankRows]
	}
	if sum <= traceFloor*p.trace {
		sum = 0
	}
	return sum, nil
}

// findPoints returns, for each target sum v, the point i with d_1 + … + d_{i-1} ≤ v < d_1 + … + d_i, where d_l is the
// residual of point l and the sums are over the points that may still be drawn. It thereby inverts their cumulative
// distribution. Each v must be less than the sum of all d_l. findPoints is collective.
func (p *partialFactor) findPoints(ctx context.Context, targetSums []float64) ([]int64, error) {
	chosen := make([]int64, len(targetSums))
	for draw, target := range targetSums {
		local := sort.Search(len(p.prefixSums), func(local int) bool { return p.prefixSums[local] > target })
		// Otherwise, the point is on another rank.
		if local < len(p.rows) && target >= p.blockSums[p.rows[0]/precond.RankRows] {
			chosen[draw] = int64(p.rows[local])
		}
	}
	return chosen, p.comm.AllReduceInt64(ctx, chosen)
}

// addProposals goes through the proposals S in their order. It adds a column to F for each proposal that has a pivot
// above pivotFloor and that accept accepts:
//
//	G = K(:,S) − F·F(S,:)ᵀ,  H = G(S,:) = LLᵀ − νD,  F ← [F, G·L⁻ᵀ],
//
// where D is the diagonal of K(S,S), and ν is at the level of rounding (certify.go). accept is called with the residual
// of the point when it was drawn, and with its pivot.
//
// A repeated proposal is tried again unless it was accepted.
func (p *partialFactor) addProposals(ctx context.Context, proposals []int64,
	accept func(residualWhenDrawn, pivot float64) bool) error {
	var candidates []int // the distinct proposals
	var order []int      // for each proposal its position in candidates
	for _, point := range proposals {
		position := slices.Index(candidates, int(point))
		if position < 0 {
			position, candidates = len(candidates), append(candidates, int(point))
		}
		order = append(order, position)
	}
	count := len(candidates)
	columns := blas64.General{Rows: len(p.rows), Cols: count, Stride: count, Data: p.columns}
	err := p.formBlock(ctx, p.rows, candidates, columns)
	if err == nil {
		err = p.formBlock(ctx, candidates, candidates,
			blas64.General{Rows: count, Cols: count, Stride: count, Data: p.h})
	}
	if err = comm.Agree(ctx, p.comm, err); err != nil {
		return err
	}
	p.formedColumns += count
	if err := p.gatherRows(ctx, candidates); err != nil {
		return err
	}
	if err := p.computeH(ctx, count); err != nil {
		return err
	}
	accepted := p.acceptProposals(candidates, order, accept)
	if len(accepted) == 0 {
		return nil
	}
	return comm.Agree(ctx, p.comm, p.appendColumns(ctx, candidates, accepted, columns))
}

// gatherRows sets p.proposedRows to the rows of F at the candidates, each followed by its residual. Each rank
// contributes the rows that it has.
func (p *partialFactor) gatherRows(ctx context.Context, candidates []int) error {
	width, counts := len(p.landmarks)+1, make([]int, p.comm.Size())
	gathered := buffer.Grow(&p.gatheredRows, len(candidates)*width)
	rows := buffer.Grow(&p.proposedRows, len(candidates)*width)
	sorted := slices.Sorted(slices.Values(candidates)) // in the order of the ranks
	for rank := range counts {
		lo, hi := comm.RowRange(p.n, precond.RankRows, rank, len(counts))
		first, _ := slices.BinarySearch(sorted, lo)
		end, _ := slices.BinarySearch(sorted, hi)
		counts[rank] = (end - first) * width
		for position := first; position < end && rank == p.comm.Rank(); position++ {
			row := gathered[position*width : (position+1)*width]
			p.widenRow(row[:width-1], sorted[position]-lo, 0, width-1)
			row[width-1] = p.residuals[sorted[position]-lo]
		}
	}
	err := p.comm.AllGather(ctx, gathered, counts)
	for candidate, i := range candidates {
		position, _ := slices.BinarySearch(sorted, i)
		copy(rows[candidate*width:(candidate+1)*width], gathered[position*width:])
	}
	return err
}

// widenRow sets dst to columns k0, …, k1-1 of row i of F in float64.
func (p *partialFactor) widenRow(dst []float64, i, k0, k1 int) {
	points.Widen(dst, p.f.Row(i)[k0:k1])
	for k, v := range p.lowPart[i*p.f.Stride+k0 : i*p.f.Stride+k1] {
		dst[k] += float64(v)
	}
}

// computeH sets H ← H − F(S,:)·F(S,:)ᵀ for m proposals S; before the call H is K(S,S).
func (p *partialFactor) computeH(ctx context.Context, m int) error {
	r := len(p.landmarks)
	rowsOfF := blas64.General{Rows: m, Cols: r, Stride: r + 1, Data: p.proposedRows}
	return accel.ForEachBlock(ctx, m, productRows, func(_, lo, hi int) {
		rows := blas64.General{Rows: hi - lo, Cols: r, Stride: r + 1, Data: p.proposedRows[lo*(r+1):]}
		blas64.Gemm(blas.NoTrans, blas.Trans, -1, rows, rowsOfF, 1,
			blas64.General{Rows: hi - lo, Cols: m, Stride: m, Data: p.h[lo*m:]})
	})
}

// acceptProposals returns the accepted proposals as positions in candidates. order has the positions of all proposals
// in the order in which they were drawn. acceptProposals also computes the rows of p.l, of stride len(candidates): for
// proposal q and the proposals A accepted before it,
//
//	L_qA = (L_AA⁻¹H_Aq)ᵀ,  pivot = H_qq − ‖L_qA‖²,  L_qq = √(pivot + νK_qq).
func (p *partialFactor) acceptProposals(candidates, order []int,
	accept func(residualWhenDrawn, pivot float64) bool) (accepted []int) {
	stride, width := len(candidates), len(p.landmarks)+1
	isAccepted := make([]bool, stride)
	for _, candidate := range order {
		if isAccepted[candidate] {
			continue
		}
		count := len(accepted)
		row := p.l[count*stride : count*stride+stride]
		for k, earlier := range accepted {
			row[k] = (p.h[candidate*stride+earlier] - floats.Dot(row[:k], p.l[k*stride:k*stride+k])) / p.l[k*stride+k]
		}
		pivot := p.h[candidate*stride+candidate] - floats.Dot(row[:count], row[:count])
		point := candidates[candidate]
		if !(pivot > pivotFloor*p.diag[point]) {
			// If no proposal was accepted, the residuals do not change, and s could be proposed in every later block.
			p.isExcluded[point] = p.isExcluded[point] || count == 0
			continue
		}
		if accept(p.proposedRows[candidate*width+width-1], pivot) {
			row[count] = math.Sqrt(pivot + p.nu*p.diag[point])
			isAccepted[candidate] = true
			accepted = append(accepted, candidate)
		}
	}
	return accepted
}

// appendColumns appends the columns (K(:,A) − F·F(A,:)ᵀ)·L⁻ᵀ of the accepted proposals A to F, and subtracts their
// squares from the residuals. A has positions in candidates; columns has K(:, candidates), and is overwritten.
func (p *partialFactor) appendColumns(ctx context.Context, candidates, accepted []int, columns blas64.General) error {
	r, count := len(p.landmarks), len(accepted)
	acceptedRows := blas64.General{Rows: count, Cols: r, Stride: max(r, 1), Data: p.gatheredRows}
	for k, candidate := range accepted {
		copy(p.gatheredRows[k*r:(k+1)*r], p.proposedRows[candidate*(r+1):])
		if p.lower != nil {
			row := p.lower[(r+k)*p.f.D:]
			copy(row, p.gatheredRows[k*r:(k+1)*r])
			copy(row[r:], p.l[k*len(candidates):k*len(candidates)+k+1])
		}
		p.isExcluded[candidates[candidate]] = true
		p.landmarks = append(p.landmarks, candidates[candidate])
	}
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: count, Stride: len(candidates), Data: p.l}
	err := p.forEachPanel(ctx, 0, len(p.rows), func(worker, lo, hi int) (errorSq float64) {
		space := &p.scratch[worker]
		g := blas64.General{Rows: hi - lo, Cols: count, Stride: columns.Stride, Data: columns.Data[lo*columns.Stride:]}
		selectColumns(g, accepted, buffer.Grow(&space.row, count))
		for k0 := 0; k0 < r; k0 += panelCols { // G ← G − F·F(A,:)ᵀ
			k1 := min(k0+panelCols, r)
			wide := blas64.General{Rows: hi - lo, Cols: k1 - k0, Stride: k1 - k0,
				Data: buffer.Grow(&space.wide, (hi-lo)*(k1-k0))}
			for i := lo; i < hi; i++ {
				p.widenRow(wide.Data[(i-lo)*wide.Stride:(i-lo+1)*wide.Stride], i, k0, k1)
			}
			block := blas64.General{Rows: count, Cols: k1 - k0, Stride: acceptedRows.Stride,
				Data: acceptedRows.Data[k0:]}
			blas64.Gemm(blas.NoTrans, blas.Trans, -1, wide, block, 1, g)
		}
		blas64.Trsm(blas.Right, blas.Trans, 1, l, g) // G ← G·L⁻ᵀ
		for i := lo; i < hi; i++ {
			src := g.Data[(i-lo)*g.Stride : (i-lo)*g.Stride+count]
			highPart := p.f.Row(i)[r : r+count]
			errorSq += p.roundRow(i, highPart, src)
			for k, v := range src {
				p.residuals[i] -= v * v
				p.lowPart[i*p.f.Stride+r+k] = float32(v - float64(highPart[k]))
			}
		}
		return errorSq
	})
	return cmp.Or(err, p.checkRows())
}

// selectColumns moves the entries in the given columns to the front of every row of g. buf has the length of columns.
func selectColumns(g blas64.General, columns []int, buf []float64) {
	for i := range g.Rows {
		row := g.Data[i*g.Stride:]
		for k, column := range columns {
			buf[k] = row[column]
		}
		copy(row, buf)
	}
}
