package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	bench "github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/ranks/remote"
)

// backend returns a Backend with two ranks that run this test binary as krrlab. It skips the test if the launcher is
// missing.
func backend(t *testing.T, launcher string) *remote.Backend {
	t.Helper()
	if err := findLauncher(launcher); err != nil {
		t.Skip(err)
	}
	self := testkit.Must(os.Executable())
	t.Setenv(playVariable, "1")
	return &remote.Backend{Ranks: 2, Launcher: launcher, Program: self, Flags: []string{"--blas", "go"},
		Dir: t.TempDir()}
}

// sentProblem returns the data and the configuration that the tests send to a backend.
func sentProblem() (*datasets.Dataset, bench.Config) {
	return datasets.SyntheticClasses(900, 3, 4, 0.05, 1), bench.Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.1,
		Precond: bench.Features{S: 80}, Tol: 1e-6, Seed: 3}
}

// TestBackend sends a solve and a quality stage to two ranks of each MPI implementation, as a notebook does. The
// coefficients must equal those of two ranks within this process, bit for bit, and the monitor must see progress.
func TestBackend(t *testing.T) {
	accel.Use(nil)
	train, cfg := sentProblem()
	var want [2]*bench.Solution
	var wg sync.WaitGroup
	for r, c := range comm.Local(2, comm.Options{}) {
		wg.Go(func() {
			cfg := cfg
			cfg.Comm = c
			lab, err := bench.New(train, cfg)
			if err == nil {
				want[r], err = lab.Solve(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) {
			var solving atomic.Int64
			cfg := cfg
			cfg.Backend = backend(t, l.name)
			cfg.Monitor = func(e bench.Event) error {
				if e.Stage == "solve" && e.Iteration > 0 {
					solving.Add(1)
				}
				return nil
			}
			lab := testkit.Must(bench.New(train, cfg))
			sol := testkit.Must(lab.Solve(limited(t)))
			if !mat.Equal(sol.Model.C, want[0].Model.C) || sol.Iterations != want[0].Iterations || !sol.Converged() ||
				sol.Ranks.Count != 2 {
				t.Errorf("%s after %d iterations, want %d; or other coefficients", sol.Status, sol.Iterations,
					want[0].Iterations)
			}
			if solving.Load() == 0 {
				t.Error("no progress")
			}
			q, err := lab.Quality(limited(t), bench.QualityOptions{ExactBelow: -1})
			if err != nil || q.N != 900 || !(q.Kappa.Lo >= 1) || q.Iterations == nil {
				t.Errorf("%v, %+v", err, q)
			}
		})
	}
}

// TestBackendInterrupted cancels the context of a long solve on a backend. The solve must report the cancellation, and
// none of its processes may be left.
func TestBackendInterrupted(t *testing.T) {
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) { cancelSolve(t, backend(t, l.name)) })
	}
}

// cancelSolve starts a long solve on a backend, cancels its context after a few iterations, and checks the error and
// that no process is left.
func cancelSolve(t *testing.T, b *remote.Backend) {
	t.Helper()
	ctx, cancel := context.WithCancel(limited(t))
	cfg := bench.Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 1e-8, Solver: bench.CG, Storage: gram.Recompute,
		Tol: 1e-12, MaxIter: 1e6, Backend: b, Monitor: func(e bench.Event) error {
			if e.Stage == "solve" && e.Iteration > 3 {
				cancel()
			}
			return nil
		}}
	lab := testkit.Must(bench.New(datasets.SyntheticClasses(1500, 3, 4, 0.05, 1), cfg))
	if _, err := lab.Solve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	gone(t, b.Dir, "")
}
