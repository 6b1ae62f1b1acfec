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
	krr "github.com/krrlab/lab/krrlab"
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
func problemForBackend() (*datasets.Dataset, krr.Config) {
	return datasets.SyntheticClasses(900, 3, 4, 0.05, 1), krr.Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.1,
		Precond: krr.Features{S: 80}, Tol: 1e-6, Seed: 3}
}

// TestBackend checks a solve and a quality stage that are sent to two ranks of each MPI implementation, as a notebook
// does. The coefficients must equal those of two ranks within this process, bit for bit, and the monitor must get
// events of the iterations.
func TestBackend(t *testing.T) {
	accel.UseLibrary(nil) // Go's BLAS, as --blas go in the ranks, so that the bits agree
	train, cfg := problemForBackend()
	var want [2]*krr.Solution
	var wg sync.WaitGroup
	for rank, ranks := range comm.Local(2, 0) {
		wg.Go(func() {
			cfg := cfg
			cfg.Comm = ranks
			lab, err := krr.New(train, cfg)
			if err == nil {
				want[rank], err = lab.Solve(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, launcher := range launchers {
		t.Run(launcher.name, func(t *testing.T) {
			var solveEvents atomic.Int64
			cfg := cfg
			cfg.Backend = newBackend(t, launcher.name)
			cfg.Monitor = func(e krr.Event) error {
				if e.Stage == "solve" && e.Iteration > 0 {
					solveEvents.Add(1)
				}
				return nil
			}
			lab := testkit.Must(krr.New(train, cfg))
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
			estimated := krr.QualityOptions{MaxExactN: -1} // κ is estimated by iterations, not computed densely
			quality, err := lab.Quality(testContext(t), estimated)
			if err != nil || quality.N != 900 || !(quality.Kappa.Lo >= 1) || quality.Iterations == nil {
				t.Errorf("want κ of 900 points and the number of iterations: error %v, %+v", err, quality)
			}
		})
	}
}

// TestBackendInterrupted checks that a long solve on a backend whose context is canceled returns that error, and that
// none of its processes is left.
func TestBackendInterrupted(t *testing.T) {
	for _, launcher := range launchers {
		t.Run(launcher.name, func(t *testing.T) { cancelSolve(t, newBackend(t, launcher.name)) })
	}
}

// cancelSolve starts a long solve on a backend, cancels its context after a few iterations, and checks the error and
// that no process is left.
func cancelSolve(t *testing.T, backend *remote.Backend) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	cfg := krr.Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 1e-8, Solver: krr.CG, Storage: gram.Recompute,
		Tol: 1e-12, MaxIter: 1e6, Backend: backend, Monitor: func(e krr.Event) error {
			if e.Stage == "solve" && e.Iteration > 3 {
				cancel()
			}
			return nil
		}}
	lab := testkit.Must(krr.New(datasets.SyntheticClasses(1500, 3, 4, 0.05, 1), cfg))
	if _, err := lab.Solve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled solve returns %v, want %v", err, context.Canceled)
	}
	awaitNoProcesses(t, backend.Dir, "") // the processes have printed nothing that could explain a failure
}
