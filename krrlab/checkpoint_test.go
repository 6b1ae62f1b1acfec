package krrlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// problemSize is the number of points of the problems in this file.
const problemSize = 700

// solveInterrupted solves on rankCount ranks, or without ranks if rankCount is 0, and ends the context after the given
// number of iterations, or never if it is −1. It returns the solution of rank 0, or nil if the solve was interrupted
// before.
func solveInterrupted(t *testing.T, rankCount, iterations int, cfg Config) *Solution {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	iterationsSeen := 0
	solve := func(cfg Config) *Solution {
		lab, err := New(ranksProblem(problemSize), cfg)
		if err != nil {
			t.Error(err)
			return nil
		}
		if cfg.Storage == gram.Fixed16 {
			lab.policy.ExactWork = -1 // refine after the rows are checked
		}
		sol, err := lab.Solve(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return nil
		}
		return sol
	}
	watchedCfg := cfg
	watchedCfg.Monitor = func(e Event) error {
		if e.Iteration > 0 {
			if iterationsSeen++; iterationsSeen == iterations {
				cancel()
			}
		}
		return nil
	}
	if rankCount == 0 {
		return solve(watchedCfg)
	}
	var sol *Solution
	onRanks(rankCount, func(ranks comm.Comm) {
		cfg := cfg
		if ranks.Rank() == 0 {
			cfg = watchedCfg
		}
		cfg.Comm = ranks
		if rankSol := solve(cfg); ranks.Rank() == 0 {
			sol = rankSol
		}
	})
	return sol
}

// TestResumeBits interrupts solves of each kind again and again, resumes from the newest checkpoint each time, and
// checks that the result has the same bits as an uninterrupted solve. Runs on ranks change the number of ranks with
// each resumption. Only the longer suites also run without ranks.
func TestResumeBits(t *testing.T) {
	testkit.UseBLAS(t, nil)
	for name, cfg := range map[string]Config{
		"pcg":       {Precond: Features{S: 100}, Solver: PCG, Tol: 1e-8},
		"block-pcg": {Precond: Features{S: 100}, Solver: BlockPCG, Tol: 1e-8},
		"cg":        {Solver: CG, Tol: 1e-4},
		"vecchia":   {Precond: Vecchia{S: 9, Neighbors: 5}, Storage: gram.Fixed16, Tol: 1e-7},
		"refined":   {Precond: Features{S: 100}, Storage: gram.Fixed16, Tol: 1e-7},
		"noise": {Precond: Nystrom{S: 20}, Kernel: kernel.Gaussian{Sigma: 0.3}, Lambda: 5e-3,
			Storage: gram.Fixed16},
		"rows": {Precond: Features{S: 100}, Storage: gram.Float32, Exact: StoredResidual, Tol: 1e-4},
	} {
		for _, withRanks := range []bool{false, true}[suite.Scale(1, 0, 0):] {
			t.Run(name, func(t *testing.T) {
				cfg := cfg
				if cfg.Seed = 5; cfg.Kernel == nil {
					cfg.Kernel, cfg.Lambda = gauss, 0.1
				}
				rankCount := 0
				if withRanks {
					rankCount = 2
				}
				want := solveInterrupted(t, rankCount, -1, cfg)
				iterationsPerRound := want.Iterations/4 + 1
				cfg.Checkpoint = &Checkpoint{Dir: filepath.Join(t.TempDir(), "kept"), EveryIter: 3}
				var got *Solution
				for round := 0; got == nil; round++ {
					if round == 10 {
						t.Fatal("the solve does not end in ten rounds")
					}
					cfg.Checkpoint.Resume = round > 0
					if withRanks {
						rankCount = 1 + round%3
					}
					got = solveInterrupted(t, rankCount, iterationsPerRound, cfg)
				}
				if !mat.Equal(got.Model.C, want.Model.C) || got.Iterations != want.Iterations ||
					got.Status != want.Status {
					t.Errorf("resumed: %s after %d iterations; uninterrupted: %s after %d; or other coefficients",
						got.Status, got.Iterations, want.Status, want.Iterations)
				}
				testkit.Equal(t, len(got.History), len(want.History))
				testkit.Equal(t, fmt.Sprint(got.Tol, got.Criterion), fmt.Sprint(want.Tol, want.Criterion))
				testkit.Equal(t, want.Noise != nil && want.Noise.Products > 0, name == "noise")
				testkit.OK(t, got.RemoveCheckpoints())
				if files, _ := os.ReadDir(cfg.Checkpoint.Dir); len(files) > 0 {
					t.Errorf("RemoveCheckpoints leaves %v", files)
				}
			})
		}
	}
}

// TestCheckpointStorage resumes a run under a memory limit for which K would be stored differently. K must be stored
// as in the first run, or the resumption is refused if that does not fit into the memory.
func TestCheckpointStorage(t *testing.T) {
	testkit.UseBLAS(t, nil)
	setThreads(t, 2)
	const tightLimit = 2_300_000 // The float64 tiles alone take this many bytes.
	for storage, memory := range map[string]struct{ first, second int64 }{
		"float64": {0, tightLimit},
		"float32": {tightLimit, 0},
	} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Seed: 5, Precond: Features{S: 100}, Solver: PCG, Tol: 1e-8,
			Memory: memory.first}
		want := solveInterrupted(t, 0, -1, cfg)
		if want.Storage != storage {
			t.Fatalf("K is stored as %s with %d bytes, want %s", want.Storage, memory.first, storage)
		}
		cfg.Checkpoint = &Checkpoint{Dir: filepath.Join(t.TempDir(), "kept"), EveryIter: 3}
		if sol := solveInterrupted(t, 0, want.Iterations/2, cfg); sol != nil {
			t.Fatal("the solve is not interrupted")
		}
		cfg.Memory, cfg.Checkpoint.Resume = memory.second, true
		lab := newLab(t, ranksProblem(problemSize), cfg)
		sol, err := lab.Solve(t.Context())
		var memoryErr *accel.MemoryError
		switch {
		case errors.As(err, &memoryErr) && memory.second == tightLimit:
			testkit.Contains(t, err.Error(), "needs K in the storage float64")
		case err != nil:
			t.Errorf("%s: %v", storage, err)
		case sol.Storage != storage || !mat.Equal(sol.Model.C, want.Model.C):
			t.Errorf("K is stored as %s in the resumed run, and as %s before; or other coefficients", sol.Storage,
				storage)
		}
	}
}

// TestCheckpointRefused checks that checkpoints of another problem are refused, that a damaged checkpoint is skipped
// with a note if there is an older one, and that user-defined kernels and a missing folder are errors.
func TestCheckpointRefused(t *testing.T) {
	dir := t.TempDir()
	var notes []string
	cfg := Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 50}, Tol: 1e-8}
	cfg.Checkpoint = &Checkpoint{Dir: dir, EveryIter: 1, Note: func(note string) { notes = append(notes, note) }}
	solveInterrupted(t, 0, 6, cfg)
	files, _ := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
	if len(files) != 2 {
		t.Fatalf("the checkpoints %v are kept, want two", files)
	}
	checkRefused := func(cfg Config, want string) {
		t.Helper()
		lab := newLab(t, ranksProblem(problemSize), cfg)
		testkit.Fails(t, testkit.ErrOf(lab.Solve(t.Context())), want)
	}
	checkRefused(cfg, "resume from it (--resume), or take another folder")
	cfg.Checkpoint.Resume = true
	otherCfg := cfg
	otherCfg.Lambda = 0.2
	checkRefused(otherCfg, "of other data or another configuration")
	testkit.OK(t, os.WriteFile(files[1], []byte("x"), 0o644))
	if sol := solveInterrupted(t, 0, -1, cfg); sol == nil || !sol.Converged() {
		t.Errorf("the run does not resume from the older checkpoint: %v", sol)
	}
	testkit.Contains(t, strings.Join(notes, "; "), "cut off after 1 byte", "resuming")
	userDefinedCfg := cfg
	userDefinedCfg.Kernel, userDefinedCfg.Precond = kernel.Func{F: gauss.Eval},
		Features{Map: feature.Fourier{Kernel: gauss}}
	checkRefused(userDefinedCfg, "checkpoint")
	_, err := New(ranksProblem(20), Config{Kernel: gauss, Lambda: 1, Checkpoint: &Checkpoint{}})
	testkit.Fails(t, err, "folder")
}

// TestCheckpointTwoRuns checks that a second run in the folder of a running one is refused, whether it resumes or
// not, that the first run is not disturbed, and that the folder is free again afterwards.
func TestCheckpointTwoRuns(t *testing.T) {
	cfg := Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 50}, Tol: 1e-8}
	want := solveInterrupted(t, 0, -1, cfg)
	cfg.Checkpoint = &Checkpoint{Dir: t.TempDir(), EveryIter: 1}
	secondCfg := cfg
	cfg.Monitor = func(e Event) error {
		if e.Iteration != 4 {
			return nil
		}
		for _, resume := range []bool{false, true} {
			secondCfg.Checkpoint = &Checkpoint{Dir: cfg.Checkpoint.Dir, EveryIter: 1, Resume: resume}
			lab, err := New(ranksProblem(problemSize), secondCfg)
			if err == nil {
				_, err = lab.Solve(t.Context())
			}
			testkit.Fails(t, err, "in use by process")
		}
		if files, _ := filepath.Glob(filepath.Join(cfg.Checkpoint.Dir, "checkpoint-*")); len(files) != 2 {
			t.Errorf("the first run keeps the checkpoints %v, want two", files)
		}
		return nil
	}
	lab := newLab(t, ranksProblem(problemSize), cfg)
	sol, err := lab.Solve(t.Context())
	if err != nil || !mat.Equal(sol.Model.C, want.Model.C) {
		t.Fatalf("the second run disturbs the first one: error %v, or other coefficients", err)
	}
	cfg.Monitor, cfg.Checkpoint.Resume = nil, true
	solveLab(t, newLab(t, ranksProblem(problemSize), cfg)) // the folder is free again
}

// TestCheckpointFails checks that a solve ends with the reason if a checkpoint cannot be written.
func TestCheckpointFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	cfg := Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 50}, Tol: 1e-8}
	cfg.Checkpoint = &Checkpoint{Dir: dir, EveryIter: 2}
	cfg.Monitor = func(e Event) error {
		if e.Iteration == 1 {
			os.RemoveAll(dir)
		}
		return nil
	}
	lab := newLab(t, ranksProblem(problemSize), cfg)
	if _, err := lab.Solve(t.Context()); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("error %v, want %v of a checkpoint", err, os.ErrNotExist)
	}
}

// TestRefusedRunKeepsPlan checks that a run that is refused a folder in use does not change the plan saved there, and
// that a run that ends well leaves no file there once its checkpoints are removed, with and without weights.
func TestRefusedRunKeepsPlan(t *testing.T) {
	train := regression(pointsByFormat(DirectBelow+100, 3, 5)["float64"])
	weighted := *train
	weighted.Weights = make([]float64, train.Len())
	for i := range weighted.Weights {
		weighted.Weights[i] = 1 + float64(i%3)
	}
	plannedLab := func(train *datasets.Dataset, s int, checkpoint *Checkpoint) *Lab {
		lab := newLab(t, train, Config{Kernel: gauss, Lambda: 1, Exact: StoredResidual, Checkpoint: checkpoint})
		lab.savedPlan = &plan.Plan{Report: plan.Report{Choice: cost.Candidate{Solver: cost.PCG,
			Preconditioner: Nystrom{S: s, LambdaP: 1},
			Recipe:         fmt.Sprintf("nystrom features=%d lambda-p=1", s), S: s, Storage: gram.Float32}}}
		return lab
	}
	for name, train := range map[string]*datasets.Dataset{"without weights": train, "with weights": &weighted} {
		for _, resume := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "run")
			var refusal error
			first := plannedLab(train, 63, &Checkpoint{Dir: dir, EveryIter: 1})
			first.cfg.Monitor = func(e Event) error {
				if e.Iteration == 1 { // there is a checkpoint before and after this iteration
					_, refusal = plannedLab(train, 64, &Checkpoint{Dir: dir, Resume: resume}).Solve(t.Context())
				}
				return nil
			}
			sol, err := first.Solve(t.Context())
			if err != nil || !sol.Converged() {
				t.Fatal(name, sol, err)
			}
			if saved, err := plan.ReadReport(dir); err != nil || saved == nil || saved.Choice.S != 63 ||
				refusal == nil || !strings.Contains(refusal.Error(), "in use by process") {
				t.Errorf("%s: the saved plan is %+v, error %v; the error of the second run is %v", name, saved, err,
					refusal)
			}
			testkit.OK(t, sol.RemoveCheckpoints())
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("%s: RemoveCheckpoints leaves %v", name, files)
			}
		}
	}
}
