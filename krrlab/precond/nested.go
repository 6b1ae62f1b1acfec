package precond

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/points"
)

// Gram is ZᵀZ in float64 of features Z to which columns are added: of
//
//	[Z Z']ᵀ[Z Z'] = [ZᵀZ ZᵀZ'; Z'ᵀZ Z'ᵀZ'],
//
// the first block is kept. The zero value belongs to no columns. It takes 8s² bytes.
type Gram struct {
	s    int
	data []float64 // s×s, lower triangle
	err  float64   // predicted ‖E‖₂ of the float32 products in it
}

// NewGram returns ZᵀZ for preconditioners with a ridge of λ_p or more: by float32 products
// summed in float64, as Options.Fast, where the error E of that is predicted to be at most
// λ_p/10, and in float64 otherwise. Work: ns² flops. It returns an error for a number in z that
// is not finite, and ctx's.
func NewGram(ctx context.Context, z *points.Dense32, lambdaP float64) (*Gram, error) {
	g := &Gram{s: z.D, err: fastError(z)}
	form := gramFast
	if !(g.err <= lambdaP/10) {
		form, g.err = gram, 0
	}
	var err error
	if g.data, err = form(ctx, z); err != nil {
		return nil, err
	}
	return g, nil
}

// Error returns the predicted ‖E‖₂ by which ZᵀZ is off for products in float32; 0 if there
// are none.
func (g *Gram) Error() float64 { return g.err }

// Order returns s.
func (g *Gram) Order() int { return g.s }

// Grow adds the columns of z from g.Order() on, whose columns before must be those that g
// was made of: n(s²−s₀²) flops to go from s₀ to s columns. An error, of ctx or of a number in
// z that is not finite, leaves g as it was. It panics if z has fewer columns than g.
func (g *Gram) Grow(ctx context.Context, z *points.Dense32) error {
	s, from := z.D, g.s
	if s < from || z.N < 1 {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features grown by %d×%d features", from, z.N, s))
	}
	c := make([]float64, s*s)
	for i := range from {
		copy(c[i*s:i*s+i+1], g.data[i*from:i*from+i+1])
	}
	if err := gramFrom(ctx, c, z, from); err != nil {
		return err
	}
	g.s, g.data = s, c
	return nil
}

// NewFromGram is New with ZᵀZ known. It leaves g as it is, and does not heed Options.Fast.
// It panics if g is not of z's order.
func NewFromGram(ctx context.Context, z *points.Dense32, g *Gram, lambdaP float64, o *Options) (*Woodbury, error) {
	if g.s != z.D {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features for %d", g.s, z.D))
	}
	w, err := begin(z.N, z, lambdaP, o)
	if err != nil {
		return nil, err
	}
	w.factor = append([]float64(nil), g.data...)
	if err := w.finish(ctx, z); err != nil {
		return nil, err
	}
	return w, nil
}
