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

// Seconds are the wall-clock seconds of a rung, one number of features s that the search tries. With several ranks they
// are those of rank 0.
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
	Iterations       int               `json:"iterations"`            // bound ⌈(√κ/2)·ln(2/τ)⌉ of those of PCG
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
	Interrupted Status = "interrupted" // the context ended before the search
)

// search is the state of a search.
type search struct {
	problem  Problem
	options  Options
	n        int        // number of points
	maxRungs int        // largest possible number of rungs
	ones     *mat.Dense // n×t ones, the right-hand sides with which operations are timed
}

// Search doubles s from o.First until a test of Z accepts. The features are those of the stream g.Sub("features", 0),
// in the nested widths of feature.Doubling. For Fourier maps they are the same as those of any map of s features of
// that stream. If ctx ends, Search returns the rungs so far together with ctx's error.
func Search(ctx context.Context, p Problem, o *Options, g rng.Stream) (*Result, error) {
	s, res, err := newSearch(p, o)
	if err != nil {
		return nil, err
	}
	c := s.problem.Comm
	l := &ladder{x: s.problem.X.Slice(comm.RowRange(s.n, precond.RankRows, c.Rank(), c.Size())), comm: s.problem.Comm,
		features: feature.Doubling{Dist: s.problem.Map, First: s.options.First}, g: g.Sub("features", 0)}
	if d, ok := s.problem.Map.(feature.Doubling); ok {
		l.features.Dist = d.Dist
	}
	productSeconds, err := pencil.ApplySeconds(ctx, s.problem.K.MulTo, s.ones)
	for width := s.options.First; err == nil && width <= res.Max; width *= 2 {
		s.progress(len(res.Rungs))
		var r *Rung
		if r, err = s.measureRung(ctx, l, width, productSeconds, g.Sub("sketch size", uint64(width))); err != nil {
			break
		}
		res.Rungs = append(res.Rungs, *r)
		if r.Verdict == Accept {
			res.Status, res.S = Found, width
			s.progress(s.maxRungs)
			return res, nil
		}
	}
	res.Status = None
	if len(res.Rungs) > 0 {
		res.S = slices.MinFunc(res.Rungs, func(a, b Rung) int { return cmp.Compare(a.PredictedSeconds, b.PredictedSeconds) }).S
	}
	switch {
	case err == nil:
		s.progress(s.maxRungs)
	case ctx.Err() != nil:
		res.Status = Interrupted
	default:
		return nil, err
	}
	return res, err
}

// progress reports the completed work. The work of a rung is about s².
func (s *search) progress(rungs int) {
	if s.options.progress != nil {
		work := func(rungs int) int { return (1<<(2*rungs) - 1) / 3 } // 1 + 4 + 16 + …
		s.options.progress(work(rungs), work(s.maxRungs))
	}
}

// newSearch sets the defaults, checks the options, and determines the last possible rung.
func newSearch(p Problem, o *Options) (*search, *Result, error) {
	s := &search{problem: p, n: p.K.Dim()}
	s.problem.Comm = comm.OrAlone(p.Comm)
	s.problem.LambdaP = cmp.Or(s.problem.LambdaP, p.Lambda)
	s.problem.RHS = cmp.Or(s.problem.RHS, 1)
	s.problem.Tol = cmp.Or(s.problem.Tol, 1e-3)
	opt := *cmp.Or(o, &Options{})
	if err := opt.setDefaults(s.n, s.problem.Lambda, s.problem.LambdaP); err != nil {
		return nil, nil, err
	}
	if opt.Test == Theorem7 {
		opt.Target = opt.Constants.Bound()
	}
	s.options, s.ones = opt, mat.NewDense(s.n, s.problem.RHS, slices.Repeat([]float64{1}, s.n*s.problem.RHS))
	res := &Result{Test: opt.Test, Target: opt.Target, Confidence: opt.Confidence, Max: opt.First, Limit: "asked"}
	if opt.Test == Theorem7 {
		res.Constants = opt.Constants
	}
	if opt.Max == s.n-1 {
		res.Limit = "n"
	}
	if err := opt.memory.Check(s.bytes(opt.First), fmt.Sprintf("sketchsize: s = %d features of n = %d points",
		opt.First, s.n), ""); err != nil {
		return nil, nil, err
	}
	for s.maxRungs = 1; 2*res.Max <= opt.Max; s.maxRungs++ {
		if !opt.memory.Fits(s.bytes(2 * res.Max)) {
			res.Limit = "memory"
			break
		}
		res.Max *= 2
	}
	return s, res, nil
}

// bytes returns the memory of a rung: Z and the previous Z, ZᵀZ and the previous ZᵀZ, a factor, and the map of all
// features with a copy of the half that is added. Theorem7 also needs the eigenvectors, for which LAPACK takes a
// workspace of 16s² bytes.
func (s *search) bytes(width int) int64 {
	n, w := int64(s.n), int64(width)
	_, d := s.problem.X.Dims()
	b := 6*n*w + 18*w*w + feature.MapBytes(s.problem.Map, d, width) + feature.MapBytes(s.problem.Map, d, (width+1)/2)
	if s.options.Test == Theorem7 {
		b += 16 * w * w
	}
	return b
}

// measureRung extends the features to the given width and tests them.
func (s *search) measureRung(ctx context.Context, ladder *ladder, width int, productSeconds float64,
	g rng.Stream) (*Rung, error) {
	start := time.Now()
	if err := ladder.growTo(ctx, width); err != nil {
		return nil, err
	}
	clock := time.Now()
	metric, err := ladder.newMetric(ctx, s.problem.LambdaP)
	if err != nil {
		return nil, err
	}
	ladder.seconds.Factor = stage.Lap(&clock)

	rung := &Rung{S: width}
	delta := (1 - s.options.Confidence) / float64(s.maxRungs) // allowed probability that this rung is accepted wrongly
	if err := s.measureKappa(ctx, rung, metric, delta, g); err != nil {
		return nil, err
	}
	if s.options.Test == Theorem7 {
		if err := s.testTheorem7(ctx, rung, ladder, delta, g); err != nil {
			return nil, err
		}
	}

	solveSeconds, err := pencil.ApplySeconds(ctx, metric.SolveTo, s.ones)
	if err != nil {
		return nil, err
	}
	rung.Seconds = ladder.seconds
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

// shareSeconds replaces the seconds by those of rank 0 on all ranks, so that all choose the same rung.
func (s *search) shareSeconds(ctx context.Context, r *Rung) error {
	t := &r.Seconds
	x := []float64{t.Features, t.Gram, t.Factor, t.Test, t.Rung, r.IterationSeconds}
	err := comm.BroadcastFloats(ctx, s.problem.Comm, x, 0)
	t.Features, t.Gram, t.Factor, t.Test, t.Rung, r.IterationSeconds = x[0], x[1], x[2], x[3], x[4], x[5]
	return err
}

// measureKappa measures κ(M⁻¹A) with the confidence 1−delta, and sets the verdict of the test Kappa. It returns an
// error if the interval has no finite κ ≥ 1, because A is not positive definite up to rounding and storage errors.
func (s *search) measureKappa(ctx context.Context, rung *Rung, metric *metric, delta float64, g rng.Stream) error {
	e := s.problem.Error / s.problem.Lambda
	judge := func(r *lanczos.Result) lanczosState { return judgeKappa(r, e, s.options.Target) }
	r, err := lanczos.RunPencil(ctx, s.problem.K, metric, s.lanczosOptions(1-delta, g.Sub("kappa"), judge))
	if err != nil {
		return err
	}
	rung.Kappa, rung.Min, rung.Max = r.PerturbedIntervals(e)
	rung.Products = r.Steps
	if !(rung.Kappa.Value >= 1) {
		reason := "rounding in float64 hides its lower end, take a larger λ"
		if r.Indefinite() {
			reason = "K as stored has an error above λ, take float64 storage or a larger λ"
		}
		return fmt.Errorf("sketchsize: the spectrum of M⁻¹A at s = %d reaches down to %.3g: %s", rung.S, r.Min.Value,
			reason)
	}
	rung.Verdict = atMost(rung.Kappa, s.options.Target)
	return nil
}

// testTheorem7 sets the verdict by the conditions. If the spectrum of M⁻¹A certainly leaves the range that the
// conditions imply, they are refuted, and above Options.Eigen they are then not measured.
func (s *search) testTheorem7(ctx context.Context, rung *Rung, ladder *ladder, delta float64, g rng.Stream) error {
	test := s.options.Constants
	refuted := rung.Max.Lo > test.Upper() || rung.Min.Hi < test.Lower()
	if refuted && rung.S > s.options.Eigen {
		rung.Verdict = Reject
		return nil
	}
	var products int
	var err error
	if rung.Conditions, products, err = s.conditions(ctx, ladder, test, delta, g); err != nil {
		return err
	}
	rung.Products += products
	rung.Verdict = conjunction(rung.Conditions.First, rung.Conditions.Second)
	return nil
}

// lanczosState is the state of a test during a Lanczos process.
type lanczosState struct {
	verdict  Verdict
	width    float64 // relative width of the interval
	innerEnd float64 // end of the interval that is a Ritz value
}

// judgeKappa compares κ with a limit, allowing for the relative storage error e = ‖K_stored−K‖₂/λ.
func judgeKappa(r *lanczos.Result, e, limit float64) lanczosState {
	storedKappa := r.Cond()
	k, _, _ := r.PerturbedIntervals(e)
	return lanczosState{atMost(k, limit), (storedKappa.Hi - storedKappa.Lo) / storedKappa.Lo, storedKappa.Lo}
}

// judgeNorm compares the largest eigenvalue, widened by e, with a limit.
func judgeNorm(r *lanczos.Result, e, limit float64) lanczosState {
	width := (r.Max.Hi - r.Max.Lo) / max(r.Max.Value, limit/10)
	return lanczosState{atMost(r.Max.Widened(e), limit), width, r.Max.Lo}
}

// judgeRatios compares both ends of the spectrum, widened by e, with 1±γ.
func judgeRatios(r *lanczos.Result, e, gamma float64) lanczosState {
	v := ratiosWithin(r.Min.Widened(e), r.Max.Widened(e), gamma)
	width := max(r.Min.RelativeWidth(), r.Max.RelativeWidth())
	return lanczosState{v, width, r.Max.Lo / max(r.Min.Hi, 0x1p-50)} // the minimum avoids ∞
}

// lanczosOptions returns the options of a Lanczos process. It ends if the interval is narrower than narrowWidth; if the
// verdict is clear and the interval is narrower than plotWidth, which is enough for a figure; or if the verdict is a
// rejection and the inner end, from which times are predicted, grew by at most the factor maxGrowth over the last
// window of steps. These numbers are judgments: smaller widths and a smaller growth take more steps.
func (s *search) lanczosOptions(confidence float64, g rng.Stream,
	judge func(*lanczos.Result) lanczosState) *lanczos.Options {
	const plotWidth, narrowWidth, window, maxGrowth = 0.1, 1e-3, 16, 1.02
	var innerEnds []float64
	return &lanczos.Options{
		Steps: s.options.Steps, Tol: -1, Confidence: confidence, Start: g,
		Monitor: func(r *lanczos.Result) error {
			judgement := judge(r)
			innerEnds = append(innerEnds, judgement.innerEnd)
			innerSettled := len(innerEnds) > window &&
				judgement.innerEnd <= maxGrowth*innerEnds[len(innerEnds)-1-window]
			if judgement.width <= narrowWidth || judgement.verdict != Open && judgement.width <= plotWidth ||
				judgement.verdict == Reject && innerSettled {
				return lanczos.ErrStop
			}
			return nil
		},
	}
}
