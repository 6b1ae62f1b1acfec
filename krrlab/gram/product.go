package gram

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// product is the state of one product dst = (K+λI)·src. The sums of it are integers: with x_c
// divided by scale_c, and row i multiplied by the engine's scale_i, all of them stay below
//
//	scale_i·Σ_j|k_ij x_jc| ≤ Σ_j |x_jc|/scale_j.
type product[T float] struct {
	e       *engine[T]
	t       int
	x       []T       // src block by block, each by columns, scaled
	scale   []float64 // powers of two: src = x·diag(scale)
	norm    []float64 // Σ_j |x_jc|/(scale_j·scale_c)
	total   []float64 // Σ_j src_jc/scale_c
	fixed   []comm.Fixed
	sums    []int64      // n×t as x, and of float64 tiles n×t rests; then a count of misfits, and x's hash
	locks   []sync.Mutex // of the blocks of sums
	bad     atomic.Bool  // a contribution is above its bound
	workers []worker[T]
	body    func(worker, q int)
}

func (e *engine[T]) acquire(t int) *product[T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	var p *product[T]
	if k := len(e.idle); k > 0 {
		p, e.idle = e.idle[k-1], e.idle[:k-1]
	} else {
		p = &product[T]{e: e, locks: make([]sync.Mutex, e.blocks)}
		p.body = p.tile
	}
	p.t = t
	p.bad.Store(false)
	for len(p.workers) < accel.Threads() {
		p.workers = append(p.workers, worker[T]{})
	}
	return p
}

func (e *engine[T]) release(p *product[T]) {
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
	n, t := src.Rows, src.Cols
	p := e.acquire(t)
	p.load(src)
	clear(buffer.Grow(&p.sums, words[T]()*n*t+extra))
	if err := accel.ForEach(ctx, e.held(), p.body); err != nil { // a body that panics leaves p to the collector
		e.release(p)
		return err
	}
	err := p.reduce(ctx, src)
	if err == nil {
		p.unload(dst, src, lambda)
	}
	e.release(p)
	return err
}

// load copies src to p.x, block by block and by columns. Each column is first divided by a
// power of two, exactly, so that its largest entry is at most 1 and neither overflow nor
// subnormal numbers arise from its magnitude.
func (p *product[T]) load(src blas64.General) {
	n, t := src.Rows, src.Cols
	buffer.Grow(&p.x, n*t)
	scale, norm, fixed := buffer.Grow(&p.scale, t), buffer.Grow(&p.norm, t), buffer.Grow(&p.fixed, t)
	total := buffer.Grow(&p.total, t)
	columnScales(scale, src)
	clear(norm)
	clear(total)
	for b := range p.e.blocks {
		lo, hi := p.e.block(b)
		rows := hi - lo
		x := p.x[lo*t : hi*t]
		for r := range rows {
			i := p.e.point(lo + r)
			row := src.Data[i*src.Stride : i*src.Stride+t]
			for c, v := range row {
				v /= scale[c]
				total[c] += v
				norm[c] += math.Abs(v) / p.e.scale[lo+r]
				x[c*rows+r] = T(v)
			}
		}
	}
	for c, v := range norm {
		fixed[c] = comm.FixedFor(v)
	}
}

// columnScales sets scale_c to 2^e with max_i |x_ic| in (2^(e-1), 2^e], to 1 for a column of
// zeros or one that is not finite.
func columnScales(scale []float64, x blas64.General) {
	clear(scale)
	for i := range x.Rows {
		for c, v := range x.Data[i*x.Stride : i*x.Stride+x.Cols] {
			scale[c] = max(scale[c], math.Abs(v)) // NaN from the first one on
		}
	}
	for c, v := range scale {
		_, exp := math.Frexp(v) // 0 of 0, ∞ and NaN
		scale[c] = math.Ldexp(1, max(-1000, min(exp, 1000)))
	}
}

// tile multiplies by tile number q of this rank's and adds the results.
func (p *product[T]) tile(who, q int) {
	at := p.e.nth(q)
	if p.e.drop != nil && len(p.e.tiles[at].entries) == 0 {
		return
	}
	i, j, yi, yj := p.multiply(who, at)
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
func (p *product[T]) reduce(ctx context.Context, src blas64.General) error {
	c, tail := p.e.comm, p.sums[len(p.sums)-extra:]
	if p.bad.Load() {
		tail[0] = 1
	}
	var own int64
	if c.Size() > 1 {
		own = hash(src)
	}
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

// unload sets dst = λ·src + y, and adds what the tiles leave out of K.
func (p *product[T]) unload(dst, src blas64.General, lambda float64) {
	fine := words[T]() > 1
	for b := range p.e.blocks {
		lo, hi := p.e.block(b)
		rows := hi - lo
		for r := range rows {
			i := p.e.point(lo + r)
			y := dst.Data[i*dst.Stride : i*dst.Stride+p.t]
			x := src.Data[i*src.Stride : i*src.Stride+p.t]
			for c, v := range x {
				at, f := lo*p.t+c*rows+r, &p.fixed[c]
				var s float64
				if fine {
					s = f.Fine(p.sums[at], p.sums[len(p.x)+at])
				} else {
					s = f.Value(p.sums[at])
				}
				y[c] = float64(lambda*v) + s/p.e.scale[lo+r]*p.scale[c]
				if p.e.shift != 0 {
					y[c] += float64(p.e.shift*p.total[c]) * p.scale[c]
				}
			}
		}
	}
}
