package statdim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage statdim.
var Stage = stage.Definition{
	Name: "statdim", Options: Options{}, Result: (*Result)(nil),
	Flags: "precond",
	Short: "Statistical dimension s_λ(K) = tr(K(K+λI)⁻¹) with an interval",
	Long: `Statdim estimates s_λ(K), the degrees of freedom of the regression, with an interval that
includes the truncation of the solves; most methods also give the curve λ ↦ s_λ.
Methods: exact (all eigenvalues, n up to some thousands), hutchinson (probes in a
preconditioned block solve, M⁻¹ as control variate), slq (stochastic Lanczos
quadrature, the whole curve), free (the features alone), fourier (a Fourier series of points in
one to three dimensions). auto takes exact up to n = 3,000, if it fits --memory, then fourier if
the series has few modes, else slq, followed by hutchinson if slq needs the preconditioner.`,
	Example: `  krrlab statdim --data mnist --n 10000 --plot s.svg
  krrlab statdim --data ijcnn1 --n 10000 --method hutchinson --json s.json
  krrlab statdim --data mnist --n 10000 --method free`,
}

// Method is the name of a method to compute the statistical dimension.
type Method string

const (
	// Auto is Exact up to n = 3,000, if that fits the memory, then Fourier if the series has few modes, and else SLQ,
	// followed by Hutchinson if the width at λ requires the preconditioner.
	Auto Method = "auto"
	// Exact computes all eigenvalues of K, in 8n² bytes and 4n³/3 flops.
	Exact Method = "exact"
	// Hutchinson averages zᵀ(I−λA⁻¹)z over random vectors z of signs, the probes. It solves Ax = z for a block of
	// probes at a time, A = K+λI, with the preconditioner M and with zᵀM⁻¹z as control variate.
	Hutchinson Method = "hutchinson"
	// SLQ is stochastic Lanczos quadrature at all λ, with the same control variate.
	SLQ Method = "slq"
	// Free is s_λ(ZZᵀ) for the features or landmarks Z of the preconditioner, from the eigenvalues of ZᵀZ. It takes no
	// product with K.
	Free Method = "free"
	// Fourier factors the matrix of the modes of a Fourier series of K, for points in one to three dimensions.
	Fourier Method = "fourier"
)

// Limits of the work, chosen by judgment.
const (
	maxExactN          = 3000 // largest n for which Auto computes all eigenvalues
	maxControlFeatures = 2000 // maximum number s of features of the control variate, which takes 9s³ flops
	maxSteps           = 400  // maximum number of steps of a Lanczos process, or of iterations of a solve
)

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Method     Method    `flag:"method" default:"auto" check:"one of auto exact hutchinson slq free fourier" help:"auto, exact, hutchinson, slq, free or fourier"`
	Confidence float64   `flag:"confidence" default:"0.95" check:"(0,1)" help:"of the interval, between 0 and 1"`
	Width      float64   `flag:"width" default:"0.1" check:"positive" help:"relative width of the interval at which to stop"`
	MaxProbes  int       `flag:"max-probes" default:"256" check:">=16" help:"maximum number of probes, at least 16"`
	Lambdas    []float64 `flag:"grid" check:"positive" not:"method=hutchinson" help:"values of λ for the curve, separated by commas (default: λ/10 to 10⁴λ)"`

	probes int // number of probes of the first batch, at least 8; default: 16
	stream rng.Stream
	// progress is called with the completed share of the current batch and the estimate so far, whose Value is 0 before
	// the end of the first batch.
	progress func(completed, total int, e estimate.Interval)
}

// setDefaults replaces zeros by the defaults, and returns an error for invalid options.
func (o *Options) setDefaults() error {
	o.probes = cmp.Or(o.probes, 16)
	return schema.Complete(o)
}

// Run computes the statistical dimension. If ctx ends while a randomized method adds probes, Run returns the result of
// the previous batches together with ctx's error.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start := time.Now()
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	p := b.Problem()
	if len(o.Lambdas) == 0 {
		for i := -4; i <= 16; i++ {
			o.Lambdas = append(o.Lambdas, p.Lambda*math.Pow(10, float64(i)/4)) // λ/10 to 10⁴λ
		}
	}
	o.Lambdas = grid(p.Lambda, o.Lambdas)
	r := &run{Result: &Result{Header: p.Header, RequestedWidth: o.Width}, options: &o, bench: b, problem: p}
	err := map[Method]func(context.Context) error{
		Auto: r.runAuto, Exact: r.runExact, Hutchinson: r.runProbes, SLQ: r.runProbes, Free: r.runFree,
		Fourier: r.runFourier,
	}[o.Method](ctx)
	r.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || r.Probes == 0) {
		return nil, err
	}
	return r.Result, err
}

// run is the state of the stage.
type run struct {
	*Result
	options *Options
	bench   stage.Bench
	problem *stage.Problem
}

// runAuto chooses a method and runs it (Auto). Hutchinson follows SLQ only if it may help: if SLQ did not reach the
// requested width, and its truncation is at least half of the half-width of the interval.
func (r *run) runAuto(ctx context.Context) error {
	reason := fmt.Sprintf("n > %d", maxExactN)
	if r.N <= maxExactN {
		r.Why = fmt.Sprintf("n ≤ %d", maxExactN)
		err := r.runExact(ctx)
		tooLarge, ok := errors.AsType[*accel.MemoryError](err)
		if !ok {
			return err
		}
		reason = tooLarge.Shortage()
	}
	r.Why, r.options.Method = reason, SLQ
	err := r.runSeries(ctx, r.problem.AffordableSeries)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err != errNoSeries {
		r.Why += fmt.Sprintf("; no Fourier series: %v", err)
	}

	if err := r.runProbes(ctx); err != nil {
		return err
	}
	if r.WidthReached || r.problem.Z == nil || 2*r.Truncation < 0.5*r.Estimate.RelativeWidth()*r.Estimate.Value {
		return nil
	}
	curve := r.Curve
	r.options.Method = Hutchinson
	err = r.runProbes(ctx)
	r.Curve = curve
	r.Why = "quadrature without a preconditioner did not reach the width at λ; the curve is from it"
	return err
}

// errNoSeries says that Auto takes no Fourier series; it is never returned to the caller of the stage.
var errNoSeries = errors.New("krrlab: K has no Fourier series with few modes here")

// runFourier runs the method Fourier, whatever the number of modes.
func (r *run) runFourier(ctx context.Context) error {
	x, weights := points.SplitWeights(r.problem.X)
	s, err := r.problem.SeriesOf(r.problem.Kernel, x)
	if err != nil {
		return fmt.Errorf("krrlab: statdim by a Fourier series: %w; another method needs none", err)
	}
	return r.runSeries(ctx, func() (*fourier.Series, float64) { return s, stage.SeriesError(s, r.problem.N, weights) })
}

// runSeries computes s_λ(K̃) for a Fourier series K̃ of K, which seriesOf returns with the bound nε of ‖E‖_F, E = K̃−K.
// The derivative of μ/(μ+λ) is at most 1/λ, so that s_λ(K̃) differs from s_λ(K) by at most Σ|μ_i(K̃)−μ_i(K)|/λ ≤
// √n‖E‖_F/λ ≤ √n·nε/λ. It returns errNoSeries if seriesOf returns nil.
func (r *run) runSeries(ctx context.Context, seriesOf func() (*fourier.Series, float64)) error {
	s, bound := seriesOf()
	if s == nil {
		return errNoSeries
	}
	r.bench.Notify(ctx, stage.Event{Stage: stage.Kernel, Remaining: -1})
	x, weights := points.SplitWeights(r.problem.X)
	normal, _, err := s.NormalEquations(ctx, x, weights, r.problem.Y)
	if err != nil {
		return err
	}
	r.KError, r.Method = bound, Fourier
	trace := floats.Sum(kernel.Diag(r.problem.Kernel, r.problem.X))
	for _, lambda := range r.options.Lambdas {
		start := time.Now()
		f, err := normal.Factor(ctx, lambda)
		if err != nil {
			return err
		}
		v, err := f.StatDim(ctx)
		if err != nil {
			return err
		}
		// the error of the series, and an allowance for the rounding of the factorization of order size
		size := float64(s.Modes())
		storage := math.Sqrt(float64(r.N))*bound/lambda + 4*(size+1)*0x1p-53*(trace/lambda+size)*v
		e := estimate.Certain(v, 0, "fourier").Widened(storage)
		e.Hi = min(e.Hi, max(e.Value, float64(r.N)))
		e.Seconds = time.Since(start).Seconds()
		r.Curve = append(r.Curve, CurvePoint{lambda, e})
		if lambda == r.Lambda {
			r.Estimate, r.Storage = e, storage
		}
	}
	r.WidthReached = r.Estimate.RelativeWidth() <= r.RequestedWidth
	return nil
}

// runExact computes all eigenvalues of K. The error wraps an *accel.MemoryError if K does not fit into memory.
func (r *run) runExact(ctx context.Context) error {
	k, kernelError, err := r.bench.Dense(ctx, 8) // 8 bytes an entry: the eigenvalues overwrite K
	if err != nil {
		return err
	}
	r.bench.Notify(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	numbers, err := FromDense(ctx, k, kernelError, r.Lambda, r.options.Lambdas)
	if err != nil {
		return err
	}
	r.KError, r.Estimates, r.Method = kernelError, *numbers, Exact
	return nil
}

// runProbes estimates s_λ by Hutchinson or SLQ, whichever Options.Method names, with M as control variate. M is made of
// at most maxControlFeatures columns of Z.
func (r *run) runProbes(ctx context.Context) error {
	z, extraBytes := r.problem.Z, int64(0)
	if z != nil {
		truncated := *z
		truncated.S = min(z.S, maxControlFeatures)
		z, extraBytes = &truncated, r.problem.LowRankBytes(truncated.S)
	}
	k, err := r.bench.K(ctx, extraBytes)
	if err != nil {
		return err
	}
	r.KError = k.Choice().Error + k.Error // error of the stored K, and of products with it
	p := &problem{K: k, Lambda: r.Lambda, Error: r.KError, ProductRounding: k.ProductRounding()}
	if z != nil {
		if p.Control, _, err = r.inEigenForm(ctx, z); err != nil {
			return err
		}
	}
	o := *r.options
	estimator, key := hutchinson, uint64(2) // the keys select different random streams
	if o.Method == SLQ {
		estimator, key = slq, 4
	}
	o.stream = rng.New(r.Seed).Sub("statdim", key)
	o.progress = func(completed, total int, e estimate.Interval) {
		detail := ""
		if e.Value > 0 {
			detail = "s_λ in " + outward.Span(e.Lo, e.Hi, 4)
		}
		r.bench.Notify(ctx, stage.Event{Stage: stage.Probes, Detail: detail, Done: completed, Total: total,
			Remaining: -1})
	}
	numbers, err := estimator(ctx, p, &o)
	if numbers != nil {
		r.Estimates, r.Method = *numbers, o.Method
	}
	return err
}

// inEigenForm makes the Z of the approximation a. It returns ZZᵀ+λ_pI in the eigen form and the distance of ZZᵀ from K,
// and sets the fields of the result that describe Z.
func (r *run) inEigenForm(ctx context.Context, a *stage.Approximation) (*precond.Woodbury, distance, error) {
	z, err := r.bench.Z(ctx, *a)
	if err != nil {
		return nil, unknownDistance, err
	}
	d := unknownDistance
	r.Precond = z.Text
	if z.Factor != nil {
		r.Precond, d = z.Factor.Method, factorDistance(z.Factor)
	}
	r.bench.Notify(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	w, err := precond.New(ctx, z.Z, a.LambdaP+z.ExtraLambdaP,
		&precond.Options{Form: precond.FormEigen, Comm: r.problem.Comm})
	if err != nil {
		return nil, d, err
	}
	r.S, r.LambdaP, r.ZStatDim = w.Features(), w.LambdaP(), w.StatDim()
	r.ZLambdas, r.ZCurve = r.options.Lambdas, degreesAt(w.Eigenvalues(), r.options.Lambdas)
	return w, d, nil
}

// runFree computes s_λ(ZZᵀ), with the interval that tr K and the distance of ZZᵀ from K prove (featureCurve).
func (r *run) runFree(ctx context.Context) error {
	start := time.Now()
	z := r.problem.Z
	if z == nil {
		return fmt.Errorf("method free needs features or landmarks; the configuration has the preconditioner %s",
			r.problem.Precond)
	}
	w, d, err := r.inEigenForm(ctx, z)
	if err != nil {
		return err
	}
	trace := floats.Sum(kernel.Diag(r.problem.Kernel, r.problem.X))
	r.Method, r.Curve = Free, featureCurve(r.N, trace, w.Eigenvalues(), d, r.ZLambdas)
	for i := range r.Curve {
		point := &r.Curve[i]
		if point.Estimate.Seconds = time.Since(start).Seconds(); point.Lambda == r.Lambda {
			r.Estimate = point.Estimate
		}
	}
	r.WidthReached = r.Estimate.RelativeWidth() <= r.options.Width
	return nil
}
