package precond

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
)

const (
	gramRows  = 1024 // rows of Z converted at a time
	gramOrder = 512  // order of the blocks of ZᵀZ
	fastRows  = 512  // rows of Z multiplied in float32
)

// gram returns the lower triangle of ZᵀZ, s×s, of the stored Z in float64; of the upper
// triangle the diagonal blocks are filled too. Panels of gramRows rows are converted,
// and each block of ZᵀZ adds their products in turn:
//
//	(ZᵀZ)_IJ ← (ZᵀZ)_IJ + Z_pIᵀZ_pJ,  I ≥ J.
//
// Blocks in parallel, each on one BLAS thread, take as long as a dsyrk of each panel on
// all threads or a little less (BenchmarkNew, BenchmarkGram), and their sums do not
// depend on the number of threads.
func gram(ctx context.Context, z *points.Dense32) ([]float64, error) {
	c := make([]float64, z.D*z.D)
	return c, gramFrom(ctx, c, z, 0)
}

// gramFrom is gram for the rows of ZᵀZ from row `from` on, where those before are in c.
func gramFrom(ctx context.Context, c []float64, z *points.Dense32, from int) error {
	n, s := z.N, z.D
	panel := make([]float64, min(gramRows, n)*s)
	blocks := gramBlocks(from, s)
	library := accel.InUse().Name != "gonum" // gonum's dsyrk is slower than its dgemm of twice the work
	var p0, p1 int
	convert := func(_, q int) {
		for i := p0 + 16*q; i < min(p0+16*q+16, p1); i++ {
			widen(panel[(i-p0)*s:(i-p0+1)*s], z.Row(i))
		}
	}
	columns := func(i, cols int) blas64.General {
		return blas64.General{Rows: p1 - p0, Cols: cols, Stride: s, Data: panel[i:]}
	}
	multiply := func(_, q int) {
		b := blocks[q]
		x, y := columns(b.i, b.rows), columns(b.j, b.cols)
		out := blas64.General{Rows: x.Cols, Cols: y.Cols, Stride: s, Data: c[b.i*s+b.j:]}
		if b.i == b.j && library {
			blas64.Syrk(blas.Trans, 1, x, 1, blas64.Symmetric{Uplo: blas.Lower, N: out.Rows, Stride: s, Data: out.Data})
			return
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 1, out)
	}
	for p0 = 0; p0 < n; p0 += gramRows {
		p1 = min(p0+gramRows, n)
		if err := accel.ForEach(ctx, (p1-p0+15)/16, convert); err != nil {
			return err
		}
		if err := accel.ForEach(ctx, len(blocks), multiply); err != nil {
			return err
		}
	}
	return checkDiagonal(c, z)
}

// gramBlock is a block of the lower triangle of ZᵀZ, of rows i and on and columns j and on.
type gramBlock struct{ i, j, rows, cols int }

// gramBlocks returns the blocks of rows from, …, s-1, of order gramOrder or less.
func gramBlocks(from, s int) (blocks []gramBlock) {
	for i := from; i < s; i += gramOrder {
		rows := min(gramOrder, s-i)
		for j := 0; j < from; j += gramOrder {
			blocks = append(blocks, gramBlock{i, j, rows, min(gramOrder, from-j)})
		}
		for j := from; j <= i; j += gramOrder {
			blocks = append(blocks, gramBlock{i, j, rows, min(gramOrder, s-j)})
		}
	}
	return blocks
}

// gramFast is gram with the products of each panel in float32, which takes half the time,
// and their sum in float64:
//
//	(ZᵀZ)_IJ = Σ_p float64(Z_pIᵀ Z_pJ),  panels p of fastRows rows.
func gramFast(ctx context.Context, z *points.Dense32) ([]float64, error) {
	c := make([]float64, z.D*z.D)
	return c, gramFastTo(ctx, c, z)
}

// gramFastTo adds to c what gramFast forms.
func gramFastTo(ctx context.Context, c []float64, z *points.Dense32) error {
	n, s := z.N, z.D
	blocks := gramBlocks(0, s)
	order := min(gramOrder, s)
	scratch := make([][]float32, accel.Threads())
	err := accel.ForEach(ctx, len(blocks), func(worker, q int) {
		if scratch[worker] == nil {
			scratch[worker] = make([]float32, order*order)
		}
		b := blocks[q]
		rows, cols := b.rows, b.cols
		part := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: scratch[worker]}
		for p0 := 0; p0 < n && ctx.Err() == nil; p0 += fastRows {
			k := min(fastRows, n-p0)
			x := blas32.General{Rows: k, Cols: rows, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.i:]}
			y := blas32.General{Rows: k, Cols: cols, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.j:]}
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, part)
			for i := range rows {
				out := c[(b.i+i)*s+b.j : (b.i+i)*s+b.j+cols]
				for j, v := range part.Data[i*cols : (i+1)*cols] {
					out[j] += float64(v)
				}
			}
		}
	})
	if err != nil {
		return err
	}
	return checkDiagonal(c, z)
}

// fastError predicts ‖E‖₂ for the error E of gramFast. The sum of a panel's m products is
// off by about u√m·Σ|z_ki·z_kj| ≤ u√m·(m/n)‖z_i‖‖z_j‖, the n/m panels are independent, and
// ‖z_j‖² ≈ ‖Z‖_F²/s, so that E has entries of r = u·m·‖Z‖_F²/(s√n) at most, and
// ‖E‖₂ ≲ 2r√s (Wigner). Where columns differ in norm, or rows repeat, it is several times too
// small: it says when float32 products are worth a try, and measuredError what came of them.
func fastError(z *points.Dense32) float64 {
	var norm float64
	for _, v := range points.SqNorms(z) {
		norm += v
	}
	return fastBound(norm, z.N, z.D)
}

// fastBound is fastError for n×s features with ‖Z‖_F².
func fastBound(norm float64, n, s int) float64 {
	m := float64(min(fastRows, n))
	return 2 * 0x1p-24 * m * norm / math.Sqrt(float64(s)*float64(n))
}

// checkDiagonal reports an entry of Z that is not finite.
func checkDiagonal(c []float64, z *points.Dense32) error {
	for j := range z.D { // Σ_i z_ij² overflows for no float32, but keeps NaN and Inf
		if v := c[j*z.D+j]; math.IsNaN(v) || math.IsInf(v, 0) {
			return notFinite(z, j)
		}
	}
	return nil
}

// notFinite names the entry of column j of Z that is not finite.
func notFinite(z *points.Dense32, j int) error {
	for i := range z.N {
		if v := float64(z.Row(i)[j]); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("precond: Z has %v in row %d, feature %d", v, i, j)
		}
	}
	return fmt.Errorf("precond: the square of feature %d is not finite", j)
}

// widen converts src to float64, eight at a time: twice as fast as one by one.
func widen(dst []float64, src []float32) {
	for len(src) >= 8 {
		d, s := dst[:8:8], src[:8:8]
		d[0], d[1], d[2], d[3] = float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])
		d[4], d[5], d[6], d[7] = float64(s[4]), float64(s[5]), float64(s[6]), float64(s[7])
		dst, src = dst[8:], src[8:]
	}
	for j, v := range src {
		dst[j] = float64(v)
	}
}
