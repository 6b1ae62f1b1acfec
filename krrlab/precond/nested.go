package precond

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/comm"
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

// ZeroGram returns the Gram matrix of s features of no points, which is 0. It panics if
// s < 1.
func ZeroGram(s int) *Gram {
	if s < 1 {
		panic(fmt.Sprintf("precond: a Gram matrix of %d features", s))
	}
	return &Gram{s: s, data: make([]float64, s*s)}
}

// AddRows adds to ZᵀZ the products of further rows, z: ns² flops for n rows,
//
//	ZᵀZ ← ZᵀZ + zᵀz,
//
// in float64, or where fast is set in float32 by panels of 512 rows, whose sums are added in
// float64: half the time, and an error of about predictedError. Beside g it
// takes some 10 MB a thread. After an error, of ctx or of a number in z that is not finite, g is
// undefined. It panics if z has no rows or not s columns.
func (g *Gram) AddRows(ctx context.Context, z *points.Dense32, fast bool) error {
	if z.D != g.s || z.N < 1 {
		panic(fmt.Sprintf("precond: %d rows of %d features for a Gram matrix of %d", z.N, z.D, g.s))
	}
	k, err := newRows(ctx, nil, z)
	if err != nil {
		return err
	}
	sum := k.gramSum(z, fast)
	err = sum.each(ctx, gramBlocks(0, g.s), func(b gramBlock, part []int64) {
		for i := range b.rows {
			row := g.data[(b.i+i)*g.s+b.j:]
			for j, v := range part[i*b.cols : i*b.cols+b.width(i)] {
				row[j] += sum.value(v, b.i+i, b.j+j)
			}
		}
	})
	if err == nil && fast {
		var e float64
		e, err = k.fastError(ctx, z)
		g.err = math.Hypot(g.err, e) // panels round independently
	}
	return err
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

// predictedError predicts ‖E‖₂ of the error E of a fast AddRows of all n rows, Z being n×s with
// ‖Z‖_F² = normSq:
//
//	‖E‖₂ ≲ 2·2⁻²⁴·min(n, 512)·‖Z‖_F²/√(ns).
//
// This takes the errors of sums of 512 products for independent, which they are for random
// features: columns of like norm, and rows that do not repeat. For others it may be several
// times too small; New measures what it formed.
func predictedError(normSq float64, n, s int) float64 {
	m := float64(min(RankRows, n))
	return 2 * 0x1p-24 * m * normSq / math.Sqrt(float64(s)*float64(n))
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
	data, err := k.gram(ctx, z, from, false)
	if err != nil {
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
	return w, w.agree(ctx, w.finish(ctx))
}
