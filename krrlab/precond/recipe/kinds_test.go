package recipe_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestKinds checks every variant of every registered kind: its M by precondtest, its text, its plan, and its solution
// against that of the direct solver, with and without weights.
func TestKinds(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, weights := range [][]float64{nil, slices.Repeat([]float64{0.1, 2, 1}, 50)} {
		train := datasets.SyntheticRegression(150, 3, 0.1, 1)
		train.Weights = weights
		cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.1, Tol: 1e-8, Solver: krrlab.Direct}
		want := testkit.Must(testkit.Must(krrlab.New(train, cfg)).Solve(t.Context())).Model.C
		cfg.Solver = krrlab.PCG
		for _, kind := range stage.Kinds() {
			for _, variant := range kind.Variants {
				text := strings.TrimSpace(kind.Name + " " + variant)
				cfg.Precond = testkit.Must(stage.ParsePreconditioner(text))
				lab := testkit.Must(krrlab.New(train, cfg))
				printed := testkit.Must(stage.PreconditionerText(cfg.Precond, cfg.Kernel))
				parsed := testkit.Must(stage.ParsePreconditioner(printed))
				testkit.Equal(t, reflect.DeepEqual(parsed, cfg.Precond), true, text, printed)
				m := testkit.Must(lab.M(t.Context()))
				if err := precondtest.Test(t.Context(), m, nil); err != nil {
					t.Errorf("%s: %v", text, err)
				}
				plan := testkit.Must(lab.Plan(t.Context(), krrlab.PlanOptions{}))
				testkit.Equal(t, plan.Choice.Precond, kind.Name, text)
				testkit.Near(t, testkit.RelativeDifference(testkit.Must(lab.Solve(t.Context())).Model.C, want), 0,
					1e-5, text)
			}
		}
	}
}
