package gram

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// engine multiplies by the tiles of one source.
type engine[T float] struct {
	*tiling
	src     source[T]
	ranks   *ranks // nil without
	mulTile func(yi, yj, tile []T, rows, cols int, xi, xj []T, t int, w *simd.Workspace)

	mu   sync.Mutex
	idle []*product[T] // scratch of products that are over
}

// product is the state of one product dst = (K+λI)·src.
type product[T float] struct {
	e       *engine[T]
	t       int
	x       []T            // src block by block, each by columns, scaled
	scale   []float64      // powers of two: src = x·diag(scale)
	dst     blas64.General // n×t
	turn    []atomic.Int32 // turn[b]: how many tiles have been added to y_b
	abort   atomic.Bool    // a body has panicked: stop waiting for it
	workers []worker[T]
	body    func(worker, p int)

	sums      *sums // on ranks
	fixedBody func(worker, p int)
}

func (e *engine[T]) acquire(t int) *product[T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	var p *product[T]
	if k := len(e.idle); k > 0 {
		p, e.idle = e.idle[k-1], e.idle[:k-1]
	} else {
		p = &product[T]{e: e, turn: make([]atomic.Int32, e.blocks)}
		p.body = p.tile
	}
	p.t = t
	for b := range p.turn {
		p.turn[b].Store(0)
	}
	p.abort.Store(false)
	for len(p.workers) < accel.Threads() {
		p.workers = append(p.workers, worker[T]{})
	}
	return p
}

func (e *engine[T]) release(p *product[T]) {
	p.dst = blas64.General{}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, p)
}

// mul sets dst = (K+λI)·src. dst may be src.
func (e *engine[T]) mul(ctx context.Context, dst, src blas64.General, lambda float64) error {
	if e.ranks != nil {
		return e.mulRanks(ctx, dst, src, lambda)
	}
	p := e.acquire(src.Cols)
	p.load(src)
	p.dst = dst
	for i := range dst.Rows { // y = λx
		y, x := dst.Data[i*dst.Stride:i*dst.Stride+dst.Cols], src.Data[i*src.Stride:i*src.Stride+dst.Cols]
		for c, v := range x {
			y[c] = lambda * v
		}
	}
	err := accel.ForEach(ctx, len(e.order), p.body)
	e.release(p) // not if a body panicked
	return err
}

// load copies src to p.x, block by block and by columns. In float32 each column
// is first divided by a power of two, exactly, so that its largest entry is at
// most 1 and neither overflow nor subnormal numbers arise from its magnitude.
func (p *product[T]) load(src blas64.General) {
	n, t := src.Rows, src.Cols
	grow(&p.x, n*t)
	grow(&p.scale, t)
	for c := range p.scale {
		p.scale[c] = 1
		if sizeOf[T]() == 4 {
			p.scale[c] = columnScale(src, c)
		}
	}
	for b := range p.e.blocks {
		lo, hi := p.e.block(b)
		rows := hi - lo
		x := p.x[lo*t : hi*t]
		for r := range rows {
			row := src.Data[(lo+r)*src.Stride : (lo+r)*src.Stride+t]
			for c, v := range row {
				x[c*rows+r] = T(v / p.scale[c])
			}
		}
	}
}

// columnScale returns 2^e with max_i |x_ic| in (2^(e-1), 2^e], 1 for a column of
// zeros or one that is not finite.
func columnScale(x blas64.General, c int) float64 {
	var largest float64
	for i := range x.Rows {
		largest = max(largest, math.Abs(x.Data[i*x.Stride+c]))
	}
	if largest == 0 || math.IsInf(largest, 0) || math.IsNaN(largest) {
		return 1
	}
	_, exp := math.Frexp(largest)
	return math.Ldexp(1, max(-1000, min(exp, 1000)))
}

// tile multiplies by tile number q and adds the results to y when it is their turn.
func (p *product[T]) tile(who, q int) {
	finished := false
	defer func() {
		if !finished {
			p.abort.Store(true)
		}
	}()
	r := p.e.order[q]
	i, j, yi, yj := p.multiply(who, q)
	p.add(i, r.seqI, yi) // y_i += T·x_j
	if i != j {
		p.add(j, r.seqJ, yj) // y_j += Tᵀ·x_i
	}
	finished = true
}

// multiply multiplies by tile number q, (i, j), both ways.
func (p *product[T]) multiply(who, q int) (i, j int, yi, yj []T) {
	e, t, w := p.e, p.t, &p.workers[who]
	i, j = int(e.order[q].i), int(e.order[q].j)
	rows, cols := e.rows(i), e.rows(j)
	xi, xj := p.block(i), p.block(j)
	yi, yj = grow(&w.yi, rows*t), grow(&w.yj, cols*t)
	if m, ok := e.src.(multiplier[T]); ok {
		m.multiply(w, q, yi, yj, rows, cols, xi, xj, t)
	} else {
		e.mulTile(yi, yj, e.src.tile(w, q), rows, cols, xi, xj, t, &w.simd)
	}
	return i, j, yi, yj
}

func (p *product[T]) block(b int) []T {
	lo, hi := p.e.block(b)
	return p.x[lo*p.t : hi*p.t]
}

// add waits until seq contributions have been added to y_b, then adds y. The
// tiles waited for are earlier in the order; ForEach hands tiles out in order
// and lets those handed out finish, so the earliest tile in work never waits.
func (p *product[T]) add(b int, seq int32, y []T) {
	for spin := 0; p.turn[b].Load() != seq; spin++ {
		if p.abort.Load() {
			return
		}
		if spin > 100 {
			runtime.Gosched()
		}
	}
	lo, hi := p.e.block(b)
	rows := hi - lo
	for r := range rows {
		out := p.dst.Data[(lo+r)*p.dst.Stride : (lo+r)*p.dst.Stride+p.t]
		for c := range out {
			out[c] += float64(y[c*rows+r]) * p.scale[c]
		}
	}
	p.turn[b].Store(seq + 1)
}
