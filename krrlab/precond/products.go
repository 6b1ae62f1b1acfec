package precond

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// uTransBlock returns rows i0, …, i0+m-1 and columns c0, …, c0+k-1 of Uᵀ.
func (w *Woodbury) uTransBlock(i0, m, c0, k int) blas64.General {
	return blas64.General{Rows: m, Cols: k, Stride: w.s, Data: w.uT[i0*w.s+c0:]}
}

// timesZ sets y = r·Z_p, t×k, where Z_p has the rows of Z from i0 on and its columns from c0 on. For FormU, Uᵀ is
// used instead of Z.
func (w *Woodbury) timesZ(a *application, y, r blas64.General, i0, c0 int, space *simd.Workspace) {
	if w.uT != nil {
		a.mul(y, r, w.uTransBlock(i0, r.Cols, c0, y.Cols), 0)
		return
	}
	for c := range y.Rows {
		clear(y.Data[c*y.Stride : c*y.Stride+y.Cols])
	}
	simd.AddTransposeProduct(w.z.Data[i0*w.z.Stride+c0:], w.z.Stride, y, r, space)
}

// timesZTrans sets y = v·Z_pᵀ, t×m, where Z_p has the m rows of Z from i0 on. For FormU, Uᵀ is used instead of Z.
func (w *Woodbury) timesZTrans(a *application, y, v blas64.General, i0 int) {
	if w.uT == nil {
		clear(y.Data[:y.Rows*y.Stride])
		simd.AddProduct(w.z.Data[i0*w.z.Stride:], w.z.Stride, v, y)
		return
	}
	for c0, beta := 0, 0.0; c0 < w.s; c0, beta = c0+colBlock, 1 {
		k := min(colBlock, w.s-c0)
		block := blas64.General{Rows: v.Rows, Cols: k, Stride: v.Stride, Data: v.Data[c0:]}
		a.mulTrans(y, block, w.uTransBlock(i0, y.Cols, c0, k), beta)
	}
}

// mul sets y = x·m + beta·y, where m is a matrix with x.Cols rows and y.Cols columns.
func (a *application) mul(y, x, m blas64.General, beta float64) {
	if !a.columnwise {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, x, m, beta, y)
		return
	}
	for c := range x.Rows {
		blas64.Gemv(blas.Trans, 1, m, row(x, c), beta, row(y, c))
	}
}

// mulTrans sets y = x·mᵀ + beta·y, where m is a matrix with y.Cols rows and x.Cols columns.
func (a *application) mulTrans(y, x, m blas64.General, beta float64) {
	if !a.columnwise {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, x, m, beta, y)
		return
	}
	for c := range x.Rows {
		blas64.Gemv(blas.NoTrans, 1, m, row(x, c), beta, row(y, c))
	}
}

// row returns row c of x.
func row(x blas64.General, c int) blas64.Vector {
	return blas64.Vector{N: x.Cols, Inc: 1, Data: x.Data[c*x.Stride : c*x.Stride+x.Cols]}
}

// ZVMulTo sets dst = ZV·src, where src is s×t and dst is n×t. V has the eigenvectors of ZᵀZ = VΣ²Vᵀ. The columns of
// ZVΣ⁻¹ are the eigenvectors of ZZᵀ with eigenvalues σ_i² > 0. The cost is 2nst + 2s²t flops. ZVMulTo returns an error
// if the form is not FormEigen. It panics if the shapes do not match. If ctx ends, it returns the error of ctx, and dst
// is undefined.
func (w *Woodbury) ZVMulTo(ctx context.Context, dst, src *mat.Dense) error {
	a, err := w.startEigen(dst, src)
	if err != nil {
		return err
	}
	defer w.release(a)
	for j := range a.t {
		mat.Col(a.u[j*w.s:(j+1)*w.s], j, src)
	}
	if err := accel.ForEach(ctx, a.colBlocks, a.secondBody); err != nil { // v = Vu
		return err
	}
	dst.Zero()
	return a.expand(ctx) // Zv
}

// ZVTransMulTo sets dst = (ZV)ᵀ·src, where src is n×t and dst is s×t. See ZVMulTo.
func (w *Woodbury) ZVTransMulTo(ctx context.Context, dst, src *mat.Dense) error {
	a, err := w.startEigen(src, dst)
	if err != nil {
		return err
	}
	defer w.release(a)
	if err := a.project(ctx); err != nil { // v = Zᵀr
		return err
	}
	if err := accel.ForEach(ctx, a.colBlocks, func(_, b int) { a.rotate(b) }); err != nil { // u = Vᵀv
		return err
	}
	for j := range a.t {
		dst.SetCol(j, a.u[j*w.s:(j+1)*w.s])
	}
	return nil
}

// startEigen checks the form and the shapes of a product with ZV, between long, n×t, and short, s×t. It returns an
// application that reads and writes long.
func (w *Woodbury) startEigen(long, short *mat.Dense) (*application, error) {
	if err := w.requireEigen(); err != nil {
		return nil, err
	}
	a := w.start(long, long, forward)
	if s, t := short.Dims(); s != w.s || t != a.t {
		panic(fmt.Sprintf("precond: ZV of %d×%d between %d and %d×%d columns", w.n, w.s, a.t, s, t))
	}
	return a, nil
}

// requireEigen returns an error if the form is not FormEigen.
func (w *Woodbury) requireEigen() error {
	if w.form != FormEigen {
		return fmt.Errorf("precond: form %v is of λ_p = %g alone, without eigenvectors of ZᵀZ: take the eigen form",
			w.form, w.lambdaP)
	}
	return nil
}

// rotate computes block b of u = Vᵀv.
func (a *application) rotate(b int) {
	s, t := a.w.s, a.t
	c0, c1 := b*colBlock, min((b+1)*colBlock, s)
	u := blas64.General{Rows: t, Cols: c1 - c0, Stride: s, Data: a.u[c0:]}
	v := blas64.General{Rows: t, Cols: s, Stride: s, Data: a.v}
	a.mul(u, v, blas64.General{Rows: s, Cols: c1 - c0, Stride: s, Data: a.w.factor[c0:]}, 0)
}
