package precond

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/points"
)

// Gram is ZᵀZ in float64 of features Z to which columns are added: of
//
//	[Z Z']ᵀ[Z Z'] = [ZᵀZ ZᵀZ'; Z'ᵀZ Z'ᵀZ'],
//
// the first block is kept (Grow). Or rows are, of points that come one panel after the
// other: the products of each are added (ZeroGram, AddRows). The zero value belongs to no
// columns. It takes 8s² bytes.
type Gram struct {
	s    int
	data []float64 // s×s, lower triangle
	err  float64   // ‖E‖₂ of the float32 products in it, measured (AddRows: predicted)
}

// NewGram returns ZᵀZ for preconditioners with a ridge of λ_p or more: by float32 products
// summed in float64, as Options.Fast, where the error E of that is at most λ_p/10, predicted and
// then measured, and in float64 otherwise. Work: ns² flops. It returns an error for a number in z that
// is not finite, and ctx's.
func NewGram(ctx context.Context, z *points.Dense32, lambdaP float64) (*Gram, error) {
	c, e, err := gramWithin(ctx, z, lambdaP/10)
	if err != nil {
		return nil, err
	}
	return &Gram{s: z.D, data: c, err: e}, nil
}

// Error returns the ‖E‖₂ by which ZᵀZ is off for products in float32: what NewGram measured, or
// what FastError predicts of AddRows; 0 if there are none.
func (g *Gram) Error() float64 { return g.err }

// ZeroGram returns the Gram matrix of s features of no points, which is 0. It panics if
// s < 1.
func ZeroGram(s int) *Gram {
	if s < 1 {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features", s))
	}
	return &Gram{s: s, data: make([]float64, s*s)}
}

// Order returns s.
func (g *Gram) Order() int { return g.s }

// AddRows adds to ZᵀZ the products of further rows, z: ns² flops for n rows,
//
//	ZᵀZ ← ZᵀZ + zᵀz,
//
// in float64, or where fast is set in float32 by panels of 512 rows, whose sums are added in
// float64: half the time, and off by about FastError, which Error then tells. Beside g it
// takes 8192s bytes. After an error, of ctx or of a number in z that is not finite, g is
// undefined. It panics if z has no rows or not s columns.
func (g *Gram) AddRows(ctx context.Context, z *points.Dense32, fast bool) error {
	if z.D != g.s || z.N < 1 {
		panic(fmt.Sprintf("precond: %d rows of %d features for a Gram matrix of %d", z.N, z.D, g.s))
	}
	if !fast {
		return gramFrom(ctx, g.data, z, 0)
	}
	before := g.trace()
	if err := gramFastTo(ctx, g.data, z); err != nil {
		return err
	}
	g.err = math.Hypot(g.err, fastBound(g.trace()-before, z.N, g.s)) // panels round independently
	return nil
}

// trace returns tr ZᵀZ = ‖Z‖_F².
func (g *Gram) trace() (sum float64) {
	for j := range g.s {
		sum += g.data[j*g.s+j]
	}
	return sum
}

// LeadingTo sets the lower triangle of dst, order×order and row-major with stride ld, to
//
//	scale·(ZᵀZ)_{1…order, 1…order} + ridge·I
//
// and the rest of its rows, up to column order, to 0. It panics if order is not in [1, s] or
// does not fit dst.
func (g *Gram) LeadingTo(dst []float64, ld, order int, scale, ridge float64) {
	if order < 1 || order > g.s || ld < order || len(dst) < (order-1)*ld+order {
		panic(fmt.Sprintf("precond: order %d of %d into %d numbers of stride %d", order, g.s, len(dst), ld))
	}
	for i := range order {
		row := dst[i*ld : i*ld+order]
		for j, v := range g.data[i*g.s : i*g.s+i+1] {
			row[j] = scale * v
		}
		row[i] += ridge
		clear(row[i+1:])
	}
}

// Take returns scale·ZᵀZ + ridge·I as LeadingTo does for all s columns, in g's own memory, and
// leaves g to belong to no columns.
func (g *Gram) Take(scale, ridge float64) []float64 {
	data := g.data
	if g.s > 0 {
		g.LeadingTo(data, g.s, g.s, scale, ridge)
	}
	*g = Gram{}
	return data
}

// FastError predicts the ‖E‖₂ by which a fast AddRows of all n rows is off, Z being n×s with
// ‖Z‖_F² = normSq:
//
//	‖E‖₂ ≲ 2·2⁻²⁴·min(n, 512)·‖Z‖_F²/√(ns).
//
// This takes the errors of sums of 512 products for independent, which they are for random
// features: columns of like norm, and rows that do not repeat. For others it may be several
// times too small; New and NewGram measure what they formed.
func FastError(normSq float64, n, s int) float64 { return fastBound(normSq, n, s) }

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
