package multilevel

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

const columns = 4 // right-hand sides of one triangular solve

// dense is M = ZZᵀ+λ_pI by its Cholesky factor, for s ≥ n.
type dense struct {
	n int
	l []float64 // n×n, lower triangle
}

// newDense forms M in float64, n²s flops, and factors it, n³/3.
func newDense(ctx context.Context, z *points.Dense32, lambdaP float64) (*dense, error) {
	g := precond.ZeroGram(z.N)
	if err := g.AddColumns(ctx, z, false, nil); err != nil {
		return nil, err
	}
	m := &dense{n: z.N, l: g.Take(1, lambdaP)} // M = ZZᵀ + λ_pI
	if !accel.Dpotrf(m.n, m.l, m.n) {          // M = LLᵀ
		return nil, fmt.Errorf("multilevel: ZZᵀ+λ_pI of order %d is not positive definite in float64 at λ_p = %.3g: increase λ_p", m.n, lambdaP)
	}
	return m, ctx.Err()
}

// Dim returns n.
func (m *dense) Dim() int { return m.n }

func (m *dense) lower() blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m.n, Stride: m.n, Data: m.l}
}

// SolveTo sets dst = M⁻¹r = L⁻ᵀL⁻¹r, four columns at a time.
func (m *dense) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	n, t := r.Dims()
	if dn, dt := dst.Dims(); n != m.n || dn != n || dt != t {
		panic(fmt.Sprintf("multilevel: solve of order %d with %d×%d into %d×%d", m.n, n, t, dn, dt))
	}
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
