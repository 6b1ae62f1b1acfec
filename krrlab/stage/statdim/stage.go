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
	// Exact computes all eigenvalues of K, in 8n² bytes and 4n³/3 flops. It is implemented in FromDense.
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
	maxControlFeatures = 2000 // largest number s of features or landmarks in the control variate, which takes 9s³ flops
	maxSteps           = 400  // largest number of steps of a Lanczos process, or of iterations of a solve
)

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Method     Method    `flag:"method" default:"auto" check:"one of auto exact hutchinson slq free fourier" help:"auto, exact, hutchinson, slq, free or fourier"`
	Confidence float64   `flag:"confidence" default:"0.95" check:"(0,1)" help:"of the interval, between 0 and 1"`
	Width      float64   `flag:"width" default:"0.1" check:"positive" help:"relative width of the interval at which to stop"`
	MaxProbes  int       `flag:"max-probes" default:"256" check:">=16" help:"maximum number of probes, at least 16"`
	Lambdas    []float64 `flag:"grid" check:"positive" not:"method=hutchinson" help:"values of λ for the curve, separated by commas (default: λ/10 to 10⁴λ)"`

	probes int        // number of probes of the first batch, at least 8; default: 16
	stream rng.Stream // random numbers of the probes
	// progress is called with the completed share of the current batch, completed/total, and the estimate so far, whose
	// Value is 0 before the end of the first batch.
	progress func(completed, total int, current estimate.Interval)
}

// setDefaults replaces zeros by the defaults, and returns an error for invalid options.
func (o *Options) setDefaults() error {
	o.probes = cmp.Or(o.probes, 16)
	return schema.Complete(o)
}

// Run computes the statistical dimension. If ctx ends while a randomized method adds probes, Run returns the result of
// the previous batches together with ctx's error.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	start := time.Now()
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	problem := bench.Problem()
	if len(o.Lambdas) == 0 {
		for i := -4; i <= 16; i++ {
			o.Lambdas = append(o.Lambdas, problem.Lambda*math.Pow(10, float64(i)/4)) // λ/10 to 10⁴λ
		}
	}
	o.Lambdas = lambdaGrid(problem.Lambda, o.Lambdas)
	r := &run{Result: &Result{Header: problem.Header, RequestedWidth: o.Width}, options: &o, bench: bench,
		problem: problem}
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

// runAuto chooses a method and runs it, as described at Auto. Hutchinson follows SLQ only if it may narrow the
// interval: if SLQ did not reach the requested width, and if the truncation is at least half of the half-width of the
// interval.
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
	r.Why, r.options.Method = reason, SLQ // SLQ is the method unless there is a series
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

// errNoSeries is the error of runSeries without a series. The caller of the stage never gets it, since Auto then takes
// another method.
var errNoSeries = errors.New("krrlab: K has no Fourier series with few modes here")

// runFourier runs the method Fourier, whatever the number of modes.
func (r *run) runFourier(ctx context.Context) error {
	x, weights := points.SplitWeights(r.problem.X)
	series, err := r.problem.SeriesOf(r.problem.Kernel, x)
	if err != nil {
		return fmt.Errorf("krrlab: statdim by a Fourier series: %w; another method needs none", err)
	}
	return r.runSeries(ctx, func() (*fourier.Series, float64) {
		return series, stage.SeriesError(series, r.problem.N, weights)
	})
}

// runSeries computes s_λ(K̃) for a Fourier series K̃ of K, which seriesOf returns with a bound of ‖E‖_F, E = K̃−K. The
// derivative of μ/(μ+λ) is at most 1/λ, so that s_λ(K̃) differs from s_λ(K) by at most Σ|μ_i(K̃)−μ_i(K)|/λ ≤ √n‖E‖_F/λ.
// runSeries returns errNoSeries if seriesOf returns nil.
func (r *run) runSeries(ctx context.Context, seriesOf func() (*fourier.Series, float64)) error {
	series, errorBound := seriesOf()
	if series == nil {
		return errNoSeries
	}
	r.bench.Notify(ctx, stage.Event{Stage: stage.Kernel, Remaining: -1})
	x, weights := points.SplitWeights(r.problem.X)
	normal, _, err := series.NormalEquations(ctx, x, weights, r.problem.Y)
	if err != nil {
		return err
	}
	r.KError, r.Method = errorBound, Fourier
	trace := floats.Sum(kernel.Diag(r.problem.Kernel, r.problem.X))
	for _, lambda := range r.options.Lambdas {
		start := time.Now()
		factor, err := normal.Factor(ctx, lambda)
		if err != nil {
			return err
		}
		statDim, err := factor.StatDim(ctx)
		if err != nil {
			return err
		}
		// The first term is due to the error of the series, the second is an allowance for the rounding errors of the
		// factorization.
		modes := float64(series.Modes())
		storage := math.Sqrt(float64(r.N))*errorBound/lambda + 4*(modes+1)*0x1p-53*(trace/lambda+modes)*statDim
		interval := estimate.Certain(statDim, 0, "fourier").Widened(storage)
		interval.Hi = min(interval.Hi, max(interval.Value, float64(r.N)))
		interval.Seconds = time.Since(start).Seconds()
		r.Curve = append(r.Curve, CurvePoint{lambda, interval})
		if lambda == r.Lambda {
			r.Estimate, r.Storage = interval, storage
		}
	}
	r.WidthReached = r.Estimate.RelativeWidth() <= r.RequestedWidth
	return nil
}

// runExact computes all eigenvalues of K. The error wraps an *accel.MemoryError if K does not fit into memory.
func (r *run) runExact(ctx context.Context) error {
	const bytesPerEntry = 8 // float64; the computation of the eigenvalues overwrites K
	kernelMatrix, kernelError, err := r.bench.Dense(ctx, bytesPerEntry)
	if err != nil {
		return err
	}
	r.bench.Notify(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	estimates, err := FromDense(ctx, kernelMatrix, kernelError, r.Lambda, r.options.Lambdas)
	if err != nil {
		return err
	}
	r.KError, r.Estimates, r.Method = kernelError, *estimates, Exact
	return nil
}

// runProbes estimates s_λ by Hutchinson or SLQ, whichever Options.Method names. If the preconditioner of the problem
// has features or landmarks Z, at most maxControlFeatures of them give M = ZZᵀ+λ_pI, and zᵀM⁻¹z as control variate.
func (r *run) runProbes(ctx context.Context) error {
	approximation, extraBytes := r.problem.Z, int64(0)
	if approximation != nil {
		truncated := *approximation
		truncated.S = min(approximation.S, maxControlFeatures)
		approximation, extraBytes = &truncated, r.problem.LowRankBytes(truncated.S)
	}
	kernelMatrix, err := r.bench.K(ctx, extraBytes)
	if err != nil {
		return err
	}
	r.KError = kernelMatrix.Choice().Error + kernelMatrix.Error // error of the stored K, and of products with it
	p := &problem{K: kernelMatrix, Lambda: r.Lambda, Error: r.KError,
		ProductRounding: kernelMatrix.ProductRounding()}
	if approximation != nil {
		if p.Control, _, err = r.newEigenForm(ctx, approximation); err != nil {
			return err
		}
	}
	options := *r.options
	estimator, streamKey := hutchinson, uint64(2) // the methods use different random streams
	if options.Method == SLQ {
		estimator, streamKey = slq, 4
	}
	options.stream = rng.New(r.Seed).Sub("statdim", streamKey)
	options.progress = func(completed, total int, current estimate.Interval) {
		detail := ""
		if current.Value > 0 {
			detail = "s_λ in " + outward.Span(current.Lo, current.Hi, 4)
		}
		r.bench.Notify(ctx, stage.Event{Stage: stage.Probes, Detail: detail, Done: completed, Total: total,
			Remaining: -1})
	}
	estimates, err := estimator(ctx, p, &options)
	if estimates != nil {
		r.Estimates, r.Method = *estimates, options.Method
	}
	return err
}

// newEigenForm makes the features or landmarks Z of the approximation. It returns M = ZZᵀ+λ_pI in the form of the
// eigenvalues and eigenvectors of ZᵀZ, and the distance of the eigenvalues of ZZᵀ from those of K. It sets the fields
// of the result that describe Z.
func (r *run) newEigenForm(ctx context.Context, approximation *stage.Approximation) (*precond.Woodbury,
	eigenvalueDistance, error) {
	z, err := r.bench.Z(ctx, *approximation)
	if err != nil {
		return nil, unknownDistance, err
	}
	distance := unknownDistance
	r.Precond = z.Text
	if z.Factor != nil {
		r.Precond, distance = z.Factor.Method, factorDistance(z.Factor)
	}
	r.bench.Notify(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	m, err := precond.New(ctx, z.Z, approximation.LambdaP+z.ExtraLambdaP,
		&precond.Options{Form: precond.FormEigen, Comm: r.problem.Comm})
	if err != nil {
		return nil, distance, err
	}
	r.S, r.LambdaP, r.ZStatDim = m.Features(), m.LambdaP(), m.StatDim()
	r.ZLambdas, r.ZCurve = r.options.Lambdas, statDims(m.Eigenvalues(), r.options.Lambdas)
	return m, distance, nil
}

// runFree computes s_λ(ZZᵀ), with the interval that tr K and the distance of ZZᵀ from K prove (featureCurve).
func (r *run) runFree(ctx context.Context) error {
	start := time.Now()
	approximation := r.problem.Z
	if approximation == nil {
		return fmt.Errorf("method free needs features or landmarks; the configuration has the preconditioner %s",
			r.problem.Precond)
	}
	m, distance, err := r.newEigenForm(ctx, approximation)
	if err != nil {
		return err
	}
	trace := floats.Sum(kernel.Diag(r.problem.Kernel, r.problem.X))
	r.Method, r.Curve = Free, featureCurve(r.N, trace, m.Eigenvalues(), distance, r.ZLambdas)
	for i := range r.Curve {
		point := &r.Curve[i]
		if point.Estimate.Seconds = time.Since(start).Seconds(); point.Lambda == r.Lambda {
			r.Estimate = point.Estimate
		}
	}
	r.WidthReached = r.Estimate.RelativeWidth() <= r.options.Width
	return nil
}
