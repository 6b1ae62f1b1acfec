package precond

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Gram is ZᵀZ in float64, for features Z to which columns are added. In
//
//	[Z Z']ᵀ[Z Z'] = [ZᵀZ ZᵀZ'; Z'ᵀZ Z'ᵀZ'],
//
// Grow reuses the first block. The zero value has no columns. A Gram takes 8s² bytes.
type Gram struct {
	s    int       // number of columns of Z
	data []float64 // ZᵀZ, s×s, lower triangle
}

// TakeShifted returns ZᵀZ + ridge·I, s×s and row-major, with zeros above the diagonal. The result uses the memory of g,
// and g has no columns afterwards.
func (g *Gram) TakeShifted(ridge float64) []float64 {
	data := g.data
	for i := range g.s {
		row := data[i*g.s : (i+1)*g.s]
		row[i] += ridge
		clear(row[i+1:])
	}
	*g = Gram{}
	return data
}

// Grow extends g to all columns of z, n×s. If g already has s₀ columns, the first s₀ columns of z must be the same, and
// the cost is n(s²−s₀²) flops. Each rank of c passes its rows of Z, as for Options.Comm; if c is nil, z has all rows.
//
// Grow returns an error if ctx ends or z has a number that is not finite; g is then unchanged. It panics if z has fewer
// columns than g.
func (g *Gram) Grow(ctx context.Context, c comm.Comm, z *points.Dense32) error {
	s, oldOrder := z.D, g.s
	if s < oldOrder {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features grown by %d×%d features", oldOrder, z.N, s))
	}
	distribution, err := newRowDistribution(ctx, c, z)
	if err != nil {
		return err
	}
	data := make([]float64, s*s)
	if _, err := distribution.gram(ctx, z, oldOrder, exactProducts, accel.WrapMatrix(s, data, s)); err != nil {
		return err
	}
	for i := range oldOrder {
		copy(data[i*s:i*s+i+1], g.data[i*oldOrder:i*oldOrder+i+1])
	}
	g.s, g.data = s, data
	return nil
}

// NewFromGram is New for a ZᵀZ that has been computed already. It does not change g, and ignores Options.Fast. It
// panics if g and z have different numbers of columns.
func NewFromGram(ctx context.Context, z *points.Dense32, g *Gram, lambdaP float64,
	options *Options) (*Woodbury, error) {
	if g.s != z.D {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features for %d", g.s, z.D))
	}
	w, err := newWoodbury(ctx, z, lambdaP, options)
	if err != nil {
		return nil, err
	}
	w.factor = append([]float64(nil), g.data...)
	return w, w.syncFactor(ctx, w.finish(ctx, w.localGram()))
}
