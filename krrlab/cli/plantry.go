package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/plots"
)

// Of the candidates, so many of each solver, preconditioner and λ_p are tried, those that are predicted to take at most
// likelyFactor times the choice, without a preconditioner directFactor times; what has taken slowFactor times the best is not gone on with.
const (
	triedOfKind  = 2
	likelyFactor = 2
	directFactor = 6
	slowFactor   = 3
)

// tried is a candidate that was run.
type tried struct {
	*plan.Candidate
	seconds    float64 // of training
	iterations int
	status     string
}

// try runs the candidates of a plan, the choice first, and prints what was predicted beside what they took.
func (a *app) try(ctx context.Context, data *loaded, cfg krrlab.Config, p *plan.Plan) error {
	kinds := map[string]int{}
	var best tried
	var chosen tried
	t := &plots.Table{Title: "predicted and actual: " + p.Dataset, Columns: []plots.Column{{Name: "candidate"}, {Name: "predicted", Unit: "s", Format: "%.2f"},
		{Name: "actual", Unit: "s", Format: "%.2f"}, {Name: "ratio", Format: "%.2f"}, {Name: "iterations predicted"}, {Name: "actual iterations"}, {Name: "status"}}}
	for i, c := range p.Candidates {
		kind := fmt.Sprint(c.Solver, c.Precond, c.LambdaP)
		factor := likelyFactor * 1.0
		if c.Precond == plan.None {
			factor = directFactor
		}
		if kinds[kind]++; kinds[kind] > triedOfKind || c.Refused != "" || training(c) > factor*training(&p.Choice) {
			continue
		}
		r, err := a.tryOne(ctx, data, cfg, c, slowFactor*best.seconds)
		if err != nil {
			return err
		}
		predicted := training(c)
		t.Add(c.String(), predicted, r.seconds, predicted/r.seconds, c.Iterations, r.iterations, r.status)
		if i == 0 {
			chosen = r
		}
		if r.status == "converged" && (best.Candidate == nil || r.seconds < best.seconds) {
			best = r
		}
	}
	a.printf("%s", t.Text())
	if best.Candidate == nil {
		return nil
	}
	a.printf("%-14s %s: %v took %.2f s and the plan %.2f, the best of %d, %v, %.2f: auto ÷ best %.2f, predicted ÷ actual %.2f, iterations %d ÷ %d\n", "result", p.Dataset,
		chosen, chosen.seconds, p.Took, len(t.Rows), best, best.seconds, (chosen.seconds+p.Took)/best.seconds, training(chosen.Candidate)/chosen.seconds, chosen.Iterations, chosen.iterations)
	return nil
}

const tooSlow = "too slow"

// training returns the predicted seconds without those of the test points.
func training(c *plan.Candidate) float64 { return c.Seconds.Total - c.Seconds.Predict }

// tryOne runs a candidate, for at most so many seconds, 0 for no limit.
func (a *app) tryOne(ctx context.Context, data *loaded, cfg krrlab.Config, c *plan.Candidate, limit float64) (r tried, err error) {
	r.Candidate = c
	if cfg.Solver, err = krrlab.ParseSolver(c.Solver); err != nil {
		return r, err
	}
	if cfg.Precond, err = (krrlab.PrecondSpec{Name: c.Precond, S: c.S, LambdaP: c.LambdaP}).Preconditioner(cfg.Kernel); err != nil {
		return r, err
	}
	if cfg.Solver == krrlab.Direct {
		if cfg.Storage, err = gram.ParseStorage(c.Stored); err != nil {
			return r, err
		}
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return r, err
	}
	within := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, time.Duration(limit*float64(time.Second)))
		defer cancel()
	}
	start := time.Now()
	sol, err := lab.Solve(within)
	r.seconds = time.Since(start).Seconds()
	if sol != nil {
		r.iterations, r.status = sol.Iterations, sol.Status.String()
	}
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded):
		r.status, err = tooSlow, nil
	case err != nil && ctx.Err() == nil: // such as not positive definite in float32
		r.status, err = err.Error(), nil
	}
	return r, err
}
