package precond

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	rowBlock = 128 // rows of Z in one unit of work of the product Zv
	colBlock = 512 // columns of Z in one unit of work of the product ZᵀR
	trsmCols = 4   // right-hand sides in one triangular solve
)

// application is the state of one application of M⁻¹ (SolveTo) or of M (MulTo). A block of t vectors of length k is
// stored by columns, as a t×k row-major matrix, so that the long dimension is contiguous in every BLAS call.
type application struct {
	w           *Woodbury
	t           int
	columnwise  bool // t is so small that products are computed column by column
	hasAssembly bool // package simd has assembly for this processor
	corrects    bool // M⁻¹R is corrected, see Woodbury.Corrects
	colBlocks   int  // the number of blocks of columns of Z

	dst, r     blas64.General    // n×t
	kind       product           // the result in dst
	ridge      float64           // the factor of r if kind is forward
	ridges     []float64         // λ_p of each column if kind is inverse; nil: that of w for all
	sums       []int64           // t×s: ZᵀR in fixed point
	norm       []float64         // ‖r_c‖₁
	norms      []float64         // partial sums of norm over normRows rows, t for each block of rows
	fixed      []comm.FixedPoint // fixed-point format of each column of sums
	locks      []sync.Mutex      // one for each block of columns of sums
	v          []float64         // t×s: ZᵀR, then (ZᵀZ+λ_pI)⁻¹ZᵀR
	u          []float64         // t×s: intermediate result, L⁻¹v or (Σ²+λ_pI)⁻¹Vᵀv
	projection []float64         // t×s: ZᵀM⁻¹R, if M⁻¹R is corrected
	dense      []float64         // contiguous copy of dst, if dst is strided and distributed
	counts     []int             // the number of entries of an n×t matrix on each rank
	workers    []scratch

	// Bodies of accel.ForEach, created once so that an application does not allocate.
	normBody, projectBody, firstBody, secondBody, expandBody, trsmBody func(worker, i int)
}

// scratch holds the scratch memory of one worker.
type scratch struct {
	rt   []float64 // t×RankRows
	out  []float64 // t×colBlock
	simd simd.Workspace
}

// bytes returns the size of the scratch memory.
func (p *application) bytes() int64 {
	b := cap(p.sums) + cap(p.v) + cap(p.u) + cap(p.projection) + cap(p.dense)
	for _, w := range p.workers {
		b += cap(w.rt) + cap(w.out) + int(w.simd.Bytes()/8)
	}
	return 8 * int64(b)
}

// SolveTo sets dst = M⁻¹r for n×t matrices:
//
//	v = Zᵀr,  v ← (ZᵀZ+λ_pI)⁻¹v,  dst = λ_p⁻¹(r − Zv),
//
// followed, if Corrects returns true, by dst ← dst + Z(ZᵀZ+λ_pI)⁻¹(v − Zᵀdst).
//
// dst may be r, but must not overlap it otherwise. SolveTo allocates memory only in the first call with a given number
// of columns. It panics if the shapes do not match. If ctx ends, it returns the error of ctx, and dst is undefined.
func (w *Woodbury) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	p := w.start(dst, r, inverse)
	defer w.release(p)
	return p.run(ctx)
}

// run computes dst = M⁻¹r.
func (p *application) run(ctx context.Context) error {
	if err := p.project(ctx); err != nil { // v = Zᵀr
		return err
	}
	if err := p.solveInner(ctx); err != nil { // v ← (ZᵀZ+λ_pI)⁻¹v
		return err
	}
	if !p.corrects {
		return p.expand(ctx) // λ_p⁻¹(r − Zv)
	}
	p.projection = append(p.projection[:0], p.v...)
	if err := p.expand(ctx); err != nil {
		return err
	}
	p.r, p.kind, p.ridge = p.dst, forward, 1
	if err := p.project(ctx); err != nil { // v = Zᵀdst
		return err
	}
	floats.SubTo(p.v, p.projection, p.v)
	if err := p.solveInner(ctx); err != nil {
		return err
	}
	return p.expand(ctx) // dst + Z(ZᵀZ+λ_pI)⁻¹(v − Zᵀdst)
}

// solveInner sets v ← (ZᵀZ+λ_pI)⁻¹v. For FormU it does nothing, because M⁻¹ = λ_p⁻¹(I − UᵀU).
func (p *application) solveInner(ctx context.Context) error {
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

// trsm solves for right-hand sides trsmCols·b to trsmCols·(b+1)-1. One solve of all right-hand sides on the threads of
// OpenBLAS would not be faster, and its threads would then spin while the next products need the cores.
func (p *application) trsm(_, b int) {
	s, j := p.w.s, b*trsmCols
	l, v := p.w.lower(0, s), blas64.General{Rows: min(trsmCols, p.t-j), Cols: s, Stride: s, Data: p.v[j*s:]}
	blas64.Trsm(blas.Right, blas.Trans, 1, l, v)   // v ← L⁻¹v
	blas64.Trsm(blas.Right, blas.NoTrans, 1, l, v) // v ← L⁻ᵀv
}

// start checks the shapes of dst and r, n×t, and returns an application that computes the given product. The caller
// passes it to release after use.
func (w *Woodbury) start(dst, r *mat.Dense, kind product) *application {
	n, t := r.Dims()
	if dn, dt := dst.Dims(); n != w.n || dn != n || dt != t {
		panic(fmt.Sprintf("precond: %d×%d into %d×%d for order %d", n, t, dn, dt, w.n))
	}
	w.mu.Lock()
	var p *application
	if k := len(w.pool); k > 0 {
		p, w.pool = w.pool[k-1], w.pool[:k-1]
	}
	w.mu.Unlock()
	if p == nil {
		p = &application{w: w}
		p.normBody, p.projectBody, p.expandBody = p.sumNorms, p.projectUnit, p.expandPanel
		p.firstBody, p.secondBody, p.trsmBody = p.firstFactor, p.secondFactor, p.trsm
		p.colBlocks = (w.s + colBlock - 1) / colBlock
		p.locks = make([]sync.Mutex, p.colBlocks)
	}
	p.dst, p.r, p.kind, p.ridge = dst.RawMatrix(), r.RawMatrix(), kind, 0
	p.corrects = kind == inverse && w.Corrects()
	p.t, p.columnwise, p.hasAssembly = t, t <= gemvColumns(), simd.CurrentPath() != simd.Portable
	buffer.Grow(&p.sums, t*w.s)
	buffer.Grow(&p.norm, t)
	buffer.Grow(&p.fixed, t)
	buffer.Grow(&p.counts, w.distribution.comm.Size())
	for r := range p.counts {
		lo, hi := comm.RowRange(w.n, RankRows, r, len(p.counts))
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

// release returns an application to the pool.
func (w *Woodbury) release(p *application) {
	p.dst, p.r, p.ridges = blas64.General{}, blas64.General{}, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool = append(w.pool, p)
}

// gemvColumns returns the largest number of columns for which products are computed column by column. For few columns
// OpenBLAS's gemm is slower, because it copies the matrix first; gonum's gemm is always slower than its gemv.
func gemvColumns() int {
	if accel.CurrentBLAS().Name == "gonum" {
		return 1 << 30
	}
	return 4
}

// firstFactor computes block b of u = L⁻¹v, or of u = (Σ²+λ_pI)⁻¹Vᵀv.
func (p *application) firstFactor(_, b int) {
	s, t := p.w.s, p.t
	if p.w.form == FormLInv {
		b = p.colBlocks - 1 - b // start with the longest block
	}
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	u := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: p.u[c0:]}
	if p.w.form == FormLInv {
		x := p.w.linv.rows[b]
		if x == nil {
			return
		}
		rows := blas64.General{Rows: c1 - c0, Cols: c1, Stride: cmp.Or(p.w.linv.stride, c1), Data: x}
		v := blas64.General{Rows: t, Cols: c1, Stride: s, Data: p.v}
		if p.hasAssembly {
			for row := range t {
				clear(p.u[row*s+c0 : row*s+c1])
			}
			simd.AddProduct(rows.Data, rows.Stride, v, u) // u_I = Σ_{J≤I} (L⁻¹)_IJ v_J
			return
		}
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

// lambdaP returns λ_p for a column of r.
func (p *application) lambdaP(col int) float64 {
	if p.ridges != nil {
		return p.ridges[col]
	}
	return p.w.lambdaP
}

// secondFactor computes block b of v = L⁻ᵀu, or of v = Vu.
func (p *application) secondFactor(worker, b int) {
	s, t := p.w.s, p.t
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	v := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: p.v[c0:]}
	if p.w.form == FormLInv { // v_J = Σ_{I≥J} (L⁻¹)_IJᵀ u_I
		x := p.w.linv.columns[b]
		u := blas64.General{Rows: t, Cols: s - c0, Stride: s, Data: p.u[c0:]}
		cols := blas64.General{Rows: s - c0, Cols: c1 - c0, Stride: cmp.Or(p.w.linv.stride, c1-c0), Data: x}
		switch {
		case x == nil:
		case p.hasAssembly:
			for row := range t {
				clear(p.v[row*s+c0 : row*s+c1])
			}
			simd.AddTransposeProduct(cols.Data, cols.Stride, v, u, &p.workers[worker].simd)
		default:
			p.mul(v, u, cols, 0)
		}
		return
	}
	u := blas64.General{Rows: t, Cols: s, Stride: s, Data: p.u}
	p.mulTrans(v, u, blas64.General{Rows: c1 - c0, Cols: s, Stride: s, Data: p.w.factor[c0*s:]}, 0) // v = Vu
}

// expandPanel computes a panel of rows of dst = λ_p⁻¹(r − Zv), or of dst = ridge·r + Zv.
func (p *application) expandPanel(worker, panel int) {
	s, t, k := p.w.s, p.t, p.w.distribution
	i0, i1 := k.panel(panel)
	if i0 >= i1 {
		return
	}
	zv := blas64.General{Rows: t, Cols: i1 - i0, Stride: i1 - i0, Data: p.workers[worker].rt}
	p.w.timesZTrans(p, zv, blas64.General{Rows: t, Cols: s, Stride: s, Data: p.v}, i0) // Zv
	for i := i0; i < i1; i++ {
		row := k.firstRow + i
		out, r := p.dst.Data[row*p.dst.Stride:row*p.dst.Stride+t], p.r.Data[row*p.r.Stride:row*p.r.Stride+t]
		if p.kind == forward {
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
