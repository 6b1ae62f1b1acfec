package krrlab

import (
	"context"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// SketchSizeOptions of SketchSize. The zero value of every field means its default.
type SketchSizeOptions struct {
	Test      adapt.Kind // adapt.Kappa or adapt.Theorem7; default: Kappa
	Target    float64    // of Kappa: the largest κ(M⁻¹A) accepted, above 1; default: 30
	Constants adapt.Test // (θ, α, γ) of Theorem7; default: adapt.Kappa5
	First     int        // first s of the ladder s, 2s, 4s, …; default: 128, or n/8 where that is less
	Max       int        // largest s, below n; default: n−1
	// Confidence is the probability that no rung is accepted that should not be. Default: 0.95.
	Confidence float64
	// Sketched looks at condition 2 with independent features Z' of Check·s columns in place of K, and
	// with K only where they pass it; Check: default 4.
	Sketched bool
	Check    int
	// Eigen is the largest s at which the conditions are measured (9s³ flops) though κ already
	// refutes them. Default: 2048; -1 means never.
	Eigen int
}

// SketchSize doubles s until a test of the features accepts. With Fourier features, a Lab of
// the same seed with Features: s.S has the very Z that was tested; with others one whose
// Map is feature.Doubling{Dist, First}. Theorem7 is about λ_p = λ, and other values are an
// error. When ctx ends, it returns the rungs there are beside ctx's error.
func (l *Lab) SketchSize(ctx context.Context, o SketchSizeOptions) (*SketchSize, error) {
	return run(ctx, l, stage.SketchSize, o, func(ctx context.Context) (*SketchSize, error) { return l.sketchSize(ctx, o) })
}

func (l *Lab) sketchSize(ctx context.Context, o SketchSizeOptions) (*SketchSize, error) {
	began := time.Now()
	n, _, t := l.Dims()
	f, ok := l.cfg.Precond.(Features)
	if !ok {
		r, err := Features{}.settled(l.cfg.Kernel, n, l.cfg.Lambda)
		if err != nil {
			return nil, err
		}
		f = r.(Features)
	}
	dist, lambdaP := f.Map, f.LambdaP
	opt := &adapt.Options{
		Test: o.Test, Target: o.Target, Constants: o.Constants, First: o.First, Max: o.Max,
		Confidence: o.Confidence, Sketched: o.Sketched, Check: o.Check, Eigen: o.Eigen,
		Progress: l.watch(ctx, stage.SketchSize),
	}
	if _, err := opt.Settled(n, l.cfg.Lambda, lambdaP); err != nil { // before K is formed
		return nil, err
	}
	a, err := l.K(ctx)
	if err != nil {
		return nil, err
	}
	opt.Memory = accel.MemoryAvailable()
	if left := l.cfg.Memory - a.Bytes() - l.vectors(); l.cfg.Memory > 0 && (opt.Memory == 0 || left < opt.Memory) {
		opt.Memory = max(1, left)
	}
	if opt.Memory, err = comm.Least(ctx, l.comm, opt.Memory); err != nil {
		return nil, err
	}
	p := adapt.Problem{Comm: l.comm, K: a, X: l.train.X, Map: dist, Lambda: l.cfg.Lambda, LambdaP: lambdaP, RHS: t, Tol: l.cfg.Tol, Error: a.Choice().Error}
	res, err := adapt.Search(ctx, p, opt, rng.New(l.cfg.Seed))
	if res == nil {
		return nil, err
	}
	s := &SketchSize{
		Header: l.header(), LambdaP: lambdaP, Features: dist.String(), Storage: a.Storage().String(), KBound: Number(a.Choice().Error),
	}
	s.TakeOn(res)
	if s.Test == adapt.Theorem7 {
		s.Note = adapt.Coverage(l.cfg.Kernel, dist, s.Target)
	}
	s.Seconds = time.Since(began).Seconds()
	return s, err
}
