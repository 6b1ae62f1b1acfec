package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/multilevel"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// MultiLevelOptions of MultiLevel. Zero values, and a nil *MultiLevelOptions, mean the defaults.
type MultiLevelOptions struct {
	// Levels of the chain. Default: features of width 8s, an SRHT to 2s, a Gaussian to s, with s
	// the Features of the Config.
	Levels feature.Levels
	// Confidence that the two intervals of a level hold, in (0, 1). Default 0.95.
	Confidence float64
	// Work is how many flops the set-up of one preconditioner may take; a level that needs
	// more is measured for ‖Z_kZ_kᵀ−K‖₂ alone. Default 5e12.
	Work float64
}

// MultiLevel measures each level of a chain, and features alone of each width after the
// first, the narrowest first. The chain is the one that Solve takes with Map from ChainFor;
// the features alone are those it takes without. If ctx ends, what was finished is returned
// beside its error.
func (l *Lab) MultiLevel(ctx context.Context, o *MultiLevelOptions) (*MultiLevel, error) {
	return run(ctx, l, stage.MultiLevel, o, func(ctx context.Context) (*MultiLevel, error) { return l.multiLevel(ctx, o) })
}

func (l *Lab) multiLevel(ctx context.Context, o *MultiLevelOptions) (*MultiLevel, error) {
	opt := *cmp.Or(o, &MultiLevelOptions{})
	m, chain, err := l.newMultiLevel(&opt)
	if err != nil {
		return nil, err
	}
	a, err := l.K(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	p := &multilevel.Problem{Comm: l.comm, A: a, X: l.train.X, Y: l.y, LambdaP: m.LambdaP, Error: a.Choice().Error}
	m.KError = Number(p.Error)
	mo := &multilevel.Options{
		Confidence: m.Confidence, Work: opt.Work, Tol: l.cfg.Tol, Aim: l.policy.Aim, MaxIter: l.cfg.MaxIter,
		Progress: func(level, part string, done, total int) {
			e := Event{Stage: stage.Name(part), Detail: level, Done: done, Total: total, Remaining: -1}
			if total == 0 && done > 0 {
				e.Detail += fmt.Sprintf(", step %d", done)
			}
			l.Tell(ctx, e)
		},
	}
	if l.cfg.Memory > 0 {
		mo.Memory = max(8*int64(m.N), l.cfg.Memory-a.Bytes()-l.vectors())
	}
	if mo.Memory, err = comm.Least(ctx, l.comm, mo.Memory); err != nil { // one memory decides what all leave out
		return nil, err
	}
	m.Chain, m.OneLevel, err = multilevel.MeasureChain(ctx, p, chain, m.Levels, rng.New(l.cfg.Seed), mo)
	if len(m.Chain)+len(m.OneLevel) == 0 {
		return nil, err
	}
	m.Seconds = time.Since(began).Seconds()
	return m, err
}

// newMultiLevel checks the options and fills in what does not depend on the measurements.
func (l *Lab) newMultiLevel(o *MultiLevelOptions) (*MultiLevel, feature.Chain, error) {
	s, lambdaP := DefaultFeatures(l.train.Len()), l.cfg.Lambda
	if r := l.approximation(); r != nil {
		s, lambdaP = r.s, r.lambdaP
	}
	m := &MultiLevel{Header: l.header(), LambdaP: lambdaP, Levels: slices.Clone(o.Levels), Confidence: cmp.Or(o.Confidence, estimate.DefaultConfidence)}
	if len(m.Levels) == 0 {
		m.Levels = feature.Levels{{Sketch: "features", Width: 8 * s}, {Sketch: "srht", Width: 2 * s}, {Sketch: "gaussian", Width: s}}
	}
	err := estimate.CheckConfidence(m.Confidence)
	var chain feature.Chain
	f, _ := l.cfg.Precond.(Features)
	if err == nil {
		chain, err = feature.ChainFor(l.cfg.Kernel, f.Orthogonal, m.Levels)
	}
	if err != nil {
		return nil, chain, err
	}
	if o.Work < 0 {
		return nil, chain, fmt.Errorf("limit of %g flops on the setup: want a positive number", o.Work)
	}
	if s := m.Levels[len(m.Levels)-1].Width; s > m.N {
		return nil, chain, fmt.Errorf("the last level has s = %d for n = %d points: want 1 ≤ s ≤ n", s, m.N)
	}
	m.Features = chain.Features.String()
	return m, chain, nil
}
