package precond

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// product says what scatter makes of v = Zᵀr, or of (ZᵀZ+λ_pI)⁻¹Zᵀr.
type product int

const (
	inverse product = iota // λ_p⁻¹(r − Zv)
	forward                // ridge·r + Zv
)

// MulTo sets dst = M·src = ZZᵀ·src + λ_p·src for n×t matrices; dst may be src, but must not
// overlap it otherwise. FormU, which keeps no Z, returns an error; besides that it is
// as SolveTo: 4nst flops, the same bits for any number of threads and ranks.
func (w *Woodbury) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return w.mulTo(ctx, dst, src, w.lambdaP)
}

func (w *Woodbury) mulTo(ctx context.Context, dst, src *mat.Dense, ridge float64) error {
	p := w.start(dst, src, forward)
	defer w.release(p)
	if err := w.keepsZ(); err != nil {
		return err
	}
	if err := p.project(ctx); err != nil { // v = Zᵀr
		return err
	}
	p.ridge = ridge
	return p.expand(ctx) // ridge·r + Zv
}

// NormalTo sets the columns of dst, n×t, to independent draws of the normal distribution
// with mean 0 and covariance M,
//
//	Z·g₁ + √λ_p·g₂,  g₁ ∈ R^s and g₂ ∈ R^n standard normal,
//
// whose M^(-1/2)-fold is standard normal in R^n: a start without any preferred direction for
// iterations with M⁻¹A. Column j is a function of (g, j) alone. FormU, which keeps no
// Z, returns an error.
func (w *Woodbury) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	p := w.start(dst, dst, forward)
	defer w.release(p)
	if err := w.keepsZ(); err != nil {
		return err
	}
	column := make([]float64, w.n)
	for j := range p.t {
		g.Sub("features", uint64(j)).Normals(p.v[j*w.s:(j+1)*w.s], 0)
		g.Sub("points", uint64(j)).Normals(column, 0)
		dst.SetCol(j, column)
	}
	p.ridge = math.Sqrt(w.lambdaP)
	return p.expand(ctx) // √λ_p·g₂ + Zg₁
}

func (w *Woodbury) keepsZ() error {
	if w.form == FormU {
		return fmt.Errorf("precond: the form U keeps no Z to multiply by: take another form (%w)",
			errors.ErrUnsupported)
	}
	return nil
}
