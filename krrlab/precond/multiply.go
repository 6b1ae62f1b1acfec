package precond

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// product is the result that an application computes: M⁻¹r from v = (ZᵀZ+λ_pI)⁻¹Zᵀr, or ridge·r + ZZᵀr from v = Zᵀr.
type product int

const (
	inverse product = iota // λ_p⁻¹(r − Zv)
	forward                // ridge·r + Zv
)

// MulTo sets dst = M·src = ZZᵀ·src + λ_p·src for n×t matrices. dst may be src, but must not overlap it otherwise. The
// cost is 4nst flops. The result has the same bits for any number of threads and ranks. MulTo returns an error for
// FormU, which does not store Z; other errors are those of SolveTo.
func (w *Woodbury) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return w.mulTo(ctx, dst, src, w.lambdaP)
}

// mulTo sets dst = ZZᵀ·src + ridge·src.
func (w *Woodbury) mulTo(ctx context.Context, dst, src *mat.Dense, ridge float64) error {
	a := w.start(dst, src, forward)
	defer w.release(a)
	if err := w.requireZ(); err != nil {
		return err
	}
	if err := a.project(ctx); err != nil { // v = Zᵀr
		return err
	}
	a.ridge = ridge
	return a.expand(ctx) // ridge·r + Zv
}

// NormalTo sets the columns of dst, n×t, to independent draws from the normal distribution with mean 0 and covariance
// M,
//
//	x = Z·g₁ + √λ_p·g₂,  g₁ ∈ R^s and g₂ ∈ R^n standard normal.
//
// M^(-1/2)·x is standard normal in R^n, so x is a starting vector without a preferred direction for iterations with
// M⁻¹A, A = K+λI. Column j depends on g and j only. NormalTo returns an error for FormU, which does not store Z.
func (w *Woodbury) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	a := w.start(dst, dst, forward)
	defer w.release(a)
	if err := w.requireZ(); err != nil {
		return err
	}
	column := make([]float64, w.n)
	for j := range a.t {
		g.Sub("features", uint64(j)).Normals(a.v[j*w.s:(j+1)*w.s], 0)
		g.Sub("points", uint64(j)).Normals(column, 0)
		dst.SetCol(j, column)
	}
	a.ridge = math.Sqrt(w.lambdaP)
	return a.expand(ctx) // √λ_p·g₂ + Zg₁
}

// requireZ returns an error if Z is not stored.
func (w *Woodbury) requireZ() error {
	if w.form == FormU {
		return fmt.Errorf("precond: the form U does not store Z, which products with M need: take another form (%w)",
			errors.ErrUnsupported)
	}
	return nil
}
