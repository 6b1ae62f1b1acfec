package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/plots"
)

// Of the candidates, so many of each solver, preconditioner and λ_p are tried, those that are predicted to take at most
// likelyFactor times the choice, without a preconditioner directFactor times; what has taken slowFactor times the best
// is not gone on with.
const (
	triedOfKind  = 2
	likelyFactor = 2
	directFactor = 6
	slowFactor   = 3
)

// tried is a solve that was run.
type tried struct {
	choice     *plan.Candidate
	seconds    float64 // of training
	predicted  float64
	plan       float64 // of these, of choosing
	iterations int
	status     string
}

// TestPlanAgainstCandidates prints what was predicted of the candidates of a plan beside what they took, and auto
// beside the best of them: of KRRLAB_PLAN, the flags of krrlab plan, which make bench-plan sets, or else of a few
// points.
func TestPlanAgainstCandidates(t *testing.T) {
	args := os.Getenv("KRRLAB_PLAN")
	dirs := datasets.Dirs()
	if args == "" {
		args, dirs = "--data synthetic-regression --n 200", []string{t.TempDir()}
		t.Setenv("XDG_CACHE_HOME", dirs[0])
	} else if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		defer accel.Use(nil)
	}
	f, set := newFitFlags(), pflag.NewFlagSet("plan", pflag.ContinueOnError)
	addOptions(set, f.flags)
	if err := set.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{env: Env{Stdout: &out, Stderr: io.Discard, DataDirs: dirs}, globalFlags: globalFlags{Quiet: true}}
	progress := a.newProgress()
	data, cfg, err := a.prepare(t.Context(), f, progress)
	progress.clear()
	if err != nil {
		t.Fatal(err)
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := lab.Plan(t.Context(), planOptions(data))
	if err != nil {
		t.Fatal(err)
	}
	a.Quiet = false
	if err := a.try(t.Context(), data, cfg, p); err != nil {
		t.Fatal(err)
	}
	testkit.Contains(t, out.String(), "predicted and actual", "auto ÷ best")
	t.Log("\n" + out.String())
}

// try runs the candidates of a plan, the choice first, and prints what was predicted beside what they took. Then it
// solves as fit does, plan and race included, and compares that with the best of them.
func (a *app) try(ctx context.Context, data *loaded, cfg krrlab.Config, p *plan.Plan) error {
	kinds := map[string]int{}
	var best, chosen tried
	t := &plots.Table{Title: "predicted and actual: " + p.Dataset,
		Columns: []plots.Column{{Name: "candidate"}, {Name: "predicted", Unit: "s", Format: "%.2f"},
			{Name: "actual", Unit: "s", Format: "%.2f"}, {Name: "ratio",
				Format: "%.2f"}, {Name: "iterations predicted"}, {Name: "actual iterations"}, {Name: "status"}}}
	for i, c := range p.Candidates {
		kind := fmt.Sprint(c.Solver, c.Precond, c.LambdaP)
		factor := likelyFactor * 1.0
		if c.Precond == plan.None {
			factor = directFactor
		}
		if kinds[kind]++; kinds[kind] > triedOfKind || c.Refused != "" || training(c) > factor*training(&p.Choice) {
			continue
		}
		r, err := tryOne(ctx, data, cfg, c, slowFactor*best.seconds)
		if err != nil {
			return err
		}
		r.choice = c
		predicted := training(c)
		if p.Choice.Solver != plan.Direct && c.Solver != plan.Direct {
			predicted += p.Pilot.Look // by name a candidate takes it itself
		}
		r.predicted = predicted
		t.Add(c.String(), predicted, r.seconds, predicted/r.seconds, c.Iterations, r.iterations, r.status)
		if i == 0 {
			chosen = r
		}
		if r.status == "converged" && (best.choice == nil || r.seconds < best.seconds) {
			best = r
		}
	}
	a.printf("%s", t.Text())
	if best.choice == nil {
		return nil
	}
	auto, err := trySolve(ctx, data, cfg, 0)
	if err != nil {
		return err
	}
	if auto.choice == nil { // of so few points fit makes no plan
		auto.choice = chosen.choice
	}
	a.printf("%-14s %s: auto took %.2f s, %.2f of them for the plan, with %v; the best of %d, %v, %.2f: auto ÷ best "+
		"%.2f; the choice predicted ÷ actual %.2f, iterations %d ÷ %d\n", "result", p.Dataset,
		auto.seconds, auto.plan, auto.choice, len(t.Rows), best.choice, best.seconds, auto.seconds/best.seconds, chosen.predicted/chosen.seconds, chosen.choice.Iterations, chosen.iterations)
	return nil
}

const tooSlow = "too slow"

// training returns the predicted seconds without those of the test points.
func training(c *plan.Candidate) float64 { return c.Seconds.Total - c.Seconds.Predict }

// tryOne runs a candidate, for at most so many seconds, 0 for no limit.
func tryOne(ctx context.Context, data *loaded, cfg krrlab.Config, c *plan.Candidate, limit float64) (tried, error) {
	err := cfg.Solver.UnmarshalText([]byte(c.Solver))
	if err != nil {
		return tried{}, err
	}
	spec := krrlab.PrecondSpec{Name: c.Precond, S: c.S, LambdaP: c.LambdaP, Damping: c.Damping}
	if c.Damping > 0 {
		spec.Neighbors = c.Neighbors
	}
	if cfg.Precond, err = spec.Preconditioner(cfg.Kernel); err != nil {
		return tried{}, err
	}
	if cfg.Solver == krrlab.Direct {
		if cfg.Storage, err = gram.ParseStorage(c.Stored); err != nil {
			return tried{}, err
		}
	}
	return trySolve(ctx, data, cfg, limit)
}

// trySolve solves a problem, for at most so many seconds, 0 for no limit.
func trySolve(ctx context.Context, data *loaded, cfg krrlab.Config, limit float64) (r tried, err error) {
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
		r.iterations, r.status, r.plan = sol.Iterations, sol.Status.String(), sol.Seconds.Plan
		if sol.Plan != nil {
			r.choice = &sol.Plan.Choice
		}
	}
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded):
		r.status, err = tooSlow, nil
	case err != nil && ctx.Err() == nil: // such as not positive definite in float32
		r.status, err = err.Error(), nil
	}
	return r, err
}
