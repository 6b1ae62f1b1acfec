package sketchsize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Seconds are the wall-clock seconds of a rung, one number of features s that the search tries. With several ranks all
// have the seconds of rank 0.
type Seconds struct {
	Features float64 `json:"features"` // time to form Z, of this and all previous rungs
	Gram     float64 `json:"gram"`     // time to form ZᵀZ, of this and all previous rungs
	Factor   float64 `json:"factor"`   // time of the Cholesky factorization of ZᵀZ+λ_pI
	Test     float64 `json:"test"`     // time of the measurements
	Rung     float64 `json:"rung"`     // total time of this rung
}

// Rung is the result for one number of features s.
type Rung struct {
	S                int               `json:"s"`
	Kappa            estimate.Interval `json:"kappa"`      // κ(M⁻¹A), for K itself
	Min              estimate.Interval `json:"lambda_min"` // λ_min(M⁻¹A), for K itself
	Max              estimate.Interval `json:"lambda_max"` // λ_max(M⁻¹A), for K itself
	Conditions       *Conditions       `json:"conditions"` // conditions of Theorem 7; nil if they were not measured
	Verdict          Verdict           `json:"verdict"`
	Iterations       int               `json:"iterations"`            // upper bound ⌈(√κ/2)·ln(2/τ)⌉ of the PCG iterations
	IterationSeconds float64           `json:"seconds_per_iteration"` // time of one iteration of a solve
	PredictedSeconds float64           `json:"predicted_seconds"`     // time of a solve: features, ZᵀZ, factor and iterations
	Products         int               `json:"products"`              // number of products with K in the test
	Seconds          Seconds           `json:"seconds"`
}

// Status is how a search ended.
type Status string

const (
	Found       Status = "found"       // a rung was accepted
	None        Status = "none"        // no rung up to Max was accepted
	Interrupted Status = "interrupted" // the context ended before the search did
)

// search is the state of a search.
type search struct {
	problem  Problem
	options  Options
	n        int        // number of points
	maxRungs int        // largest possible number of rungs
	ones     *mat.Dense // n×t ones, the right-hand sides with which operations are timed
}

// Search doubles s from options.First until a test of Z accepts. The features come from stream.Sub("features", 0),
// in the nested widths of feature.Doubling. Fourier features are the same as those of any map of s features from
// this stream. If ctx ends, Search returns the rungs so far together with ctx's error.
func Search(ctx context.Context, problem Problem, options *Options, stream rng.Stream) (*Result, error) {
	s, result, err := newSearch(problem, options)
	if err != nil {
		return nil, err
	}
	communicator := s.problem.Comm
	l := &ladder{comm: communicator, stream: stream.Sub("features", 0),
		x:        s.problem.X.Slice(comm.RowRange(s.n, precond.RankRows, communicator.Rank(), communicator.Size())),
		features: feature.Doubling{Dist: s.problem.Map, First: s.options.First}}
	if nested, ok := s.problem.Map.(feature.Doubling); ok {
		l.features.Dist = nested.Dist
	}
	productSeconds, err := pencil.ApplySeconds(ctx, s.problem.K.MulTo, s.ones)
	for width := s.options.First; err == nil && width <= result.Max; width *= 2 {
		s.progress(len(result.Rungs))
		var rung *Rung
		if rung, err = s.measureRung(ctx, l, width, productSeconds,
			stream.Sub("sketch size", uint64(width))); err != nil {
			break
		}
		result.Rungs = append(result.Rungs, *rung)
		if rung.Verdict == Accept {
			result.Status, result.S = Found, width
			s.progress(s.maxRungs)
			return result, nil
		}
	}
	result.Status = None
	if len(result.Rungs) > 0 {
		result.S = slices.MinFunc(result.Rungs, func(a, b Rung) int {
			return cmp.Compare(a.PredictedSeconds, b.PredictedSeconds)
		}).S
	}
	switch {
	case err == nil:
		s.progress(s.maxRungs)
	case ctx.Err() != nil:
		result.Status = Interrupted
	default:
		return nil, err
	}
	return result, err
}

// progress reports the completed work. The work of a rung is about s².
func (s *search) progress(rungs int) {
	if s.options.progress != nil {
		work := func(rungs int) int { return (1<<(2*rungs) - 1) / 3 } // 1 + 4 + 16 + … for this number of rungs
		s.options.progress(work(rungs), work(s.maxRungs))
	}
}

// newSearch sets the defaults, checks the options, and determines the last possible rung.
func newSearch(problem Problem, o *Options) (*search, *Result, error) {
	s := &search{problem: problem, n: problem.K.Dim()}
	s.problem.Comm = comm.OrAlone(problem.Comm)
	s.problem.LambdaP = cmp.Or(s.problem.LambdaP, problem.Lambda)
	s.problem.RHS = cmp.Or(s.problem.RHS, 1)
	s.problem.Tol = cmp.Or(s.problem.Tol, 1e-3)
	options := *cmp.Or(o, &Options{})
	if err := options.setDefaults(s.n, s.problem.Lambda, s.problem.LambdaP); err != nil {
		return nil, nil, err
	}
	if options.Test == Theorem7 {
		options.Target = options.Constants.Bound()
	}
	s.options, s.ones = options, mat.NewDense(s.n, s.problem.RHS, slices.Repeat([]float64{1}, s.n*s.problem.RHS))
	result := &Result{Test: options.Test, Target: options.Target, Confidence: options.Confidence, Max: options.First,
		Limit: "asked"}
	if options.Test == Theorem7 {
		result.Constants = options.Constants
	}
	if options.Max == s.n-1 {
		result.Limit = "n"
	}
	if err := options.memory.Check(s.bytes(options.First), fmt.Sprintf("sketchsize: s = %d features of n = %d points",
		options.First, s.n), ""); err != nil {
		return nil, nil, err
	}
	for s.maxRungs = 1; 2*result.Max <= options.Max; s.maxRungs++ {
		if !options.memory.Fits(s.bytes(2 * result.Max)) {
			result.Limit = "memory"
			break
		}
		result.Max *= 2
	}
	return s, result, nil
}

// bytes returns the memory of a rung of the given width: Z and the previous Z, ZᵀZ and the previous ZᵀZ, a factor, and
// the map of all features with a copy of the half that is added. Theorem7 also needs the eigenvectors, for which LAPACK
// takes a workspace of 16s² bytes.
func (s *search) bytes(width int) int64 {
	n, width64 := int64(s.n), int64(width)
	_, d := s.problem.X.Dims()
	total := 6*n*width64 + 18*width64*width64 + feature.MapBytes(s.problem.Map, d, width) +
		feature.MapBytes(s.problem.Map, d, (width+1)/2)
	if s.options.Test == Theorem7 {
		total += 16 * width64 * width64
	}
	return total
}

// measureRung extends the features to the given width and tests them.
func (s *search) measureRung(ctx context.Context, l *ladder, width int, productSeconds float64,
	stream rng.Stream) (*Rung, error) {
	start := time.Now()
	if err := l.growTo(ctx, width); err != nil {
		return nil, err
	}
	clock := time.Now()
	m, err := l.newMetric(ctx, s.problem.LambdaP)
	if err != nil {
		return nil, err
	}
	l.seconds.Factor = stage.Lap(&clock)

	rung := &Rung{S: width}
	delta := (1 - s.options.Confidence) / float64(s.maxRungs) // allowed probability that this rung is accepted wrongly
	if err := s.measureKappa(ctx, rung, m, delta, stream); err != nil {
		return nil, err
	}
	if s.options.Test == Theorem7 {
		if err := s.testTheorem7(ctx, rung, l, delta, stream); err != nil {
			return nil, err
		}
	}

	solveSeconds, err := pencil.ApplySeconds(ctx, m.SolveTo, s.ones)
	if err != nil {
		return nil, err
	}
	rung.Seconds = l.seconds
	rung.Seconds.Test = stage.Lap(&clock)
	rung.Seconds.Rung = time.Since(start).Seconds()
	rung.IterationSeconds = productSeconds + solveSeconds
	if err := s.shareSeconds(ctx, rung); err != nil {
		return nil, err
	}
	rung.Iterations = pcg.IterationBound(rung.Kappa.Value, s.problem.Tol)
	rung.PredictedSeconds = rung.Seconds.Features + rung.Seconds.Gram + rung.Seconds.Factor +
		float64(rung.Iterations)*rung.IterationSeconds
	return rung, nil
}

// shareSeconds replaces the seconds by those of rank 0 on all ranks, so that all ranks choose the same rung.
func (s *search) shareSeconds(ctx context.Context, rung *Rung) error {
	seconds := &rung.Seconds
	shared := []float64{seconds.Features, seconds.Gram, seconds.Factor, seconds.Test, seconds.Rung,
		rung.IterationSeconds}
	err := comm.BroadcastFloats(ctx, s.problem.Comm, shared, 0)
	seconds.Features, seconds.Gram, seconds.Factor, seconds.Test = shared[0], shared[1], shared[2], shared[3]
	seconds.Rung, rung.IterationSeconds = shared[4], shared[5]
	return err
}

// measureKappa measures κ(M⁻¹A) with the confidence 1−delta, and sets the verdict of the test Kappa. It returns an
// error if the interval has no finite value κ ≥ 1, which happens if A is not positive definite up to rounding and
// storage errors.
func (s *search) measureKappa(ctx context.Context, rung *Rung, m *metric, delta float64, stream rng.Stream) error {
	relativeError := s.problem.Error / s.problem.Lambda
	judge := func(r *lanczos.Result) lanczosState { return judgeKappa(r, relativeError, s.options.Target) }
	r, err := lanczos.RunPencil(ctx, s.problem.K, m, s.lanczosOptions(1-delta, stream.Sub("kappa"), judge))
	if err != nil {
		return err
	}
	rung.Kappa, rung.Min, rung.Max = r.PerturbedIntervals(relativeError)
	rung.Products = r.Steps
	if !(rung.Kappa.Value >= 1) {
		reason := "rounding in float64 hides its lower end, take a larger λ"
		if r.Indefinite() {
			reason = "K as stored has an error above λ, take float64 storage or a larger λ"
		}
		return fmt.Errorf("sketchsize: the spectrum of M⁻¹A at s = %d reaches down to %.3g: %s", rung.S, r.Min.Value,
			reason)
	}
	rung.Verdict = verdictAtMost(rung.Kappa, s.options.Target)
	return nil
}

// testTheorem7 sets the verdict by the conditions. If the spectrum of M⁻¹A certainly leaves the range that the
// conditions imply, the conditions are refuted, and for s above Options.Eigen they are not measured.
func (s *search) testTheorem7(ctx context.Context, rung *Rung, l *ladder, delta float64, stream rng.Stream) error {
	constants := s.options.Constants
	refuted := rung.Max.Lo > constants.Upper() || rung.Min.Hi < constants.Lower()
	if refuted && rung.S > s.options.Eigen {
		rung.Verdict = Reject
		return nil
	}
	var products int
	var err error
	if rung.Conditions, products, err = s.measureConditions(ctx, l, constants, delta, stream); err != nil {
		return err
	}
	rung.Products += products
	rung.Verdict = conjunction(rung.Conditions.Verdict1, rung.Conditions.Verdict2)
	return nil
}

// lanczosState is the state of a test during a Lanczos process.
type lanczosState struct {
	verdict  Verdict
	width    float64 // relative width of the interval
	innerEnd float64 // end of the interval that is a Ritz value
}

// judgeKappa compares κ with the target, allowing for the relative storage error ‖K_stored−K‖₂/λ.
func judgeKappa(r *lanczos.Result, relativeError, target float64) lanczosState {
	storedKappa := r.Cond()
	kappa, _, _ := r.PerturbedIntervals(relativeError)
	return lanczosState{verdictAtMost(kappa, target), (storedKappa.Hi - storedKappa.Lo) / storedKappa.Lo,
		storedKappa.Lo}
}

// judgeNorm compares the largest eigenvalue, with the interval widened by storageError, with a limit.
func judgeNorm(r *lanczos.Result, storageError, limit float64) lanczosState {
	width := (r.Max.Hi - r.Max.Lo) / max(r.Max.Value, limit/10)
	return lanczosState{verdictAtMost(r.Max.Widened(storageError), limit), width, r.Max.Lo}
}

// judgeRatios compares both extreme eigenvalues, with intervals widened by storageError, with 1±γ.
func judgeRatios(r *lanczos.Result, storageError, gamma float64) lanczosState {
	verdict := ratiosWithin(r.Min.Widened(storageError), r.Max.Widened(storageError), gamma)
	width := max(r.Min.RelativeWidth(), r.Max.RelativeWidth())
	return lanczosState{verdict, width, r.Max.Lo / max(r.Min.Hi, 0x1p-50)} // 2⁻⁵⁰ avoids a division by 0
}

// lanczosOptions returns the options of a Lanczos process. The process ends if the interval is narrower than
// narrowWidth; if the verdict is clear and the interval is narrower than plotWidth, which is enough for a figure; or if
// the verdict is a rejection and the inner end, from which times are predicted, grew by at most the factor maxGrowth
// over the last window of steps. The constants were chosen by judgment: smaller widths and a smaller growth take more
// steps.
func (s *search) lanczosOptions(confidence float64, stream rng.Stream,
	judge func(*lanczos.Result) lanczosState) *lanczos.Options {
	const plotWidth, narrowWidth, window, maxGrowth = 0.1, 1e-3, 16, 1.02
	var innerEnds []float64
	return &lanczos.Options{
		Steps: s.options.Steps, Tol: -1, Confidence: confidence, Start: stream,
		Monitor: func(r *lanczos.Result) error {
			state := judge(r)
			innerEnds = append(innerEnds, state.innerEnd)
			innerSettled := len(innerEnds) > window &&
				state.innerEnd <= maxGrowth*innerEnds[len(innerEnds)-1-window]
			if state.width <= narrowWidth || state.verdict != Open && state.width <= plotWidth ||
				state.verdict == Reject && innerSettled {
				return lanczos.ErrStop
			}
			return nil
		},
	}
}
