package precond

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/points"
)

// source gives blocks of an n×s matrix in float64.
type source interface {
	// block returns rows i0, …, i1-1 and columns c0, …, c1-1, perhaps in buf.
	block(buf []float64, i0, i1, c0, c1 int) blas64.General
	scratch() int // length of buf needed
	bytes() int64
}

// feature32 is Z as stored.
type feature32 struct{ z *points.Dense32 }

func (f feature32) block(buf []float64, i0, i1, c0, c1 int) blas64.General {
	k := c1 - c0
	for i := i0; i < i1; i++ {
		widen(buf[(i-i0)*k:(i-i0+1)*k], f.z.Row(i)[c0:c1])
	}
	return blas64.General{Rows: i1 - i0, Cols: k, Stride: k, Data: buf}
}

func (f feature32) scratch() int { return min(rowBlock, f.z.N) * min(colBlock, f.z.D) }
func (f feature32) bytes() int64 { return 4 * int64(f.z.N) * int64(f.z.D) }

// wide64 is Uᵀ.
type wide64 struct {
	n, s int
	data []float64
}

func (u wide64) block(_ []float64, i0, i1, c0, c1 int) blas64.General {
	return blas64.General{Rows: i1 - i0, Cols: c1 - c0, Stride: u.s, Data: u.data[i0*u.s+c0:]}
}

func (u wide64) scratch() int { return 0 }
func (u wide64) bytes() int64 { return 8 * int64(len(u.data)) }

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
