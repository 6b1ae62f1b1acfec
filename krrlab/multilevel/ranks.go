package multilevel

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/rng"
)

// atFirst is M for s ≥ n: the first rank has it and gives the others what comes of it.
type atFirst struct {
	n    int
	comm comm.Comm
	m    *dense // nil at others
}

// newMetric makes M for s ≥ n. On ranks the first maps all points for it.
func newMetric(ctx context.Context, p *Problem, z *source) (metric, error) {
	a := &atFirst{n: z.n, comm: p.Comm}
	var err error
	if p.Comm.Rank() == 0 {
		held := z.held
		if held.N < z.n {
			held, err = feature.Matrix(ctx, z.m, p.X, nil)
		}
		if err == nil {
			a.m, err = newDense(ctx, held, p.LambdaP)
		}
	}
	if err := comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	return a, nil
}

// Dim returns n.
func (a *atFirst) Dim() int { return a.n }

// SolveTo sets dst = M⁻¹r.
func (a *atFirst) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return a.share(ctx, dst, func(m *dense, dst *mat.Dense) error { return m.SolveTo(ctx, dst, r) })
}

// NormalTo sets dst to a draw of N(0, M).
func (a *atFirst) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return a.share(ctx, dst, func(m *dense, dst *mat.Dense) error { return m.NormalTo(ctx, dst, g) })
}

// share sets dst on all ranks to what make puts into it at the first.
func (a *atFirst) share(ctx context.Context, dst *mat.Dense, fill func(m *dense, dst *mat.Dense) error) error {
	if a.comm.Size() == 1 {
		return fill(a.m, dst)
	}
	n, t := dst.Dims()
	out := mat.NewDense(n, t, nil)
	var err error
	if a.m != nil {
		err = fill(a.m, out)
	}
	if err := comm.Agree(ctx, a.comm, err); err != nil {
		return err
	}
	if err := comm.ShareNumbers(ctx, a.comm, out.RawMatrix().Data, 0); err != nil {
		return err
	}
	dst.Copy(out)
	return nil
}
