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
	hasAssembly bool // package simd has assembly code for this processor
	corrects    bool // M⁻¹R is corrected, see Woodbury.Corrects
	colBlocks   int  // the number of blocks of columns of Z

	dst, r        blas64.General    // result and right-hand sides, n×t
	kind          product           // the result in dst
	ridge         float64           // the factor of r if kind is forward
	ridges        []float64         // λ_p of each column if kind is inverse; if nil, every column has the λ_p of w
	sums          []int64           // t×s: ZᵀR in fixed point
	columnNorms   []float64         // ‖r_c‖₁ of each column c of r
	rowBlockNorms []float64         // the parts of columnNorms in each block of normRows rows, t for each block
	formats       []comm.FixedPoint // fixed-point format of each column of sums
	locks         []sync.Mutex      // one for each block of columns of sums
	v             []float64         // t×s: ZᵀR, then (ZᵀZ+λ_pI)⁻¹ZᵀR
	u             []float64         // t×s: the intermediate result of solveInner, L⁻¹v or (Σ²+λ_pI)⁻¹Vᵀv
	projection    []float64         // t×s: ZᵀM⁻¹R, if M⁻¹R is corrected
	contiguousDst []float64         // copy of dst without gaps, if dst is strided and distributed
	counts        []int             // the number of entries of an n×t matrix on each rank
	workers       []scratch

	// The fields below are bound methods for accel.ForEach. They are created once, so that an application does not
	// allocate.
	normBody, projectBody, firstBody, secondBody, expandBody, trsmBody func(worker, i int)
}

// scratch holds the scratch memory of one worker.
type scratch struct {
	rt   []float64 // t×RankRows: the right-hand sides, or Zv, of a block of rows, by columns
	out  []float64 // t×colBlock: the product of rt with a block of columns of Z
	simd simd.Workspace
}

// bytes returns the size of the scratch memory.
func (a *application) bytes() int64 {
	words := cap(a.sums) + cap(a.v) + cap(a.u) + cap(a.projection) + cap(a.contiguousDst)
	for _, worker := range a.workers {
		words += cap(worker.rt) + cap(worker.out) + int(worker.simd.Bytes()/8)
	}
	return 8 * int64(words)
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
	a := w.start(dst, r, inverse)
	defer w.release(a)
	return a.run(ctx)
}

// run computes dst = M⁻¹r.
func (a *application) run(ctx context.Context) error {
	if err := a.project(ctx); err != nil { // v = Zᵀr
		return err
	}
	if err := a.solveInner(ctx); err != nil { // v ← (ZᵀZ+λ_pI)⁻¹v
		return err
	}
	if !a.corrects {
		return a.expand(ctx) // λ_p⁻¹(r − Zv)
	}
	a.projection = append(a.projection[:0], a.v...)
	if err := a.expand(ctx); err != nil {
		return err
	}
	a.r, a.kind, a.ridge = a.dst, forward, 1
	if err := a.project(ctx); err != nil { // v = Zᵀdst
		return err
	}
	floats.SubTo(a.v, a.projection, a.v)
	if err := a.solveInner(ctx); err != nil {
		return err
	}
	return a.expand(ctx) // dst + Z(ZᵀZ+λ_pI)⁻¹(v − Zᵀdst)
}

// solveInner sets v ← (ZᵀZ+λ_pI)⁻¹v. For FormU it does nothing, because M⁻¹ = λ_p⁻¹(I − UᵀU).
func (a *application) solveInner(ctx context.Context) error {
	switch a.w.form {
	case FormL:
		return accel.ForEach(ctx, (a.t+trsmCols-1)/trsmCols, a.trsmBody) // v ← L⁻ᵀL⁻¹v
	case FormLInv, FormEigen:
		if err := accel.ForEach(ctx, a.colBlocks, a.firstBody); err != nil { // u = L⁻¹v, or (Σ²+λ_pI)⁻¹Vᵀv
			return err
		}
		if err := a.gatherBlocks(ctx, a.u); err != nil {
			return err
		}
		if err := accel.ForEach(ctx, a.colBlocks, a.secondBody); err != nil { // v = L⁻ᵀu, or Vu
			return err
		}
		return a.gatherBlocks(ctx, a.v)
	}
	return nil
}

// trsm sets v ← L⁻ᵀL⁻¹v for the right-hand sides trsmCols·b, …, trsmCols·(b+1)-1. One solve of all right-hand sides on
// the threads of OpenBLAS would not be faster, and its threads would then spin while the next products need the cores.
func (a *application) trsm(_, b int) {
	s, j := a.w.s, b*trsmCols
	l, v := a.w.lower(0, s), blas64.General{Rows: min(trsmCols, a.t-j), Cols: s, Stride: s, Data: a.v[j*s:]}
	blas64.Trsm(blas.Right, blas.Trans, 1, l, v)   // v ← L⁻¹v
	blas64.Trsm(blas.Right, blas.NoTrans, 1, l, v) // v ← L⁻ᵀv
}

// start panics unless dst and r are n×t. It returns an application, from the pool if possible, that computes the given
// product. The caller passes it to release after use.
func (w *Woodbury) start(dst, r *mat.Dense, kind product) *application {
	n, t := r.Dims()
	if dstRows, dstColumns := dst.Dims(); n != w.n || dstRows != n || dstColumns != t {
		panic(fmt.Sprintf("precond: %d×%d into %d×%d for order %d", n, t, dstRows, dstColumns, w.n))
	}
	w.mu.Lock()
	var a *application
	if lastIndex := len(w.pool) - 1; lastIndex >= 0 {
		a, w.pool = w.pool[lastIndex], w.pool[:lastIndex]
	}
	w.mu.Unlock()
	if a == nil {
		a = &application{w: w}
		a.normBody, a.projectBody, a.expandBody = a.sumNorms, a.projectUnit, a.expandPanel
		a.firstBody, a.secondBody, a.trsmBody = a.firstFactor, a.secondFactor, a.trsm
		a.colBlocks = (w.s + colBlock - 1) / colBlock
		a.locks = make([]sync.Mutex, a.colBlocks)
	}
	a.dst, a.r, a.kind, a.ridge = dst.RawMatrix(), r.RawMatrix(), kind, 0
	a.corrects = kind == inverse && w.Corrects()
	a.t, a.columnwise, a.hasAssembly = t, t <= gemvColumns(), simd.CurrentPath() != simd.Portable
	buffer.Grow(&a.sums, t*w.s)
	buffer.Grow(&a.columnNorms, t)
	buffer.Grow(&a.formats, t)
	buffer.Grow(&a.counts, w.distribution.comm.Size())
	for rank := range a.counts {
		lo, hi := comm.RowRange(w.n, RankRows, rank, len(a.counts))
		a.counts[rank] = (hi - lo) * t
	}
	buffer.Grow(&a.v, t*w.s)
	if w.form == FormLInv || w.form == FormEigen {
		buffer.Grow(&a.u, t*w.s)
	}
	for len(a.workers) < accel.Threads() {
		a.workers = append(a.workers, scratch{})
	}
	for i := range a.workers {
		buffer.Grow(&a.workers[i].rt, t*RankRows)
		buffer.Grow(&a.workers[i].out, t*colBlock)
	}
	return a
}

// release returns an application to the pool.
func (w *Woodbury) release(a *application) {
	a.dst, a.r, a.ridges = blas64.General{}, blas64.General{}, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool = append(w.pool, a)
}

// gemvColumns returns the largest number of columns for which products are computed column by column. For few columns
// OpenBLAS's gemm is slower, because it copies the matrix first; gonum's gemm is always slower than its gemv.
func gemvColumns() int {
	if accel.CurrentBLAS().Name == "gonum" {
		return 1 << 30
	}
	return 4
}

// firstFactor computes block b of columns of the first half of solveInner: u = L⁻¹v, or u = (Σ²+λ_pI)⁻¹Vᵀv for
// FormEigen.
func (a *application) firstFactor(_, b int) {
	s, t := a.w.s, a.t
	if a.w.form == FormLInv {
		b = a.colBlocks - 1 - b // start with the longest block
	}
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	u := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: a.u[c0:]}
	if a.w.form == FormLInv {
		data := a.w.linv.rows[b]
		if data == nil {
			return
		}
		rows := blas64.General{Rows: c1 - c0, Cols: c1, Stride: cmp.Or(a.w.linv.stride, c1), Data: data}
		v := blas64.General{Rows: t, Cols: c1, Stride: s, Data: a.v}
		if a.hasAssembly {
			for row := range t {
				clear(a.u[row*s+c0 : row*s+c1])
			}
			simd.AddProduct(rows.Data, rows.Stride, v, u) // u_I = Σ_{J≤I} (L⁻¹)_IJ v_J
			return
		}
		a.mulTrans(u, v, rows, 0) // u_I = Σ_{J≤I} (L⁻¹)_IJ v_J
		return
	}
	a.rotate(b) // u = Vᵀv
	for row := range t {
		for k := c0; k < c1; k++ {
			a.u[row*s+k] /= a.w.sigma2[k] + a.lambdaP(row) // u ← (Σ²+λ_pI)⁻¹u
		}
	}
}

// lambdaP returns the λ_p of a column of r.
func (a *application) lambdaP(col int) float64 {
	if a.ridges != nil {
		return a.ridges[col]
	}
	return a.w.lambdaP
}

// secondFactor computes block b of columns of the second half of solveInner: v = L⁻ᵀu, or v = Vu for FormEigen.
func (a *application) secondFactor(worker, b int) {
	s, t := a.w.s, a.t
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	v := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: a.v[c0:]}
	if a.w.form == FormLInv { // v_J = Σ_{I≥J} (L⁻¹)_IJᵀ u_I
		data := a.w.linv.columns[b]
		u := blas64.General{Rows: t, Cols: s - c0, Stride: s, Data: a.u[c0:]}
		cols := blas64.General{Rows: s - c0, Cols: c1 - c0, Stride: cmp.Or(a.w.linv.stride, c1-c0), Data: data}
		switch {
		case data == nil:
		case a.hasAssembly:
			for row := range t {
				clear(a.v[row*s+c0 : row*s+c1])
			}
			simd.AddTransposeProduct(cols.Data, cols.Stride, v, u, &a.workers[worker].simd)
		default:
			a.mul(v, u, cols, 0)
		}
		return
	}
	u := blas64.General{Rows: t, Cols: s, Stride: s, Data: a.u}
	a.mulTrans(v, u, blas64.General{Rows: c1 - c0, Cols: s, Stride: s, Data: a.w.factor[c0*s:]}, 0) // v = Vu
}

// expandPanel computes the rows of one panel of dst: λ_p⁻¹(r − Zv), or ridge·r + Zv if kind is forward.
func (a *application) expandPanel(worker, panel int) {
	s, t, d := a.w.s, a.t, a.w.distribution
	i0, i1 := d.panelRange(panel)
	if i0 >= i1 {
		return
	}
	zv := blas64.General{Rows: t, Cols: i1 - i0, Stride: i1 - i0, Data: a.workers[worker].rt}
	a.w.timesZTrans(a, zv, blas64.General{Rows: t, Cols: s, Stride: s, Data: a.v}, i0) // Zv
	for i := i0; i < i1; i++ {
		row := d.firstRow + i
		out, r := a.dst.Data[row*a.dst.Stride:row*a.dst.Stride+t], a.r.Data[row*a.r.Stride:row*a.r.Stride+t]
		if a.kind == forward {
			for j, v := range r {
				out[j] = a.ridge*v + zv.Data[j*zv.Stride+i-i0] // ridge·r + Zv
			}
			continue
		}
		for j, v := range r {
			out[j] = (v - zv.Data[j*zv.Stride+i-i0]) / a.lambdaP(j) // λ_p⁻¹(r − Zv)
		}
	}
}
