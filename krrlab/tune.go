package krrlab

import (
	"cmp"
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
)

// Tune chooses kernel, scale and λ for the lab's data by the error on rows that a fit has not seen, whatever kernel and
// λ the configuration has: see package tune. Where there are more rows than a subsample has, the last level solves the
// problem by the lab's method for four rows of five, and judges by the fifth. If ctx or the Monitor ends it, it returns
// what is known beside the error. On ranks the first searches the subsample and keeps the state; all fit the points of
// the last level together. With a Backend it fails.
func (l *Lab) Tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if l.cfg.Backend != nil {
		return nil, fmt.Errorf("krrlab: no tuning by a backend: tune in this process, and fit with the result by " +
			"the backend")
	}
	return run(ctx, l, stage.Tune, o, func(ctx context.Context) (*tune.Result, error) { return l.tune(ctx, o) })
}

func (l *Lab) tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if l.given.Weights != nil {
		return nil, fmt.Errorf("krrlab: no tuning with weights: tune without them, or choose λ by leave-one-out, " +
			"and fit with the result")
	}
	if kernel.Given(l.cfg.Kernel) != nil {
		return nil, fmt.Errorf("krrlab: no tuning of a given K, which leaves only λ to choose: LeaveOneOut gives " +
			"the error for a grid of λ")
	}
	o.Seed = l.cfg.Seed
	data, err := tune.NewData(l.train, l.y, l.coding, o.Valid)
	if err != nil {
		return nil, err
	}
	full := &tune.Full{} // of no use where a subsample takes all
	if l.train.Len() > 2*cmp.Or(o.Rows, 2000) {
		if full, err = l.holdout(o.Valid); err != nil {
			return nil, err
		}
	}
	r, err := tune.RunOnRanks(ctx, l.comm, data, o, full, func(e stage.Event) { l.Tell(ctx, e) })
	if r != nil {
		r.Header = l.header()
		r.Kernel, r.Lambda = r.Best.Spec(), r.Best.Lambda
	}
	return r, err
}

// holdout returns how all rows are fitted and judged: by the rows given, or by some that are held out.
func (l *Lab) holdout(valid *datasets.Dataset) (*tune.Full, error) {
	train, judged, name, err := l.train, valid, "validation rows", error(nil)
	if valid == nil {
		for try := range uint64(50) { // until the rows that are fitted have two classes
			if train, judged, err = l.train.Holdout(min(0.2, 5000/float64(l.train.Len())),
				l.cfg.Seed+try<<32); err != nil {
				return nil, err
			}
			if _, err = l.coding.Encode(train); err == nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		name = "rows held out"
		if l.coding.Mean != nil {
			train = train.Center()
		}
	}
	y, err := datasets.Coding{Labels: l.coding.Labels}.Code(judged) // as predicted
	if err != nil {
		return nil, err
	}
	return &tune.Full{Name: fmt.Sprintf("%d %s, fits of %d", judged.Len(), name, train.Len()),
		Loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*tune.Loss, error) {
			train, judged, err := datasets.Stretch(shape, train, judged)
			if err != nil {
				return nil, err
			}
			cfg := l.cfg
			cfg.Kernel, cfg.Lambda, cfg.Checkpoint, cfg.StopRows = k, lambda, nil, nil
			cfg.Monitor = func(Event) error { return ctx.Err() }
			cfg.Tol = max(cfg.Tol, 1e-4)
			if l.open != nil {
				cfg.Solver, cfg.Precond = AutoSolver, nil
			}
			one, err := New(train, cfg)
			if err != nil {
				return nil, err
			}
			sol, err := one.Solve(ctx)
			if err != nil {
				return nil, err
			}
			if sol.Status != pcg.Converged && sol.Status != pcg.Undecided {
				return nil, fmt.Errorf("krrlab: the fit to %d rows did not converge: %v", train.Len(), sol.Status)
			}
			f, err := sol.Model.Predict(ctx, judged, sol.PredictOptions())
			if err != nil {
				return nil, err
			}
			f.Decision.Sub(y, f.Decision)
			return tune.Lose(y, tune.InUnits(f.Decision, l.y, train.Class != nil), train.Class != nil), nil
		}}, nil
}
