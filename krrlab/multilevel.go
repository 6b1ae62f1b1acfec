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
	m, err := l.newMultiLevel(&opt)
	if err != nil {
		return nil, err
	}
	chain, err := feature.ChainFor(l.cfg.Kernel, l.orthogonal(), m.Levels)
	if err != nil {
		return nil, err
	}
	a, err := l.K(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	last := len(m.Levels) - 1
	n, d, _ := l.Dims()
	g := rng.New(l.cfg.Seed)
	drawn, err := chain.Sample(d, m.Levels[last].Width, g.Sub("features", 0))
	if err != nil {
		return nil, err
	}
	p := &multilevel.Problem{Comm: l.comm, A: a, X: l.train.X, Y: l.y, LambdaP: m.LambdaP, Error: a.Choice().Error}
	m.KError = Number(p.Error)
	mo := multilevel.Options{Confidence: m.Confidence, Work: opt.Work, Tol: l.cfg.Tol, Aim: aim, MaxIter: l.cfg.MaxIter}
	if l.cfg.Memory > 0 {
		mo.Memory = max(8*int64(n), l.cfg.Memory-a.Bytes()-l.vectors())
	}
	if mo.Memory, err = comm.Least(ctx, l.comm, mo.Memory); err != nil { // one memory decides what all leave out
		return nil, err
	}
	for k := last; k >= 0; k-- {
		level := m.Levels[k]
		if k > 0 && (k == last || level.Width != m.Levels[k+1].Width) {
			err = l.measureOne(ctx, m, k, p, chain.Features, mo)
		}
		if err == nil {
			mo.Progress = l.watchLevel(ctx, fmt.Sprintf("level %d, %s:%d", k+1, level.Sketch, level.Width))
			var r *multilevel.Measured
			if r, err = multilevel.Measure(ctx, p, drawn.(*feature.ChainMap).Level(k+1), g.Sub("multilevel chain", uint64(k)), &mo); err == nil {
				m.Chain = append(m.Chain, MeasuredLevel{ChainLevel: level, Level: k + 1, Measured: *r})
			}
		}
		if err != nil {
			break
		}
	}
	slices.Reverse(m.Chain)
	slices.Reverse(m.OneLevel)
	if len(m.Chain)+len(m.OneLevel) == 0 {
		return nil, err
	}
	m.Seconds = time.Since(began).Seconds()
	return m, err
}

// newMultiLevel checks the options and fills in what does not depend on the measurements.
func (l *Lab) newMultiLevel(o *MultiLevelOptions) (*MultiLevel, error) {
	s, lambdaP := DefaultFeatures(l.train.Len()), l.cfg.Lambda
	if r := l.approximation(); r != nil {
		s, lambdaP = r.s, r.lambdaP
	}
	m := &MultiLevel{Header: l.header(), LambdaP: lambdaP, Levels: slices.Clone(o.Levels), Confidence: o.Confidence}
	m.Confidence = cmp.Or(m.Confidence, estimate.DefaultConfidence)
	if len(m.Levels) == 0 {
		m.Levels = feature.Levels{{Sketch: "features", Width: 8 * s}, {Sketch: "srht", Width: 2 * s}, {Sketch: "gaussian", Width: s}}
	}
	if err := estimate.CheckConfidence(m.Confidence); err != nil {
		return nil, err
	}
	if o.Work < 0 {
		return nil, fmt.Errorf("limit of %g flops on the setup: want a positive number", o.Work)
	}
	if err := m.Levels.Check(); err != nil {
		return nil, err
	}
	if s := m.Levels[len(m.Levels)-1].Width; s > m.N {
		return nil, fmt.Errorf("the last level has s = %d for n = %d points: want 1 ≤ s ≤ n", s, m.N)
	}
	dist, err := feature.ForKernel(l.cfg.Kernel, l.orthogonal())
	if err != nil {
		return nil, err
	}
	m.Features = dist.String()
	return m, nil
}

// orthogonal reports whether the features of the configuration are orthogonal ones.
func (l *Lab) orthogonal() bool {
	f, _ := l.cfg.Precond.(Features)
	return f.Orthogonal
}

// measureOne measures features alone of the width of level k, counted from 0.
func (l *Lab) measureOne(ctx context.Context, m *MultiLevel, k int, p *multilevel.Problem, dist feature.Dist, o multilevel.Options) error {
	_, d, _ := l.Dims()
	level := feature.ChainLevel{Sketch: "features", Width: m.Levels[k].Width}
	g := rng.New(l.cfg.Seed)
	alone, err := dist.Sample(d, level.Width, g.Sub("features", 0))
	if err != nil {
		return err
	}
	o.Progress = l.watchLevel(ctx, fmt.Sprintf("features alone, %d", level.Width))
	r, err := multilevel.Measure(ctx, p, alone, g.Sub("multilevel one level", uint64(k)), &o)
	if err != nil {
		return err
	}
	m.OneLevel = append(m.OneLevel, MeasuredLevel{ChainLevel: level, Level: k + 1, Measured: *r})
	return nil
}

// watchLevel returns a progress function that says which level is at work on what.
func (l *Lab) watchLevel(ctx context.Context, name string) func(part string, done, total int) {
	return func(part string, done, total int) {
		e := Event{Stage: stage.Name(part), Detail: name, Done: done, Total: total, Remaining: -1}
		if total == 0 && done > 0 {
			e.Detail += fmt.Sprintf(", step %d", done)
		}
		l.Tell(ctx, e)
	}
}
