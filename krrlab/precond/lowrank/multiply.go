package lowrank

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// MulRight replaces F by fl(F·T), where T is r×r, row-major, with ‖T‖₂ ≤ 1. The new K̂ ≼ FFᵀ of the old F no longer
// equals K at the landmarks, and Extend then returns an error. MulRight computes f.Residual anew and adds a bound of
// the rounding errors of the product to f.Rounding, so the certified bounds remain valid. The cost is 2nr² flops. The
// result has the same bits for any number of threads and of ranks; all ranks must call MulRight together. If ctx ends
// or a rank fails, MulRight returns an error, and f is undefined.
func (f *Factor) MulRight(ctx context.Context, c comm.Comm, t []float64) error {
	n, r := f.F.N, f.F.D // n is the number of rows of this rank; f.N is the number of all rows
	matrixT := blas64.General{Rows: r, Cols: r, Stride: r, Data: t}
	sums := make([][2]float64, (n+panelRows-1)/panelRows) // for each panel, ‖fl(F·T)‖_F² and ‖δ‖_F² of its rounding δ
	scratch := make([][2][]float64, accel.Threads())
	err := accel.ForEachBlock(ctx, n, panelRows, func(worker, lo, hi int) {
		in := blas64.General{Rows: hi - lo, Cols: r, Stride: r, Data: buffer.Grow(&scratch[worker][0], (hi-lo)*r)}
		out := in
		out.Data = buffer.Grow(&scratch[worker][1], (hi-lo)*r)
		for i := lo; i < hi; i++ {
			points.Widen(in.Data[(i-lo)*r:(i-lo+1)*r], f.F.Row(i))
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, in, matrixT, 0, out)
		for i := lo; i < hi; i++ {
			normSq, errorSq := round(f.F.Row(i), out.Data[(i-lo)*r:(i-lo+1)*r])
			sum := &sums[lo/panelRows]
			sum[0], sum[1] = sum[0]+normSq, sum[1]+errorSq
		}
	})
	if err = comm.Agree(ctx, c, err); err != nil {
		return err
	}
	total := make([]float64, 2)
	err = addInRankOrder(ctx, c, total, func() {
		for _, v := range sums {
			total[0], total[1] = total[0]+v[0], total[1]+v[1]
		}
	})
	normSq, errorSq := total[0], total[1]
	oldNormSq := max(0, f.Trace-f.Residual) + f.Rounding // ≥ ‖F‖_F² of the factor before the product
	// Each of the r inner products of row i of F with a column of T, of norm ≤ 1, has an error of at most r·u‖F_i‖, so
	// the product has an error of at most r^(3/2)·u‖F‖_F. The factors 1.001 and 1.01 cover terms of second order. The
	// last term of Rounding bounds the rounding errors of Trace and normSq.
	delta := 1.001*math.Sqrt(errorSq) + 1.01*math.Sqrt(float64(r))*float64(r)*unitRoundoff*math.Sqrt(oldNormSq)
	f.Residual, f.lower = f.Trace-normSq, nil
	f.Rounding += 1.001*(2*math.Sqrt(oldNormSq)*delta+delta*delta) + 3*float64(f.N)*unitRoundoff*(f.Trace+normSq)
	return err
}
