package precond

import (
	"cmp"
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	gramOrder = 512 // of the blocks of ZᵀZ
	together  = 16  // of them are added over the ranks at once, or this part of all, so that they occupy all threads
)

// gramSum sums blocks of ZᵀZ over this rank's rows, in panels p of RankRows rows, whose
// products are added in fixed point, |(ZᵀZ)_ij| ≤ n·max|Z_i|·max|Z_j|:
//
//	(ZᵀZ)_IJ = Σ_p Z_pIᵀZ_pJ,  I ≥ J.
//
// Blocks go in parallel, each on one BLAS thread. Products are taken in float64, or where fast
// is set in float32, which takes half the time.
type gramSum struct {
	*rows
	z     *points.Dense32
	fast  bool
	fixed comm.Fixed // of ZᵀZ scaled
	work  []gramScratch
}

// gramScratch is that of a worker: a panel's columns I and J, their product, and the sum of it.
type gramScratch struct {
	x, y, out []float64
	out32     []float32
	sum       []int64
}

func (k *rows) gramSum(z *points.Dense32, fast bool) *gramSum {
	return &gramSum{k, z, fast, comm.FixedFor(float64(k.n) * (1 + 1e-3)), make([]gramScratch, accel.Threads())}
}

// each calls use for every block with its sum, row-major without gaps; of blocks on the diagonal
// the lower triangle counts.
func (g *gramSum) each(ctx context.Context, blocks []gramBlock, use func(b gramBlock, sum []int64)) error {
	return accel.ForEach(ctx, len(blocks), func(worker, q int) {
		w, b := &g.work[worker], blocks[q]
		buffer.Grow(&w.sum, b.rows*b.cols)
		clear(w.sum)
		for p0 := 0; p0 < g.z.N && ctx.Err() == nil; p0 += RankRows {
			g.panel(w, b, p0, min(RankRows, g.z.N-p0))
		}
		use(b, w.sum)
	})
}

// panel adds the product of m rows from p0 on.
func (g *gramSum) panel(w *gramScratch, b gramBlock, p0, m int) {
	// Of a block on the diagonal half is enough; gonum's syrk takes longer than its gemm of twice the work.
	half := b.i == b.j && accel.InUse().Name != "gonum"
	if g.fast {
		z := g.z
		buffer.Grow(&w.out32, b.rows*b.cols)
		x := blas32.General{Rows: m, Cols: b.rows, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.i:]}
		y := blas32.General{Rows: m, Cols: b.cols, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.j:]}
		if half {
			clear(w.out32) // some libraries read what β = 0 is for
			blas32.Syrk(blas.Trans, 1, x, 0, blas32.Symmetric{Uplo: blas.Lower, N: b.rows, Stride: b.cols,
				Data: w.out32})
		} else {
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0,
				blas32.General{Rows: b.rows, Cols: b.cols, Stride: b.cols, Data: w.out32})
		}
		for i := range b.rows {
			lo, hi := i*b.cols, i*b.cols+b.width(i)
			g.fixed.Over(g.scale[b.i+i]).AddScaled32(w.sum[lo:hi], w.out32[lo:hi], g.scale[b.j:])
		}
		return
	}
	buffer.Grow(&w.out, b.rows*b.cols)
	x := g.columns(&w.x, p0, m, b.i, b.rows)
	if half {
		blas64.Syrk(blas.Trans, 1, x, 0, blas64.Symmetric{Uplo: blas.Lower, N: b.rows, Stride: b.cols, Data: w.out})
	} else {
		y := x
		if b.i != b.j {
			y = g.columns(&w.y, p0, m, b.j, b.cols)
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas64.General{Rows: b.rows, Cols: b.cols, Stride: b.cols,
			Data: w.out})
	}
	for i := range b.rows {
		lo, hi := i*b.cols, i*b.cols+b.width(i)
		g.fixed.Over(g.scale[b.i+i]).AddScaled(w.sum[lo:hi], w.out[lo:hi], g.scale[b.j:])
	}
}

// value returns what a sum of entry (i, j) stands for.
func (g *gramSum) value(sum int64, i, j int) float64 {
	return g.fixed.Value(sum) / g.scale[i] / g.scale[j]
}

// columns converts cols columns, from j on, of m rows from p0 on.
func (g *gramSum) columns(buf *[]float64, p0, m, j, cols int) blas64.General {
	buffer.Grow(buf, m*cols)
	for i := range m {
		points.Widen((*buf)[i*cols:(i+1)*cols], g.z.Row(p0 + i)[j:j+cols])
	}
	return blas64.General{Rows: m, Cols: cols, Stride: cols, Data: *buf}
}

// gram sets c to the lower triangle of ZᵀZ of all ranks, of the stored Z, from row `from` on, and returns the sum of
// the diagonal there.
func (k *rows) gram(ctx context.Context, z *points.Dense32, from int, fast bool, c *accel.Dealt) (float64, error) {
	s, g := z.D, k.gramSum(z, fast)
	diag := make([]float64, s)
	var buf []int64
	blocks := gramBlocks(from, s)
	least := max(together, len(blocks)/together)
	if c.Size == 1 {
		least = max(least, 4*accel.Threads()) // the last of them wait for each other
	}
	for len(blocks) > 0 {
		count := 1
		for count < len(blocks) && (count < least || blocks[count].i == blocks[count-1].i) {
			count++
		}
		i0, i1 := blocks[0].i, blocks[count-1].i+blocks[count-1].rows
		at := func(i int) int { return i*(i+1)/2 - i0*(i0+1)/2 }
		sums := buffer.Grow(&buf, at(i1))
		err := g.each(ctx, blocks[:count], func(b gramBlock, sum []int64) {
			for i := range b.rows {
				copy(sums[at(b.i+i)+b.j:], sum[i*b.cols:i*b.cols+b.width(i)])
			}
		})
		if err = comm.Agree(ctx, k.comm, err); err != nil {
			return 0, err
		}
		if err := k.comm.AllReduceInt64(ctx, sums); err != nil {
			return 0, err
		}
		err = accel.ForEach(ctx, i1-i0, func(_, i int) {
			i += i0
			row := sums[at(i):at(i+1)]
			for b, col := range c.Columns[:i/accel.TileOrder+1] {
				j0 := b * accel.TileOrder
				width := min(accel.TileOrder, s-j0)
				for j := j0; j < min(j0+width, i+1) && col != nil; j++ {
					col[(i-j0)*cmp.Or(c.Stride, width)+j-j0] = g.value(row[j], i, j)
				}
			}
			diag[i] = g.value(row[i], i, i)
		})
		if err = comm.Agree(ctx, k.comm, err); err != nil {
			return 0, err
		}
		blocks = blocks[count:]
	}
	return floats.Sum(diag), nil
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

// width returns how many numbers of row i of the block belong to the lower triangle.
func (b gramBlock) width(i int) int {
	if b.i == b.j {
		return i + 1
	}
	return b.cols
}

// fastError predicts ‖E‖₂ for the error E of ZᵀZ by float32 products, Z being n×s,
//
//	‖E‖₂ ≲ 2·2⁻²⁴·min(n, 512)·‖Z‖_F²/√(ns).
//
// The sum of a panel's m products is off by about u√m·Σ|z_ki·z_kj| ≤ u√m·(m/n)‖z_i‖‖z_j‖, the n/m panels are
// independent, and ‖z_j‖² ≈ ‖Z‖_F²/s, so that E has entries of r = u·m·‖Z‖_F²/(s√n) at most, and ‖E‖₂ ≲ 2r√s (Wigner).
// Where columns differ in norm, or rows repeat, it is several times too small: it says when float32 products are worth
// a try, and measuredError what came of them.
func (k *rows) fastError(ctx context.Context, z *points.Dense32) (float64, error) {
	var bound float64 // Σ_k n·max_i|Z_ik|²
	for _, v := range k.scale {
		bound += float64(k.n) / (v * v)
	}
	f, norm := comm.FixedFor(bound), []int64{0} // ‖Z‖_F²
	for _, v := range points.SqNorms(z) {
		f.Add(norm, []float64{v})
	}
	err := k.comm.AllReduceInt64(ctx, norm)
	return 0x1p-23 * float64(min(RankRows, k.n)) * f.Value(norm[0]) / math.Sqrt(float64(z.D)*float64(k.n)), err
}
