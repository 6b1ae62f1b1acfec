package krrlab

import (
	"cmp"
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/loo"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// LeaveOneOutOptions are the options of LeaveOneOut. Zero values mean the defaults.
type LeaveOneOutOptions struct {
	Lambdas    []float64 // default: 13, from λ/1000 to 1000λ
	Probes     int       // for n > ExactBelow, at least 4; default: 8
	Confidence float64   // of the intervals, in (0, 1); default: 0.95
	ExactBelow int       // largest n for which each λ has dense factors, if they fit the memory; default: 2000, −1: none
	Residuals  bool      // keep y_i − f_{−i}(x_i) of each λ, which JSON leaves out
}

// looRank is the most landmarks that the stage takes by itself, n/5 or 500 up to there, for the 9s³ flops of their eigenvectors.
const looRank = 1000

// LeaveOneOut finds the leave-one-out error and GCV for each λ of a grid: exactly for small n, else by one
// subspace for all λ, with intervals. Of rows with weights it is Σw_i(y_i−f_{−i}(x_i))²/Σw_i, of classes the share of
// wrong rows, each counted once. The landmarks of the configuration serve, or randomly pivoted Cholesky's. Cost:
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
	if r.N <= cmp.Or(o.ExactBelow, 2000) {
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
	var err error
	if r.Scores, err = score(ctx, r, o.Lambdas, &opt); err != nil {
		return nil, err
	}
	l.unweigh(r.Scores)
	for i, s := range r.Scores {
		if r.Best < 0 || s.Error.Value < r.Scores[r.Best].Error.Value {
			r.Best = i
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// unweigh turns scores of the plain problem of a weighted one, whose residuals are √w_i(y_i−f_{−i}(x_i)), to those of
// the points: GCV, and of regression the error, to weighted means.
func (l *Lab) unweigh(scores []loo.Score) {
	w := l.given.Weights
	if w == nil {
		return
	}
	share := float64(len(w)) / floats.Sum(w)
	for i := range scores {
		s := &scores[i]
		s.GCV *= share
		if e := &s.Error; l.train.Class == nil {
			e.Value, e.Lo, e.Hi = share*e.Value, share*e.Lo, share*e.Hi
		}
		if s.Residuals != nil {
			s.Residuals.Apply(func(i, _ int, v float64) float64 { return v / math.Sqrt(w[i]) }, s.Residuals)
		}
	}
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
	m, err := precond.New(ctx, z.it.z, recipe.lambdaP, &precond.Options{Form: precond.FormEigen, Comm: l.comm})
	if err != nil {
		return nil, err
	}
	return loo.Path(ctx, k, m, l.y, lambdas, o)
}
