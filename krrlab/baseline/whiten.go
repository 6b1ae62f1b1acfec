package baseline

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// maxJitter is the largest relative shift of K_mm's diagonal.
const maxJitter = 1e-4

// whitening is B = L⁻ᵀC⁻ᵀ of Falkon: LLᵀ = K_mm + νD, D the diagonal of K_mm, and
//
//	CCᵀ = (n/m)LᵀL + λI,  so that  BBᵀ = ((n/m)(K_mm+νD)² + λ(K_mm+νD))⁻¹,
//
// what the inverse of H = K_nmᵀK_nm + λ(K_mm+νD) would be if K_nmᵀK_nm were its mean over
// uniform centres, (n/m)K_mm². L⁻¹ and C⁻¹ are held.
type whitening struct {
	m      int
	jitter float64 // ν
	diag   []float64
	l, c   *triangle
	tmp    []float64
	work   []simd.Workspace
}

// newWhitening factors for the centres; ν starts at jitter and is raised tenfold while K_mm+νD is
// not positive definite in float64.
func newWhitening(ctx context.Context, k kernel.Kernel, centres points.Points, arith kernel.Arithmetic, n int, lambda, jitter float64) (*whitening, error) {
	m, _ := centres.Dims()
	w := &whitening{m: m, work: make([]simd.Workspace, accel.Threads())}
	l := make([]float64, m*m)
	for w.jitter = jitter; ; w.jitter *= 10 {
		if w.jitter > maxJitter {
			return nil, fmt.Errorf("baseline: K of the %d centers is not positive semidefinite: its Cholesky factorization fails with %g added to its diagonal, relative", m, maxJitter)
		}
		if err := w.gram(ctx, l, k, centres, arith); err != nil {
			return nil, err
		}
		if cholesky(l, m) == 0 {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := w.inner(ctx, l, float64(n)/float64(m), lambda)
	if err != nil {
		return nil, err
	}
	if pivot := cholesky(c, m); pivot > 0 {
		return nil, fmt.Errorf("baseline: (n/m)LᵀL+λI of the %d centers is not positive definite at λ = %g (pivot %d): take a larger λ", m, lambda, pivot)
	}
	w.l, w.c = newTriangle(l, m), newTriangle(c, m)
	if w.l == nil || w.c == nil {
		return nil, fmt.Errorf("baseline: a Cholesky factor of the %d centers is singular at λ = %g: take a larger λ", m, lambda)
	}
	return w, nil
}

// gram sets l to the lower triangle of K_mm + νD, and the upper one to zero.
func (w *whitening) gram(ctx context.Context, l []float64, k kernel.Kernel, centres points.Points, arith kernel.Arithmetic) error {
	m := w.m
	w.diag = kernel.Diag(k, centres)
	for i, v := range w.diag {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("baseline: k(x, x) is %g for the kernel %v at center %d", v, k, i)
		}
	}
	p := points.NewPanel(centres)
	work := make([]kernel.Workspace, accel.Threads())
	err := eachTile(ctx, m, nil, func(worker, i0, i1, j0, j1 int) {
		kernel.Tile64(l[i0*m+j0:], m, k, p.Slice(i0, i1), p.Slice(j0, j1), arith, &work[worker])
	})
	for i, v := range w.diag {
		l[i*m+i] = v * (1 + w.jitter) // K_ii + νD_ii
		clear(l[i*m+i+1 : (i+1)*m])
	}
	return err
}

// inner returns scale·LᵀL + λI, lower triangle, by tiles: m³/6 multiplications, as rows of L
// above a tile's are zero.
func (w *whitening) inner(ctx context.Context, l []float64, scale, lambda float64) ([]float64, error) {
	m := w.m
	c := make([]float64, m*m)
	err := eachTile(ctx, m, nil, func(_, i0, i1, j0, j1 int) {
		cols := func(a, b int) blas64.General {
			return blas64.General{Rows: m - i0, Cols: b - a, Stride: m, Data: l[i0*m+a:]}
		}
		out := blas64.General{Rows: i1 - i0, Cols: j1 - j0, Stride: m, Data: c[i0*m+j0:]}
		blas64.Gemm(blas.Trans, blas.NoTrans, scale, cols(i0, i1), cols(j0, j1), 0, out) // (LᵀL)_IJ = Σ_{K≥I} L_KIᵀL_KJ
	})
	for i := range m {
		c[i*m+i] += lambda
		clear(c[i*m+i+1 : (i+1)*m])
	}
	return c, err
}

// fromWhite sets u = C⁻ᵀz and x = L⁻ᵀu = Bz, all t×m.
func (w *whitening) fromWhite(ctx context.Context, x, u, z []float64, t int) error {
	if err := w.c.backward(ctx, u, z, t, w.work); err != nil {
		return err
	}
	return w.l.backward(ctx, x, u, t, w.work)
}

// toWhite sets z = C⁻¹(L⁻¹g + λu), u nil for zero: Bᵀ(g + λ(K_mm+νD)Bz') for u = C⁻ᵀz'.
func (w *whitening) toWhite(ctx context.Context, z, g, u []float64, lambda float64, t int) error {
	w.tmp = grow(w.tmp, t*w.m)
	if err := w.l.forward(ctx, w.tmp, g, t); err != nil {
		return err
	}
	for k, v := range u {
		w.tmp[k] += lambda * v
	}
	return w.c.forward(ctx, z, w.tmp, t)
}

// penalty returns tr αᵀK_mmα for α = Bz, given u = C⁻ᵀz: ‖u‖² = ‖Lᵀα‖² has νD in it.
func (w *whitening) penalty(alpha, u []float64) float64 {
	sum := sumSquares(u)
	for k, v := range alpha {
		sum -= w.jitter * w.diag[k%w.m] * v * v
	}
	return sum
}
