package krrlab

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestShared solves a sequence of problems that share K, Z and M, and holds each to the
// bits of the same solve alone, and what was shared to what can be.
func TestShared(t *testing.T) {
	ctx := context.Background()
	train := datasets.SyntheticClasses(400, 3, 4, 0.05, 3)
	base := Config{Kernel: kernel.Gaussian{Sigma: 0.7}, Lambda: 0.05, Precond: Features{S: 60}, Tol: 1e-6,
		Storage: gram.Float64, Seed: 7}
	first := newLab(t, train, base)
	for _, c := range []struct {
		name   string
		change func(c *Config)
		want   []string
	}{
		{"first", func(c *Config) {}, nil},
		{"tolerance", func(c *Config) { c.Tol = 1e-2 }, []string{"features", "factor", "kernel"}},
		{"λ_p", func(c *Config) { c.Precond = Features{S: 60, LambdaP: 0.5} }, []string{"features", "kernel"}},
		{"form", func(c *Config) { c.Precond = Features{S: 60, LambdaP: 0.5, Form: 2} },
			[]string{"features", "kernel"}},
		{"seed", func(c *Config) { c.Seed = 8 }, []string{"kernel"}},
		{"s", func(c *Config) { c.Seed, c.Precond = 8, Features{S: 90} }, []string{"kernel"}},
		{"landmarks", func(c *Config) { c.Precond = Nystrom{S: 60} }, []string{"kernel"}},
		{"no preconditioner", func(c *Config) { c.Solver, c.Precond = CG, nil }, []string{"kernel"}},
		{"storage", func(c *Config) { c.Storage, c.Solver, c.Precond = gram.Float32, CG, nil }, nil},
	} {
		cfg := base
		c.change(&cfg)
		alone := mustSolve(t, train, cfg)
		l := testkit.Must(first.With(func(c *Config) { *c = cfg }))
		got := testkit.Must(l.Solve(ctx))
		if !mat.Equal(alone.Model.C, got.Model.C) || alone.Iterations != got.Iterations ||
			!reflect.DeepEqual(alone.TrueResiduals, got.TrueResiduals) {
			t.Errorf("%s: not the same answer as alone", c.name)
		}
		if !slices.Equal(got.Shared, c.want) {
			t.Errorf("%s: shared %q, want %q", c.name, got.Shared, c.want)
		}
		if s := got.Seconds; s.Kernel <= 0 || cfg.Solver != CG && (s.Features <= 0 || s.Factor <= 0) {
			t.Errorf("%s: seconds %+v of what was shared", c.name, s)
		}
	}
	first.Free()
	if got, err := first.Solve(ctx); err != nil || got.Shared != nil {
		t.Errorf("shared %q after Free, %v", got.Shared, err)
	}
}

// TestSharedRefines: a K too coarse for a finer tolerance is formed again, and a finer one
// serves a coarser tolerance.
func TestSharedRefines(t *testing.T) {
	ctx := context.Background()
	train := datasets.SyntheticRegression(400, 3, 0.1, 3)
	coarse := newLab(t, train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1e-3, Precond: Features{S: 60},
		Tol: 1e-1, Solver: PCG, Seed: 7})
	if sol, err := coarse.Solve(ctx); err != nil || sol.Storage != "float32" {
		t.Fatalf("storage %s at τ = 0.1, %v", sol.Storage, err)
	}
	fine := testkit.Must(coarse.With(func(c *Config) { c.Tol = 1e-6 }))
	if sol, err := fine.Solve(ctx); err != nil || sol.Storage != "float64" || slices.Contains(sol.Shared, "kernel") {
		t.Errorf("storage %s, shared %q at τ = 1e-6, %v", sol.Storage, sol.Shared, err)
	}
	if sol, err := coarse.Solve(ctx); err != nil || sol.Storage != "float64" || !slices.Contains(sol.Shared, "kernel") {
		t.Errorf("storage %s, shared %q at τ = 0.1 again, %v", sol.Storage, sol.Shared, err)
	}
}

// TestWithRefuses: another problem is none of the lab's, also where its kernel is a Go function, which labs share.
func TestWithRefuses(t *testing.T) {
	for _, k := range []kernel.Kernel{gauss, kernel.Func{Name: "own", F: gauss.Eval}} {
		l := newLab(t, datasets.SyntheticRegression(50, 3, 0.1, 3), Config{Kernel: k, Lambda: 0.1, Solver: PCG})
		other := testkit.Must(l.With(func(c *Config) { c.Precond = Nystrom{S: 20} }))
		testkit.Equal(t, other.problem, l.problem)
		for _, change := range []func(*Config){
			func(c *Config) { c.Lambda = 0.2 },
			func(c *Config) { c.Kernel = kernel.Gaussian{Sigma: 2} },
			func(c *Config) { c.Kernel = kernel.Func{Name: "other", F: gauss.Eval} },
			func(c *Config) { c.Comm = comm.Alone() },
		} {
			testkit.Fails(t, testkit.ErrOf(l.With(change)), "another problem")
		}
	}
}

// TestStagesWait: a stage that waits for another one ends with its context.
func TestStagesWait(t *testing.T) {
	s := newLab(t, datasets.SyntheticRegression(50, 3, 0.1, 3), Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1})
	end := testkit.Must(s.acquire(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("while another runs: %v", err)
	}
	end()
	testkit.Must(s.acquire(t.Context()))()
}
