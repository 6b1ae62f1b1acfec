package krrlab

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
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

// denseResidual is the worst ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ of coefficients, by plain loops.
func denseResidual(t testing.TB, l *solve.System, c *mat.Dense) float64 {
	return worst(newReference(t, l.Kernel, l.Train.X, l.Lambda, l.Y).residuals(c, l.Y))
}

// stopCases are solves of each kind, which are ended in iteration stopAt.
var stopCases = map[string]Config{
	"pcg":         {Solver: PCG, Precond: Features{S: 60}},
	"block-pcg":   {Solver: BlockPCG, Precond: Features{S: 60}},
	"cg":          {Solver: CG},
	"K as stored": {Solver: PCG, Precond: Features{S: 60}, Exact: StoredResidual},
}

const stopAt = 5

// stopLab returns a lab of one of stopCases.
func stopLab(t *testing.T, cfg Config) *Lab {
	t.Helper()
	cfg.Kernel, cfg.Lambda, cfg.Seed, cfg.Tol = gauss, 0.1, 5, 1e-8
	return newLab(t, ranksProblem(300), cfg)
}

// near reports whether two residuals are the same but for the rounding of K as stored.
func near(a, b float64) bool { return math.Abs(a/b-1) < 1e-3 || math.Abs(a-b) < 1e-6 }

// TestStop stops solves of each kind by their Monitor: the answer comes without an error, or beside the
// Monitor's own, with its true residual, and not as converged.
func TestStop(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range stopCases {
		for _, by := range []error{pcg.ErrStop, boom} {
			l := stopLab(t, c)
			l.cfg.Monitor = endAt(stopAt, func() error { return by })
			sol, err := l.Solve(t.Context())
			if by == boom && err != boom || by == pcg.ErrStop && err != nil || sol == nil {
				t.Fatalf("%s: %v, %v", name, sol, err)
			}
			if sol.Status != pcg.Stopped || sol.Iterations != stopAt {
				t.Errorf("%s: %v after %d iterations, want stopped after %d", name, sol.Status, sol.Iterations, stopAt)
			}
			want := denseResidual(t, l.system(), sol.Model.C)
			if !near(float64(sol.TrueResidual), want) {
				t.Errorf("%s: a residual of %g, dense %g", name, sol.TrueResidual, want)
			}
			testkit.Equal(t, c.Exact == StoredResidual, sol.SampledResidual.Known(), name, sol.SampledResidual)
		}
	}
}

// TestInterrupt ends the context of solves of each kind: the answer comes beside the error, with the residual by
// recurrence in its history, and no residual is reported as recomputed that is not.
func TestInterrupt(t *testing.T) {
	for name, c := range stopCases {
		ctx, cancel := context.WithCancel(t.Context())
		l := stopLab(t, c)
		l.cfg.Monitor = endAt(stopAt, func() error { cancel(); return nil })
		sol, err := l.Solve(ctx)
		if !errors.Is(err, context.Canceled) || sol == nil {
			t.Fatalf("%s: %v, %v", name, sol, err)
		}
		if sol.Status != pcg.Canceled || sol.Iterations != stopAt {
			t.Errorf("%s: %v after %d iterations, want canceled after %d", name, sol.Status, sol.Iterations, stopAt)
		}
		want := denseResidual(t, l.system(), sol.Model.C)
		last := sol.History[len(sol.History)-1].Residual
		if sol.TrueResidual.Known() || sol.Roundings != nil || !near(last, want) {
			t.Errorf("%s: true residual %v, by recurrence %g, dense %g", name, sol.TrueResidual, last, want)
		}
		if text := sol.String(); !strings.Contains(text, "by recurrence") || strings.Contains(text, "true residual") {
			t.Errorf("%s: %s", name, text)
		}
		if err := sol.Plot().Validate(); err != nil || sol.Table() == nil {
			t.Errorf("%s: %v", name, err)
		}
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

// TestStopResume: a solve that was stopped, in its refinement too, leaves a checkpoint, from which
// another comes to the answer of an unbroken one.
func TestStopResume(t *testing.T) {
	accel.Use(nil)
	for name, c := range map[string]struct {
		cfg   Config
		share float64 // of the iterations
	}{
		"pcg":     {Config{Solver: PCG, Precond: Features{S: 60}, Tol: 1e-8}, 0.5},
		"refined": {Config{Solver: PCG, Precond: Features{S: 60}, Tol: 1e-7, Storage: gram.Fixed16}, 0.9},
	} {
		cfg := c.cfg
		cfg.Kernel, cfg.Lambda, cfg.Seed = gauss, 0.1, 5
		solve := func() (*Solution, error) {
			l := newLab(t, ranksProblem(400), cfg)
			if name == "refined" {
				l.policy.ExactWork = -1
			}
			return l.Solve(t.Context())
		}
		want := testkit.Must(solve())
		cfg.Checkpoint = &Checkpoint{Dir: filepath.Join(t.TempDir(), "kept"), EveryIter: 1}
		cfg.Monitor = endAt(int(c.share*float64(want.Iterations)), func() error { return pcg.ErrStop })
		sol, err := solve()
		if err != nil || sol.Status != pcg.Stopped || sol.Iterations >= want.Iterations {
			t.Fatalf("%s: %v, %v", name, sol, err)
		}
		if res := denseResidual(t, sol.System, sol.Model.C); !near(float64(sol.TrueResidual), res) &&
			!near(float64(sol.SampledResidual), res) {
			t.Errorf("%s: a residual of %g, %g by rows, dense %g", name, sol.TrueResidual, sol.SampledResidual, res)
		}
		cfg.Checkpoint.Resume, cfg.Monitor = true, nil
		if sol, err = solve(); err != nil || !mat.Equal(sol.Model.C, want.Model.C) ||
			sol.Iterations != want.Iterations {
			t.Errorf("%s resumed: %v, %v", name, sol, err)
		}
	}
}
