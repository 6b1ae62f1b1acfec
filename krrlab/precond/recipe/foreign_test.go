package recipe_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Blocks is a user-defined preconditioner, the inverse of the diagonal blocks of K+λI.
type Blocks struct {
	Size int `flag:"size" symbol:"b" default:"20" check:">=1"` // number of rows of a block
}

func (p Blocks) String() string { return fmt.Sprintf("blocks of %d", p.Size) }

func (p Blocks) Make(_ context.Context, bench stage.Bench) (pcg.Preconditioner, error) {
	problem := bench.Problem()
	m, row, other := &blocks{n: problem.N}, make([]float64, problem.D), make([]float64, problem.D)
	for lo := 0; lo < problem.N; lo += p.Size {
		size := min(p.Size, problem.N-lo)
		block := mat.NewSymDense(size, nil)
		for i := range size {
			problem.X.RowTo(row, lo+i)
			for j := i; j < size; j++ {
				problem.X.RowTo(other, lo+j)
				block.SetSym(i, j, problem.Kernel.Eval(row, other))
			}
			block.SetSym(i, i, block.At(i, i)+problem.Lambda)
		}
		factor := new(mat.Cholesky)
		if !factor.Factorize(block) {
			return nil, fmt.Errorf("the block at row %d is not definite", lo)
		}
		m.factors = append(m.factors, factor)
	}
	return m, nil
}

// Cost predicts the cost. Cost, Iterations and Propose allow plans to choose Blocks. Its claimed cost is so low that
// a plan does choose it.
func (p Blocks) Cost(m *cost.Model, _ gram.Storage) cost.PrecondCost {
	return cost.PrecondCost{Factor: float64(m.N*p.Size*p.Size) / m.Gemm64, Apply: 1e-9,
		Bytes: cost.Memory{Features: 8 * int64(m.N) * int64(p.Size)}}
}

func (Blocks) Iterations(*cost.IterationModel) float64 { return 1 }

func (Blocks) Propose(*cost.IterationModel) []stage.Preconditioner {
	return []stage.Preconditioner{Blocks{Size: 50}}
}

// blocks is the preconditioner that Blocks makes. It has the Cholesky factors of the diagonal blocks of K+λI.
type blocks struct {
	n       int
	factors []*mat.Cholesky
}

func (m *blocks) Dim() int { return m.n }

// SolveTo solves with each diagonal block.
func (m *blocks) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	n, t := r.Dims()
	if rows, columns := dst.Dims(); n != m.n || rows != n || columns != t {
		return fmt.Errorf("the inverse of blocks of order %d: %d×%d into %d×%d", m.n, n, t, rows, columns)
	}
	for start, k := 0, 0; start < m.n; k++ {
		size := m.factors[k].SymmetricDim()
		block := dst.Slice(start, start+size, 0, t).(*mat.Dense)
		if err := m.factors[k].SolveTo(block, mat.DenseCopyOf(r.Slice(start, start+size, 0, t))); err != nil {
			return err
		}
		start += size
	}
	return ctx.Err()
}

// blocksKind is the kind that a package with Blocks would register. errBlocks is the result of registering it. It is
// registered here because a name can be registered only once in a process, and a test may run several times.
var blocksKind = stage.Kind{Name: "mylab.blocks", Zero: Blocks{}, Label: "block Jacobi", Variants: []string{""}}
var errBlocks = stage.RegisterPreconditioner(blocksKind)

// TestUserDefinedKind checks that a kind of preconditioner of another package is solved with, planned, chosen, raced,
// compared and named like the built-in kinds.
func TestUserDefinedKind(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	kind := blocksKind
	testkit.OK(t, errBlocks)
	testkit.Fails(t, stage.RegisterPreconditioner(kind), "registered already")
	kind.Name = "blocks"
	testkit.Fails(t, stage.RegisterPreconditioner(kind), "has no dot")
	testkit.Equal(t, stage.FigureLabel("mylab.blocks size=30"), "block Jacobi, b = 30")
	for text, want := range map[string]string{"mylab.blocks rank=3": "want one of size",
		"mylab.blocks size=0": "at least 1", "mylab.block": "mylab.blocks, none"} {
		testkit.Fails(t, testkit.ErrOf(stage.ParsePreconditioner(text)), want)
	}

	const n = 3100 // above the limit of the rule that chooses the direct solver
	train := datasets.SyntheticRegression(n, 3, 0.1, 1)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 0.3}, Lambda: 1, Tol: 1e-6, Solver: krrlab.PCG}
	solve := func(cfg krrlab.Config) *krrlab.Solution {
		t.Helper()
		return testkit.Must(testkit.Must(krrlab.New(train, cfg)).Solve(t.Context()))
	}
	want := solve(krrlab.Config{Kernel: cfg.Kernel, Lambda: cfg.Lambda, Solver: krrlab.Direct}).Model.C
	checkSolution := func(sol *krrlab.Solution, precond string) {
		t.Helper()
		var difference mat.Dense
		difference.Sub(sol.Model.C, want)
		if !sol.Converged() || sol.Precond != precond || mat.Norm(&difference, 2) > 1e-4*mat.Norm(want, 2) {
			t.Errorf("%s: difference of %g from the direct solution; %v", precond, mat.Norm(&difference, 2), sol)
		}
	}
	cfg.Precond = testkit.Must(stage.ParsePreconditioner("mylab.blocks size=100"))
	lab := testkit.Must(krrlab.New(train, cfg))
	plan := testkit.Must(lab.Plan(t.Context(), krrlab.PlanOptions{}))
	testkit.Equal(t, plan.Choice.Recipe, "mylab.blocks size=100")
	testkit.Equal(t, plan.Flags, "--solver pcg --precond 'mylab.blocks size=100'")
	cfg.Checkpoint = &krrlab.Checkpoint{Dir: t.TempDir()} // two preconditioners of this kind can be distinguished
	checkSolution(solve(cfg), "mylab.blocks")

	cfg.Precond, cfg.Checkpoint = krrlab.Auto{}, nil
	chosen := solve(cfg)
	checkSolution(chosen, "mylab.blocks")
	testkit.Equal(t, chosen.Plan.Choice.Recipe, "mylab.blocks size=50")
	testkit.Contains(t, chosen.Method(), "pcg, preconditioner blocks of 50")
	for _, fixed := range []krrlab.Auto{{S: 5}, {LambdaP: 2}} { // options that the kind does not have
		auto := testkit.Must(lab.With(func(c *krrlab.Config) { c.Precond = fixed }))
		if plan := testkit.Must(auto.Plan(t.Context(), krrlab.PlanOptions{})); strings.Contains(plan.Flags,
			"mylab.blocks") {
			t.Errorf("%+v: %s", fixed, plan.Flags)
		}
	}
	cfg.Precond = krrlab.Auto{S: 5, Race: []krrlab.Preconditioner{Blocks{Size: 800}}}
	raced := solve(cfg)
	if r := raced.Plan.Race; len(r) != 3 || math.IsNaN(float64(r[1].Remaining)) {
		t.Errorf("raced: %+v", r)
	}
	r := testkit.Must(lab.Compare(t.Context(), krrlab.CompareOptions{Steps: -1}))
	testkit.Contains(t, r.String(), "mylab.blocks", "vecchia")
}
