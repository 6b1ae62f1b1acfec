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
	// MulTo sets dst = A·src, both n×k with contiguous rows that do not overlap; k = 1
	// but for RunMany.
	MulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Metric is a symmetric positive definite n×n matrix M of which the inverse and random
// vectors are known. *precond.Woodbury is one.
type Metric interface {
	// Dim returns n.
	Dim() int
	// SolveTo sets dst = M⁻¹·r, both n×1 with contiguous rows that do not overlap.
	SolveTo(ctx context.Context, dst, r *mat.Dense) error
	// NormalTo sets dst, n×1, to a draw of the normal distribution with mean 0 and
	// covariance M. An M that cannot returns an error that wraps errors.ErrUnsupported.
	NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error
}

// Metrics are symmetric positive definite matrices M_c of one order n, c = 0, 1, …, such as
// *precond.Family.
type Metrics interface {
	// Dim returns n.
	Dim() int
	// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r for c = cols[j]. Both are
	// n×len(cols) with contiguous rows that do not overlap.
	SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error
	// NormalColumnsTo sets column c of dst to a draw of the normal distribution with mean 0
	// and covariance M_c, for all c. The columns need not be independent.
	NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error
}

// Ends says which ends of the spectrum are wanted. The probability of failure is spent
// on them alone, and their intervals decide when to stop.
type Ends int

const (
	Both    Ends = iota // half of the failure probability on each end
	Largest             // λ_max only
	Neither             // T alone, without Ritz values and intervals
)

// Options of Run and RunPencil. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Steps is the most steps k; at most n are taken. Default 100.
	Steps int
	// Tol ends the process when each end asked for is known to a relative width
	// (Hi−Lo)/|Value| of at most Tol; negative means never. With Norm and Cond, the width is
	// that of the norm and of κ. Default 0.1.
	Tol float64
	// Confidence is the probability, in (0, 1), with which all that is asked for holds.
	// Default 0.95.
	Confidence float64
	// Ends of the spectrum that are wanted. Default Both.
	Ends Ends
	// Norm says that max(|λ_min|, |λ_max|) is what is wanted, of Both ends.
	Norm bool
	// Cond says that κ = λ_max/λ_min is what is wanted, of Both ends.
	Cond bool
	// Definite says that the spectrum is known to have no negative values, so that the interval
	// of λ_min begins at 0. RunPencil does not assume it. A Ritz value below −Slack refutes it:
	// see Result.Indefinite.
	Definite bool
	// Start is the stream that the start vector is drawn from. Default: that of seed 0.
	Start rng.Stream
	// Monitor, if not nil, is called after every step of each process with what is known by then. If it
	// returns an error, all end with it, of ErrStop without one.
	Monitor func(*Result) error
	// Done, if not nil, ends process c after a step, without Converged, where it returns true.
	Done func(c int, r *Result) bool
}

// settled returns a copy of o with the defaults filled in, for order n.
func (o *Options) settled(n int) Options {
	s := *cmp.Or(o, &Options{})
	s.Steps = cmp.Or(s.Steps, 100)
	s.Tol = cmp.Or(s.Tol, 0.1)
	s.Confidence = cmp.Or(s.Confidence, estimate.DefaultConfidence)
	if s.Steps < 0 || math.IsNaN(s.Tol) || s.Ends < Both || s.Ends > Neither || (s.Norm || s.Cond) && s.Ends != Both ||
		s.Norm && s.Cond {
		panic(fmt.Sprintf("lanczos: %d steps, tolerance %g, ends %d, norm %v, κ %v", s.Steps, s.Tol, s.Ends, s.Norm,
			s.Cond))
	}
	if estimate.CheckConfidence(s.Confidence) != nil {
		panic(fmt.Sprintf("lanczos: confidence %g, want it in (0, 1)", s.Confidence))
	}
	s.Steps = min(s.Steps, n)
	return s
}

// Op counts the calls of one operation.
type Op struct {
	Calls   int
	Seconds float64
}

// Result is what k steps have found.
type Result struct {
	N           int
	Steps       int       // k
	Alpha, Beta []float64 // of T, k numbers each: T_jj = Alpha[j], T_j,j+1 = Beta[j]; the last β leads out of T
	Ritz        []float64 // eigenvalues of T, ascending
	// Min and Max are the intervals of λ_min and λ_max. Their inner ends are Ritz values,
	// certain but for Slack; an outer end that was not asked for is infinite.
	Min, Max estimate.Interval
	// Converged says that what was asked for is known to the tolerance.
	Converged bool
	// Slack is the estimate of what inaccurate products add, in the units of the spectrum.
	Slack   float64
	MulTo   Op      // products with A
	SolveTo Op      // solves with M
	Seconds float64 // in all
	Err     error   // why a process ended early: M has no κ then

	confidence float64 // of all that was asked for
}

// Known returns a Result that has the ends of a spectrum alone, as something else found them: dense eigenvalues, or
// one-sided those that lie inside.
func Known(least, most estimate.Interval) *Result {
	return &Result{Min: least, Max: most, confidence: min(least.Confidence, most.Confidence)}
}

// Indefinite reports whether a Ritz value is below −Slack, which proves that the matrix, as it
// multiplies, has a negative eigenvalue. The interval of λ_min is then not cut off at 0, whatever
// Options.Definite says, so that Lo ≤ Hi < 0. For A = K+λI it means that K as stored has an error
// above λ.
func (r *Result) Indefinite() bool { return r.Min.Hi < 0 }

// Cond returns the interval of κ = λ_max/λ_min. Its upper end is +Inf where λ_min may be 0
// or less, and its confidence that of Options where Both ends were asked for.
func (r *Result) Cond() estimate.Interval {
	e := estimate.Interval{Value: math.NaN(), Lo: 1, Hi: math.Inf(1), Confidence: r.confidence, Method: r.Min.Method,
		Seconds: r.Seconds}
	if r.Min.Hi > 0 {
		e.Lo = max(1, r.Max.Lo/r.Min.Hi)
	}
	if r.Min.Value > 0 {
		e.Value = max(1, r.Max.Value/r.Min.Value)
	}
	if r.Min.Lo > 0 {
		e.Hi = max(1, r.Max.Hi/r.Min.Lo)
	}
	return e
}

// Allowing returns the intervals of κ, λ_min and λ_max of M⁻¹A' for the positive definite A' that A
// stands for, with
//
//	(1−e)A' ≼ A ≼ (1+e)A',
//
// which K'+λI and K+λI satisfy for e = ‖K−K'‖₂/λ. As far as e is predicted, the confidence is not
// that of the prediction. If A is Indefinite no e < 1 is right, and nothing is known of A'. It
// panics if e < 0.
func (r *Result) Allowing(e float64) (kappa, least, most estimate.Interval) {
	if !(e >= 0) {
		panic(fmt.Sprintf("lanczos: an allowance of %v", e))
	}
	kappa, least, most = r.Cond(), r.Min, r.Max
	if r.Indefinite() {
		kappa.Value, least.Value, most.Value = math.NaN(), math.NaN(), math.NaN()
		e = math.Inf(1)
	}
	up, down := 1+e, max(0, 1-e)
	above := func(v float64) float64 {
		if down == 0 {
			return math.Inf(1)
		}
		return v / down
	}
	for _, i := range []*estimate.Interval{&least, &most} {
		i.Lo, i.Hi = max(0, i.Lo)/up, above(i.Hi)
		i.Value = max(i.Value, i.Lo) // NaN stays
	}
	kappa.Lo, kappa.Hi = max(1, kappa.Lo/up*down), above(kappa.Hi*up)
	return kappa, least, most
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
