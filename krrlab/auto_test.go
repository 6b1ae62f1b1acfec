package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// TestPlanChoices checks which configurations leave choices to the plan, and which are decided by the fixed rule for
// few points or by a named method. It also checks that the options of Auto reach the chosen preconditioner.
func TestPlanChoices(t *testing.T) {
	for name, c := range map[string]struct {
		n         int
		cfg       Config
		isPlanned bool
	}{
		"nothing set":      {3001, Config{}, true},
		"few points":       {3000, Config{}, false},
		"auto":             {3001, Config{Precond: Auto{S: 70}}, true},
		"auto, a solver":   {3001, Config{Precond: Auto{}, Solver: PCG}, true},
		"storage":          {3001, Config{Storage: gram.Float32}, true},
		"pcg alone":        {3001, Config{Solver: PCG}, false},
		"direct":           {3001, Config{Solver: Direct}, false},
		"auto and direct":  {3001, Config{Solver: Direct, Precond: Auto{}}, false},
		"a preconditioner": {3001, Config{Precond: Nystrom{}}, false},
		"ranks":            {3001, Config{Comm: comm.Alone()}, true},
		"few on ranks":     {3000, Config{Comm: comm.Alone()}, false},
		"auto, few points": {300, Config{Precond: Auto{S: 70, LambdaP: 2}}, false},
		"auto, no features": {300, Config{Precond: Auto{S: 70}, Kernel: kernel.Func{Name: "own", F: gauss.Eval}},
			false},
	} {
		if c.cfg.Lambda = 0.1; c.cfg.Kernel == nil {
			c.cfg.Kernel = gauss
		}
		openChoices := c.cfg.planChoices(c.n)
		testkit.Equal(t, openChoices != nil && !openChoices.fixedRule, c.isPlanned, name, openChoices)
		if openChoices != nil && (openChoices.solverSet != (c.cfg.Solver != AutoSolver) ||
			reflect.DeepEqual(c.cfg.Precond, Preconditioner(Auto{S: 70})) && openChoices.auto.S != 70) {
			t.Errorf("%s: the open choices are %+v", name, openChoices)
		}
		got := testkit.Must(c.cfg.withDefaults(c.n, 1, 1e-5))
		if lowRank, ok := got.Precond.(stage.LowRank); ok && strings.HasPrefix(name, "auto, few") &&
			(got.Solver != PCG || lowRank.Approximation(gauss).S != 70 || lowRank.Approximation(gauss).LambdaP != 2) {
			t.Errorf("%s: the options of Auto do not reach the configuration %+v", name, got)
		}
		if _, ok := got.Precond.(RPCholesky); ok != (name == "auto, no features") {
			t.Errorf("%s: want RPCholesky only without features: %+v", name, got)
		}
	}
}

// TestSolvesAsPlanned checks that Solve runs the method that Plan chose, that the plan is kept in the report and
// survives JSON, and that a second plan makes the same choice.
func TestSolvesAsPlanned(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lab, err := New(regression(pointsByFormat(DirectBelow+100, 3, 5)["float64"]),
		Config{Kernel: gauss, Lambda: 1, Exact: StoredResidual})
	if err != nil || !lab.Planning() {
		t.Fatal(err)
	}
	if lab, err = lab.With(func(c *Config) { c.MaxIter = 900 }); err != nil || !lab.Planning() {
		t.Fatalf("a lab with another MaxIter makes no plan; error %v", err)
	}
	if namedLab, err := lab.With(func(c *Config) { c.Precond = Nystrom{S: 50} }); err != nil || namedLab.Planning() {
		t.Fatalf("a lab with a named method makes a plan; error %v", err)
	}
	planned, err := lab.Plan(t.Context(), PlanOptions{TestRows: 10})
	if err != nil || planned.N != DirectBelow+100 || planned.PlanSeconds <= 0 {
		t.Fatalf("%+v, %v", planned, err)
	}
	if accel.MemoryInUse() > 0 && planned.Bytes <= planned.Choice.Bytes {
		t.Errorf("the process is predicted to take %d bytes, no more than the solve, %d", planned.Bytes,
			planned.Choice.Bytes)
	}
	sol, err := lab.Solve(t.Context())
	if err != nil || !sol.Converged() {
		t.Fatal(sol, err)
	}
	chosen := sol.Plan.Choice
	if chosen != planned.Choice || sol.Solver.String() != chosen.Solver || sol.S > chosen.S || chosen.S > 0 &&
		(testkit.Must(lab.labForPlan(sol.Plan)).approximation().S != chosen.S || sol.Precond != chosen.Precond ||
			float64(sol.LambdaP) != chosen.LambdaP) {
		t.Errorf("%v chosen, solved by %v, %s, s = %d, λ_p = %g", &chosen, sol.Solver, sol.Precond, sol.S, sol.LambdaP)
	}
	if text := sol.String(); !strings.Contains(text, sol.Plan.Flags) || sol.Plan.Flags != planned.Flags ||
		sol.Seconds.Plan != planned.PlanSeconds {
		t.Errorf("the report has no plan with the flags %s: %s", planned.Flags, text)
	}
	var loaded Solution
	encoded := testkit.Must(json.Marshal(sol))
	testkit.OK(t, json.Unmarshal(encoded, &loaded))
	if loaded.Plan == nil || loaded.Plan.Choice.Solver != chosen.Solver || loaded.Plan.Bytes != planned.Bytes {
		t.Errorf("the JSON loses the plan: %s", encoded)
	}
	sparseInverse := cost.Candidate{Solver: cost.PCG, Preconditioner: Vecchia{}, Neighbors: 17, Storage: gram.Float32}
	lab.savedPlan = &plan.Plan{Report: plan.Report{Choice: sparseInverse}}
	if sol, err = lab.Solve(t.Context()); err != nil || sol.Damping == 0 {
		t.Errorf("a sparse inverse with the damping ω = %g: %v, error %v", sol.Damping, sol, err)
	}
}

// TestDirectPrecision checks which precision a direct solve uses if none is asked for. It is float32 with refinement
// if that takes less time, and float64 if the problem is small, the tolerance is out of reach in float32, or the
// float32 factorization fails. It also checks that a cancellation and a memory limit during the second try are
// respected.
func TestDirectPrecision(t *testing.T) {
	train := regression(pointsByFormat(2001, 2, 5)["float64"])
	for _, c := range []struct {
		lambda, tol float64
		n           int
		storage     string
	}{
		{1, 1e-3, 2001, "dense float32-refined"}, {1, 1e-3, 2000, "dense float64"}, {1e-5, 1e-3, 2001, "dense float64"},
		{1, 1e-9, 2001, "dense float64"},
	} {
		lab := newLab(t, train.Head(c.n), Config{Kernel: gauss, Lambda: c.lambda, Tol: c.tol, Solver: Direct})
		sol, err := lab.Solve(t.Context())
		if err != nil || !sol.Converged() || sol.Storage != c.storage || sol.Error.Certain == nil {
			t.Errorf("%+v: %v, error %v", c, sol, err)
		}
		lab = newLab(t, train.Head(c.n), Config{Kernel: gauss, Lambda: c.lambda, Tol: c.tol})
		if task := (&bench{Lab: lab}).PlanTask(); task.DirectStorage == gram.Auto ||
			"dense float64" == c.storage != (task.DirectStorage == gram.Float64) {
			t.Errorf("%+v: planned in %v", c, task.DirectStorage)
		}
	}
	x := points.NewDense(2001, 2, nil)
	for i := range 2001 {
		x.Row(i)[0] = float64(i)
	}
	nearlySingular := kernel.Func{Name: "nearly singular", F: func(x, z []float64) float64 {
		switch a, b := x[0], z[0]; {
		case a == b:
			return 1
		case a+b == 1:
			return 1e-9 - 2 // K+I has the eigenvalue 1e-9
		}
		return 0
	}}
	for name, cfg := range map[string]Config{"by name": {Solver: Direct}, "as planned": {},
		"float32": {Solver: Direct, Storage: gram.Float32}} {
		cfg.Kernel, cfg.Lambda, cfg.Tol = nearlySingular, 1, 1e-3
		lab := newLab(t, regression(x), cfg)
		if name == "as planned" {
			p := &plan.Report{Choice: cost.Candidate{Solver: cost.Direct, Precond: cost.None, Storage: gram.Float32}}
			lab = testkit.Must(lab.labForPlan(p))
		}
		sol, err := lab.Solve(t.Context())
		if name == "float32" {
			if err == nil && sol.Converged() {
				t.Errorf("%s: K+λI is indefinite in float32, but the solve converges: %v", name, sol)
			}
			continue
		}
		if err != nil || !sol.Converged() || sol.Storage != "dense float64" {
			t.Errorf("%s: K+λI is indefinite in float32, and float64 is not used: %v, error %v", name, sol, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	last := 0
	lab := newLab(t, regression(x), Config{Kernel: nearlySingular, Lambda: 1, Solver: Direct,
		Monitor: func(e Event) error {
			if e.Stage == stage.Kernel && e.Done < last { // K is formed again
				cancel()
			}
			last = e.Done
			return nil
		}})
	if sol, err := lab.Solve(ctx); sol != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled in the second try: %v, error %v", sol, err)
	}
	limited := newLab(t, regression(x), Config{Kernel: nearlySingular, Lambda: 1, Solver: Direct, Memory: 40e6})
	limited.cfg.Memory = limited.pointBytes() + direct.MemoryNeeded(direct.Float32Refined, 2001, 1)
	if direct.MemoryNeeded(direct.Float64, 2001, 1) <= limited.cfg.Memory {
		t.Fatal("the memory limit allows float64: the test needs other parameters")
	}
	if sol, err := limited.Solve(t.Context()); err != nil || sol.Converged() || sol.Storage != "dense float32-refined" {
		t.Errorf("without memory for float64: %v, error %v", sol, err)
	}
}

// TestDirectRounding checks that a planned direct solve in float32 is not repeated in float64 if rounding hides on
// which side of τ the residual is, because float64 could not decide it either.
func TestDirectRounding(t *testing.T) {
	const n = 600
	train := &datasets.Dataset{Name: "noise", Task: datasets.Regression, X: testkit.RandomPoints(1, n, 6),
		Target: testkit.RandomPoints(2, n, 1).Data}
	lab := newLab(t, train, Config{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 4e-4, Tol: 1e-9})
	lab, err := lab.labForPlan(&plan.Report{Choice: cost.Candidate{Solver: cost.Direct, Precond: cost.None,
		Storage: gram.Float32}})
	testkit.OK(t, err)
	sol, err := lab.Solve(t.Context())
	if err != nil || sol.Status != pcg.Undecided || !sol.CriterionMet() || sol.Storage != "dense float32-refined" ||
		!(float64(sol.TrueResidual) <= 1e-9) {
		t.Errorf("want the status undecided in float32, with a residual below 1e-9: %v, error %v", sol, err)
	}
	testkit.Contains(t, sol.Summary(), "so float64 cannot prove that it is below 1e-09")
}

// TestNearDuplicates checks that a problem with pairs of points at distances from 1e-5 to 1 converges either with the
// direct solver or with a sparse inverse in at most 10 iterations.
func TestNearDuplicates(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	n := suite.Scale(DirectBelow+100, 3600, 3600)
	pairs := testkit.RandomPoints(3, n, 10)
	for i := 1; i < n; i += 2 {
		copy(pairs.Row(i), pairs.Row(i-1))
		pairs.Row(i)[i%10] += math.Pow(10, -5*float64(i)/float64(n))
	}
	sol := mustSolve(t, regression(pairs), Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 1e-5, Tol: 1e-5})
	if isQuick := sol.Plan.Choice.Precond == "vecchia" && sol.Iterations <= 10; !sol.Converged() ||
		sol.Solver != Direct && !isQuick {
		t.Errorf("want the direct solver, or a sparse inverse with at most 10 iterations: %v", sol)
	}
}

// TestCheckpointKeepsPlan checks that a resumed run uses the plan that was saved when the run began and does not plan
// again, that a damaged plan file is an error, and that after the checkpoints are removed the lab plans anew.
func TestCheckpointKeepsPlan(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "run")
	cfg := Config{Kernel: gauss, Lambda: 1, Exact: StoredResidual, Checkpoint: &Checkpoint{Dir: dir, EveryIter: 1}}
	train := regression(pointsByFormat(DirectBelow+100, 3, 5)["float64"])
	cfg.Monitor = func(e Event) error {
		if e.Iteration == 2 {
			return pcg.ErrStop
		}
		return nil
	}
	lab := newLab(t, train, cfg)
	const fixed = `{"choice": {"solver": "pcg", "precond": "nystrom",
		"recipe": "nystrom features=63 lambda-p=2", "s": 63, "lambda_p": 2, "storage": "float32"}}`
	lab.savedPlan = new(plan.Plan)
	testkit.OK(t, json.Unmarshal([]byte(fixed), &lab.savedPlan.Report))
	if sol, err := lab.Solve(t.Context()); err != nil || sol.Status != pcg.Stopped {
		t.Fatal(sol, err)
	}
	cfg.Monitor, cfg.Checkpoint = nil, &Checkpoint{Dir: dir, EveryIter: 1, Resume: true}
	lab = newLab(t, train, cfg)
	sol, err := lab.Solve(t.Context())
	if err != nil || !sol.Converged() || testkit.Must(lab.labForPlan(sol.Plan)).approximation().S != 63 ||
		float64(sol.LambdaP) != 2 || sol.Precond != "nystrom" || sol.Iterations < 3 {
		t.Fatalf("the resumed run does not follow the saved plan: %v, error %v", sol, err)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "plan.json"), []byte("{"), 0o666))
	testkit.Fails(t, testkit.ErrOf(lab.Solve(t.Context())), "damaged plan.json")
	testkit.OK(t, sol.RemoveCheckpoints())
	if p, _, err := lab.currentPlan(t.Context()); err != nil || p.Choice.Solver == "" {
		t.Errorf("without checkpoints, no plan is made anew: %v, error %v", p, err)
	}
}

// TestPlanOnRanks checks that all ranks follow the plan of rank 0 and have the same answer, and that a rank of two
// needs less memory than a single process.
func TestPlanOnRanks(t *testing.T) {
	solutions := make([]*Solution, 2)
	onEachRank(t, len(solutions), DirectBelow+100, Config{Kernel: gauss, Lambda: 1, Exact: StoredResidual},
		func(rank int, sol *Solution) { solutions[rank] = sol })
	if slices.Contains(solutions, nil) {
		t.Fatal("a rank has no answer")
	}
	for rank, sol := range solutions {
		if sol.Plan == nil || sol.Plan.Choice.Solver == cost.Direct || sol.Plan.Choice != solutions[0].Plan.Choice ||
			sol.Plan.Bytes != solutions[0].Plan.Bytes {
			t.Fatalf("rank %d follows the plan %+v, rank 0 %+v", rank, sol.Plan, solutions[0].Plan)
		}
		if diff := sameAnswer(sol, solutions[0]); diff != "" || !sol.Converged() {
			t.Errorf("rank %d: %v, %s", rank, sol.Status, diff)
		}
	}
	singleProcess := cost.Model{N: solutions[0].N, D: solutions[0].D,
		T: solutions[0].T}.Memory(&solutions[0].Plan.Choice)
	if solutions[0].Plan.Bytes >= singleProcess.Peak {
		t.Errorf("a rank of two is predicted to take %d bytes, a single process %d", solutions[0].Plan.Bytes,
			singleProcess.Peak)
	}
}

// TestSwitchesToDirect checks when a planned iterative solve switches to the direct solver: if it needs far more
// iterations than planned or does not converge, and if the direct solver costs little enough. The report must say so
// and the answer must converge. The test fixes all planned times, so no clock has an influence.
func TestSwitchesToDirect(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	pairs := pointsByFormat(DirectBelow+100, 4, 5)["float64"].(*points.Dense)
	for i := 1; i < DirectBelow+100; i += 2 { // the two points of a pair have a distance from 1e-5 to 1
		copy(pairs.Row(i), pairs.Row(i-1))
		pairs.Row(i)[i%4] += math.Pow(10, -5*float64(i)/DirectBelow)
	}
	train := regression(pairs)
	for name, c := range map[string]struct {
		cfg                    Config
		planned                int // planned iterations, of 1 s each
		directSeconds          float64
		iterationsBeforeSwitch int // −1 if there is no switch
	}{
		"near duplicates":       {Config{Lambda: 1e-6, Tol: 1e-6}, 10, 30, 11},
		"direct takes as long":  {Config{Lambda: 1e-6, Tol: 1e-6}, 20, 20, 5},
		"direct is soon done":   {Config{Lambda: 1e-6, Tol: 1e-6}, 10, 5, 2},
		"at the maximum":        {Config{Lambda: 1e-6, Tol: 1e-6, MaxIter: 7}, 5, 40, 7},
		"somewhat slower":       {Config{Lambda: 1, Tol: 1e-3}, 2, 1000, -1},
		"direct costs far more": {Config{Lambda: 1e-6, Tol: 1e-6, MaxIter: 9}, 3, 1000, -1},
	} {
		c.cfg.Kernel, c.cfg.Exact = gauss, StoredResidual
		lab := newLab(t, train, c.cfg)
		cg := &cost.Candidate{Solver: cost.CG, Precond: cost.None, Storage: gram.Float32, Iterations: c.planned,
			Seconds: cost.Seconds{Solve: float64(c.planned + 1), Total: float64(c.planned + 1)}}
		directSolve := &cost.Candidate{Solver: cost.Direct, Precond: cost.None, Storage: gram.Float64,
			Seconds: cost.Seconds{Factor: c.directSeconds, Total: c.directSeconds}}
		lab.savedPlan = &plan.Plan{Report: plan.Report{Choice: *cg, Seconds: cg.Seconds, Flags: cg.Flags(),
			Fallback: directSolve}}
		sol, err := lab.Solve(t.Context())
		if err != nil {
			t.Fatal(name, err)
		}
		if c.iterationsBeforeSwitch < 0 { // the solve must not switch
			if sol.Solver != CG || sol.Plan.Switched != "" {
				t.Errorf("%s: the solve switches to another solver: %v", name, sol)
			}
			continue
		}
		done := fmt.Sprintf(" after %d iterations to a residual", c.iterationsBeforeSwitch)
		if sol.Solver != Direct || !sol.Converged() || sol.Plan.Choice.Solver != cost.Direct ||
			!strings.Contains(sol.Plan.Switched, done) || !strings.Contains(sol.String(), sol.Plan.Switched) ||
			sol.Seconds.Plan > sol.Seconds.Total {
			t.Errorf("%s: the solve does not switch %q, or does not say so: %v", name, done, sol)
		}
	}
}

// exactInverse is the preconditioner M = K+λI, with the Cholesky factor of K+λI. If asymmetric is set, its "inverse"
// copies r with r_2 in place of r_1 instead, which is not symmetric.
type exactInverse struct {
	factor     mat.Cholesky
	asymmetric bool
}

func (m *exactInverse) Dim() int { return m.factor.SymmetricDim() }

func (m *exactInverse) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	if m.asymmetric {
		dst.Copy(r)
		dst.Set(0, 0, r.At(1, 0))
		return nil
	}
	return m.factor.SolveTo(dst, r)
}

// TestRace checks the race between the planned preconditioner and the ones given in Auto.Race. The one that finishes
// first must solve the problem, an operator that is not symmetric must be excluded with that reason, and the report
// must give the flags that select a built-in winner by name. It also checks that a race excludes checkpoints and that
// two ranks choose the same winner.
func TestRace(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const n = 300
	train := regression(pointsByFormat(n, 3, 5)["float64"])
	cfg := Config{Kernel: gauss, Lambda: 1e-4, Tol: 1e-8, Solver: PCG}
	exact := &exactInverse{}
	if !exact.factor.Factorize(testkit.AddRidge(testkit.KernelMatrix(gauss, train.X), cfg.Lambda)) {
		t.Fatal("K+λI is not positive definite")
	}
	cfg.Precond = Auto{Race: []Preconditioner{Given{M: &exactInverse{factor: exact.factor, asymmetric: true},
		Name: "wrong"},
		Nystrom{S: 5}, Given{M: exact, Name: "exact"}}}
	sol := mustSolve(t, train, cfg)
	if entries := sol.Plan.Race; !sol.Converged() || sol.Iterations > 3 || sol.Precond != "exact" ||
		len(entries) != 5 || !strings.Contains(entries[1].Reason, "not symmetric") || entries[3].Remaining != 0 ||
		!(entries[2].Remaining > 0) || sol.Plan.Flags == "" {
		t.Errorf("want the winner exact, and the operator that is not symmetric excluded: %v, %+v", sol, sol.Plan)
	}
	cfg.Precond = Auto{S: 5, Race: []Preconditioner{Nystrom{S: 200, LambdaP: 1e-4}}}
	sol = mustSolve(t, train, cfg)
	const want = "--solver pcg --precond 'nystrom features=200 lambda-p=0.0001'"
	if sol.Precond != "nystrom" || sol.S > 200 || sol.Plan.Flags != want || !strings.Contains(sol.String(), "race") {
		t.Errorf("want the winner nystrom with the flags %q: %v, flags %q", want, sol, sol.Plan.Flags)
	}
	cfg.Checkpoint = &Checkpoint{Dir: t.TempDir()}
	testkit.Fails(t, testkit.ErrOf(New(train, cfg)), "without checkpoints")
	var winners []string
	onEachRank(t, 2, n, Config{Kernel: gauss, Lambda: 1e-4, Exact: StoredResidual, Solver: PCG, Precond: cfg.Precond},
		func(_ int, sol *Solution) { winners = append(winners, sol.Precond) })
	if len(winners) != 2 || winners[0] != "nystrom" || winners[1] != winners[0] {
		t.Errorf("two ranks choose %v, want nystrom", winners)
	}
}
