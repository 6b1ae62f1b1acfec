package multilevel

import (
	"context"
	"sync"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// source is Z, n×s, and ZZᵀ as an operator.
type source struct {
	n, s  int // n of all ranks
	m     feature.Map
	held  *points.Dense32 // the rows of this rank; nil if they are mapped again each time
	outer *precond.Outer
}

// form maps the points, into memory if hold is set.
func form(ctx context.Context, m feature.Map, p *Problem, hold bool, progress func(done, total int)) (*source, error) {
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
