package precond

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// ZVMulTo sets dst, n×t, to ZV·src for src s×t, or if trans is set dst, s×t, to (ZV)ᵀ·src for src n×t:
// 2nst + 2s²t flops. With ZᵀZ = VΣ²Vᵀ, ZVΣ⁻¹ has the eigenvectors of ZZᵀ with the eigenvalues σ_i² > 0 as
// its columns. Only FormEigen has V; for the others it returns an error. It panics if the shapes do
// not fit, and returns ctx's error, with dst undefined, if ctx ends.
func (w *Woodbury) ZVMulTo(ctx context.Context, dst *mat.Dense, trans bool, src *mat.Dense) error {
	long, short := dst, src
	if trans {
		long, short = src, dst
	}
	if err := w.checkBasis(long, short); err != nil {
		return err
	}
	_, t := src.Dims()
	p := w.acquire(t)
	defer w.release(p)
	if trans {
		p.r = src.RawMatrix()
		if err := p.project(ctx); err != nil { // v = Zᵀr
			return err
		}
		if err := accel.ForEach(ctx, p.colBlocks, func(_, b int) { p.rotate(b) }); err != nil { // u = Vᵀv
			return err
		}
		for j := range t {
			dst.SetCol(j, p.u[j*w.s:(j+1)*w.s])
		}
		return nil
	}
	for j := range t {
		mat.Col(p.u[j*w.s:(j+1)*w.s], j, src)
	}
	if err := accel.ForEach(ctx, p.colBlocks, p.secondBody); err != nil { // v = Vu
		return err
	}
	dst.Zero()
	p.dst, p.r, p.what, p.ridge = dst.RawMatrix(), dst.RawMatrix(), forward, 0
	return p.expand(ctx) // Zv
}

// checkBasis panics unless wide is n×t and short s×t.
func (w *Woodbury) checkBasis(wide, short *mat.Dense) error {
	n, t := wide.Dims()
	if s, ts := short.Dims(); n != w.n || s != w.s || ts != t {
		panic(fmt.Sprintf("precond: ZV of %d×%d between %d×%d and %d×%d", w.n, w.s, n, t, s, ts))
	}
	if w.form != FormEigen {
		return fmt.Errorf("precond: form %v has no eigenvectors of ZᵀZ: take the eigen form", w.form)
	}
	return nil
}

// rotate is block b of u = Vᵀv.
func (p *solve) rotate(b int) {
	s, t := p.w.s, p.t
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	u := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: p.u[c0:]}
	v := blas64.General{Rows: t, Cols: s, Stride: s, Data: p.v}
	p.mul(u, v, blas64.General{Rows: s, Cols: c1 - c0, Stride: s, Data: p.w.factor[c0:]}, 0)
}
