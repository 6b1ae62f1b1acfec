package lanczos

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Operator is a symmetric n×n matrix A.
type Operator interface {
	// Dim returns n.
	Dim() int
	// MulTo sets dst = A·src, both n×k with contiguous rows that do not overlap. Only RunMany and RunFrom use k > 1.
	MulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Metric is a symmetric positive definite n×n matrix M that provides products with M⁻¹ and random vectors of covariance
// M. *precond.Woodbury implements it.
type Metric interface {
	// Dim returns n.
	Dim() int
	// SolveTo sets dst = M⁻¹·r, both n×1 with contiguous rows that do not overlap.
	SolveTo(ctx context.Context, dst, r *mat.Dense) error
	// NormalTo sets dst, n×1, to a draw of the normal distribution with mean 0 and covariance M. If M is stored
	// in a form without a factor to sample from, NormalTo returns an error that wraps errors.ErrUnsupported.
	NormalTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error
}

// Metrics are symmetric positive definite matrices M_c of one order n, c = 0, 1, …, such as
// *precond.RidgeFamily.
type Metrics interface {
	// Dim returns n.
	Dim() int
	// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r for c = cols[j]. Both are
	// n×len(cols) with contiguous rows that do not overlap.
	SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error
	// NormalColumnsTo sets column c of dst to a draw of the normal distribution with mean 0
	// and covariance M_c, for all c. The columns need not be independent.
	NormalColumnsTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error
}

// Quantity selects the quantity to bound. The interval of this quantity decides when to stop. The failure
// probability is divided among the ends of the spectrum that the quantity depends on.
type Quantity int

const (
	BothEnds          Quantity = iota // λ_min and λ_max
	LargestEigenvalue                 // only λ_max
	TwoNorm                           // max(|λ_min|, |λ_max|)
	ConditionNumber                   // κ = λ_max/λ_min
	TridiagonalOnly                   // only T, without Ritz values and intervals
)

// Options are the options of Run, RunFrom, RunPencil and RunMany. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Steps is the maximum number of steps k; at most n steps are taken. Default 100.
	Steps int
	// Tol ends the process when the intervals of Quantity have a relative width (Hi−Lo)/|Value| of at most Tol; a
	// negative Tol never ends it. Default 0.1.
	Tol float64
	// Confidence is the probability, in (0, 1), that all selected intervals are valid. Default 0.95.
	Confidence float64
	// Quantity selects what to bound. Default BothEnds.
	Quantity Quantity
	// Definite states that the spectrum has no negative values, so that the interval of λ_min starts at 0. RunPencil
	// does not assume so. A Ritz value below −Slack refutes it: see Result.Indefinite.
	Definite bool
	// Start is the random stream for the start vector. Default: the stream of seed 0.
	Start rng.Stream
	// Monitor, if not nil, is called after every step of each process with the current Result. If it returns an error,
	// all processes end, and the error is returned unless it is ErrStop.
	Monitor func(*Result) error
	// Done, if not nil, is called after a step of process c, and ends this process, without Converged, if it returns
	// true.
	Done func(c int, r *Result) bool
}

// withDefaults returns a copy of o for matrices of order n, with the defaults filled in.
func (o *Options) withDefaults(n int) Options {
	opt := *cmp.Or(o, &Options{})
	opt.Steps = cmp.Or(opt.Steps, 100)
	opt.Tol = cmp.Or(opt.Tol, 0.1)
	opt.Confidence = cmp.Or(opt.Confidence, estimate.DefaultConfidence)
	if opt.Steps < 0 || math.IsNaN(opt.Tol) || opt.Quantity < BothEnds || opt.Quantity > TridiagonalOnly {
		panic(fmt.Sprintf("lanczos: %d steps, tolerance %g, quantity %d", opt.Steps, opt.Tol, opt.Quantity))
	}
	if estimate.CheckConfidence(opt.Confidence) != nil {
		panic(fmt.Sprintf("lanczos: confidence %g, want it in (0, 1)", opt.Confidence))
	}
	opt.Steps = min(opt.Steps, n)
	return opt
}

// Result contains the results of a process after k steps.
type Result struct {
	N           int       // order of A
	Steps       int       // k; each step takes one product with A
	Alpha, Beta []float64 // k numbers each: T_jj = Alpha[j], T_j,j+1 = Beta[j]; the last β is not part of T
	Ritz        []float64 // eigenvalues of T, ascending
	// Min and Max are the intervals of λ_min and λ_max. Their inner ends are Ritz values, which are certain up to
	// Slack. The outer end of an end of the spectrum that was not selected is infinite.
	Min, Max estimate.Interval
	// Converged reports that all selected intervals have reached the tolerance.
	Converged bool
	// Slack estimates the effect of inaccurate products on the eigenvalues, in the units of the spectrum.
	Slack   float64
	Seconds float64 // total time
	Err     error   // reason why a process failed; κ is then unknown

	confidence float64 // joint confidence of all selected intervals
}

// FromIntervals returns a Result that contains only intervals of the ends of a spectrum. They come from another method,
// such as dense eigenvalues, or they are one-sided bounds from values inside the spectrum.
func FromIntervals(minInterval, maxInterval estimate.Interval) *Result {
	return &Result{Min: minInterval, Max: maxInterval, confidence: min(minInterval.Confidence, maxInterval.Confidence)}
}

// Indefinite reports whether a Ritz value is below −Slack, which proves that the matrix has a negative eigenvalue as it
// is multiplied. For a pencil, the Rayleigh quotient of the Ritz vector must confirm a negative Ritz value; otherwise
// Slack is increased and the process ends. The interval of λ_min is then not cut off at 0, whatever the value of
// Options.Definite, so that Lo ≤ Hi < 0. For A = K+λI a negative eigenvalue means that the storage error of K exceeds
// λ.
func (r *Result) Indefinite() bool { return r.Min.Hi < 0 }

// Cond returns the interval of κ = λ_max/λ_min. Its upper end is +Inf if λ_min may be 0 or less. Its confidence is
// Options.Confidence unless Quantity was LargestEigenvalue.
func (r *Result) Cond() estimate.Interval {
	kappa := estimate.Interval{Value: math.NaN(), Lo: 1, Hi: math.Inf(1), Confidence: r.confidence,
		Method:  r.Min.Method,
		Seconds: r.Seconds}
	if r.Min.Hi > 0 {
		kappa.Lo = max(1, r.Max.Lo/r.Min.Hi)
	}
	if r.Min.Value > 0 {
		kappa.Value = max(1, r.Max.Value/r.Min.Value)
	}
	if r.Min.Lo > 0 {
		kappa.Hi = max(1, r.Max.Hi/r.Min.Lo)
	}
	return kappa
}

// PerturbedIntervals returns the intervals of κ, λ_min and λ_max of M⁻¹A' for a positive definite A' that is
// approximated by A, with
//
//	(1−e)A' ≼ A ≼ (1+e)A'.
//
// The matrices K'+λI and K+λI satisfy this for e = ‖K−K'‖₂/λ if K' is positive semi-definite. If e is predicted, the
// confidence does not cover the prediction. If A is Indefinite, no e < 1 can be valid, and nothing is known of A'.
// PerturbedIntervals panics if e < 0.
func (r *Result) PerturbedIntervals(e float64) (kappa, minInterval, maxInterval estimate.Interval) {
	if !(e >= 0) {
		panic(fmt.Sprintf("lanczos: an allowance of %v", e))
	}
	kappa, minInterval, maxInterval = r.Cond(), r.Min, r.Max
	if r.Indefinite() {
		kappa.Value, minInterval.Value, maxInterval.Value = math.NaN(), math.NaN(), math.NaN()
		e = math.Inf(1)
	}
	up, down := 1+e, max(0, 1-e)
	divideByDown := func(x float64) float64 {
		if down == 0 {
			return math.Inf(1)
		}
		return x / down
	}
	for _, interval := range []*estimate.Interval{&minInterval, &maxInterval} {
		interval.Lo, interval.Hi = max(0, interval.Lo)/up, divideByDown(interval.Hi)
		interval.Value = max(interval.Value, interval.Lo) // NaN is not changed
	}
	kappa.Lo, kappa.Hi = max(1, kappa.Lo/up*down), divideByDown(kappa.Hi*up)
	return kappa, minInterval, maxInterval
}

// Norm returns the interval of ‖A‖₂ = max(|λ_min|, |λ_max|).
func (r *Result) Norm() estimate.Interval {
	return estimate.Interval{
		Value:      max(-r.Min.Value, r.Max.Value),
		Lo:         max(-r.Min.Hi, r.Max.Lo, 0),
		Hi:         max(-r.Min.Lo, r.Max.Hi, 0),
		Confidence: r.confidence, Method: r.Min.Method, Seconds: r.Seconds,
	}
}
