package race

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

// request is a product with A that a runner waits for.
type request struct {
	dst, src *mat.Dense
}

// multiply forms A times the directions of the runners. One that is not finite is not among them: its
// runner breaks down alone.
func (r *race) multiply(ctx context.Context, turn []int) error {
	n := r.a.Dim()
	fit := make([]*request, 0, len(turn))
	for _, i := range turn {
		ask := r.lanes[i].ask
		if finite(ask.src) {
			fit = append(fit, ask)
			continue
		}
		for k := range n {
			ask.dst.Set(k, 0, math.NaN())
		}
	}
	if len(fit) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	for i := range r.panel {
		r.panel[i] = slices.Grow(r.panel[i][:0], n*len(fit))[:n*len(fit)]
	}
	p, w := mat.NewDense(n, len(fit), r.panel[0]), mat.NewDense(n, len(fit), r.panel[1])
	for j, f := range fit {
		p.ColView(j).(*mat.VecDense).CopyVec(f.src.ColView(0))
	}
	if err := r.a.MulTo(ctx, w, p); err != nil {
		return err
	}
	for j, f := range fit {
		f.dst.ColView(0).(*mat.VecDense).CopyVec(w.ColView(j))
	}
	r.res.steps++
	r.res.columns += len(fit)
	return nil
}

// finite reports whether all of a column are.
func finite(x *mat.Dense) bool {
	return !slices.ContainsFunc(x.RawMatrix().Data, func(v float64) bool { return math.IsNaN(v - v) })
}

// asking is A as a runner sees it: it asks for products.
type asking struct {
	pcg.Operator
	yield func(*request) bool
}

func (a asking) MulTo(_ context.Context, dst, src *mat.Dense) error {
	if !a.yield(&request{dst, src}) {
		return errOut
	}
	return nil
}
