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

// newBackend returns a Backend with two ranks that run this test binary as krrlab. It skips the test if the launcher is
// missing.
func newBackend(t *testing.T, launcher string) *remote.Backend {
	t.Helper()
	if err := findLauncher(launcher); err != nil {
		t.Skip(err)
	}
	self := testkit.Must(os.Executable())
	t.Setenv(actAsKrrlab, "1")
	return &remote.Backend{Ranks: 2, Launcher: launcher, Program: self, Flags: []string{"--blas", "go"},
		Dir: t.TempDir()}
}

// problemForBackend returns the data and the configuration that the tests send to a backend.
func problemForBackend() (*datasets.Dataset, bench.Config) {
	return datasets.SyntheticClasses(900, 3, 4, 0.05, 1), bench.Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.1,
		Precond: bench.Features{S: 80}, Tol: 1e-6, Seed: 3}
}

// TestBackend checks a solve and a quality stage that are sent to two ranks of each MPI implementation, as a notebook
// does. The coefficients must equal those of two ranks within this process, bit for bit, and the monitor must get
// events of the iterations.
func TestBackend(t *testing.T) {
	accel.UseLibrary(nil) // Go's BLAS, as --blas go in the ranks, so that the bits agree
	train, cfg := problemForBackend()
	var want [2]*bench.Solution
	var wg sync.WaitGroup
	for r, c := range comm.Local(2, 0) {
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
			var solveEvents atomic.Int64
			cfg := cfg
			cfg.Backend = newBackend(t, l.name)
			cfg.Monitor = func(e bench.Event) error {
				if e.Stage == "solve" && e.Iteration > 0 {
					solveEvents.Add(1)
				}
				return nil
			}
			lab := testkit.Must(bench.New(train, cfg))
			sol := testkit.Must(lab.Solve(testContext(t)))
			testkit.Equal(t, sol.Converged(), true, sol.Status)
			testkit.Equal(t, sol.Iterations, want[0].Iterations)
			testkit.Equal(t, sol.Ranks.Count, 2)
			if !mat.Equal(sol.Model.C, want[0].Model.C) {
				t.Error("the coefficients differ from those of two ranks in this process")
			}
			if solveEvents.Load() == 0 {
				t.Error("the monitor got no event of an iteration")
			}
			estimated := bench.QualityOptions{MaxExactN: -1} // κ is estimated by iterations, not computed densely
			q, err := lab.Quality(testContext(t), estimated)
			if err != nil || q.N != 900 || !(q.Kappa.Lo >= 1) || q.Iterations == nil {
				t.Errorf("want κ of 900 points and the number of iterations: error %v, %+v", err, q)
			}
		})
	}
}

// TestBackendInterrupted checks that a long solve on a backend whose context is canceled returns that error, and that
// none of its processes is left.
func TestBackendInterrupted(t *testing.T) {
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) { cancelSolve(t, newBackend(t, l.name)) })
	}
}

// cancelSolve starts a long solve on a backend, cancels its context after a few iterations, and checks the error and
// that no process is left.
func cancelSolve(t *testing.T, b *remote.Backend) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	cfg := bench.Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 1e-8, Solver: bench.CG, Storage: gram.Recompute,
		Tol: 1e-12, MaxIter: 1e6, Backend: b, Monitor: func(e bench.Event) error {
			if e.Stage == "solve" && e.Iteration > 3 {
				cancel()
			}
			return nil
		}}
	lab := testkit.Must(bench.New(datasets.SyntheticClasses(1500, 3, 4, 0.05, 1), cfg))
	if _, err := lab.Solve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled solve returns %v, want %v", err, context.Canceled)
	}
	awaitNoProcesses(t, b.Dir, "") // the processes have printed nothing that could explain a failure
}
