package multilevel

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

const (
	tile    = 512 // order of the blocks of ZZᵀ
	depth   = 512 // columns of Z multiplied together
	columns = 4   // right-hand sides of one triangular solve
)

// dense is M = ZZᵀ+λ_pI by its Cholesky factor, for s ≥ n.
type dense struct {
	n int
	l []float64 // n×n, lower triangle
}

// newDense forms M, n²s flops, and factors it, n³/3. Blocks of ZZᵀ are summed over panels of
// 512 columns of Z in float64.
func newDense(ctx context.Context, z *points.Dense32, lambdaP float64) (*dense, error) {
	n := z.N
	m := &dense{n: n, l: make([]float64, n*n)}
	type block struct{ i, j int }
	var blocks []block
	for i := 0; i < n; i += tile {
		for j := 0; j <= i; j += tile {
			blocks = append(blocks, block{i, j})
		}
	}
	work := make([]product, accel.Threads())
	err := accel.ForEach(ctx, len(blocks), func(worker, q int) {
		b := blocks[q]
		rows, cols := min(tile, n-b.i), min(tile, n-b.j)
		for c0 := 0; c0 < z.D && ctx.Err() == nil; c0 += depth {
			c1 := min(c0+depth, z.D)
			out := m.l[b.i*n+b.j:]
			work[worker].add(out, n, z, b.i, rows, b.j, cols, c0, c1)
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range n {
		m.l[i*n+i] += lambdaP // M = ZZᵀ + λ_pI
	}
	if !accel.Dpotrf(n, m.l, n) { // M = LLᵀ
		return nil, fmt.Errorf("multilevel: ZZᵀ+λ_pI of order %d is not positive definite in float64 at λ_p = %.3g: increase λ_p", n, lambdaP)
	}
	return m, ctx.Err()
}

// product is the scratch of a worker.
type product struct{ x, y []float64 }

// add adds Z_I·Z_Jᵀ of columns c0, …, c1-1 to a block.
func (w *product) add(out []float64, ld int, z *points.Dense32, i, rows, j, cols, c0, c1 int) {
	if w.x == nil {
		w.x, w.y = make([]float64, tile*depth), make([]float64, tile*depth)
	}
	side := func(buf []float64, i, rows int) blas64.General {
		k := c1 - c0
		for r := range rows {
			for c, v := range z.Row(i + r)[c0:c1] {
				buf[r*k+c] = float64(v)
			}
		}
		return blas64.General{Rows: rows, Cols: k, Stride: k, Data: buf}
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, side(w.x, i, rows), side(w.y, j, cols), 1, blas64.General{Rows: rows, Cols: cols, Stride: ld, Data: out})
}

// Dim returns n.
func (m *dense) Dim() int { return m.n }

func (m *dense) lower() blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m.n, Stride: m.n, Data: m.l}
}

// SolveTo sets dst = M⁻¹r = L⁻ᵀL⁻¹r, four columns at a time.
func (m *dense) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	_, t := r.Dims()
	return accel.ForEach(ctx, (t+columns-1)/columns, func(_, b int) {
		j0, j1 := b*columns, min((b+1)*columns, t)
		v := blas64.General{Rows: j1 - j0, Cols: m.n, Stride: m.n, Data: make([]float64, (j1-j0)*m.n)}
		for j := j0; j < j1; j++ {
			mat.Col(v.Data[(j-j0)*m.n:(j-j0+1)*m.n], j, r)
		}
		blas64.Trsm(blas.Right, blas.Trans, 1, m.lower(), v)   // v ← L⁻¹v
		blas64.Trsm(blas.Right, blas.NoTrans, 1, m.lower(), v) // v ← L⁻ᵀv
		for i := range m.n {
			for j := j0; j < j1; j++ {
				dst.Set(i, j, v.Data[(j-j0)*m.n+i])
			}
		}
	})
}

// NormalTo sets dst = Lg, n×1, with g standard normal: a draw of N(0, M).
func (m *dense) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	v := make([]float64, m.n)
	g.Normals(v, 0)
	blas64.Trmv(blas.NoTrans, m.lower(), blas64.Vector{N: m.n, Inc: 1, Data: v})
	dst.SetCol(0, v)
	return ctx.Err()
}
