package krrlab

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
)

// Decide fits by the lab's method, and returns the decision values of the points at.
func (b *bench) Decide(ctx context.Context, train *datasets.Dataset, k kernel.Kernel, lambda float64,
	at *datasets.Dataset) (*mat.Dense, error) {
	cfg := b.cfg
	cfg.Kernel, cfg.Lambda, cfg.Checkpoint, cfg.StopRows, cfg.Stop = k, lambda, nil, nil, bound.Stop{}
	if cfg.Memory > 0 { // beside the points of the lab, those to predict, and both as they were before length scales
		cfg.Memory = max(1, cfg.Memory-2*b.pointBytes())
	}
	cfg.Monitor = func(Event) error { return ctx.Err() }
	cfg.Tol = max(cfg.Tol, 1e-4)
	if cfg.Solver, cfg.Precond = b.asked.solver, b.asked.precond; b.open != nil {
		cfg.Solver, cfg.Precond = AutoSolver, nil
	}
	l, err := New(train, cfg)
	if err != nil {
		return nil, err
	}
	sol, err := l.Solve(ctx)
	if err != nil {
		return nil, err
	}
	if sol.Status != pcg.Converged && sol.Status != pcg.Undecided {
		return nil, fmt.Errorf("krrlab: the fit to %d rows did not converge: %v", train.Len(), sol.Status)
	}
	f, err := sol.Model.Predict(ctx, at, sol.PredictOptions())
	if err != nil {
		return nil, err
	}
	return f.Decision, nil
}
