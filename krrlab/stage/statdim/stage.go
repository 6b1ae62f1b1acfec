package statdim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage is the definition of the stage.
var Stage = stage.Definition{
	Name: "statdim", Options: Options{}, Result: (*Result)(nil),
	Flags: "precond features lambda-p",
	Short: "Statistical dimension s_λ(K) = tr(K(K+λI)⁻¹) with an interval",
	Long: `Statdim estimates s_λ(K), the degrees of freedom of the regression, with an interval that
includes the truncation of the solves; most methods also give the curve λ ↦ s_λ.
Methods: exact (all eigenvalues, n up to some thousands), hutchinson (probes in a
preconditioned block solve, M⁻¹ as control variate), slq (stochastic Lanczos
quadrature, the whole curve), free (the features alone). auto takes exact up to n = 3,000, if
it fits --memory, and slq beyond, followed by hutchinson if slq needs the preconditioner.`,
	Example: `  krrlab statdim --data mnist --n 10000 --plot s.svg
  krrlab statdim --data ijcnn1 --n 10000 --method hutchinson --json s.json
  krrlab statdim --data mnist --n 10000 --method free`,
}

// Method names a way to find the statistical dimension.
type Method string

const (
	// Auto takes Exact up to n = 3,000, if it fits the memory, and else SLQ, with Hutchinson after it where the
	// preconditioner is needed to reach the width at λ.
	Auto Method = "auto"
	// Exact takes all eigenvalues of K, in 8n² bytes and 4n³/3 flops.
	Exact Method = "exact"
	// Hutchinson lets probes ride as right-hand sides of a preconditioned block solve, M⁻¹
	// being their control variate.
	Hutchinson Method = "hutchinson"
	// SLQ is stochastic Lanczos quadrature, with the same control variate, at all λ.
	SLQ Method = "slq"
	// Free is s_λ(ZZᵀ), at λ = λ_p the ‖U‖_F² that the preconditioner has anyway.
	Free Method = "free"
)

const (
	exactBelow      = 3000 // the largest n at which Auto takes all eigenvalues
	controlFeatures = 2000 // the most features that the control variate takes, for 9s³ flops
	maxSteps        = 400  // of a Lanczos process, or iterations of a solve
)

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Method     Method    `flag:"method" default:"auto" check:"one of auto exact hutchinson slq free" help:"auto, exact, hutchinson, slq or free"`
	Confidence float64   `flag:"confidence" default:"0.95" check:"(0,1)" help:"of the interval, between 0 and 1"`
	Width      float64   `flag:"width" default:"0.1" check:"positive" help:"relative width of the interval at which to stop"`
	MaxProbes  int       `flag:"max-probes" default:"256" check:">=16" help:"maximum number of probes, at least 16"`
	Lambdas    []float64 `flag:"grid" check:"positive" not:"method=hutchinson" help:"values of λ for the curve, separated by commas (default: λ/10 to 10⁴λ)"`

	probes int // the first batch, at least 8; default: 16
	stream rng.Stream
	// progress is called with the share of the present batch that is done, and what is estimated so far (Value 0 before
	// the first batch).
	progress func(done, total int, e estimate.Interval)
}

// settled returns a copy with the defaults of the randomized methods in place.
func (o *Options) settled() Options {
	s := *o
	s.Confidence, s.Width = cmp.Or(s.Confidence, estimate.DefaultConfidence), cmp.Or(s.Width, 0.1)
	s.probes, s.MaxProbes = cmp.Or(s.probes, 16), cmp.Or(s.MaxProbes, 256)
	if s.progress == nil {
		s.progress = func(int, int, estimate.Interval) {}
	}
	return s
}

// Run finds the statistical dimension. If ctx ends while a randomized method adds probes, it returns what the batches
// before gave beside ctx's error.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start := time.Now()
	if err := schema.Settle(&o); err != nil {
		return nil, err
	}
	p := b.Problem()
	if len(o.Lambdas) == 0 {
		for i := -4; i <= 16; i++ {
			o.Lambdas = append(o.Lambdas, p.Lambda*math.Pow(10, float64(i)/4))
		}
	}
	o.Lambdas = grid(p.Lambda, o.Lambdas)
	r := &run{Result: &Result{Header: p.Header, Width: o.Width}, o: &o, b: b, p: p}
	err := map[Method]func(context.Context) error{
		Auto: r.auto, Exact: r.exact, Hutchinson: r.random, SLQ: r.random, Free: r.free,
	}[o.Method](ctx)
	r.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || r.Probes == 0) {
		return nil, err
	}
	return r.Result, err
}

// run is the stage under way.
type run struct {
	*Result
	o *Options
	b stage.Bench
	p *stage.Problem
}

// auto chooses the method.
func (r *run) auto(ctx context.Context) error {
	large := fmt.Sprintf("n > %d", exactBelow)
	if r.N <= exactBelow {
		r.Why = fmt.Sprintf("n ≤ %d", exactBelow)
		err := r.exact(ctx)
		full, ok := errors.AsType[*stage.TooLarge](err)
		if !ok {
			return err
		}
		large = fmt.Sprintf("all eigenvalues need %v", full)
	}
	r.Why, r.o.Method = large, SLQ
	if err := r.random(ctx); err != nil {
		return err
	}
	if r.Reached || r.p.Z == nil || 2*r.Truncation < 0.5*r.Estimate.Width()*r.Estimate.Value {
		return nil
	}
	curve := r.Curve
	r.o.Method = Hutchinson
	err := r.random(ctx)
	r.Curve = curve
	r.Why = "quadrature without a preconditioner did not reach the width at λ; the curve is from it"
	return err
}

func (r *run) exact(ctx context.Context) error {
	k, off, err := r.b.Dense(ctx, 8)
	if full, ok := errors.AsType[*stage.TooLarge](err); ok {
		return fmt.Errorf("krrlab: all eigenvalues of K of n = %d need %w: take another method", r.N, full)
	}
	if err != nil {
		return err
	}
	r.b.Tell(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	found, err := Dense(k, off, r.Lambda, r.o.Lambdas)
	if err != nil {
		return err
	}
	r.KError, r.Numbers, r.Method = off, *found, Exact
	return nil
}

// random estimates by probes, with M as control variate.
func (r *run) random(ctx context.Context) error {
	z, held := r.p.Z, int64(0)
	if z != nil {
		narrow := *z
		narrow.S = min(z.S, controlFeatures)
		z, held = &narrow, r.p.LowRankBytes(narrow.S)
	}
	k, err := r.b.K(ctx, held)
	if err != nil {
		return err
	}
	r.KError = k.Choice().Error + k.Error // of K as stored, and of the products with it
	p := &problem{K: k, Lambda: r.Lambda, Error: r.KError, Unit: k.Unit()}
	if z != nil {
		if p.Control, _, err = r.inEigenForm(ctx, z); err != nil {
			return err
		}
	}
	o := *r.o
	work, key := hutchinson, uint64(2)
	if o.Method == SLQ {
		work, key = slq, 4
	}
	o.stream = rng.New(r.Seed).Sub("statdim", key)
	o.progress = func(done, total int, e estimate.Interval) {
		detail := ""
		if e.Value > 0 {
			detail = "s_λ in " + outward.Span(e.Lo, e.Hi, 4)
		}
		r.b.Tell(ctx, stage.Event{Stage: stage.Probes, Detail: detail, Done: done, Total: total, Remaining: -1})
	}
	found, err := work(ctx, p, &o)
	if found != nil {
		r.Numbers, r.Method = *found, o.Method
	}
	return err
}

// inEigenForm returns ZZᵀ+λ_pI in the eigen form, with how far ZZᵀ is from K, and fills in what the stage reports.
func (r *run) inEigenForm(ctx context.Context, a *stage.Approximation) (*precond.Woodbury, distance, error) {
	z, err := r.b.Z(ctx, *a)
	if err != nil {
		return nil, unknown, err
	}
	d := unknown
	r.Precond = z.Text
	if z.Factor != nil {
		r.Precond, d = z.Factor.Method, factorDistance(z.Factor)
	}
	r.b.Tell(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	w, err := precond.New(ctx, z.Z, a.LambdaP+z.ExtraLambdaP, &precond.Options{Form: precond.FormEigen, Comm: r.p.Comm})
	if err != nil {
		return nil, d, err
	}
	r.S, r.LambdaP, r.USquared = w.Features(), w.LambdaP(), w.StatDim()
	r.ZLambdas, r.ZCurve = r.o.Lambdas, degreesAt(w.Eigenvalues(), r.o.Lambdas)
	return w, d, nil
}

// free takes s_λ(ZZᵀ).
func (r *run) free(ctx context.Context) error {
	start := time.Now()
	z := r.p.Z
	if z == nil {
		return fmt.Errorf("method free needs features or landmarks; the configuration has the preconditioner %s",
			r.p.Precond)
	}
	w, d, err := r.inEigenForm(ctx, z)
	if err != nil {
		return err
	}
	trace := floats.Sum(kernel.Diag(r.p.Kernel, r.p.X))
	r.Method, r.Curve = Free, free(r.N, trace, w.Eigenvalues(), d, r.ZLambdas)
	for i := range r.Curve {
		at := &r.Curve[i]
		if at.Estimate.Seconds = time.Since(start).Seconds(); at.Lambda == r.Lambda {
			r.Estimate = at.Estimate
		}
	}
	r.Reached = r.Estimate.Width() <= r.o.Width
	return nil
}
