package krrlab

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
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
// iterations on the spectrum of K as a subsample shows it, and chooses the one of least training time: what Solve does with AutoSolver. What the
// configuration sets is held. Seconds depend on the machine and on what else it does, and so may the
// choice. Package plan has the method. On ranks the first plans, at rates that all measure together, and the others do the same. With a Backend it fails.
func (l *Lab) Plan(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	if l.cfg.Backend != nil {
		return nil, fmt.Errorf("krrlab: no plan by a backend: its ranks take pcg or block-pcg with the default preconditioner, or what is named")
	}
	return run(ctx, l, stage.Plan, o, func(ctx context.Context) (*plan.Plan, error) { return l.makePlan(ctx, o) })
}

func (l *Lab) makePlan(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	start := time.Now()
	l.Tell(ctx, Event{Stage: stage.Plan})
	p, err := l.choose(ctx, o)
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return nil, err
	}
	if l.comm.Size() > 1 {
		text, err := json.Marshal(p)
		if err == nil {
			text, err = comm.Share(ctx, l.comm, text, 0)
		}
		if p = new(plan.Plan); err == nil {
			err = json.Unmarshal(text, p)
		}
		if err != nil {
			return nil, err
		}
	}
	p.Header, p.Took = l.header(), time.Since(start).Seconds()
	l.mu.Lock()
	l.planned = p
	l.mu.Unlock()
	return p, nil
}

// choose returns the plan of the first rank, nil on the others.
func (l *Lab) choose(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	cache := cmp.Or(o.Cache, plan.RatesFile())
	if l.comm.Size() > 1 {
		cache = "" // what a rank does while the others do as much is not what one process does
	}
	rates, err := plan.ReadRates(ctx, cache, l.cfg.Memory)
	if err != nil || l.comm.Rank() > 0 {
		return nil, err
	}
	task := l.task()
	task.Tests, task.Predict = o.Tests, l.predictOptions()
	return plan.Choose(ctx, task, rates)
}

// task returns the problem, and what is held of the way to solve it.
func (l *Lab) task() *plan.Task {
	c := l.cfg
	t := &plan.Task{
		Kernel: c.Kernel, X: l.train.X, Y: l.y, Lambda: c.Lambda, Tol: c.Tol, MaxIter: c.MaxIter, Prefer: l.accuracy(), Seed: c.Seed, Memory: c.Memory,
		PointBytes: l.pointBytes(), ExactWork: l.exactUpTo, Storage: c.Storage, NoFeatures: noFeatures(c.Kernel),
		Ranks: l.comm.Size(), Iterative: c.onRanks() || c.Checkpoint != nil || c.Stop.Rule != bound.Residual,
	}
	if l.open != nil && l.open.fixed {
		t.Small = gram.Float64
		if l.single() {
			t.Small = gram.Float32
		}
	}
	switch c.Exact {
	case ExactResidual:
		t.ExactWork = math.Inf(1)
	case StoredResidual:
		t.ExactWork = 0
	}
	if t.Ranks == 1 {
		runtime.GC() // what is read and not needed any more is there for K
		t.Beside, t.Peak = max(0, accel.Occupied()-t.PointBytes), accel.PeakRSS()
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
