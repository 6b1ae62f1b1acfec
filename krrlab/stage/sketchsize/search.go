package sketchsize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
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

// Seconds are the wall-clock seconds of a rung; on ranks, those of the first.
type Seconds struct {
	Features float64 `json:"features"` // of Z, of this and the rungs before it
	Gram     float64 `json:"gram"`     // of ZᵀZ, likewise
	Factor   float64 `json:"factor"`   // of the Cholesky factor of ZᵀZ+λ_pI
	Test     float64 `json:"test"`     // of the measurements
	Rung     float64 `json:"rung"`     // all that this rung took
}

// Rung is one width s and what was found of its Z.
type Rung struct {
	S int `json:"s"`
	// Kappa is κ(M⁻¹A), and Min and Max the ends of the spectrum of M⁻¹A, of K itself.
	Kappa estimate.Interval `json:"kappa"`
	Min   estimate.Interval `json:"lambda_min"`
	Max   estimate.Interval `json:"lambda_max"`
	// Conditions of Theorem 7; nil where they were not measured.
	Conditions *Conditions `json:"conditions"`
	Verdict    Verdict     `json:"verdict"`
	Iterations int         `json:"iterations"` // ⌈(√κ/2)·ln(2/τ)⌉
	Iteration  float64     `json:"seconds_per_iteration"`
	Predicted  float64     `json:"predicted_seconds"` // of a solve with this s: features, ZᵀZ, factor, iterations
	Products   int         `json:"products"`          // with K, of the test
	Seconds    Seconds     `json:"seconds"`
}

// Status says how a search ended.
type Status string

const (
	Found       Status = "found"       // a rung was accepted
	None        Status = "none"        // none was, up to Max
	Interrupted Status = "interrupted" // the context ended first
)

type search struct {
	p     Problem
	o     Options
	n     int
	total int        // rungs at most
	ones  *mat.Dense // n×t
}

// Search doubles s from o.First until a test of Z accepts. The features are those of the
// stream g.Sub("features", 0) in widths feature.Doubling nests; those of Fourier maps are the
// very ones that any map of s features of that stream has. When ctx ends, it returns the
// rungs there are beside ctx's error.
func Search(ctx context.Context, p Problem, o *Options, g rng.Stream) (*Result, error) {
	s, res, err := settle(p, o)
	if err != nil {
		return nil, err
	}
	best := -1
	c := s.p.Comm
	l := &ladder{x: s.p.X.Slice(comm.Rows(s.n, precond.RankRows, c.Rank(), c.Size())), comm: s.p.Comm,
		dist: feature.Doubling{Dist: s.p.Map, First: s.o.First}, g: g.Sub("features", 0)}
	if d, ok := s.p.Map.(feature.Doubling); ok {
		l.dist.Dist = d.Dist
	}
	perK, err := pencil.Seconds(ctx, s.p.K.MulTo, s.ones)
	for width := s.o.First; err == nil && width <= res.Max; width *= 2 {
		s.progress(len(res.Rungs))
		var r *Rung
		if r, err = s.rung(ctx, l, width, perK, g.Sub("sketch size", uint64(width))); err != nil {
			break
		}
		res.Rungs = append(res.Rungs, *r)
		if r.Verdict == Accept {
			res.Status, res.S = Found, width
			s.progress(s.total)
			return res, nil
		}
	}
	res.Status = None
	for i, r := range res.Rungs {
		if best < 0 || r.Predicted < res.Rungs[best].Predicted {
			best, res.S = i, r.S
		}
	}
	switch {
	case err == nil:
		s.progress(s.total)
	case ctx.Err() != nil:
		res.Status = Interrupted
	default:
		return nil, err
	}
	return res, err
}

// progress reports the rungs done, each by its share of the work, about s².
func (s *search) progress(rungs int) {
	if s.o.progress != nil {
		work := func(rungs int) int { return (1<<(2*rungs) - 1) / 3 } // 1 + 4 + 16 + …
		s.o.progress(work(rungs), work(s.total))
	}
}

// settle fills in the defaults, checks, and finds the last rung.
func settle(p Problem, o *Options) (*search, *Result, error) {
	s := &search{p: p, n: p.K.Dim()}
	s.p.Comm = comm.OrAlone(p.Comm)
	s.p.LambdaP = cmp.Or(s.p.LambdaP, p.Lambda)
	s.p.RHS = cmp.Or(s.p.RHS, 1)
	s.p.Tol = cmp.Or(s.p.Tol, 1e-3)
	opt := *cmp.Or(o, &Options{})
	if err := opt.settle(s.n, s.p.Lambda, s.p.LambdaP); err != nil {
		return nil, nil, err
	}
	if opt.Test == Theorem7 {
		opt.Target = opt.Constants.Bound()
	}
	s.o, s.ones = opt, mat.NewDense(s.n, s.p.RHS, slices.Repeat([]float64{1}, s.n*s.p.RHS))
	res := &Result{Test: opt.Test, Target: opt.Target, Confidence: opt.Confidence, Max: opt.First, Limit: "asked"}
	if opt.Test == Theorem7 {
		res.Constants = opt.Constants
	}
	if opt.Max == s.n-1 {
		res.Limit = "n"
	}
	fits := func(width int) bool { return opt.memory == 0 || s.bytes(width) <= opt.memory }
	if !fits(opt.First) {
		return nil, nil, fmt.Errorf("sketchsize: s = %d features of n = %d points need %s, but only %s of the memory "+
			"limit is left", opt.First, s.n, accel.Bytes(s.bytes(opt.First)), accel.Bytes(opt.memory))
	}
	for s.total = 1; 2*res.Max <= opt.Max; s.total++ {
		if !fits(2 * res.Max) {
			res.Limit = "memory"
			break
		}
		res.Max *= 2
	}
	return s, res, nil
}

// bytes returns the memory of a rung: Z and the one before, ZᵀZ, the one before, and a
// factor; for the eigenvectors, which LAPACK finds with 16s² bytes of workspace, as many again.
func (s *search) bytes(width int) int64 {
	n, w := int64(s.n), int64(width)
	b := 6*n*w + 18*w*w
	if s.o.Test == Theorem7 {
		b += 16 * w * w
	}
	return b
}

// rung climbs to s and tests.
func (s *search) rung(ctx context.Context, l *ladder, width int, perK float64, g rng.Stream) (*Rung, error) {
	began := time.Now()
	if err := l.climb(ctx, width); err != nil {
		return nil, err
	}
	clock := time.Now()
	m, err := l.metric(ctx, s.p.LambdaP)
	if err != nil {
		return nil, err
	}
	l.sec.Factor = stage.Lap(&clock)
	out := &Rung{S: width}
	delta := (1 - s.o.Confidence) / float64(s.total)
	if err := s.kappa(ctx, out, m, delta, g); err != nil {
		return nil, err
	}
	if s.o.Test == Theorem7 {
		if err := s.theorem7(ctx, out, l, delta, g); err != nil {
			return nil, err
		}
	}
	perM, err := pencil.Seconds(ctx, m.SolveTo, s.ones)
	if err != nil {
		return nil, err
	}
	out.Seconds = l.sec
	out.Seconds.Test = stage.Lap(&clock)
	out.Seconds.Rung = time.Since(began).Seconds()
	out.Iteration = perK + perM
	if err := s.share(ctx, out); err != nil {
		return nil, err
	}
	out.Iterations = pcg.IterationBound(out.Kappa.Value, s.p.Tol)
	out.Predicted = out.Seconds.Features + out.Seconds.Gram + out.Seconds.Factor + float64(out.Iterations)*out.Iteration
	return out, nil
}

// share sets the seconds of all ranks to the first one's, so that all choose the same rung by them.
func (s *search) share(ctx context.Context, r *Rung) error {
	t := &r.Seconds
	x := []float64{t.Features, t.Gram, t.Factor, t.Test, t.Rung, r.Iteration}
	err := comm.ShareNumbers(ctx, s.p.Comm, x, 0)
	t.Features, t.Gram, t.Factor, t.Test, t.Rung, r.Iteration = x[0], x[1], x[2], x[3], x[4], x[5]
	return err
}

// kappa measures κ, and for the test of it decides.
func (s *search) kappa(ctx context.Context, out *Rung, m *metric, delta float64, g rng.Stream) error {
	e := s.p.Error / s.p.Lambda
	judge := func(r *lanczos.Result) judgement { return ofKappa(r, e, s.o.Target) }
	r, err := lanczos.RunPencil(ctx, s.p.K, m, s.options(1-delta, g.Sub("kappa"), judge))
	if err != nil {
		return err
	}
	out.Kappa, out.Min, out.Max = r.Allowing(e)
	out.Products = r.MulTo.Calls
	if !(out.Kappa.Value >= 1) {
		return fmt.Errorf("sketchsize: the spectrum of M⁻¹A at s = %d reaches down to %.3g: K as stored has "+
			"an error above λ, take float64 storage or a larger λ", out.S, r.Min.Value)
	}
	out.Verdict = atMost(out.Kappa, s.o.Target)
	return nil
}

// theorem7 decides by the conditions. A spectrum of M⁻¹A that reaches for certain out of what
// they imply refutes them without measuring them.
func (s *search) theorem7(ctx context.Context, out *Rung, l *ladder, delta float64, g rng.Stream) error {
	c := s.o.Constants
	up, _ := c.Upper()
	low, _ := c.Lower()
	refuted := out.Max.Lo > up || out.Min.Hi < low
	if refuted && out.S > s.o.Eigen {
		out.Verdict = Reject
		return nil
	}
	var products int
	var err error
	if out.Conditions, products, err = s.conditions(ctx, l, c, delta, g); err != nil {
		return err
	}
	out.Products += products
	out.Verdict = both(out.Conditions.First, out.Conditions.Second)
	return nil
}

// judgement is what is known of a test's quantity in the course of the Lanczos process: the
// verdict, the relative width of the interval, and the value of its inner end.
type judgement struct {
	verdict      Verdict
	width, inner float64
}

// ofKappa judges κ, allowing for e, against a limit.
func ofKappa(r *lanczos.Result, e, limit float64) judgement {
	stored := r.Cond()
	k, _, _ := r.Allowing(e)
	return judgement{atMost(k, limit), (stored.Hi - stored.Lo) / stored.Lo, stored.Lo}
}

// ofNorm judges the largest eigenvalue, widened by e, against a limit.
func ofNorm(r *lanczos.Result, e, limit float64) judgement {
	width := (r.Max.Hi - r.Max.Lo) / max(r.Max.Value, limit/10)
	return judgement{atMost(r.Max.Widened(e), limit), width, r.Max.Lo}
}

// ofRatios judges both ends of the spectrum, widened by e, against 1±γ.
func ofRatios(r *lanczos.Result, e, gamma float64) judgement {
	v := within(r.Min.Widened(e), r.Max.Widened(e), gamma)
	return judgement{v, max(r.Min.Width(), r.Max.Width()), r.Max.Lo / max(r.Min.Hi, 0x1p-50)}
}

// options of the Lanczos process, which ends when the interval is narrow; when the verdict is
// clear and the interval fit to be drawn; or when it is a rejection and the inner end, from
// which times are predicted, has come to rest.
func (s *search) options(confidence float64, g rng.Stream, judge func(*lanczos.Result) judgement) *lanczos.Options {
	const drawn, narrow, window, rest = 0.1, 1e-3, 16, 1.02
	var inner []float64
	return &lanczos.Options{
		Steps: s.o.Steps, Tol: -1, Confidence: confidence, Start: g,
		Monitor: func(r *lanczos.Result) error {
			j := judge(r)
			inner = append(inner, j.inner)
			still := len(inner) > window && j.inner <= rest*inner[len(inner)-1-window]
			if j.width <= narrow || j.verdict != Open && j.width <= drawn || j.verdict == Reject && still {
				return lanczos.ErrStop
			}
			return nil
		},
	}
}
