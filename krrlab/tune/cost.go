package tune

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// prepare forms ZᵀZ, decomposes it, and measures what a solve with these features costs: its
// set-up with L⁻¹, and an iteration.
func (s *sweep) prepare(ctx context.Context, z *points.Dense32, formed float64) error {
	clock := time.Now()
	lap := func() float64 {
		d := time.Since(clock).Seconds()
		clock = time.Now()
		return d
	}
	var g precond.Gram
	if err := g.Grow(ctx, s.o.Comm, z); err != nil {
		return err
	}
	gram := lap()
	var err error
	if s.w, err = precond.NewFromGram(ctx, z, &g, s.res.Lambda, &precond.Options{Form: precond.FormEigen, Comm: s.o.Comm}); err != nil {
		return err
	}
	s.res.Eigen = lap()
	m, factor := s.w, s.res.Eigen
	if w, err := precond.NewFromGram(ctx, z, &g, s.res.Lambda, &precond.Options{Form: precond.FormLInv, Comm: s.o.Comm}); err == nil {
		m, factor = w, lap()
	} else if ctx.Err() != nil {
		return ctx.Err()
	}
	s.res.SetUp = formed + gram + factor
	if s.res.PerIter, err = s.iteration(ctx, m); err != nil {
		return err
	}
	return s.share(ctx)
}

// share sets the seconds of all ranks to the first one's, so that all choose the same λ_p by them.
func (s *sweep) share(ctx context.Context) error {
	r := s.res
	x := []float64{r.SetUp, r.PerIter, r.Eigen}
	err := comm.ShareNumbers(ctx, s.o.Comm, x, 0)
	r.SetUp, r.PerIter, r.Eigen = x[0], x[1], x[2]
	return err
}

// iteration returns the seconds that a product and a solve of all right-hand sides take, the
// least of five.
func (s *sweep) iteration(ctx context.Context, m *precond.Woodbury) (float64, error) {
	n, t := s.y.Dims()
	x := mat.NewDense(n, t, nil)
	best := math.Inf(1)
	for range 5 {
		clock := time.Now()
		if err := s.a.MulTo(ctx, x, s.y); err != nil {
			return 0, err
		}
		if err := m.SolveTo(ctx, x, x); err != nil {
			return 0, err
		}
		best = min(best, time.Since(clock).Seconds())
	}
	return best, nil
}
