package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/loo"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
)

// Tune chooses kernel, scale and λ for the lab's data by the error on rows that a fit has not seen, whatever kernel and
// λ the configuration has: see package tune. Where there are more rows than a subsample has, the last level solves the
// problem by the lab's method for four rows of five, and judges by the fifth. If ctx or the Monitor ends it, it
// returns what is known beside the error. On ranks the first searches the subsample and keeps the state; all fit the points of
// the last level together. With a Backend it fails.
func (l *Lab) Tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if l.cfg.Backend != nil {
		return nil, fmt.Errorf("krrlab: no tuning by a backend: tune in this process, and fit with the result by the backend")
	}
	return run(ctx, l, stage.Tune, o, func(ctx context.Context) (*tune.Result, error) { return l.tune(ctx, o) })
}

func (l *Lab) tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if l.given.Weights != nil {
		return nil, fmt.Errorf("krrlab: no tuning with weights: tune without them, or choose λ by leave-one-out, and fit with the result")
	}
	if kernel.Given(l.cfg.Kernel) != nil {
		return nil, fmt.Errorf("krrlab: no tuning of a given K, which leaves only λ to choose: LeaveOneOut gives the error for a grid of λ")
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
			if train, judged, err = l.train.Holdout(min(0.2, 5000/float64(l.train.Len())), l.cfg.Seed+try<<32); err != nil {
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
	return &tune.Full{Name: fmt.Sprintf("%d %s, fits of %d", judged.Len(), name, train.Len()), Loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*tune.Loss, error) {
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

// LeaveOneOutOptions are the options of LeaveOneOut. Zero values mean the defaults.
type LeaveOneOutOptions struct {
	Lambdas    []float64 // default: 13, from λ/1000 to 1000λ
	Probes     int       // for n > ExactBelow, at least 4; default: 8
	Confidence float64   // of the intervals, in (0, 1); default: 0.95
	ExactBelow int       // largest n for which each λ has dense factors, if they fit the memory; default: 4000, −1: none
	Residuals  bool      // keep y_i − f_{−i}(x_i) of each λ, which JSON leaves out
}

// looRank is the most landmarks that the stage takes by itself, n/5 or 500 up to there, for the 9s³ flops of their eigenvectors.
const looRank = 1000

// LeaveOneOut finds the leave-one-out error and GCV for each λ of a grid: exactly for small n, else by one
// subspace for all λ, with intervals. Of rows with weights it is Σw_i(y_i−f_{−i}(x_i))²/Σw_i, of classes the share of
// wrong rows, each counted once. Rows with equal features are left out together, and the mean of the targets is that of the rows
// that are left. The landmarks of the configuration serve, or randomly pivoted Cholesky's. Cost:
// see package loo.
func (l *Lab) LeaveOneOut(ctx context.Context, o LeaveOneOutOptions) (*LeaveOneOut, error) {
	return run(ctx, l, stage.LeaveOneOut, o, func(ctx context.Context) (*LeaveOneOut, error) { return l.leaveOneOut(ctx, o) })
}

func (l *Lab) leaveOneOut(ctx context.Context, o LeaveOneOutOptions) (*LeaveOneOut, error) {
	start := time.Now()
	if o.Lambdas == nil {
		for i := -6; i <= 6; i++ {
			o.Lambdas = append(o.Lambdas, l.cfg.Lambda*math.Pow(10, float64(i)/2))
		}
	}
	r := &LeaveOneOut{Header: l.header(), Classes: l.train.Task == datasets.Classification, Best: -1}
	opt := loo.Options{
		Classes: r.Classes, Confidence: o.Confidence, Probes: o.Probes, Residuals: o.Residuals,
		Stream: rng.New(l.cfg.Seed).Sub("leave one out"), Progress: l.watch(ctx, stage.Probes),
	}
	score := l.pathScores
	if r.N <= cmp.Or(o.ExactBelow, 4000) {
		much, err := l.tooMuch(ctx, 16) // K and its factor
		if err != nil {
			return nil, err
		}
		if much == "" {
			score = l.denseScores
		} else {
			r.Why = "dense factors need " + much
		}
	}
	opt.Same, opt.Weights, opt.Mean = kernel.Same(l.cfg.Kernel, l.given.X), l.given.Weights, l.coding.Mean != nil
	r.Repeated = points.Repeated(opt.Same)
	var err error
	if r.Scores, err = score(ctx, r, o.Lambdas, &opt); err != nil {
		return nil, err
	}
	for i, s := range r.Scores {
		if r.Best < 0 || s.Error.Value < r.Scores[r.Best].Error.Value {
			r.Best = i
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

func (l *Lab) denseScores(ctx context.Context, r *LeaveOneOut, lambdas []float64, o *loo.Options) ([]loo.Score, error) {
	k, off, err := l.dense(ctx)
	if err != nil {
		return nil, err
	}
	r.KError, o.KError = off, off
	scores, err := loo.Dense(ctx, k, l.y, lambdas, o)
	return scores, comm.Agree(ctx, l.comm, err)
}

func (l *Lab) pathScores(ctx context.Context, r *LeaveOneOut, lambdas []float64, o *loo.Options) ([]loo.Score, error) {
	recipe := l.approximation()
	if recipe == nil || recipe.name == "features" || recipe.name == "" {
		recipe = RPCholesky{S: min(max(DefaultFeatures(r.N), r.N/5), r.N, looRank), LambdaP: l.cfg.Lambda}.recipe()
	}
	formed, err := l.matrix(ctx, l.featureBytes(recipe.s), nil)
	if err != nil {
		return nil, err
	}
	k := formed.it
	z, err := l.factor(ctx, recipe, 0)
	if err != nil {
		return nil, err
	}
	r.KError = k.Choice().Error + l.kError(k) // of K as stored, and of the products with it
	r.Precond, r.S = recipe.String(), z.it.z.D
	o.KError = r.KError
	if low := z.it.low; low != nil && low.Certain() {
		o.Below = low.Rounding + r.KError
	}
	l.Tell(ctx, Event{Stage: stage.Eigenvalues, Remaining: -1})
	if r.Repeated > 0 && (o.Classes || l.comm.Size() > 1) {
		o.Same, r.Unclaimed = nil, "probes leave them out together of regression in one process only: --exact-below takes dense factors"
	}
	m, err := precond.New(ctx, o.Merged(z.it.z), recipe.lambdaP, &precond.Options{Form: precond.FormEigen, Comm: l.comm})
	if err != nil {
		return nil, err
	}
	scores, err := loo.Path(ctx, k, m, l.y, lambdas, o)
	if r.Unclaimed != "" {
		for i := range scores {
			e := &scores[i].Error
			if e.Lo, e.Hi, e.Method = 0, math.Inf(1), "none"; o.Classes {
				e.Hi = 1
			}
		}
	}
	return scores, err
}
