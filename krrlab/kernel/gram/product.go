package gram

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// product is the state of one product dst = (K+λI)·src, with K = S·T·S: S = diag(√w_i) has the square roots of the
// weights of the points, and T = (k_ij) is the matrix of the tiles. The sums of the product are integers, in fixed
// point. So that they cannot overflow, column c of S·src is divided by colScale_c, which gives x_c, and row i of the
// sums is multiplied by the engine's rowScale_i. Both are powers of two, and |k_ij| ≤ 1/(rowScale_i·rowScale_j), so all
// sums stay below
//
//	rowScale_i·Σ_j|k_ij x_jc| ≤ Σ_j |x_jc|/rowScale_j.
//
// Work on rows of vectors is done block by block on all threads, and the results are added in the order of the blocks.
type product[T entry] struct {
	e          *engine[T]        // the tiles
	t          int               // number of columns
	dst, src   blas64.General    // result and operand, n×t
	lambda     float64           // λ
	x          []T               // S·src·diag(colScale)⁻¹, one block after the other, each block by columns
	colScale   []float64         // a power of two for each column
	norm       []float64         // for each column, Σ_j |x_jc|/rowScale_j
	columnSums []float64         // for each column, Σ_j (S·src)_jc/colScale_c
	blockParts []float64         // blocks×t: for each block, its largest entries and later its parts of norm
	hashes     []uint64          // hash of each block of src
	formats    []comm.FixedPoint // fixed-point format of each column
	sums       []int64           // n×t sums in the layout of x, n×t second words with float64 tiles, then extraSums
	locks      []sync.Mutex      // locks[b] guards the sums of block b
	overflowed atomic.Bool       // a contribution exceeded its bound
	workers    []worker[T]       // scratch memory of each goroutine

	tileTask, blockTask              func(worker, task int) // method values for ForEach, made once to avoid allocation
	blockBody                        func(b int)            // work that blockTask does on each block
	measureBody, loadBody, storeBody func(b int)            // method values for forEachBlock, made once
}

// acquire returns a product for t columns, with the scratch memory of an earlier one if possible.
func (e *engine[T]) acquire(t int) *product[T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	var p *product[T]
	if count := len(e.idleProducts); count > 0 {
		p, e.idleProducts = e.idleProducts[count-1], e.idleProducts[:count-1]
	} else {
		p = &product[T]{e: e, locks: make([]sync.Mutex, e.blocks)}
		p.tileTask, p.blockTask = p.runTask, p.runBlocks
		p.measureBody, p.loadBody, p.storeBody = p.measureBlock, p.loadBlock, p.storeBlock
	}
	p.t = t
	p.overflowed.Store(false)
	for len(p.workers) < accel.Threads() {
		p.workers = append(p.workers, worker[T]{})
	}
	return p
}

// release makes the scratch memory of p available for later products.
func (e *engine[T]) release(p *product[T]) {
	p.dst, p.src = blas64.General{}, blas64.General{}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idleProducts = append(e.idleProducts, p)
}

// wordsPerSum returns the number of 64-bit integers of a sum: one with float32 tiles, two with float64 tiles.
func wordsPerSum[T entry]() int { return int(sizeOf[T]() / 4) }

// mul sets dst = (K+λI)·src. dst may be src. Each rank adds the contributions of its tiles, and one all-reduce adds the
// integers of all ranks. The integers are exact, so the result has the same bits for any number of ranks and threads.
// mul returns an error if src differs between the ranks, because their processors or libraries round differently.
func (e *engine[T]) mul(ctx context.Context, dst, src blas64.General, lambda float64) error {
	p := e.acquire(src.Cols)
	p.dst, p.src, p.lambda = dst, src, lambda
	err := p.run(ctx) // if this panics, p is garbage-collected and not reused
	e.release(p)
	return err
}

// run computes the product.
func (p *product[T]) run(ctx context.Context) error {
	if err := p.loadSource(ctx); err != nil {
		return err
	}
	tasks := len(p.e.order)
	if p.e.shift != 0 {
		tasks++
	}
	if err := accel.ForEach(ctx, tasks, p.tileTask); err != nil {
		return err
	}
	if err := p.reduceSums(ctx); err != nil {
		return err
	}
	return p.forEachBlock(ctx, p.storeBody)
}

// loadSource copies src to x, scaled, and clears the sums.
func (p *product[T]) loadSource(ctx context.Context) error {
	n, t, blocks := p.src.Rows, p.t, p.e.blocks
	buffer.Grow(&p.x, n*t)
	buffer.Grow(&p.hashes, blocks)
	clear(buffer.Grow(&p.sums, wordsPerSum[T]()*n*t+extraSums)[wordsPerSum[T]()*n*t:])
	parts, colScale, norm := buffer.Grow(&p.blockParts, blocks*t), buffer.Grow(&p.colScale, t), buffer.Grow(&p.norm, t)
	formats := buffer.Grow(&p.formats, t)
	clear(buffer.Grow(&p.columnSums, t))
	if err := p.forEachBlock(ctx, p.measureBody); err != nil {
		return err
	}
	clear(colScale)
	for k, v := range parts {
		colScale[k%t] = max(colScale[k%t], v) // max propagates NaN
	}
	for c, v := range colScale {
		_, exp := math.Frexp(v) // the exponent is 0 for 0, ∞ and NaN
		colScale[c] = math.Ldexp(1, max(-1000, min(exp, 1000)))
	}
	if err := p.forEachBlock(ctx, p.loadBody); err != nil {
		return err
	}
	clear(norm)
	for k, v := range parts {
		norm[k%t] += v
	}
	for c, v := range norm {
		formats[c] = comm.NewFixedPoint(v)
	}
	return nil
}

// minEntriesPerTask is the smallest number of entries of src that one task handles. With a smaller number the overhead
// of a second thread exceeds its benefit; a larger number leaves threads idle.
const minEntriesPerTask = 1 << 14

// blocksPerTask returns the number of blocks that have minEntriesPerTask entries, at least one.
func (p *product[T]) blocksPerTask() int { return max(1, minEntriesPerTask/(p.e.size*max(1, p.t))) }

// forEachBlock calls body for all blocks, on several threads if there is enough work.
func (p *product[T]) forEachBlock(ctx context.Context, body func(b int)) error {
	p.blockBody = body
	perTask := p.blocksPerTask()
	if p.e.blocks <= perTask {
		p.blockTask(0, 0)
		return ctx.Err()
	}
	return accel.ForEach(ctx, (p.e.blocks+perTask-1)/perTask, p.blockTask)
}

// runBlocks calls blockBody for the blocks of the given task.
func (p *product[T]) runBlocks(_, task int) {
	perTask := p.blocksPerTask()
	for b := task * perTask; b < min((task+1)*perTask, p.e.blocks); b++ {
		p.blockBody(b)
	}
}

// row returns the row of x, n×t, of the point at a position in the order of the tiling.
func (p *product[T]) row(x blas64.General, position int) []float64 {
	start := p.e.point(position) * x.Stride
	return x.Data[start : start+p.t]
}

// measureBlock computes the largest entries of block b of S·src by columns, and with several ranks the block's hash.
func (p *product[T]) measureBlock(b int) {
	lo, hi := p.e.block(b)
	largest := p.blockParts[b*p.t : (b+1)*p.t]
	clear(largest)
	for position := lo; position < hi; position++ {
		factor := p.e.factor(position)
		for c, v := range p.row(p.src, position) {
			largest[c] = max(largest[c], factor*math.Abs(v)) // max propagates NaN
		}
	}
	if p.e.comm.Size() > 1 {
		p.hashes[b] = p.hashRows(lo, hi)
	}
}

// factor returns √w of the point at a position.
func (e *engine[T]) factor(position int) float64 {
	if e.factors == nil {
		return 1
	}
	return e.factors[position]
}

// hashRows returns a hash of the rows of src at the positions lo, …, hi-1. Two matrices with unrelated bits there have
// the same hash with probability about 2⁻⁶⁴.
func (p *product[T]) hashRows(lo, hi int) (h uint64) {
	for position := lo; position < hi; position++ {
		for _, v := range p.row(p.src, position) {
			h = mixHash(h, math.Float64bits(v))
		}
	}
	return h
}

// mixHash returns the hash h extended by v.
func mixHash(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// loadBlock copies block b of S·src to p.x by columns, rounded to T. Each column is first divided by the power of two
// colScale_c, so that its largest entry is at most 1 and the magnitude of src causes no overflow. The division is exact
// except for entries that become subnormal.
func (p *product[T]) loadBlock(b int) {
	lo, hi := p.e.block(b)
	t, rows := p.t, hi-lo
	x, norm := p.x[lo*t:hi*t], p.blockParts[b*t:(b+1)*t]
	clear(norm)
	for r := range rows {
		invScale, factor := 1/p.e.rowScale[lo+r], p.e.factor(lo+r)
		for c, v := range p.row(p.src, lo+r) {
			v = factor * v / p.colScale[c]
			norm[c] += math.Abs(v) * invScale
			x[c*rows+r] = T(v)
		}
	}
	for k := range wordsPerSum[T]() {
		clear(p.sums[k*len(p.x)+lo*t : k*len(p.x)+hi*t])
	}
}

// runTask multiplies by one tile of this rank. If tiles store K − shift·11ᵀ, task 0 instead computes the column sums of
// S·src, in the order of the positions, while other workers multiply by tiles.
func (p *product[T]) runTask(thread, task int) {
	if p.e.shift != 0 {
		task--
	}
	if task >= 0 {
		p.addTile(thread, task)
		return
	}
	for position := range p.e.n {
		factor := p.e.factor(position)
		for c, v := range p.row(p.src, position) {
			p.columnSums[c] += factor * v / p.colScale[c]
		}
	}
}

// addTile multiplies x by the tile of this rank with the given index and adds the results to the sums.
func (p *product[T]) addTile(thread, index int) {
	if p.e.dropped != nil && len(p.e.entries[index]) == 0 {
		return
	}
	i, j := int(p.e.order[index].i), int(p.e.order[index].j)
	yi, yj := p.e.mulTile(&p.workers[thread], index, p.vectorBlock(i), p.vectorBlock(j), p.t)
	p.addToSums(i, yi) // y_i += T·x_j
	if i != j {
		p.addToSums(j, yj) // y_j += Tᵀ·x_i
	}
}

// vectorBlock returns block b of x.
func (p *product[T]) vectorBlock(b int) []T {
	lo, hi := p.e.block(b)
	return p.x[lo*p.t : hi*p.t]
}

// addToSums adds the contribution y to block b of the sums.
func (p *product[T]) addToSums(b int, y []T) {
	lo, hi := p.e.block(b)
	rows, start, ok, rowScale := hi-lo, lo*p.t, true, p.e.rowScale[lo:hi]
	p.locks[b].Lock()
	for c, format := range p.formats {
		sum := p.sums[start+c*rows : start+(c+1)*rows]
		switch y := any(y[c*rows : (c+1)*rows]).(type) {
		case []float32:
			ok = format.AddScaled32(sum, y, rowScale) && ok
		case []float64:
			ok = format.AddFine(sum, p.sums[len(p.x)+start+c*rows:], y, rowScale) && ok
		}
	}
	p.locks[b].Unlock()
	if !ok {
		p.overflowed.Store(true)
	}
}

// extraSums is the number of integers that a product sends in addition to its sums: a flag for overflow, and the hash
// of src.
const extraSums = 2

// reduceSums adds the sums of all ranks. It returns an error if src differs between the ranks or a contribution
// exceeded its bound.
func (p *product[T]) reduceSums(ctx context.Context) error {
	ranks, tail := p.e.comm, p.sums[len(p.sums)-extraSums:]
	if p.overflowed.Load() {
		tail[0] = 1
	}
	var hash uint64
	for b := 0; ranks.Size() > 1 && b < len(p.hashes); b++ {
		hash = mixHash(hash, p.hashes[b])
	}
	ownHash := int64(hash)
	tail[1] = ownHash
	if err := ranks.AllReduceInt64(ctx, p.sums); err != nil {
		return err
	}
	if tail[1] != ownHash*int64(ranks.Size()) {
		return fmt.Errorf("gram: the ranks have computed different vectors: their processors or libraries round " +
			"differently; " +
			"give all of them the Go BLAS (--blas go) and the same instructions (--cpu)")
	}
	if tail[0] != 0 {
		return fmt.Errorf("gram: a product with K is larger than its diagonal allows: kernel %v is not positive "+
			"semi-definite, or has values that are not finite", p.e.k)
	}
	return nil
}

// storeBlock sets block b of dst = λ·src + S·y, where y includes the shift that is missing in the tiles.
func (p *product[T]) storeBlock(b int) {
	twoWords, shift := wordsPerSum[T]() > 1, p.e.shift
	lo, hi := p.e.block(b)
	rows := hi - lo
	for r := range rows {
		y, invScale, factor := p.row(p.dst, lo+r), 1/p.e.rowScale[lo+r], p.e.factor(lo+r)
		for c, v := range p.row(p.src, lo+r) {
			index, format := lo*p.t+c*rows+r, &p.formats[c]
			var sum float64
			if twoWords {
				sum = format.FineValue(p.sums[index], p.sums[len(p.x)+index])
			} else {
				sum = format.Value(p.sums[index])
			}
			y[c] = float64(p.lambda*v) + float64(factor*(sum*invScale*p.colScale[c]))
			if shift != 0 {
				y[c] += float64(factor * (float64(shift*p.columnSums[c]) * p.colScale[c]))
			}
		}
	}
}
