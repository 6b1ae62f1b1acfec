package race

import (
	"context"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

// request is a product with A that a runner waits for.
type request struct {
	dst, src *mat.Dense
}

// multiply forms A times the directions of the runners. One that is not finite is not among them: its
// runner breaks down alone.
func (r *race) multiply(ctx context.Context, run []int) error {
	n := r.a.Dim()
	fit := make([]*request, 0, len(run))
	for _, i := range run {
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
	start := time.Now()
	p, w := fit[0].src, fit[0].dst
	if len(fit) > 1 {
		size := n * len(fit)
		for i := range r.panel {
			r.panel[i] = slices.Grow(r.panel[i][:0], size)[:size]
		}
		p, w = mat.NewDense(n, len(fit), r.panel[0]), mat.NewDense(n, len(fit), r.panel[1])
		for j, f := range fit {
			setColumn(p, j, f.src, 0)
		}
	}
	if err := r.a.MulTo(ctx, w, p); err != nil {
		return err
	}
	if len(fit) > 1 {
		for j, f := range fit {
			setColumn(f.dst, 0, w, j)
		}
	}
	r.res.Steps++
	r.res.Columns += len(fit)
	if !r.one() {
		return nil
	}
	if took := time.Since(start).Seconds(); len(fit) == 1 && took < r.alone || r.res.Product == 0 {
		r.alone, r.res.Product = took, took
	}
	return nil
}

// finite reports whether all of a column are.
func finite(x *mat.Dense) bool {
	for _, v := range x.RawMatrix().Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// setColumn sets column j of dst to column k of src.
func setColumn(dst *mat.Dense, j int, src *mat.Dense, k int) {
	d, s := dst.RawMatrix(), src.RawMatrix()
	for i := range d.Rows {
		d.Data[i*d.Stride+j] = s.Data[i*s.Stride+k]
	}
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

// timed is M, which notes what M⁻¹R takes.
type timed struct {
	pcg.Preconditioner
	s     *Standing
	one   bool    // right-hand side, so that this is M⁻¹R of all
	least float64 // seconds
}

func (m *timed) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	start := time.Now()
	err := m.Preconditioner.SolveTo(ctx, dst, r)
	took := time.Since(start).Seconds()
	m.s.Spent += took
	if m.least = min(m.least, took); m.one {
		m.s.Solve = m.least
	}
	return err
}
