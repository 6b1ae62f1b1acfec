package precond

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	rowBlock = 128 // rows of Z that Zv takes together
	colBlock = 512 // columns of Z that ZᵀR takes together
	trsmCols = 4   // right-hand sides of one triangular solve
)

// solve is the state of one SolveTo. Blocks of t vectors of length k are held by
// columns, as t×k row-major matrices, so that the long side of every product is the
// long side for BLAS too.
type solve struct {
	w       *Woodbury
	t       int
	skinny  bool // products column by column
	kernels bool // package simd has assembly

	colBlocks int

	dst, r  blas64.General // n×t
	what    product        // and
	ridge   float64        // what dst is made of
	ridges  []float64      // λ_p of each column; nil: that of w for all
	sums    []int64        // t×s: ZᵀR in fixed point
	norm    []float64      // ‖r_c‖₁
	parts   []float64      // of normRows rows, by columns
	fixed   []comm.Fixed   // of the columns
	locks   []sync.Mutex   // of the blocks of columns of Z
	v, u    []float64      // t×s: ZᵀR, and what becomes of it
	dense   []float64      // a dst with gaps, gathered
	counts  []int          // numbers of each rank in n×t
	workers []scratch

	// Bodies of ForEach, made once.
	normBody, gatherBody, firstBody, secondBody, scatterBody, trsmBody func(worker, i int)
}

// scratch of one worker.
type scratch struct {
	rt   []float64 // t×RankRows
	out  []float64 // t×colBlock
	simd simd.Workspace
}

func (p *solve) bytes() int64 {
	b := cap(p.sums) + cap(p.v) + cap(p.u) + cap(p.dense)
	for _, w := range p.workers {
		b += cap(w.rt) + cap(w.out) + int(w.simd.Bytes()/8)
	}
	return 8 * int64(b)
}

// SolveTo sets dst = M⁻¹r for n×t matrices; dst may be r, but must not overlap it
// otherwise. It allocates nothing once it has been called with as many columns. It
// panics if the shapes do not fit, and returns ctx's error, with dst undefined, if ctx
// ends.
//
//	v = Zᵀr,  v ← (ZᵀZ+λ_pI)⁻¹v,  dst = λ_p⁻¹(r − Zv)
func (w *Woodbury) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	p := w.start(dst, r, inverse)
	defer w.release(p)
	return p.run(ctx)
}

func (p *solve) run(ctx context.Context) error {
	if err := p.project(ctx); err != nil { // v = Zᵀr
		return err
	}
	if err := p.middle(ctx); err != nil { // v ← (ZᵀZ+λ_pI)⁻¹v
		return err
	}
	return p.expand(ctx) // λ_p⁻¹(r − Zv)
}

// middle sets v = (ZᵀZ+λ_pI)⁻¹v; with U instead of Z there is nothing to do.
func (p *solve) middle(ctx context.Context) error {
	switch p.w.form {
	case FormL:
		return accel.ForEach(ctx, (p.t+trsmCols-1)/trsmCols, p.trsmBody) // v ← L⁻ᵀL⁻¹v
	case FormLInv, FormEigen:
		if err := accel.ForEach(ctx, p.colBlocks, p.firstBody); err != nil { // u = L⁻¹v, or (Σ²+λ_pI)⁻¹Vᵀv
			return err
		}
		if err := p.gatherBlocks(ctx, p.u); err != nil {
			return err
		}
		if err := accel.ForEach(ctx, p.colBlocks, p.secondBody); err != nil { // v = L⁻ᵀu, or Vu
			return err
		}
		return p.gatherBlocks(ctx, p.v)
	}
	return nil
}

// trsm solves for the right-hand sides trsmCols·b and on. (A solve of all on the
// threads of OpenBLAS is no faster, and these then spin while the next products want
// the cores.)
func (p *solve) trsm(_, b int) {
	s, j := p.w.s, b*trsmCols
	l, v := p.w.lower(0, s), blas64.General{Rows: min(trsmCols, p.t-j), Cols: s, Stride: s, Data: p.v[j*s:]}
	blas64.Trsm(blas.Right, blas.Trans, 1, l, v)   // v ← L⁻¹v
	blas64.Trsm(blas.Right, blas.NoTrans, 1, l, v) // v ← L⁻ᵀv
}

// start returns what makes dst of r, n×t both, after a check of their shapes.
func (w *Woodbury) start(dst, r *mat.Dense, what product) *solve {
	n, t := r.Dims()
	if dn, dt := dst.Dims(); n != w.n || dn != n || dt != t {
		panic(fmt.Sprintf("precond: %d×%d into %d×%d for order %d", n, t, dn, dt, w.n))
	}
	w.mu.Lock()
	var p *solve
	if k := len(w.idle); k > 0 {
		p, w.idle = w.idle[k-1], w.idle[:k-1]
	}
	w.mu.Unlock()
	if p == nil {
		p = &solve{w: w}
		p.normBody, p.gatherBody, p.scatterBody = p.norms, p.gather, p.scatter
		p.firstBody, p.secondBody, p.trsmBody = p.first, p.second, p.trsm
		p.colBlocks = (w.s + colBlock - 1) / colBlock
		p.locks = make([]sync.Mutex, p.colBlocks)
	}
	p.dst, p.r, p.what, p.ridge = dst.RawMatrix(), r.RawMatrix(), what, 0
	p.t, p.skinny, p.kernels = t, t <= gemvColumns(), simd.InUse() != simd.Portable
	buffer.Grow(&p.sums, t*w.s)
	buffer.Grow(&p.norm, t)
	buffer.Grow(&p.fixed, t)
	buffer.Grow(&p.counts, w.rows.comm.Size())
	for r := range p.counts {
		lo, hi := comm.Rows(w.n, RankRows, r, len(p.counts))
		p.counts[r] = (hi - lo) * t
	}
	buffer.Grow(&p.v, t*w.s)
	if w.form == FormLInv || w.form == FormEigen {
		buffer.Grow(&p.u, t*w.s)
	}
	for len(p.workers) < accel.Threads() {
		p.workers = append(p.workers, scratch{})
	}
	for i := range p.workers {
		buffer.Grow(&p.workers[i].rt, t*RankRows)
		buffer.Grow(&p.workers[i].out, t*colBlock)
	}
	return p
}

func (w *Woodbury) release(p *solve) {
	p.dst, p.r, p.ridges = blas64.General{}, blas64.General{}, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, p)
}

// gemvColumns returns up to how many columns a block is multiplied column by
// column: OpenBLAS's gemm copies the block first, and gonum's is slower than its gemv.
func gemvColumns() int {
	if accel.InUse().Name == "gonum" {
		return 1 << 30
	}
	return 4
}

// first is a block of u = L⁻¹v, or of u = (Σ²+λ_pI)⁻¹Vᵀv.
func (p *solve) first(_, b int) {
	s, t := p.w.s, p.t
	if p.w.form == FormLInv {
		b = p.colBlocks - 1 - b // the longest first
	}
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	u := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: p.u[c0:]}
	if p.w.form == FormLInv {
		x := p.w.linv.rows[b]
		if x == nil {
			return
		}
		rows := blas64.General{Rows: c1 - c0, Cols: c1, Stride: cmp.Or(p.w.linv.stride, c1), Data: x}
		if p.kernels {
			for row := range t {
				clear(p.u[row*s+c0 : row*s+c1])
			}
			simd.Forward(c1-c0, c1, rows.Data, rows.Stride, p.v, s, p.u[c0:], s, t) // u_I = Σ_{J≤I} (L⁻¹)_IJ v_J
			return
		}
		v := blas64.General{Rows: t, Cols: c1, Stride: s, Data: p.v}
		p.mulTrans(u, v, rows, 0) // u_I = Σ_{J≤I} (L⁻¹)_IJ v_J
		return
	}
	p.rotate(b) // u = Vᵀv
	for row := range t {
		for k := c0; k < c1; k++ {
			p.u[row*s+k] /= p.w.sigma2[k] + p.lambdaP(row) // u ← (Σ²+λ_pI)⁻¹u
		}
	}
}

// lambdaP returns the λ_p of a column.
func (p *solve) lambdaP(col int) float64 {
	if p.ridges != nil {
		return p.ridges[col]
	}
	return p.w.lambdaP
}

// second is a block of v = L⁻ᵀu, or of v = Vu.
func (p *solve) second(worker, b int) {
	s, t := p.w.s, p.t
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	v := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: p.v[c0:]}
	if p.w.form == FormLInv { // v_J = Σ_{I≥J} (L⁻¹)_IJᵀ u_I
		x := p.w.linv.columns[b]
		cols := blas64.General{Rows: s - c0, Cols: c1 - c0, Stride: cmp.Or(p.w.linv.stride, c1-c0), Data: x}
		switch {
		case x == nil:
		case p.kernels:
			for row := range t {
				clear(p.v[row*s+c0 : row*s+c1])
			}
			simd.Backward(s-c0, c1-c0, cols.Data, cols.Stride, p.v[c0:], s, p.u[c0:], s, t, &p.workers[worker].simd)
		default:
			p.mul(v, blas64.General{Rows: t, Cols: s - c0, Stride: s, Data: p.u[c0:]}, cols, 0)
		}
		return
	}
	u := blas64.General{Rows: t, Cols: s, Stride: s, Data: p.u}
	p.mulTrans(v, u, blas64.General{Rows: c1 - c0, Cols: s, Stride: s, Data: p.w.factor[c0*s:]}, 0) // v = Vu
}

// scatter is a panel of rows of dst = λ_p⁻¹(r − Zv), or ridge·r + Zv.
func (p *solve) scatter(worker, panel int) {
	s, t, k := p.w.s, p.t, p.w.rows
	i0, i1 := k.panel(panel)
	if i0 >= i1 {
		return
	}
	zv := blas64.General{Rows: t, Cols: i1 - i0, Stride: i1 - i0, Data: p.workers[worker].rt}
	p.w.forward(p, zv, blas64.General{Rows: t, Cols: s, Stride: s, Data: p.v}, i0) // Zv
	for i := i0; i < i1; i++ {
		at := k.first + i
		out, r := p.dst.Data[at*p.dst.Stride:at*p.dst.Stride+t], p.r.Data[at*p.r.Stride:at*p.r.Stride+t]
		if p.what == forward {
			for j, v := range r {
				out[j] = p.ridge*v + zv.Data[j*zv.Stride+i-i0] // ridge·r + Zv
			}
			continue
		}
		for j, v := range r {
			out[j] = (v - zv.Data[j*zv.Stride+i-i0]) / p.lambdaP(j) // λ_p⁻¹(r − Zv)
		}
	}
}
