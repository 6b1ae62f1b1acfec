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

// SketchSizeOptions are the options of SketchSize, but for Memory and Progress, which are the Lab's.
type SketchSizeOptions = adapt.Options

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
	o.Progress = l.watch(ctx, stage.SketchSize)
	if _, err := o.Settled(n, l.cfg.Lambda, lambdaP); err != nil { // before K is formed
		return nil, err
	}
	a, err := l.K(ctx)
	if err != nil {
		return nil, err
	}
	o.Memory = accel.MemoryAvailable()
	if left := l.cfg.Memory - a.Bytes() - l.vectors(); l.cfg.Memory > 0 && (o.Memory == 0 || left < o.Memory) {
		o.Memory = max(1, left)
	}
	if o.Memory, err = comm.Least(ctx, l.comm, o.Memory); err != nil {
		return nil, err
	}
	p := adapt.Problem{Comm: l.comm, K: a, X: l.train.X, Map: dist, Lambda: l.cfg.Lambda, LambdaP: lambdaP, RHS: t, Tol: l.cfg.Tol, Error: a.Choice().Error}
	res, err := adapt.Search(ctx, p, &o, rng.New(l.cfg.Seed))
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
