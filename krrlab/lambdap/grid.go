package lambdap

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// half returns the confidence that leaves half of the failure probability.
func (o *Options) half() float64 { return 1 - (1-o.Confidence)/2 }

// prepare forms ZᵀZ, decomposes it, and measures what a solve with these features costs: its
// set-up with L⁻¹, and an iteration.
func (s *sweep) prepare(ctx context.Context, z *points.Dense32, formed float64) error {
	clock := time.Now()
	var g precond.Gram
	if err := g.Grow(ctx, s.o.comm, z); err != nil {
		return err
	}
	gram := stage.Lap(&clock)
	var err error
	if s.w, err = precond.NewFromGram(ctx, z, &g, s.res.Lambda,
		&precond.Options{Form: precond.FormEigen, Comm: s.o.comm}); err != nil {
		return err
	}
	s.res.Eigen = stage.Lap(&clock)
	m, factor := s.w, s.res.Eigen
	if w, err := precond.NewFromGram(ctx, z, &g, s.res.Lambda,
		&precond.Options{Form: precond.FormLInv, Comm: s.o.comm}); err == nil {
		m, factor = w, stage.Lap(&clock)
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
	err := comm.ShareNumbers(ctx, s.o.comm, x, 0)
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

// Bound returns the bound of κ(M⁻¹A), A = K+λI and M = ZZᵀ+λ_pI, that η ≥ ‖K−ZZᵀ‖₂ gives,
//
//	κ ≤ max(1, (λ+η)/λ_p) · max(1, (λ_p+η)/λ),
//
// that is (1+η/λ)(1+η/λ_p) for |λ−λ_p| ≤ η, (λ_p+η)/λ above, and (λ+η)/λ_p below. It panics unless
// λ, λ_p > 0 and η ≥ 0.
//
// Proof: A ≼ ZZᵀ+(λ+η)I ≼ max(1, (λ+η)/λ_p)·M, as ZZᵀ ≽ 0; and M ≼ K+(λ_p+η)I ≼
// max(1, (λ_p+η)/λ)·A, as K ≽ 0.
func Bound(lambda, lambdaP, eta float64) float64 {
	if !(lambda > 0 && lambdaP > 0 && eta >= 0) {
		panic(fmt.Sprintf("lambdap: bound for λ = %v, λ_p = %v, η = %v", lambda, lambdaP, eta))
	}
	return max(1, (lambda+eta)/lambdaP) * max(1, (lambdaP+eta)/lambda)
}

// mustTry returns the λ_p to be looked at in any case, ascending: λ, 10λ (the paper's rule of
// thumb) and λ+η (where Bound is least).
func mustTry(lambda, eta float64) []float64 {
	m := []float64{lambda, 10 * lambda, lambda + eta}
	slices.Sort(m)
	return slices.Compact(m)
}

// gridOf returns points values of λ_p from λ/100 to 100(λ+η), equally spaced in their
// logarithms, and the marks, which replace what lies within a quarter of a spacing of them.
func gridOf(lambda, eta float64, points int) []float64 {
	lo, hi := math.Log(lambda/100), math.Log(100*(lambda+eta))
	step := (hi - lo) / float64(points-1)
	out := mustTry(lambda, eta)
	marks := len(out)
	for i := range points {
		v := lo + float64(i)*step
		if !slices.ContainsFunc(out[:marks], func(m float64) bool { return math.Abs(math.Log(m)-v) < step/4 }) {
			out = append(out, math.Exp(v))
		}
	}
	slices.Sort(out)
	return out
}
