package krrlab

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
)

// ranksProblem returns n points of three classes.
func ranksProblem(n int) *datasets.Dataset { return classes(kinds(n, 4, 8)["float64"], 3) }

// solveOnRanks solves on p goroutine ranks and checks that all have the same answer.
func solveOnRanks(t *testing.T, p, n int, cfg Config) *Solution {
	t.Helper()
	sols := make([]*Solution, p)
	var wg sync.WaitGroup
	for r, c := range comm.Local(p, comm.Options{}) {
		wg.Go(func() {
			cfg := cfg
			cfg.Comm = c
			lab, err := New(ranksProblem(n), cfg)
			if err == nil {
				sols[r], err = lab.Solve(t.Context())
			}
			if err != nil {
				t.Errorf("rank %d of %d: %v", r, p, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for r, s := range sols {
		if !mat.Equal(s.Model.C, sols[0].Model.C) || s.Iterations != sols[0].Iterations {
			t.Fatalf("rank %d of %d has another answer than rank 0", r, p)
		}
	}
	return sols[0]
}

// TestRanks solves on 1, 2, 3, 4 and 7 ranks, with 1 to 3 threads, by each solver and
// storage: bitwise the same coefficients with the Go BLAS, and those of one process to
// the accuracy of the solve.
func TestRanks(t *testing.T) {
	accel.Use(nil)
	threads := accel.Threads()
	defer accel.SetThreads(threads)
	const n = 1300
	for name, cfg := range map[string]Config{
		"pcg":         {Features: 100, Precond: RandomFeatures, Storage: gram.Float32, Solver: PCG, Tol: 1e-6},
		"block-pcg":   {Features: 100, Solver: BlockPCG, Tol: 1e-8},
		"nystrom":     {Features: 60, Precond: Nystrom, Solver: PCG, Tol: 1e-8},
		"rpcholesky":  {Features: 60, Precond: RPCholesky, Storage: gram.Recompute, Tol: 1e-8},
		"cg":          {Solver: CG, Tol: 1e-4},
		"fixed16":     {Features: 100, Storage: gram.Fixed16, Tol: 1e-6},
		"repetitions": {Features: 100, Repeat: 3, Storage: gram.Float64, Exact: StoredResidual, Tol: 1e-8},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Kernel, cfg.Lambda, cfg.Seed = gauss, 0.1, 5
			lone := mustSolve(t, ranksProblem(n), cfg)
			var first *Solution
			for i, p := range []int{1, 2, 3, 4, 7} {
				accel.SetThreads(1 + i%3)
				sol := solveOnRanks(t, p, n, cfg)
				if first == nil {
					first = sol
				}
				if !sol.Converged() || !mat.Equal(sol.Model.C, first.Model.C) || sol.Iterations != first.Iterations {
					t.Errorf("%d ranks: %s after %d iterations, one rank %d, or other coefficients", p, sol.Status, sol.Iterations, first.Iterations)
				}
				if r := sol.Ranks; r.Count != p || r.Products == 0 || r.ProductBytes != r.ProductFormula || r.SolveBytes != r.SolveFormula {
					t.Errorf("%d ranks: %+v", p, *r)
				}
				if s := sol.Report().String(); !strings.Contains(s, fmt.Sprintf("ranks        %d; sent by each", p)) {
					t.Errorf("the report:\n%s", s)
				}
			}
			var diff mat.Dense
			diff.Sub(first.Model.C, lone.Model.C)
			if e := mat.Norm(&diff, 2) / mat.Norm(lone.Model.C, 2); e > 1e3*cfg.Tol {
				t.Errorf("ranks differ from one process by %.2g", e)
			}
			solves := max(cfg.Repeat, 1) // each within an iteration
			if d := first.Iterations - lone.Iterations; d < -solves || d > solves {
				t.Errorf("%d iterations in %d solves, one process %d", first.Iterations, solves, lone.Iterations)
			}
		})
	}
}

// TestRanksWellConditioned: where κ is small, ranks and one process agree to 1e-9 with the BLAS
// in use, and in their iterations.
func TestRanksWellConditioned(t *testing.T) {
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		defer accel.Use(nil)
	}
	cfg := Config{Kernel: gauss, Lambda: 10, Features: 100, Storage: gram.Float64, Tol: 1e-11, Seed: 5}
	lone := mustSolve(t, ranksProblem(1300), cfg)
	for _, p := range []int{2, 3} {
		sol := solveOnRanks(t, p, 1300, cfg)
		if d := sol.Iterations - lone.Iterations; d < -1 || d > 1 {
			t.Errorf("%d ranks: %d iterations, one process %d", p, sol.Iterations, lone.Iterations)
		}
		if e := apart(sol.Model.C, lone.Model.C); e > 1e-9 {
			t.Errorf("%d ranks differ from one process by %.2g", p, e)
		}
	}
}

// TestRanksPredict evaluates a model on ranks: the numbers of one process.
func TestRanksPredict(t *testing.T) {
	test := kinds(600, 4, 9)["float64"]
	sol := mustSolve(t, ranksProblem(700), Config{Kernel: gauss, Lambda: 0.1})
	o := sol.PredictOptions()
	want, err := sol.Model.Decision(t.Context(), test, o)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range comm.Local(3, comm.Options{}) {
		wg.Go(func() {
			o := *o
			o.Comm = c
			if f, err := sol.Model.Decision(t.Context(), test, &o); err != nil || !mat.Equal(f, want) {
				t.Errorf("rank %d: %v, or other decisions", c.Rank(), err)
			}
		})
	}
	wg.Wait()
}

// TestRanksMemory names what does not fit, on all ranks.
func TestRanksMemory(t *testing.T) {
	var wg sync.WaitGroup
	for _, c := range comm.Local(3, comm.Options{}) {
		wg.Go(func() {
			cfg := Config{Kernel: gauss, Lambda: 0.1, Features: 600, Comm: c}
			if c.Rank() == 1 { // the poorest decides
				cfg.Memory = 4e6
			}
			lab, err := New(ranksProblem(700), cfg)
			if err == nil {
				_, err = lab.Solve(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), "each of 3 ranks would hold") || !strings.Contains(err.Error(), "the factor of ZᵀZ+λ_pI") {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
		})
	}
	wg.Wait()
}

// TestRanksDefaults: a dense factorisation is for one process.
func TestRanksDefaults(t *testing.T) {
	train := ranksProblem(100)
	lab, err := New(train, Config{Kernel: gauss, Lambda: 0.1, Comm: comm.Alone()})
	if err != nil || lab.Config().Solver != PCG {
		t.Errorf("%v, %v", err, lab.Config().Solver)
	}
	if _, err := New(train, Config{Kernel: gauss, Lambda: 0.1, Comm: comm.Alone(), Solver: Direct}); err == nil || !strings.Contains(err.Error(), "direct") {
		t.Errorf("%v", err)
	}
}
