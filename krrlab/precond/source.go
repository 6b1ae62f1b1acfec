package precond

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
)

// ut returns rows i0, …, i0+m-1 and columns c0, …, c0+k-1 of Uᵀ.
func (w *Woodbury) ut(i0, m, c0, k int) blas64.General {
	return blas64.General{Rows: m, Cols: k, Stride: w.s, Data: w.u[i0*w.s+c0:]}
}

// backward sets y = r·Z_p, t×k, for the rows of Z from i0 on and its columns from c0 on; with U,
// whose transpose stands for Z, the same.
func (w *Woodbury) backward(p *solve, y, r blas64.General, i0, c0 int, space *simd.Workspace) {
	if w.u != nil {
		p.mul(y, r, w.ut(i0, r.Cols, c0, y.Cols), 0)
		return
	}
	for c := range y.Rows {
		clear(y.Data[c*y.Stride : c*y.Stride+y.Cols])
	}
	simd.Backward(r.Cols, y.Cols, w.z.Data[i0*w.z.Stride+c0:], w.z.Stride, y.Data, y.Stride, r.Data, r.Stride, r.Rows,
		space)
}

// forward sets y = v·Z_pᵀ, t×m, for the m rows of Z from i0 on; with U as backward.
func (w *Woodbury) forward(p *solve, y, v blas64.General, i0 int) {
	if w.u == nil {
		clear(y.Data[:y.Rows*y.Stride])
		simd.Forward(y.Cols, w.s, w.z.Data[i0*w.z.Stride:], w.z.Stride, v.Data, v.Stride, y.Data, y.Stride, y.Rows)
		return
	}
	for c0, beta := 0, 0.0; c0 < w.s; c0, beta = c0+colBlock, 1 {
		k := min(colBlock, w.s-c0)
		part := blas64.General{Rows: v.Rows, Cols: k, Stride: v.Stride, Data: v.Data[c0:]}
		p.mulTrans(y, part, w.ut(i0, y.Cols, c0, k), beta)
	}
}

// mul sets y = x·a + beta·y for x t×m, a m×k and y t×k.
func (p *solve) mul(y, x, a blas64.General, beta float64) {
	if !p.skinny {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, x, a, beta, y)
		return
	}
	for c := range x.Rows {
		blas64.Gemv(blas.Trans, 1, a, row(x, c), beta, row(y, c))
	}
}

// mulTrans sets y = x·aᵀ + beta·y for x t×k, a m×k and y t×m.
func (p *solve) mulTrans(y, x, a blas64.General, beta float64) {
	if !p.skinny {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, x, a, beta, y)
		return
	}
	for c := range x.Rows {
		blas64.Gemv(blas.NoTrans, 1, a, row(x, c), beta, row(y, c))
	}
}

func row(x blas64.General, c int) blas64.Vector {
	return blas64.Vector{N: x.Cols, Inc: 1, Data: x.Data[c*x.Stride : c*x.Stride+x.Cols]}
}

// ZVMulTo sets dst, n×t, to ZV·src for src s×t, or if trans is set dst, s×t, to (ZV)ᵀ·src for src n×t:
// 2nst + 2s²t flops. With ZᵀZ = VΣ²Vᵀ, ZVΣ⁻¹ has the eigenvectors of ZZᵀ with the eigenvalues σ_i² > 0 as
// its columns. Only FormEigen has V; for the others it returns an error. It panics if the shapes do
// not fit, and returns ctx's error, with dst undefined, if ctx ends.
func (w *Woodbury) ZVMulTo(ctx context.Context, dst *mat.Dense, trans bool, src *mat.Dense) error {
	long, short := dst, src
	if trans {
		long, short = src, dst
	}
	if err := w.basis(); err != nil {
		return err
	}
	p := w.start(long, long, forward)
	defer w.release(p)
	t := p.t
	if s, ts := short.Dims(); s != w.s || ts != t {
		panic(fmt.Sprintf("precond: ZV of %d×%d between %d and %d×%d columns", w.n, w.s, t, s, ts))
	}
	if trans {
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
	return p.expand(ctx) // Zv
}

// basis returns an error of a form that has no V.
func (w *Woodbury) basis() error {
	if w.form != FormEigen {
		return fmt.Errorf("precond: form %v is of λ_p = %g alone, without eigenvectors of ZᵀZ: take the eigen form",
			w.form, w.lambdaP)
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

// Family is M_c = ZZᵀ+λ_cI for many λ_c at once, one for each column of a block of vectors,
// from one eigendecomposition ZᵀZ = VΣ²Vᵀ. A use reads Z twice and takes 4nst + 4s²t flops for t
// columns, as much as one Woodbury of FormEigen does for t columns.
type Family struct {
	w       *Woodbury
	lambdas []float64
}

// Family returns ZZᵀ+λ_cI for the given λ_c. Only FormEigen can: for others it returns an
// error, as it does if a λ_c is not positive and finite, or there is none.
func (w *Woodbury) Family(lambdas []float64) (*Family, error) {
	err := w.basis()
	for _, l := range lambdas {
		err = cmp.Or(err, positive(l))
	}
	if len(lambdas) == 0 {
		err = errors.New("precond: no λ_p")
	}
	return &Family{w, slices.Clone(lambdas)}, err
}

// Dim returns n.
func (f *Family) Dim() int { return f.w.n }

// SolveTo sets column c of dst to M_c⁻¹ times column c of r, for all c. It panics if there
// are not as many columns as λ_c.
func (f *Family) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	cols := make([]int, len(f.lambdas))
	for c := range cols {
		cols[c] = c
	}
	return f.SolveColumnsTo(ctx, dst, r, cols)
}

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, c = cols[j]. It is as
// Woodbury's SolveTo otherwise.
func (f *Family) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	p := f.w.start(dst, r, inverse)
	defer f.w.release(p)
	if p.t != len(cols) {
		panic(fmt.Sprintf("precond: %d λ_p for %d columns", len(cols), p.t))
	}
	p.ridges = make([]float64, p.t)
	for j, c := range cols {
		p.ridges[j] = f.lambdas[c]
	}
	return p.run(ctx)
}

// NormalColumnsTo sets column c of dst to Z·g₁ + √λ_c·g₂, with one g₁ and one g₂ for all c:
// a draw of the normal distribution with covariance M_c, so that what is seen along c is
// the effect of λ_c and not of chance.
func (f *Family) NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	if n, t := dst.Dims(); n != f.w.n || t != len(f.lambdas) {
		panic(fmt.Sprintf("precond: %d×%d normal numbers for order %d and %d λ_p", n, t, f.w.n, len(f.lambdas)))
	}
	one := mat.NewDense(f.w.n, 1, nil)
	p := f.w.start(one, one, forward)
	g.Sub("features", 0).Normals(p.v, 0)
	err := p.expand(ctx) // Zg₁
	f.w.release(p)
	if err != nil {
		return err
	}
	noise := make([]float64, f.w.n)
	g.Sub("points", 0).Normals(noise, 0)
	for i, e := range noise {
		for c, l := range f.lambdas {
			dst.Set(i, c, one.At(i, 0)+math.Sqrt(l)*e) // Zg₁ + √λ_c·g₂
		}
	}
	return nil
}
