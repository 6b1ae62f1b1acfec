package krrlab

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
)

// bench is the lab as stages see it.
type bench struct {
	*Lab
	problem *stage.Problem
}

var _ stage.Bench = (*bench)(nil)

func (b *bench) Problem() *stage.Problem {
	if b.problem == nil {
		l := b.Lab
		b.problem = &stage.Problem{
			Header: l.header(), Kernel: l.cfg.Kernel, X: l.train.X, Y: l.y, Coding: l.coding, Train: l.given,
			Comm: l.comm, Memory: l.cfg.Memory, Held: l.vectors(), MaxIter: l.cfg.MaxIter, Precond: l.precondName(),
			Entry: stage.Entry{Value: l.cfg.Precond}, Planned: l.Planning(), S: DefaultFeatures(l.train.Len()),
			Z: l.approximation(),
		}
	}
	return b.problem
}

func (b *bench) K(ctx context.Context, beside int64) (*stage.Gram, error) {
	k, err := b.matrix(ctx, beside, nil, false)
	if err != nil {
		return nil, err
	}
	return &stage.Gram{Matrix: k.a, Seconds: k.seconds, Error: b.kError(k.a)}, nil
}

func (b *bench) Dense(ctx context.Context, bytes int64) (*mat.Dense, float64, error) {
	n := b.train.Len()
	most, err := comm.Least(ctx, b.comm, b.cfg.Memory)
	if err != nil {
		return nil, 0, err
	}
	need := bytes*int64(n)*int64(n) + kernel.Given(b.cfg.Kernel).Bytes()
	if bytes > 0 && most > 0 && need > most {
		return nil, 0, &stage.TooLarge{Need: need, Limit: most}
	}
	a, err := gram.NewExact(b.cfg.Kernel, b.train.X, b.cfg.Lambda, b.system().Exactness(), b.comm)
	if err != nil {
		return nil, 0, err
	}
	b.Tell(ctx, Event{Stage: stage.Kernel, Remaining: -1})
	k := mat.NewDense(n, n, nil)
	return k, b.kError(a), a.DenseTo(ctx, k)
}

func (b *bench) Z(ctx context.Context, a stage.Approximation) (*stage.Drawn, error) {
	err := checkRank(a.S, b.train.Len())
	if a.Method == "features" && a.Features == nil && err == nil {
		a.Features, err = feature.For(b.cfg.Kernel)
	}
	if err != nil {
		return nil, err
	}
	f, err := b.factor(ctx, &a)
	if err != nil {
		return nil, err
	}
	z := *f.a
	z.Seconds = f.seconds
	return &z, nil
}

// keepPlan keeps a plan for Solve.
func (l *Lab) keepPlan(p *plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.planned = p
}
