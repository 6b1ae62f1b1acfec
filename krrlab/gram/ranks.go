package gram

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
)

// ranks is what an engine knows of the ranks that share its tiles, nil if there are none.
type ranks struct {
	comm comm.Comm
	peak float64 // bounds |K_ij|
	name string  // of the kernel
}

func (m *Matrix) newRanks() *ranks {
	if m.comm == nil {
		return nil
	}
	r := &ranks{comm: m.comm, name: m.k.String()}
	for _, v := range m.diag { // |k(x,z)| ≤ max k(x,x) as K is positive semi-definite
		r.peak = max(r.peak, math.Abs(v))
	}
	r.peak *= 1 + 1e-3 // rounding of tiles and products
	if isOwn(m.k) {
		r.peak *= ownSlack
	}
	return r
}

// ownSlack is by how much entries of a researcher's own kernel may exceed the diagonal: it
// may turn out not to be positive semi-definite.
const ownSlack = 1 << 10

// has reports whether tile, or block of rows, number q is this rank's.
func (r *ranks) has(q int) bool { return r == nil || q%r.comm.Size() == r.comm.Rank() }

// gather adds dst over the ranks, of which one at most has an entry that is not zero.
func (r *ranks) gather(ctx context.Context, dst blas64.General) error {
	if r == nil {
		return nil
	}
	if dst.Stride == dst.Cols {
		return r.comm.AllReduce(ctx, dst.Data[:dst.Rows*dst.Cols])
	}
	x := make([]float64, 0, dst.Rows*dst.Cols)
	for i := range dst.Rows {
		x = append(x, dst.Data[i*dst.Stride:i*dst.Stride+dst.Cols]...)
	}
	if err := r.comm.AllReduce(ctx, x); err != nil {
		return err
	}
	for i := range dst.Rows {
		copy(dst.Data[i*dst.Stride:i*dst.Stride+dst.Cols], x[i*dst.Cols:])
	}
	return nil
}

// clearAll sets dst = 0 where ranks are to gather it.
func (r *ranks) clearAll(dst blas64.General) {
	if r == nil {
		return
	}
	for i := range dst.Rows {
		clear(dst.Data[i*dst.Stride : i*dst.Stride+dst.Cols])
	}
}

// sums are the sums of a product on ranks, in fixed point: contribution T·x_j of a tile,
// divided by the column's scale, is |(T·x_j)_c| ≤ max|K|·‖x_c‖₁/scale_c, which all sums
// stay below.
type sums struct {
	y     []int64 // n×t as x: block by block, each by columns; then a count of misfits, and x's hash
	fixed []comm.Fixed
	locks []sync.Mutex // of the blocks
	bad   atomic.Bool  // a contribution is above its bound
}

// mulRanks is mul on ranks: each adds the contributions of its tiles, and one all-reduce
// of nt+2 integers adds those of all. The integers are exact, so that the result has the
// same bits for any number of ranks and threads. Ranks whose src is not the same, because
// their processors or libraries round differently, get an error.
func (e *engine[T]) mulRanks(ctx context.Context, dst, src blas64.General, lambda float64) error {
	n, t := src.Rows, src.Cols
	p := e.acquire(t)
	p.load(src)
	if p.sums == nil {
		p.sums = &sums{locks: make([]sync.Mutex, e.blocks)}
		p.fixedBody = p.tileFixed
	}
	s := p.sums
	clear(grow(&s.y, n*t+extra))
	grow(&s.fixed, t)
	s.bad.Store(false)
	for c := range s.fixed {
		var norm float64 // ‖x_c‖₁/scale_c
		inv := 1 / p.scale[c]
		for i := range n {
			norm += math.Abs(src.Data[i*src.Stride+c] * inv)
		}
		s.fixed[c] = comm.FixedFor(e.ranks.peak * norm)
	}
	err := accel.ForEach(ctx, e.held(), p.fixedBody)
	if s.bad.Load() {
		s.y[n*t] = 1
	}
	own := hash(src)
	s.y[n*t+1] = own
	if err == nil {
		err = e.ranks.comm.AllReduceInt64(ctx, s.y)
	}
	if err == nil && s.y[n*t+1] != own*int64(e.ranks.comm.Size()) {
		err = fmt.Errorf("gram: the ranks have come to different vectors: their processors or libraries round differently; " +
			"give all of them the Go BLAS (--blas go) and the same instructions (--cpu)")
	}
	if err == nil && s.y[n*t] != 0 {
		err = fmt.Errorf("gram: a product with K is larger than its diagonal allows: kernel %s is not positive semi-definite, or has values that are not finite", e.ranks.name)
	}
	if err == nil {
		p.unload(dst, src, lambda)
	}
	e.release(p)
	return err
}

// extra is how many integers a product sends beside its sums.
const extra = 2

// hash returns a number that two matrices share only if they have the same bits, or by a
// chance of 2⁻⁶⁴.
func hash(x blas64.General) int64 {
	const prime = 0x9e3779b97f4a7c15
	var h uint64
	for i := range x.Rows {
		for _, v := range x.Data[i*x.Stride : i*x.Stride+x.Cols] {
			h = (h ^ math.Float64bits(v)) * prime
			h ^= h >> 29
		}
	}
	return int64(h)
}

// tileFixed multiplies by tile number q of this rank's and adds the results.
func (p *product[T]) tileFixed(who, q int) {
	at := p.e.nth(q)
	i, j, yi, yj := p.multiply(who, at)
	p.addFixed(i, yi) // y_i += T·x_j
	if i != j {
		p.addFixed(j, yj) // y_j += Tᵀ·x_i
	}
}

// addFixed adds a contribution to y_b.
func (p *product[T]) addFixed(b int, y []T) {
	lo, hi := p.e.block(b)
	rows, s := hi-lo, p.sums
	ok := true
	s.locks[b].Lock()
	for c, f := range s.fixed {
		up := f.Scale()
		if up == 0 { // x_c is not finite, and no sum of it will be
			continue
		}
		sum := s.y[lo*p.t+c*rows : lo*p.t+(c+1)*rows]
		for r, v := range y[c*rows : (c+1)*rows] {
			w := float64(v) * up
			ok = ok && comm.Fits(w)
			sum[r] += int64(w)
		}
	}
	s.locks[b].Unlock()
	if !ok {
		s.bad.Store(true)
	}
}

// unload sets dst = λ·src + y.
func (p *product[T]) unload(dst, src blas64.General, lambda float64) {
	for b := range p.e.blocks {
		lo, hi := p.e.block(b)
		rows := hi - lo
		for r := range rows {
			y := dst.Data[(lo+r)*dst.Stride : (lo+r)*dst.Stride+p.t]
			x := src.Data[(lo+r)*src.Stride : (lo+r)*src.Stride+p.t]
			for c, v := range x {
				y[c] = float64(lambda*v) + p.sums.fixed[c].Value(p.sums.y[lo*p.t+c*rows+r])*p.scale[c]
			}
		}
	}
}

// ProductBytes returns what a rank hands to others for a product with t columns: nt+2
// integers.
func ProductBytes(n, t int) int64 { return 8 * (int64(n)*int64(t) + extra) }

// Traffic returns what this rank has handed to others for products; nothing without ranks.
func (m *Matrix) Traffic() comm.Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.traffic
}

// counted counts the traffic of a product.
func (m *Matrix) counted(f func() error) error {
	if m.comm == nil {
		return f()
	}
	before := m.comm.Traffic()
	err := f()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.traffic = m.traffic.Plus(m.comm.Traffic().Sub(before))
	return err
}

// agree is choose by rank 0, for all.
func (m *Matrix) agree(ctx context.Context, o *Options, d int) (c Choice, err error) {
	if m.comm == nil {
		return m.choose(ctx, o, d)
	}
	if o.Memory, err = comm.Least(ctx, m.comm, o.Memory); err != nil {
		return c, err
	}
	type message struct {
		Choice Choice
		Floor  float64
	}
	var b bytes.Buffer
	if m.comm.Rank() == 0 {
		if c, err = m.choose(ctx, o, d); err == nil {
			err = gob.NewEncoder(&b).Encode(message{c, c.floor})
		}
	}
	if err = comm.Agree(ctx, m.comm, err); err != nil {
		return c, err
	}
	text, err := comm.Share(ctx, m.comm, b.Bytes(), 0)
	if err != nil {
		return c, err
	}
	var got message
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&got); err != nil {
		return c, fmt.Errorf("gram: the choice of rank 0: %w", err)
	}
	got.Choice.floor = got.Floor
	return got.Choice, nil
}

// RankBytes returns Bytes of the matrix of n points in tiles of the default size on the rank
// that holds the most of them, of the given number, to within a tile. It panics for Auto.
func RankBytes(n int, s Storage, ranks int) int64 {
	if s == Auto || n < 1 || ranks < 1 {
		panic(fmt.Sprintf("gram: %d points as %v on %d ranks", n, s, ranks))
	}
	o := (*Options)(nil).settled(n, 1)
	size := int64(o.TileSize)
	blocks := (int64(n) + size - 1) / size
	tiles := blocks * (blocks + 1) / 2
	bytes := tablesOf(int64(n), tiles, blocks)
	width := map[Storage]int64{Float64: 8, Float32: 4, Fixed16: 2}[s]
	if ranks == 1 { // the last block may be short
		short := int64(n) - (blocks-1)*size
		return bytes + width*((blocks-1)*blocks/2*size*size+(blocks-1)*size*short+short*short)
	}
	return bytes + width*((tiles+int64(ranks)-1)/int64(ranks))*size*size
}
