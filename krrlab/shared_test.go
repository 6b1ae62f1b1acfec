package krrlab

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestShared solves a sequence of problems that share K, Z, ZᵀZ and M, and holds each to the
// bits of the same solve alone, and what was shared to what can be.
func TestShared(t *testing.T) {
	ctx := context.Background()
	train := datasets.SyntheticClasses(400, 3, 4, 0.05, 3)
	base := Config{Kernel: kernel.Gaussian{Sigma: 0.7}, Lambda: 0.05, Features: 60, Tol: 1e-6, Storage: gram.Float64, Seed: 7}
	shared := &Shared{}
	for _, c := range []struct {
		name   string
		change func(c *Config)
		want   []string
	}{
		{"first", func(c *Config) {}, nil},
		{"tolerance", func(c *Config) { c.Tol = 1e-2 }, []string{"features", "factor", "kernel"}},
		{"λ_p", func(c *Config) { c.LambdaP = 0.5 }, []string{"features", "ZᵀZ", "kernel"}},
		{"form", func(c *Config) { c.LambdaP, c.Form = 0.5, 2 }, []string{"features", "ZᵀZ", "kernel"}},
		{"seed", func(c *Config) { c.Seed = 8 }, []string{"kernel"}},
		{"s", func(c *Config) { c.Seed, c.Features = 8, 90 }, []string{"kernel"}},
		{"landmarks", func(c *Config) { c.Precond = Nystrom }, []string{"kernel"}},
		{"no preconditioner", func(c *Config) { c.Solver = CG }, []string{"kernel"}},
		{"storage", func(c *Config) { c.Storage, c.Solver = gram.Float32, CG }, nil},
		{"two preconditioners", func(c *Config) { c.Storage, c.Repeat, c.Tol = gram.Float32, 2, 1e-6 }, []string{"kernel"}},
	} {
		cfg := base
		c.change(&cfg)
		alone := solveWith(t, ctx, train, cfg)
		cfg.Shared = shared
		got := solveWith(t, ctx, train, cfg)
		if !mat.Equal(alone.Model.C, got.Model.C) || alone.Iterations != got.Iterations || !reflect.DeepEqual(alone.TrueResidual, got.TrueResidual) {
			t.Errorf("%s: not the same answer as alone", c.name)
		}
		if !slices.Equal(got.Shared, c.want) {
			t.Errorf("%s: shared %q, want %q", c.name, got.Shared, c.want)
		}
		if s := got.Seconds; s.Kernel <= 0 || cfg.Solver != CG && (s.Features <= 0 || s.Factor <= 0) {
			t.Errorf("%s: seconds %+v of what was shared", c.name, s)
		}
	}
	shared.Forget()
	cfg := base
	cfg.Shared = shared
	if got := solveWith(t, ctx, train, cfg); got.Shared != nil {
		t.Errorf("shared %q after Forget", got.Shared)
	}
}

func solveWith(t *testing.T, ctx context.Context, train *datasets.Dataset, cfg Config) *Solution {
	t.Helper()
	l, err := New(train, cfg)
	if err != nil {
		t.Fatal(err)
	}
	sol, err := l.Solve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return sol
}

// TestSharedRefines: a K too coarse for a finer tolerance is formed anew, and a finer one
// serves a coarser tolerance.
func TestSharedRefines(t *testing.T) {
	ctx := context.Background()
	train := datasets.SyntheticRegression(400, 3, 0.1, 3)
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1e-3, Features: 60, Tol: 1e-1, Solver: PCG, Seed: 7, Shared: &Shared{}}
	coarse := solveWith(t, ctx, train, cfg)
	if coarse.Storage != "float32" {
		t.Fatalf("storage %s at τ = 0.1", coarse.Storage)
	}
	cfg.Tol = 1e-6
	if fine := solveWith(t, ctx, train, cfg); fine.Storage != "float64" || slices.Contains(fine.Shared, "kernel") {
		t.Errorf("storage %s, shared %q at τ = 1e-6", fine.Storage, fine.Shared)
	}
	cfg.Tol = 1e-1
	if again := solveWith(t, ctx, train, cfg); again.Storage != "float64" || !slices.Contains(again.Shared, "kernel") {
		t.Errorf("storage %s, shared %q at τ = 0.1 again", again.Storage, again.Shared)
	}
}

func TestSharedRefuses(t *testing.T) {
	train := datasets.SyntheticRegression(50, 3, 0.1, 3)
	shared := &Shared{}
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Shared: shared}
	if _, err := New(train, cfg); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		train  *datasets.Dataset
		change func(c *Config)
		want   string
	}{
		{datasets.SyntheticRegression(50, 3, 0.1, 3), func(*Config) {}, "other training data"},
		{train, func(c *Config) { c.Lambda = 0.2 }, "λ = 0.2"},
		{train, func(c *Config) { c.Kernel = kernel.Gaussian{Sigma: 2} }, "gaussian(sigma=2)"},
		{train, func(c *Config) { c.Comm = comm.Alone() }, "Shared does not go with Comm"},
	} {
		other := cfg
		c.change(&other)
		if _, err := New(c.train, other); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestSharedWaits: a solve that waits for another one ends with its context.
func TestSharedWaits(t *testing.T) {
	s := &Shared{}
	end, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("while another runs: %v", err)
	}
	end()
	if end, err = s.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
}
