package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
)

// PlanOptions are the options of Plan.
type PlanOptions struct {
	Tests int    // points that are to be predicted; default: none
	Cache string // file that keeps the rates of this machine; default: in the user's cache folder
}

// Planning reports whether Solve does what Plan chooses.
func (l *Lab) Planning() bool { return l.open != nil && !l.open.fixed }

// Plan predicts the seconds and bytes of every way to solve the problem, from the rates of this machine and the
// iterations on a subsample, and chooses the one of least training time: what Solve does with AutoSolver. What the
// configuration sets is held. Seconds depend on the machine and on what else it does, and so may the
// choice. Package plan has the method. On ranks it fails: the fixed rule of AutoSolver holds there.
func (l *Lab) Plan(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	if l.cfg.onRanks() {
		return nil, fmt.Errorf("krrlab: no plan on ranks: they take pcg or block-pcg with the default preconditioner, or what is named")
	}
	return run(ctx, l, stage.Plan, o, func(ctx context.Context) (*plan.Plan, error) { return l.makePlan(ctx, o) })
}

func (l *Lab) makePlan(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	start := time.Now()
	l.Tell(ctx, Event{Stage: stage.Plan})
	rates, err := plan.ReadRates(ctx, cmp.Or(o.Cache, plan.RatesFile()))
	if err != nil {
		return nil, err
	}
	task := l.task()
	task.Tests = o.Tests
	p, err := plan.Choose(ctx, task, rates)
	if err != nil {
		return nil, err
	}
	p.Header, p.Took = l.header(), time.Since(start).Seconds()
	l.mu.Lock()
	l.planned = p
	l.mu.Unlock()
	return p, nil
}

// task returns the problem, and what is held of the way to solve it.
func (l *Lab) task() *plan.Task {
	c := l.cfg
	t := &plan.Task{
		Kernel: c.Kernel, X: l.train.X, Y: l.y, Lambda: c.Lambda, Tol: c.Tol, MaxIter: c.MaxIter, Seed: c.Seed, Memory: c.Memory,
		PointBytes: pointBytes(l.train.X), ExactWork: l.exactUpTo, Storage: c.Storage, NoFeatures: noFeatures(c.Kernel),
		Iterative: c.Checkpoint != nil || c.Stop.Rule != bound.Residual, Small: l.open != nil && l.open.fixed,
	}
	switch c.Exact {
	case ExactResidual:
		t.ExactWork = math.Inf(1)
	case StoredResidual:
		t.ExactWork = 0
	}
	if l.open == nil || l.open.solver {
		t.Solver = c.Solver.String()
	}
	if l.open != nil {
		t.S, t.LambdaP = l.open.s, l.open.lambdaP
	} else if r := l.approximation(); r != nil {
		t.Precond, t.S, t.LambdaP = r.name, r.s, r.lambdaP
	} else {
		t.Precond = plan.None
	}
	return t
}
