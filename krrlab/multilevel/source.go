package multilevel

import (
	"context"
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// source is Z, n×s, and ZZᵀ as an operator.
type source struct {
	n, s  int // n of all ranks
	m     feature.Map
	held  *points.Dense32 // the rows of this rank; nil if they are mapped again each time
	outer *precond.Outer
}

// form maps the points, into memory if hold is set.
func form(ctx context.Context, m feature.Map, p *problem, hold bool, progress func(done, total int)) (*source, error) {
	_, s := m.Dims()
	n, _ := p.X.Dims()
	lo, hi := comm.Rows(n, precond.RankRows, p.Comm.Rank(), p.Comm.Size())
	z, x := &source{n: n, s: s, m: m}, p.X.Slice(lo, hi)
	err := ctx.Err()
	if hold {
		z.held, err = feature.Matrix(ctx, m, x, progress)
	}
	if err := comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	if hold {
		z.outer, err = precond.NewOuter(ctx, p.Comm, z.held)
	} else {
		z.outer, err = precond.NewOuterOf(ctx, p.Comm, hi-lo, s, rowsOf(m, x))
	}
	return z, err
}

// pieceRows is the number of points mapped at once where Z is mapped again: i and j of all requests are
// multiples of it, but for the last, so that a row has the same bits in each, whatever the BLAS makes of
// other heights. Of a Z that is held they may be others in the last place.
const pieceRows = 128

// rowsOf returns what maps points i, …, j-1.
func rowsOf(m feature.Map, x points.Points) func(dst []float32, i, j int) {
	type space struct {
		feature feature.Workspace
		wide    []float64
	}
	_, s := m.Dims()
	pool := sync.Pool{New: func() any { return new(space) }}
	return func(dst []float32, i, j int) {
		w := pool.Get().(*space)
		defer pool.Put(w)
		for ; i < j; i += pieceRows {
			piece := x.Slice(i, min(i+pieceRows, j))
			n, _ := piece.Dims()
			z := dst[:n*s]
			dst = dst[n*s:]
			if m, ok := m.(feature.Map32); ok {
				m.MapTo32(z, s, piece, &w.feature)
				continue
			}
			if cap(w.wide) < len(z) {
				w.wide = make([]float64, len(z))
			}
			wide := w.wide[:len(z)]
			m.MapTo(wide, s, piece, &w.feature)
			for p, v := range wide {
				z[p] = float32(v)
			}
		}
	}
}

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
	m := &dense{n: z.N, l: g.Take(lambdaP)} // M = ZZᵀ + λ_pI
	if !accel.Dpotrf(m.n, m.l, m.n) {       // M = LLᵀ
		return nil,
			fmt.Errorf("multilevel: ZZᵀ+λ_pI of order %d is not positive definite in float64 at λ_p = %.3g: "+
				"increase λ_p", m.n, lambdaP)
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

// atFirst is M for s ≥ n: the first rank has it and gives the others what comes of it.
type atFirst struct {
	n    int
	comm comm.Comm
	m    *dense // nil at others
}

// newMetric makes M for s ≥ n. On ranks the first maps all points for it.
func newMetric(ctx context.Context, p *problem, z *source) (metric, error) {
	a := &atFirst{n: z.n, comm: p.Comm}
	var err error
	if p.Comm.Rank() == 0 {
		held := z.held
		if held.N < z.n {
			held, err = feature.Matrix(ctx, z.m, p.X, nil)
		}
		if err == nil {
			a.m, err = newDense(ctx, held, p.LambdaP)
		}
	}
	if err := comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	return a, nil
}

// Dim returns n.
func (a *atFirst) Dim() int { return a.n }

// SolveTo sets dst = M⁻¹r.
func (a *atFirst) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return a.share(ctx, dst, func(m *dense, dst *mat.Dense) error { return m.SolveTo(ctx, dst, r) })
}

// NormalTo sets dst to a draw of N(0, M).
func (a *atFirst) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return a.share(ctx, dst, func(m *dense, dst *mat.Dense) error { return m.NormalTo(ctx, dst, g) })
}

// share sets dst on all ranks to what make puts into it at the first.
func (a *atFirst) share(ctx context.Context, dst *mat.Dense, fill func(m *dense, dst *mat.Dense) error) error {
	if a.comm.Size() == 1 {
		return fill(a.m, dst)
	}
	n, t := dst.Dims()
	out := mat.NewDense(n, t, nil)
	var err error
	if a.m != nil {
		err = fill(a.m, out)
	}
	if err := comm.Agree(ctx, a.comm, err); err != nil {
		return err
	}
	if err := comm.ShareNumbers(ctx, a.comm, out.RawMatrix().Data, 0); err != nil {
		return err
	}
	dst.Copy(out)
	return nil
}
