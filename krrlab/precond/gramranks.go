package precond

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
)

// GrowOnRanks is Grow for features of which each rank has its rows, as of NewOnRanks.
func (g *Gram) GrowOnRanks(ctx context.Context, c comm.Comm, n int, z *points.Dense32) error {
	s, from := z.D, g.s
	if s < from {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features grown by %d×%d features", from, z.N, s))
	}
	r, err := newRanks(ctx, c, n, z)
	if err != nil {
		return err
	}
	data, err := r.gram(ctx, z, from, false, 0)
	if err != nil {
		return err
	}
	for i := range from {
		copy(data[i*s:i*s+i+1], g.data[i*from:i*from+i+1])
	}
	g.s, g.data = s, data
	return nil
}

// gram returns ZᵀZ of all ranks, in the lower triangle from row `from` on: by float32 products
// where fast is set and their error is at most λ_p/10, as gramWithin.
func (k *ranks) gram(ctx context.Context, z *points.Dense32, from int, fast bool, lambdaP float64) ([]float64, error) {
	c, s := k.comm, z.D
	bound := float64(k.n) * k.peak * k.peak
	if fast {
		norm, err := k.squareNorm(ctx, z, comm.FixedFor(float64(s)*bound))
		if err != nil {
			return nil, err
		}
		fast = fastBound(norm, k.n, s) <= lambdaP/10
	}
	if fast {
		factor, err := k.sums(ctx, z, from, comm.FixedFor(bound), gramPanels32)
		if err != nil {
			return nil, err
		}
		if e, err := measuredError(ctx, c, z, factor); err != nil || e <= lambdaP/10 {
			return factor, err
		}
	}
	return k.sums(ctx, z, from, comm.FixedFor(bound), gramPanels)
}

// sums returns ZᵀZ of all ranks, as gram, whose panels form adds in fixed point.
func (k *ranks) sums(ctx context.Context, z *points.Dense32, from int, fixed comm.Fixed, form func(context.Context, []int64, comm.Fixed, *points.Dense32, []gramBlock) error) ([]float64, error) {
	c, s := k.comm, z.D
	sum := make([]int64, s*s)
	if err := comm.Agree(ctx, c, form(ctx, sum, fixed, z, gramBlocks(from, s))); err != nil {
		return nil, err
	}
	factor := make([]float64, s*s)
	strip := make([]int64, 0, min(gramOrder, s)*s)
	for i0 := from; i0 < s; i0 += gramOrder { // the lower triangle, a strip of blocks at a time
		i1 := min(i0+gramOrder, s)
		strip = strip[:0]
		for i := i0; i < i1; i++ {
			strip = append(strip, sum[i*s:i*s+i1]...)
		}
		if err := c.AllReduceInt64(ctx, strip); err != nil {
			return nil, err
		}
		for i := i0; i < i1; i++ {
			for j := range i1 {
				factor[i*s+j] = fixed.Value(strip[(i-i0)*i1+j])
			}
		}
	}
	return factor, nil
}

// squareNorm returns ‖Z‖_F² of all ranks.
func (k *ranks) squareNorm(ctx context.Context, z *points.Dense32, f comm.Fixed) (float64, error) {
	norm := []int64{0}
	for _, v := range points.SqNorms(z) {
		f.Add(norm, []float64{v})
	}
	err := k.comm.AllReduceInt64(ctx, norm)
	return f.Value(norm[0]), err
}

// gramPanels adds blocks of ZᵀZ of this rank's rows to sum: the float64 products of panels of
// RankRows rows, each turned into fixed point.
func gramPanels(ctx context.Context, sum []int64, f comm.Fixed, z *points.Dense32, blocks []gramBlock) error {
	s := z.D
	panel := make([]float64, min(RankRows, z.N)*s)
	parts := make([][]float64, accel.Threads())
	for p0 := 0; p0 < z.N; p0 += RankRows {
		rows := min(RankRows, z.N-p0)
		err := accel.ForEach(ctx, rows, func(_, i int) { widen(panel[i*s:(i+1)*s], z.Row(p0+i)) })
		if err != nil {
			return err
		}
		err = accel.ForEach(ctx, len(blocks), func(worker, q int) {
			b := blocks[q]
			parts[worker] = grow(parts[worker], b.rows*b.cols)
			x := blas64.General{Rows: rows, Cols: b.rows, Stride: s, Data: panel[b.i:]}
			y := blas64.General{Rows: rows, Cols: b.cols, Stride: s, Data: panel[b.j:]}
			out := blas64.General{Rows: b.rows, Cols: b.cols, Stride: b.cols, Data: parts[worker]}
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, out) // Z_pIᵀZ_pJ
			for i := range b.rows {
				f.Add(sum[(b.i+i)*s+b.j:], out.Data[i*b.cols:(i+1)*b.cols])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gramPanels32 is gramPanels with float32 products.
func gramPanels32(ctx context.Context, sum []int64, f comm.Fixed, z *points.Dense32, blocks []gramBlock) error {
	s := z.D
	up := f.Scale()
	parts := make([][]float32, accel.Threads())
	return accel.ForEach(ctx, len(blocks), func(worker, q int) {
		b := blocks[q]
		if parts[worker] == nil {
			parts[worker] = make([]float32, min(gramOrder, s)*min(gramOrder, s))
		}
		out := blas32.General{Rows: b.rows, Cols: b.cols, Stride: b.cols, Data: parts[worker]}
		for p0 := 0; p0 < z.N && ctx.Err() == nil; p0 += RankRows {
			rows := min(RankRows, z.N-p0)
			x := blas32.General{Rows: rows, Cols: b.rows, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.i:]}
			y := blas32.General{Rows: rows, Cols: b.cols, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.j:]}
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, out) // Z_pIᵀZ_pJ
			for i := range b.rows {
				dst := sum[(b.i+i)*s+b.j : (b.i+i)*s+b.j+b.cols]
				for j, v := range out.Data[i*b.cols : (i+1)*b.cols] {
					dst[j] += int64(float64(v) * up)
				}
			}
		}
	})
}
