package precond

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/points"
)

// source gives the rows of Z that this rank has: held, or filled in each time that they are needed.
type source struct {
	n, s int
	held *points.Dense32 // nil if they are not
	fill func(dst []float32, i, j int)
}

func held(z *points.Dense32) *source { return &source{n: z.N, s: z.D, held: z} }

// panel returns rows i, …, j-1 and their stride, perhaps in *buf; nil of no Z.
func (z *source) panel(i, j int, buf *[]float32) (data []float32, ld int) {
	switch {
	case z == nil:
		return nil, 0
	case z.held != nil:
		return z.held.Data[i*z.held.Stride:], z.held.Stride
	}
	*buf = grow(*buf, (j-i)*z.s)
	z.fill(*buf, i, j)
	return *buf, z.s
}

// ut returns rows i0, …, i0+m-1 and columns c0, …, c0+k-1 of Uᵀ.
func (w *Woodbury) ut(i0, m, c0, k int) blas64.General {
	return blas64.General{Rows: m, Cols: k, Stride: w.s, Data: w.u[i0*w.s+c0:]}
}

// backward sets y = r·Z_p, t×k, for the rows z of Z from i0 on and its columns from c0 on; with U,
// whose transpose stands for Z, the same.
func (w *Woodbury) backward(p *solve, y, r blas64.General, z []float32, ld, i0, c0 int, space *simd.Workspace) {
	if w.u != nil {
		p.mul(y, r, w.ut(i0, r.Cols, c0, y.Cols), 0)
		return
	}
	for c := range y.Rows {
		clear(y.Data[c*y.Stride : c*y.Stride+y.Cols])
	}
	simd.Backward(r.Cols, y.Cols, z[c0:], ld, y.Data, y.Stride, r.Data, r.Stride, r.Rows, space)
}

// forward sets y = v·Z_pᵀ, t×m, for the m rows of Z from i0 on; with U as backward.
func (w *Woodbury) forward(p *solve, y, v blas64.General, i0 int, buf *[]float32) {
	if w.u == nil {
		z, ld := w.z.panel(i0, i0+y.Cols, buf)
		clear(y.Data[:y.Rows*y.Stride])
		simd.Forward(y.Cols, w.s, z, ld, v.Data, v.Stride, y.Data, y.Stride, y.Rows)
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
