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

// product is the state of one product dst = (K+λI)·src. The sums of it are integers: with x_c, the column of S·src,
// divided by scale_c, and row i multiplied by the engine's scale_i, all of them stay below
//
//	scale_i·Σ_j|k_ij x_jc| ≤ Σ_j |x_jc|/scale_j.
//
// What is done row by row goes by blocks on all threads, and what it sums to is added in their order.
type product[T float] struct {
	e        *engine[T]
	t        int
	dst, src blas64.General
	lambda   float64
	x        []T       // src block by block, each by columns, scaled
	scale    []float64 // powers of two: src = x·diag(scale)
	norm     []float64 // Σ_j |x_jc|/(scale_j·scale_c)
	total    []float64 // Σ_j (S·src)_jc/scale_c
	parts    []float64 // blocks×t: what each block has of the norm, or its largest entries
	hashes   []uint64  // of the blocks of src
	fixed    []comm.Fixed
	sums     []int64      // n×t as x, and of float64 tiles n×t rests; then a count of misfits, and x's hash
	locks    []sync.Mutex // of the blocks of sums
	bad      atomic.Bool  // a contribution is above its bound
	workers  []worker[T]

	// Bodies of ForEach, made once, and what one of them does with a block.
	body, some                        func(worker, q int)
	each                              func(b int)
	measureBody, loadBody, unloadBody func(b int)
}

func (e *engine[T]) acquire(t int) *product[T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	var p *product[T]
	if k := len(e.idle); k > 0 {
		p, e.idle = e.idle[k-1], e.idle[:k-1]
	} else {
		p = &product[T]{e: e, locks: make([]sync.Mutex, e.blocks)}
		p.body, p.some = p.task, p.blocks
		p.measureBody, p.loadBody, p.unloadBody = p.measure, p.load, p.unload
	}
	p.t = t
	p.bad.Store(false)
	for len(p.workers) < accel.Threads() {
		p.workers = append(p.workers, worker[T]{})
	}
	return p
}

func (e *engine[T]) release(p *product[T]) {
	p.dst, p.src = blas64.General{}, blas64.General{}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, p)
}

// words is how many integers a sum consists of: float64 numbers have a rest.
func words[T float]() int { return int(sizeOf[T]() / 4) }

// mul sets dst = (K+λI)·src. dst may be src. Each rank adds the contributions of its tiles, and
// one all-reduce of integers adds those of all. The integers are exact, so that the result has
// the same bits for any number of ranks and threads. Ranks whose src is not the same, because
// their processors or libraries round differently, get an error.
func (e *engine[T]) mul(ctx context.Context, dst, src blas64.General, lambda float64) error {
	p := e.acquire(src.Cols)
	p.dst, p.src, p.lambda = dst, src, lambda
	err := p.run(ctx) // a body that panics leaves p to the collector
	e.release(p)
	return err
}

func (p *product[T]) run(ctx context.Context) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	tasks := len(p.e.order)
	if p.e.shift != 0 {
		tasks++
	}
	if err := accel.ForEach(ctx, tasks, p.body); err != nil {
		return err
	}
	if err := p.reduce(ctx); err != nil {
		return err
	}
	return p.byBlocks(ctx, p.unloadBody)
}

// begin copies src to x, and clears the sums.
func (p *product[T]) begin(ctx context.Context) error {
	n, t, blocks := p.src.Rows, p.t, p.e.blocks
	buffer.Grow(&p.x, n*t)
	buffer.Grow(&p.hashes, blocks)
	clear(buffer.Grow(&p.sums, words[T]()*n*t+extra)[words[T]()*n*t:])
	parts, scale, norm := buffer.Grow(&p.parts, blocks*t), buffer.Grow(&p.scale, t), buffer.Grow(&p.norm, t)
	fixed := buffer.Grow(&p.fixed, t)
	clear(buffer.Grow(&p.total, t))
	if err := p.byBlocks(ctx, p.measureBody); err != nil {
		return err
	}
	clear(scale)
	for k, v := range parts {
		scale[k%t] = max(scale[k%t], v) // NaN from the first one on
	}
	for c, v := range scale {
		_, exp := math.Frexp(v) // 0 of 0, ∞ and NaN
		scale[c] = math.Ldexp(1, max(-1000, min(exp, 1000)))
	}
	if err := p.byBlocks(ctx, p.loadBody); err != nil {
		return err
	}
	clear(norm)
	for k, v := range parts {
		norm[k%t] += v
	}
	for c, v := range norm {
		fixed[c] = comm.FixedFor(v)
	}
	return nil
}

// fewest is how many entries of src one body takes at least: few are not worth a second thread.
const fewest = 1 << 14

// perBody returns how many blocks that are.
func (p *product[T]) perBody() int { return max(1, fewest/(p.e.size*max(1, p.t))) }

// byBlocks calls body for all blocks.
func (p *product[T]) byBlocks(ctx context.Context, body func(b int)) error {
	p.each = body
	per := p.perBody()
	if p.e.blocks <= per {
		p.some(0, 0)
		return ctx.Err()
	}
	return accel.ForEach(ctx, (p.e.blocks+per-1)/per, p.some)
}

func (p *product[T]) blocks(_, q int) {
	per := p.perBody()
	for b := q * per; b < min((q+1)*per, p.e.blocks); b++ {
		p.each(b)
	}
}

// row returns the row of a matrix that is that of a place.
func (p *product[T]) row(x blas64.General, place int) []float64 {
	at := p.e.point(place) * x.Stride
	return x.Data[at : at+p.t]
}

// measure takes the largest entries of block b of src, by columns, and for ranks its hash.
func (p *product[T]) measure(b int) {
	lo, hi := p.e.block(b)
	most := p.parts[b*p.t : (b+1)*p.t]
	clear(most)
	for place := lo; place < hi; place++ {
		f := p.e.factor(place)
		for c, v := range p.row(p.src, place) {
			most[c] = max(most[c], f*math.Abs(v)) // NaN from the first one on
		}
	}
	if p.e.comm.Size() > 1 {
		p.hashes[b] = p.hash(lo, hi)
	}
}

// factor returns √w of the point of a place.
func (e *engine[T]) factor(place int) float64 {
	if e.factors == nil {
		return 1
	}
	return e.factors[place]
}

// hash returns a number that src shares only with matrices of the same bits in these places, or by a chance of 2⁻⁶⁴.
func (p *product[T]) hash(lo, hi int) (h uint64) {
	for place := lo; place < hi; place++ {
		for _, v := range p.row(p.src, place) {
			h = mix(h, math.Float64bits(v))
		}
	}
	return h
}

// mix is a step of a hash.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// load copies block b of S·src to p.x by columns. Each column is first divided by the power of two scale_c, exactly, so
// that its largest entry is at most 1 and neither overflow nor subnormal numbers arise from its magnitude.
func (p *product[T]) load(b int) {
	lo, hi := p.e.block(b)
	t, rows := p.t, hi-lo
	x, norm := p.x[lo*t:hi*t], p.parts[b*t:(b+1)*t]
	clear(norm)
	for r := range rows {
		down, f := 1/p.e.scale[lo+r], p.e.factor(lo+r)
		for c, v := range p.row(p.src, lo+r) {
			v = f * v / p.scale[c]
			norm[c] += math.Abs(v) * down
			x[c*rows+r] = T(v)
		}
	}
	for k := range words[T]() {
		clear(p.sums[k*len(p.x)+lo*t : k*len(p.x)+hi*t])
	}
}

// task is one tile of this rank's, or before them the sum of S·src where tiles are those of K − shift·11ᵀ: by
// rows in their order, beside the tiles.
func (p *product[T]) task(who, q int) {
	if p.e.shift != 0 {
		q--
	}
	if q >= 0 {
		p.tile(who, q)
		return
	}
	for place := range p.e.n {
		f := p.e.factor(place)
		for c, v := range p.row(p.src, place) {
			p.total[c] += f * v / p.scale[c]
		}
	}
}

// tile multiplies by tile number q of this rank's and adds the results.
func (p *product[T]) tile(who, q int) {
	if p.e.drop != nil && len(p.e.entries[q]) == 0 {
		return
	}
	i, j, yi, yj := p.multiply(who, q)
	p.add(i, yi) // y_i += T·x_j
	if i != j {
		p.add(j, yj) // y_j += Tᵀ·x_i
	}
}

// multiply multiplies by tile number q, (i, j), both ways.
func (p *product[T]) multiply(who, q int) (i, j int, yi, yj []T) {
	e, t, w := p.e, p.t, &p.workers[who]
	i, j = int(e.order[q].i), int(e.order[q].j)
	rows, cols := e.rows(i), e.rows(j)
	xi, xj := p.block(i), p.block(j)
	yi, yj = buffer.Grow(&w.yi, rows*t), buffer.Grow(&w.yj, cols*t)
	e.mulTile(w, q, yi, yj, rows, cols, xi, xj, t)
	return i, j, yi, yj
}

func (p *product[T]) block(b int) []T {
	lo, hi := p.e.block(b)
	return p.x[lo*p.t : hi*p.t]
}

// add adds a contribution to y_b.
func (p *product[T]) add(b int, y []T) {
	lo, hi := p.e.block(b)
	rows, at, ok, scale := hi-lo, lo*p.t, true, p.e.scale[lo:hi]
	p.locks[b].Lock()
	for c, f := range p.fixed {
		sum := p.sums[at+c*rows : at+(c+1)*rows]
		switch y := any(y[c*rows : (c+1)*rows]).(type) {
		case []float32:
			ok = f.AddScaled32(sum, y, scale) && ok
		case []float64:
			ok = f.AddFine(sum, p.sums[len(p.x)+at+c*rows:], y, scale) && ok
		}
	}
	p.locks[b].Unlock()
	if !ok {
		p.bad.Store(true)
	}
}

// extra is how many integers a product sends beside its sums.
const extra = 2

// reduce adds the sums of all ranks.
func (p *product[T]) reduce(ctx context.Context) error {
	c, tail := p.e.comm, p.sums[len(p.sums)-extra:]
	if p.bad.Load() {
		tail[0] = 1
	}
	var h uint64
	for b := 0; c.Size() > 1 && b < len(p.hashes); b++ {
		h = mix(h, p.hashes[b])
	}
	own := int64(h)
	tail[1] = own
	if err := c.AllReduceInt64(ctx, p.sums); err != nil {
		return err
	}
	if tail[1] != own*int64(c.Size()) {
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

// unload sets block b of dst = λ·src + S·y, and adds what the tiles leave out of K.
func (p *product[T]) unload(b int) {
	fine, shift := words[T]() > 1, p.e.shift
	lo, hi := p.e.block(b)
	rows := hi - lo
	for r := range rows {
		y, down, factor := p.row(p.dst, lo+r), 1/p.e.scale[lo+r], p.e.factor(lo+r)
		for c, v := range p.row(p.src, lo+r) {
			at, f := lo*p.t+c*rows+r, &p.fixed[c]
			var s float64
			if fine {
				s = f.Fine(p.sums[at], p.sums[len(p.x)+at])
			} else {
				s = f.Value(p.sums[at])
			}
			y[c] = float64(p.lambda*v) + float64(factor*(s*down*p.scale[c]))
			if shift != 0 {
				y[c] += float64(factor * (float64(shift*p.total[c]) * p.scale[c]))
			}
		}
	}
}
