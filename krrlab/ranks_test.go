package krrlab

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// ranksProblem returns a classification problem with n points in three classes.
func ranksProblem(n int) *datasets.Dataset {
	return classification(pointsByFormat(n, 4, 8)["float64"], 3)
}

// onEachRank solves ranksProblem on rankCount goroutine ranks and passes the solution of every rank to check.
func onEachRank(t *testing.T, rankCount, n int, cfg Config, check func(rank int, s *Solution)) {
	t.Helper()
	onRanks(rankCount, func(ranks comm.Comm) {
		if sol := solveOn(t, ranks, ranksProblem(n), cfg); sol != nil {
			check(ranks.Rank(), sol)
		}
	})
}

// sameAnswer describes in what two solutions differ. It returns "" if they agree in everything but times and traffic.
func sameAnswer(a, b *Solution) string {
	switch {
	case a.Iterations != b.Iterations || a.Status != b.Status:
		return fmt.Sprintf("%s after %d iterations, want %s after %d", a.Status, a.Iterations, b.Status, b.Iterations)
	case !mat.Equal(a.Model.C, b.Model.C):
		return fmt.Sprintf("coefficients that differ by %.2g", relativeDifference(a.Model.C, b.Model.C))
	case !slices.Equal(a.ColumnTrueResiduals, b.ColumnTrueResiduals) ||
		!slices.Equal(a.ColumnSampledResiduals, b.ColumnSampledResiduals):
		return fmt.Sprintf("residuals %v, %v, want %v, %v", a.ColumnTrueResiduals, a.ColumnSampledResiduals,
			b.ColumnTrueResiduals,
			b.ColumnSampledResiduals)
	case !reflect.DeepEqual(a.Error, b.Error) || a.Criterion != b.Criterion || a.UndecidedLabels != b.UndecidedLabels ||
		a.CheckedLabels != b.CheckedLabels:
		return fmt.Sprintf("bounds %+v, %s, want %+v, %s", a.Error, a.Criterion, b.Error, b.Criterion)
	case fmt.Sprint(a.Kappa, a.KappaBound, a.StatDim, a.KernelErrorBound) != fmt.Sprint(b.Kappa, b.KappaBound,
		b.StatDim, b.KernelErrorBound):
		return "κ, its bound, s_λ or ‖E‖₂"
	}
	return ""
}

// TestRanks solves without ranks, with 1, 2 and 8 threads, and on 1, 2, 3 and 5 ranks, some of which have no rows.
// For each solver, storage and preconditioner and both BLAS libraries all answers must have the same bits. The short
// suite runs each solver and preconditioner with one storage only, and on 3 ranks.
func TestRanks(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n = 1100 // three units of rows
	cases := map[string]map[string]Config{"go": {
		"stored":     {Precond: Features{S: 100}, Storage: gram.Float64, Exact: StoredResidual, Tol: 1e-8},
		"strict":     {Precond: Features{S: 100}, Storage: gram.Float64, Lambda: 10, Tol: 1e-12},
		"cg float32": {Solver: CG, Storage: gram.Float32},
		"both":       {Precond: Vecchia{S: 20}, Solver: BlockPCG, Storage: gram.Float32, Tol: 1e-6},
		"neighbors":  {Precond: Vecchia{Neighbors: 9}, Storage: gram.Recompute, Tol: 1e-6},
		"cg fixed16": {Solver: CG, Storage: gram.Fixed16},
		"spectral":   {Precond: RPCholesky{S: 20, Spectral: true}, Storage: gram.Float32},
	}, "openblas": {
		"form U":       {Precond: Features{S: 600, Form: precond.FormU}},
		"cg float64":   {Solver: CG, Storage: gram.Float64},
		"cg recompute": {Solver: CG, Storage: gram.Recompute},
	}}
	storages := []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16, gram.Recompute}
	for i, preconditioner := range []stage.LowRank{Features{S: 60}, Nystrom{S: 40}, RPCholesky{S: 20, Spectral: true}} {
		for j, solver := range []Solver{PCG, BlockPCG} {
			for k, storage := range storages {
				if suite.Small() && k != (2*i+j)%4 { // the short suite runs each pair with one storage
					continue
				}
				libraryName := []string{"go", "openblas"}[(i+j+k)%2] // each library gets half of the cases
				cases[libraryName][fmt.Sprintf("%v %v %v", stage.NameOf(preconditioner), solver,
					storage)] = Config{Solver: solver,
					Precond: preconditioner, Storage: storage, Tol: 1e-6}
			}
		}
	}
	run := func(t *testing.T, cases map[string]Config) {
		for name, cfg := range cases {
			t.Run(name, func(t *testing.T) {
				cfg.Kernel, cfg.Lambda, cfg.Seed = gauss, max(cfg.Lambda, 0.1), 5
				accel.SetThreads(2)
				singleProcess := mustSolve(t, ranksProblem(n), cfg)
				// The tolerance 1e-12 may be reached without being certified.
				if !(float64(singleProcess.TrueResidual) <= cfg.Tol || cfg.Tol == 0 && singleProcess.Converged()) {
					t.Errorf("%s, residual %.2g", singleProcess.Status, singleProcess.TrueResidual)
				}
				for _, threads := range []int{1, 8}[suite.Scale(1, 0, 0):] {
					accel.SetThreads(threads)
					testkit.Equal(t, sameAnswer(mustSolve(t, ranksProblem(n), cfg), singleProcess), "", threads)
				}
				for i, rankCount := range [][]int{{3}, {1, 2, 3, 5}}[suite.Scale(0, 1, 1)] {
					accel.SetThreads(1 + i%3)
					onEachRank(t, rankCount, n, cfg, func(rank int, sol *Solution) {
						testkit.Equal(t, sameAnswer(sol, singleProcess), "", rank, rankCount)
						if traffic := sol.Ranks; traffic.Count != rankCount || traffic.Bytes == 0 {
							t.Errorf("rank %d of %d: %+v", rank, rankCount, *traffic)
						}
						testkit.Contains(t, sol.String(), fmt.Sprintf("ranks        %d; ", rankCount))
					})
				}
			})
		}
	}
	t.Run("go", func(t *testing.T) { run(t, cases["go"]) })
	t.Run("openblas", func(t *testing.T) {
		library, err := accel.OpenBLAS()
		if err != nil {
			t.Skip(err)
		}
		testkit.UseBLAS(t, library)
		run(t, cases["openblas"])
	})
}

// TestRanksPredict checks that the predictions on three ranks have the bits of those of one process.
func TestRanksPredict(t *testing.T) {
	test := pointsByFormat(600, 4, 9)["float64"]
	sol := mustSolve(t, ranksProblem(700), Config{Kernel: gauss, Lambda: 0.1})
	options := sol.PredictOptions()
	want := testkit.Must(sol.Model.Decision(t.Context(), test, options))
	onRanks(3, func(ranks comm.Comm) {
		options := *options
		options.Comm = ranks
		if decision, err := sol.Model.Decision(t.Context(), test, &options); err != nil || !mat.Equal(decision, want) {
			t.Errorf("rank %d: %v, or other decisions", ranks.Rank(), err)
		}
	})
}

// TestRanksMemory checks that all ranks report what does not fit if the memory limit of one rank is too small.
func TestRanksMemory(t *testing.T) {
	onRanks(3, func(ranks comm.Comm) {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 600}, Comm: ranks}
		if ranks.Rank() == 1 { // the rank with the least memory decides
			cfg.Memory = 4e6
		}
		err := testkit.ErrOf(newLab(t, ranksProblem(700), cfg).Solve(t.Context()))
		testkit.Fails(t, err, "each of 3 ranks, without K and the program, would take")
		testkit.Fails(t, err, "the factor of ZᵀZ+λ_pI")
	})
}

// TestRanksDefaults checks that the default solver on ranks is PCG and that the direct solver is refused.
func TestRanksDefaults(t *testing.T) {
	train := ranksProblem(100)
	lab, err := New(train, Config{Kernel: gauss, Lambda: 0.1, Comm: comm.Alone()})
	if err != nil || lab.Config().Solver != PCG {
		t.Errorf("%v, %v", err, lab.Config().Solver)
	}
	testkit.Fails(t, testkit.ErrOf(New(train, Config{Kernel: gauss, Lambda: 0.1, Comm: comm.Alone(), Solver: Direct})),
		"direct")
}
