package krrlab

import (
	"errors"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// endAt returns a Monitor that calls end in iteration number k, counted over all runs.
func endAt(k int, end func() error) func(Event) error {
	seen := 0
	return func(e Event) error {
		if e.Iteration > 0 {
			if seen++; seen == k {
				return end()
			}
		}
		return nil
	}
}

// TestStopStages: an error of the Monitor ends every stage, which returns what it has.
func TestStopStages(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	boom := errors.New("boom")
	in := func(by error, name stage.Name, done int) func(Event) error {
		return func(e Event) error {
			if e.Stage == name && e.Done >= done {
				return by
			}
			return nil
		}
	}
	sol := mustSolve(t, ranksProblem(300), Config{Kernel: gauss, Lambda: 0.1})
	for _, by := range []error{pcg.ErrStop, boom} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Features{S: 20},
			Monitor: in(by, stage.Lanczos, 5)}
		q, err := newLab(t, ranksProblem(300), cfg).Quality(t.Context(), QualityOptions{Width: 1e-6, ExactBelow: -1})
		if q == nil || q.Steps != 5 || by == boom && err != boom || by == pcg.ErrStop && err != nil {
			t.Errorf("%v: %v, %v", by, q, err)
		}
		cfg.Monitor = in(by, stage.Kernel, 0)
		l := newLab(t, ranksProblem(300), cfg)
		names := []stage.Name{stage.Solve}
		for _, d := range stages {
			names = append(names, d.Name)
		}
		for _, name := range names {
			if name == stage.Plan || name == stage.Tune { // they form no K of the lab
				continue
			}
			options := `{}`
			if name == "statdim" {
				options = `{"Method": "hutchinson"}`
			}
			if v, err := l.RunNamed(t.Context(), name, []byte(options)); v != nil || err != by {
				t.Errorf("%v in K of %s: %v, %v", by, name, v, err)
			}
		}
		if v, err := Verify(t.Context(), sol.Model, VerifyOptions{Monitor: cfg.Monitor}); v != nil || err != by {
			t.Errorf("%v in Verify: %v, %v", by, v, err)
		}
		cfg.Monitor = in(by, stage.Plan, 0)
		if v, err := newLab(t, ranksProblem(300), cfg).RunNamed(t.Context(), stage.Plan, []byte("{}")); v != nil ||
			err != by {
			t.Errorf("%v in a plan: %v, %v", by, v, err)
		}
		cfg.Monitor = in(by, stage.Tune, 0)
		r, err := newLab(t, ranksProblem(300), cfg).Tune(t.Context(), tune.Options{})
		if r == nil || len(r.Points) != 1 || by == boom && err != boom || by == pcg.ErrStop && err != nil {
			t.Errorf("%v in a search: %v, %v", by, r, err)
		}
	}
}

// TestStopRanks: all ranks stop where the Monitor of one says so, with the same answer.
func TestStopRanks(t *testing.T) {
	boom := errors.New("boom")
	for _, by := range []error{pcg.ErrStop, boom} {
		const p, which = 3, 1
		sols, errs := make([]*Solution, p), make([]error, p)
		onRanks(p, func(c comm.Comm) {
			cfg, r := Config{Kernel: gauss, Lambda: 0.1, Seed: 5, Tol: 1e-8, Solver: PCG, Precond: Features{S: 60},
				Comm: c}, c.Rank()
			if r == which {
				cfg.Monitor = endAt(5, func() error { return by })
			}
			sols[r], errs[r] = newLab(t, ranksProblem(300), cfg).Solve(t.Context())
		})
		for r, sol := range sols {
			if sol == nil || sol.Status != pcg.Stopped || sol.Iterations != 5 ||
				!mat.Equal(sol.Model.C, sols[0].Model.C) || sol.TrueResidual != sols[0].TrueResidual {
				t.Fatalf("rank %d: %v, %v", r, sol, errs[r])
			}
			if by == pcg.ErrStop && errs[r] != nil ||
				by == boom && (errs[r] == nil || !strings.Contains(errs[r].Error(), "boom")) {
				t.Errorf("rank %d: %v", r, errs[r])
			}
		}
		if by == boom && !errors.Is(errs[which], boom) {
			t.Errorf("%v", errs[which])
		}
	}
}
