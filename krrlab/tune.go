package krrlab

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
)

// Tune chooses kernel, scale and λ for the lab's data by the error on rows that a fit has not seen, whatever kernel and
// λ the configuration has: see package tune. Where there are more rows than a subsample has, the last level solves the
// problem by the lab's method for four rows of five, and judges by the fifth. If ctx or the Monitor ends it, it
// returns what is known beside the error. On ranks it fails.
func (l *Lab) Tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if l.cfg.onRanks() {
		return nil, fmt.Errorf("krrlab: no tuning on ranks: tune in one process, and fit with the result on ranks")
	}
	return run(ctx, l, stage.Tune, o, func(ctx context.Context) (*tune.Result, error) { return l.tune(ctx, o) })
}

func (l *Lab) tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if l.given.Weights != nil {
		return nil, fmt.Errorf("krrlab: no tuning with weights: do it without them, or choose λ by leave-one-out, and fit with the result")
	}
	if kernel.Given(l.cfg.Kernel) != nil {
		return nil, fmt.Errorf("krrlab: there is no kernel to choose where K is given: LeaveOneOut has the error for a grid of λ")
	}
	o.Seed = l.cfg.Seed
	data := &tune.Data{Train: l.train, Y: l.inUnits(mat.DenseCopyOf(l.y))}
	if o.Valid != nil {
		y, err := l.coding.Encode(o.Valid)
		if err != nil {
			return nil, err
		}
		data.Valid = l.inUnits(y)
	}
	full, err := l.holdout(o.Valid)
	if err != nil {
		return nil, err
	}
	r, err := tune.Run(ctx, data, o, full, func(e stage.Event) { l.Tell(ctx, e) })
	if r != nil {
		spec, lambda := r.Kernel, r.Lambda
		r.Header = l.header()
		r.Kernel, r.Lambda = spec, lambda
	}
	return r, err
}

// inUnits divides the columns of Y, or of residuals, of a regression with several targets by the root mean squares of the
// lab's and √t, so that the units of targets do not count: errors are then relative, in the root mean square of all targets.
func (l *Lab) inUnits(y *mat.Dense) *mat.Dense {
	n, t := l.y.Dims()
	if t == 1 || l.train.Class != nil {
		return y
	}
	unit := make([]float64, t)
	for j := range unit {
		if unit[j] = mat.Norm(l.y.ColView(j), 2) * math.Sqrt(float64(t)/float64(n)); unit[j] == 0 {
			unit[j] = 1
		}
	}
	y.Apply(func(_, j int, v float64) float64 { return v / unit[j] }, y)
	return y
}

// holdout returns how all rows are fitted and judged: by the rows given, or by some that are held out.
func (l *Lab) holdout(valid *datasets.Dataset) (*tune.Full, error) {
	train, judged := l.train, valid
	name := "validation rows"
	var err error
	if valid == nil {
		if train, judged, err = train.Holdout(min(0.2, 5000/float64(train.Len())), l.cfg.Seed); err != nil {
			return nil, err
		}
		name = "rows held out"
	}
	y, err := datasets.Coding{Labels: l.coding.Labels}.Encode(judged) // as predicted
	if err != nil {
		return nil, err
	}
	return &tune.Full{Name: fmt.Sprintf("%d %s, fits of %d", judged.Len(), name, train.Len()), Loss: func(ctx context.Context, k kernel.Kernel, lambda float64) (*tune.Loss, error) {
		start := time.Now()
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
		f, err := sol.Model.Predict(ctx, judged, sol.PredictOptions())
		if err != nil {
			return nil, err
		}
		f.Decision.Sub(y, f.Decision)
		loss := tune.Lose(y, l.inUnits(f.Decision), train.Class != nil)
		loss.Seconds = time.Since(start).Seconds()
		return loss, nil
	}}, nil
}
