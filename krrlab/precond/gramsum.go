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
	gramOrder = 512 // order of the blocks of ZᵀZ
	// reducedBlocks controls how many blocks are added over the ranks together: at least reducedBlocks, and at least
	// the share 1/reducedBlocks of all blocks, so that all threads have work.
	reducedBlocks = 16
)

// precision is the arithmetic of products of panels.
type precision int

const (
	exactProducts precision = iota // float64
	fastProducts                   // float32, in half the time
)

// gramSum computes blocks of ZᵀZ over the rows of this rank:
//
//	(ZᵀZ)_IJ = Σ_p Z_pIᵀZ_pJ,  I ≥ J.
//
// Products of panels p of RankRows rows are added in fixed point, with the bound |(ZᵀZ)_ij| ≤ n·max|Z_i|·max|Z_j|.
// Blocks are computed in parallel, each on one BLAS thread.
type gramSum struct {
	*rowDistribution
	z         *points.Dense32
	precision precision
	format    comm.FixedPoint // fixed-point format of ZᵀZ after scaling by rowDistribution.scale
	workers   []gramScratch
}

// gramScratch holds the scratch memory of one worker.
type gramScratch struct {
	x, y  []float64 // the columns I and J of a panel
	out   []float64 // Z_pIᵀZ_pJ
	out32 []float32 // Z_pIᵀZ_pJ in float32
	sum   []int64   // the sum of products over panels
}

// gramSum returns a gramSum for this rank's rows z of Z.
func (d *rowDistribution) gramSum(z *points.Dense32, p precision) *gramSum {
	return &gramSum{d, z, p, comm.NewFixedPoint(float64(d.n) * (1 + 1e-3)), make([]gramScratch, accel.Threads())}
}

// forEachBlock computes the blocks in parallel, and calls visit for each block with its sum, row-major without gaps.
// For diagonal blocks only the lower triangle of the sum is defined.
func (g *gramSum) forEachBlock(ctx context.Context, blocks []gramBlock,
	visit func(block gramBlock, sum []int64)) error {
	return accel.ForEach(ctx, len(blocks), func(worker, i int) {
		space, block := &g.workers[worker], blocks[i]
		buffer.Grow(&space.sum, block.rows*block.cols)
		clear(space.sum)
		for p0 := 0; p0 < g.z.N && ctx.Err() == nil; p0 += RankRows {
			g.addPanel(space, block, p0, min(RankRows, g.z.N-p0))
		}
		visit(block, space.sum)
	})
}

// addPanel adds the product of rows p0, …, p0+m-1 to the sum of block b.
func (g *gramSum) addPanel(space *gramScratch, b gramBlock, p0, m int) {
	// A diagonal block needs only its lower triangle. gonum's syrk is slower than its gemm, in spite of half the work.
	useSyrk := b.i == b.j && accel.CurrentBLAS().Name != "gonum"

	if g.precision == fastProducts {
		z := g.z
		buffer.Grow(&space.out32, b.rows*b.cols)
		x := blas32.General{Rows: m, Cols: b.rows, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.i:]}
		y := blas32.General{Rows: m, Cols: b.cols, Stride: z.Stride, Data: z.Data[p0*z.Stride+b.j:]}
		if useSyrk {
			clear(space.out32) // some libraries read the output even if β = 0
			blas32.Syrk(blas.Trans, 1, x, 0, blas32.Symmetric{Uplo: blas.Lower, N: b.rows, Stride: b.cols,
				Data: space.out32})
		} else {
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0,
				blas32.General{Rows: b.rows, Cols: b.cols, Stride: b.cols, Data: space.out32})
		}
		for i := range b.rows {
			lo, hi := i*b.cols, i*b.cols+b.width(i)
			g.format.DivideBound(g.scale[b.i+i]).AddScaled32(space.sum[lo:hi], space.out32[lo:hi], g.scale[b.j:])
		}
		return
	}

	buffer.Grow(&space.out, b.rows*b.cols)
	x := g.columns(&space.x, p0, m, b.i, b.rows)
	if useSyrk {
		blas64.Syrk(blas.Trans, 1, x, 0, blas64.Symmetric{Uplo: blas.Lower, N: b.rows, Stride: b.cols, Data: space.out})
	} else {
		y := x
		if b.i != b.j {
			y = g.columns(&space.y, p0, m, b.j, b.cols)
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas64.General{Rows: b.rows, Cols: b.cols, Stride: b.cols,
			Data: space.out})
	}
	for i := range b.rows {
		lo, hi := i*b.cols, i*b.cols+b.width(i)
		g.format.DivideBound(g.scale[b.i+i]).AddScaled(space.sum[lo:hi], space.out[lo:hi], g.scale[b.j:])
	}
}

// value converts a fixed-point sum of entry (i, j) to float64.
func (g *gramSum) value(sum int64, i, j int) float64 {
	return g.format.Value(sum) / g.scale[i] / g.scale[j]
}

// columns returns columns j, …, j+cols-1 of rows p0, …, p0+m-1 of Z in float64.
func (g *gramSum) columns(buf *[]float64, p0, m, j, cols int) blas64.General {
	buffer.Grow(buf, m*cols)
	for i := range m {
		points.Widen((*buf)[i*cols:(i+1)*cols], g.z.Row(p0 + i)[j:j+cols])
	}
	return blas64.General{Rows: m, Cols: cols, Stride: cols, Data: *buf}
}

// gram sets rows firstRow, …, s-1 of the lower triangle of dst to those of ZᵀZ, summed over all ranks. It returns the
// sum of their diagonal entries.
func (d *rowDistribution) gram(ctx context.Context, z *points.Dense32, firstRow int, p precision,
	dst *accel.DistributedMatrix) (float64, error) {
	s, g := z.D, d.gramSum(z, p)
	diag := make([]float64, s)
	var buf []int64
	blocks := gramBlocks(firstRow, s)
	minBlocks := max(reducedBlocks, len(blocks)/reducedBlocks)
	if dst.Size == 1 {
		minBlocks = max(minBlocks, 4*accel.Threads()) // few threads are idle at the end of each group of blocks
	}

	// Each step computes a group of blocks, whole block rows i0 to i1−1, and adds it over the ranks.
	for len(blocks) > 0 {
		count := 1
		for count < len(blocks) && (count < minBlocks || blocks[count].i == blocks[count-1].i) {
			count++
		}
		rowStart, rowEnd := blocks[0].i, blocks[count-1].i+blocks[count-1].rows
		offset := func(i int) int { return i*(i+1)/2 - rowStart*(rowStart+1)/2 }
		sums := buffer.Grow(&buf, offset(rowEnd))
		err := g.forEachBlock(ctx, blocks[:count], func(b gramBlock, sum []int64) {
			for i := range b.rows {
				copy(sums[offset(b.i+i)+b.j:], sum[i*b.cols:i*b.cols+b.width(i)])
			}
		})
		if err = comm.Agree(ctx, d.comm, err); err != nil {
			return 0, err
		}
		if err := d.comm.AllReduceInt64(ctx, sums); err != nil {
			return 0, err
		}
		err = accel.ForEach(ctx, rowEnd-rowStart, func(_, i int) {
			i += rowStart
			row := sums[offset(i):offset(i+1)]
			for tile, col := range dst.Columns[:i/accel.TileOrder+1] {
				j0 := tile * accel.TileOrder
				width := min(accel.TileOrder, s-j0)
				for j := j0; j < min(j0+width, i+1) && col != nil; j++ {
					col[(i-j0)*cmp.Or(dst.Stride, width)+j-j0] = g.value(row[j], i, j)
				}
			}
			diag[i] = g.value(row[i], i, i)
		})
		if err = comm.Agree(ctx, d.comm, err); err != nil {
			return 0, err
		}
		blocks = blocks[count:]
	}
	return floats.Sum(diag), nil
}

// gramBlock is a block of the lower triangle of ZᵀZ: rows i, …, i+rows-1 and columns j, …, j+cols-1.
type gramBlock struct{ i, j, rows, cols int }

// gramBlocks returns the blocks that cover rows firstRow, …, s-1, of order at most gramOrder.
func gramBlocks(firstRow, s int) (blocks []gramBlock) {
	for i := firstRow; i < s; i += gramOrder {
		rows := min(gramOrder, s-i)
		for j := 0; j < firstRow; j += gramOrder {
			blocks = append(blocks, gramBlock{i, j, rows, min(gramOrder, firstRow-j)})
		}
		for j := firstRow; j <= i; j += gramOrder {
			blocks = append(blocks, gramBlock{i, j, rows, min(gramOrder, s-j)})
		}
	}
	return blocks
}

// width returns the number of entries of row i of the block that belong to the lower triangle.
func (b gramBlock) width(i int) int {
	if b.i == b.j {
		return i + 1
	}
	return b.cols
}

// predictedError predicts ‖E‖₂ for the error E of a ZᵀZ computed by float32 products:
//
//	‖E‖₂ ≲ 2·2⁻²⁴·min(n, 512)·‖Z‖_F²/√(ns).
//
// The sum of the m products of a panel has an error of about u√m·Σ|z_ki·z_kj| ≤ u√m·(m/n)‖z_i‖‖z_j‖. The n/m panels are
// independent, and ‖z_j‖² ≈ ‖Z‖_F²/s. So the entries of E have at most the size r = u·m·‖Z‖_F²/(s√n), and ‖E‖₂ ≲ 2r√s
// (Wigner). If the columns differ in norm, or rows repeat, the prediction is several times too small. It only decides
// whether float32 products are tried; measuredError then decides whether their result is used.
func (d *rowDistribution) predictedError(ctx context.Context, z *points.Dense32) (float64, error) {
	var maxSqNorm float64 // Σ_k n·max_i|Z_ik|²
	for _, v := range d.scale {
		maxSqNorm += float64(d.n) / (v * v)
	}
	format, sqNorm := comm.NewFixedPoint(maxSqNorm), []int64{0} // ‖Z‖_F²
	for _, v := range points.SqNorms(z) {
		format.Add(sqNorm, []float64{v})
	}
	err := d.comm.AllReduceInt64(ctx, sqNorm)
	return 0x1p-23 * float64(min(RankRows, d.n)) * format.Value(sqNorm[0]) / math.Sqrt(float64(z.D)*float64(d.n)), err
}
