package precond

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Gram is ZᵀZ in float64 of features Z to which columns are added: of
//
//	[Z Z']ᵀ[Z Z'] = [ZᵀZ ZᵀZ'; Z'ᵀZ Z'ᵀZ'],
//
// the first block is kept (Grow). The zero value belongs to no columns. It takes 8s² bytes.
type Gram struct {
	s    int
	data []float64 // s×s, lower triangle
}

// Take returns ZᵀZ + ridge·I, s×s and row-major with zeros above the diagonal, in g's own memory, and leaves g to
// belong to no columns.
func (g *Gram) Take(ridge float64) []float64 {
	data := g.data
	for i := range g.s {
		row := data[i*g.s : (i+1)*g.s]
		row[i] += ridge
		clear(row[i+1:])
	}
	*g = Gram{}
	return data
}

// Grow adds the columns of z from its order on, whose columns before must be those that g
// was made of: n(s²−s₀²) flops to go from s₀ to s columns. An error, of ctx or of a number in
// z that is not finite, leaves g as it was. It panics if z has fewer columns than g. Of ranks
// each has its rows, as of Options.Comm; nil is for all rows in one process.
func (g *Gram) Grow(ctx context.Context, c comm.Comm, z *points.Dense32) error {
	s, from := z.D, g.s
	if s < from {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features grown by %d×%d features", from, z.N, s))
	}
	k, err := newRows(ctx, c, z)
	if err != nil {
		return err
	}
	data := make([]float64, s*s)
	if _, err := k.gram(ctx, z, from, false, accel.Whole(s, data, s)); err != nil {
		return err
	}
	for i := range from {
		copy(data[i*s:i*s+i+1], g.data[i*from:i*from+i+1])
	}
	g.s, g.data = s, data
	return nil
}

// NewFromGram is New with ZᵀZ known. It leaves g as it is, and does not heed Options.Fast.
// It panics if g is not of z's order.
func NewFromGram(ctx context.Context, z *points.Dense32, g *Gram, lambdaP float64, o *Options) (*Woodbury, error) {
	if g.s != z.D {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features for %d", g.s, z.D))
	}
	w, err := begin(ctx, z, lambdaP, o)
	if err != nil {
		return nil, err
	}
	w.factor = append([]float64(nil), g.data...)
	return w, w.agree(ctx, w.finish(ctx, w.whole()))
}
