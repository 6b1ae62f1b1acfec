package plan_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// newLab returns a lab for a regression of 600 points.
func newLab(cfg krrlab.Config) *krrlab.Lab {
	cfg.Kernel, cfg.Lambda = kernel.Gaussian{Sigma: 1}, 0.1
	return testkit.Must(krrlab.New(datasets.SyntheticRegression(600, 3, 0.1, 5), cfg))
}

// TestPlanOnRanks checks that two ranks make the same plan, with a measured network.
func TestPlanOnRanks(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var plans [2]*plan.Plan
	var wg sync.WaitGroup
	for _, communicator := range comm.Local(2, 0) {
		wg.Go(func() {
			p, err := newLab(krrlab.Config{Comm: communicator}).Plan(t.Context(), plan.Options{TestRows: 10})
			if plans[communicator.Rank()] = p; err != nil {
				t.Errorf("rank %d: %v", communicator.Rank(), err)
			}
		})
	}
	wg.Wait()
	first, second := plans[0], plans[1]
	if first == nil || second == nil || !reflect.DeepEqual(first.Choice, second.Choice) ||
		len(first.Candidates) != len(second.Candidates) || !(first.Rates.Bandwidth > 0 && first.Rates.Latency > 0) ||
		first.Rates.Network != second.Rates.Network {
		t.Errorf("ranks plan %v and %v", first, second)
	}
}

// TestPlanForMachines checks predictions for several machines: they use an iterative candidate and the requested or
// predicted iterations, a Go caller gets the defaults and checks of the flags, and a direct solver is an error.
func TestPlanForMachines(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lab := newLab(krrlab.Config{})
	options := plan.Options{Nodes: 4, Cores: 8, Bandwidth: 10, Latency: 50e3, Iterations: 77,
		Rates: "gemm32=640,gemm64=320,read=90,exp=22"}
	scaling := testkit.Must(lab.Run(t.Context(), options)).(*plan.Scaling)
	if c := scaling.Choice; scaling.Requested.Nodes != 4 || c.Iterations != 77 || c.Solver == cost.Direct ||
		scaling.IterationSource != "as given" {
		t.Errorf("4 machines and 77 iterations are requested, predicted is %v", scaling)
	}
	options.Bandwidth, options.Latency = 0, 0
	byDefault := testkit.Must(lab.Run(t.Context(), options)).(*plan.Scaling)
	testkit.Equal(t, byDefault.Machines.Network, scaling.Machines.Network, "the default network")
	for want, bad := range map[string]plan.Options{
		"Nodes -1": {Nodes: -1}, "Cores -2": {Nodes: 4, Cores: -2}, "Price -3": {Nodes: 4, Price: -3},
	} {
		testkit.Fails(t, testkit.ErrOf(lab.Run(t.Context(), bad)), want)
	}
	options.Iterations = 0
	predicted := testkit.Must(newLab(krrlab.Config{Solver: krrlab.PCG}).Run(t.Context(), options))
	testkit.Contains(t, predicted.String(), "by the rule")
	testkit.Fails(t, testkit.ErrOf(newLab(krrlab.Config{Solver: krrlab.Direct}).Run(t.Context(), options)),
		"a direct solver is for one machine")
}

// TestPlanAgreesWithSolve checks that for few points Plan chooses what Solve uses, and that both refuse a problem that
// does not fit into memory.
func TestPlanAgreesWithSolve(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, cfg := range map[string]krrlab.Config{
		"defaults": {}, "float32": {Storage: gram.Float32}, "recompute": {Storage: gram.Recompute},
		"sparse": {Tiles: gram.SparseTiles}, "anorm": {Stop: bound.Stop{Rule: bound.ByANorm}},
		"rank": {Precond: krrlab.Auto{S: 70}}, "pcg": {Precond: krrlab.Auto{}, Solver: krrlab.PCG},
	} {
		lab := newLab(cfg)
		p, solution := testkit.Must(lab.Plan(t.Context(), krrlab.PlanOptions{})), testkit.Must(lab.Solve(t.Context()))
		if c := p.Choice; c.Solver != solution.Solver.String() || c.Solver != cost.Direct &&
			(c.Precond != solution.Precond || c.S != solution.S || c.LambdaP != float64(solution.LambdaP)) {
			t.Errorf("%s: %v chosen, solved by %v, %s, s = %d", name, &c, solution.Solver, solution.Precond, solution.S)
		}
	}
	lab := newLab(krrlab.Config{Memory: 2.5e6})
	testkit.Fails(t, testkit.ErrOf(lab.Plan(t.Context(), krrlab.PlanOptions{})), "no memory for direct")
	testkit.Fails(t, testkit.ErrOf(lab.Solve(t.Context())), "2.49 MB of 2.5 MB are free: float32-refined")
}
