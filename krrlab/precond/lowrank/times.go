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

// Times overwrites F by fl(F·T), T r×r and row-major with ‖T‖₂ ≤ 1: K̂ becomes smaller, so that Rounding stays certain
// with what this rounding adds, but is not K at the landmarks any more. 2nr² flops, with the same bits for any number
// of threads and of ranks, which call it together. An error, of ctx, leaves F half done.
func (f *Factor) Times(ctx context.Context, c comm.Comm, t []float64) error {
	n, r := f.F.N, f.F.D
	right := blas64.General{Rows: r, Cols: r, Stride: r, Data: t}
	sums := make([][2]float64, (n+panelRows-1)/panelRows) // squares of F·T, and of what rounding takes from it
	work := make([][2][]float64, accel.Threads())
	err := accel.ForEach(ctx, len(sums), func(who, b int) {
		lo, hi := b*panelRows, min((b+1)*panelRows, n)
		in := blas64.General{Rows: hi - lo, Cols: r, Stride: r, Data: buffer.Grow(&work[who][0], (hi-lo)*r)}
		out := in
		out.Data = buffer.Grow(&work[who][1], (hi-lo)*r)
		for i := lo; i < hi; i++ {
			points.Widen(in.Data[(i-lo)*r:(i-lo+1)*r], f.F.Row(i))
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, in, right, 0, out)
		for i := lo; i < hi; i++ {
			for k, v := range out.Data[(i-lo)*r : (i-lo+1)*r] {
				w := float32(v)
				f.F.Row(i)[k] = w
				sums[b][0] += float64(w) * float64(w)
				sums[b][1] += (v - float64(w)) * (v - float64(w))
			}
		}
	})
	if err = comm.Agree(ctx, c, err); err != nil {
		return err
	}
	total := make([]float64, 2)
	err = inTurn(ctx, c, total, func() {
		for _, v := range sums {
			total[0], total[1] = total[0]+v[0], total[1]+v[1]
		}
	})
	square, lost := total[0], total[1]
	before := max(0, f.Trace-f.Residual) + f.Rounding // ≥ ‖F‖_F²
	// products of rows of F and columns of T, of norm 1 at most, are off by r·u‖F_i‖
	delta := 1.001*math.Sqrt(lost) + 1.01*math.Sqrt(float64(r))*float64(r)*unit*math.Sqrt(before)
	f.Residual = f.Trace - square
	f.Rounding += 1.001*(2*math.Sqrt(before)*delta+delta*delta) + 3*float64(f.N)*unit*(f.Trace+square)
	return err
}
