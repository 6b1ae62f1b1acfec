package krrlab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage"
)

// solved returns the solution of a problem with three classes, with its score on the training set.
func solved(t *testing.T, solver Solver) *Solution {
	t.Helper()
	x := pointsByFormat(90, 4, 3)["float64"]
	sol := mustSolve(t, classification(x, 3), Config{Kernel: gauss, Lambda: 0.1,
		Precond: precondFor(solver, Features{S: 30}), Solver: solver, Seed: 7})
	score := testkit.Must(sol.Model.Evaluate(t.Context(), classification(x, 3), nil))
	sol.SetScore(score)
	return sol
}

// TestReportJSON checks that a report is unchanged after it is written to JSON and read back, and that fields that do
// not apply to the solver or the task are null.
func TestReportJSON(t *testing.T) {
	for _, solver := range []Solver{PCG, CG, Direct} {
		r := solved(t, solver)
		name := filepath.Join(t.TempDir(), "r.json")
		testkit.OK(t, stage.WriteJSON(name, r))
		b := testkit.Must(os.ReadFile(name))
		var back Solution
		testkit.OK(t, json.Unmarshal(b, &back))
		if again, err := json.MarshalIndent(&back, "", "  "); err != nil || string(again)+"\n" != string(b) {
			t.Errorf("%v: after JSON\n%s\nwant\n%s", solver, again, b)
		}
		testkit.Equal(t, fmt.Sprint(back.Kappa, back.TestError, back.R2, back.Status, back.Solver),
			fmt.Sprint(r.Kappa, r.TestError, r.R2, r.Status, r.Solver), solver, back)
		var m map[string]any
		testkit.OK(t, json.Unmarshal(b, &m))
		for field, set := range map[string]bool{
			"lambda_p": solver == PCG, "stat_dim_features": solver == PCG, "kappa": solver != Direct,
			"test_error": true, "rmse": false, "r2": false, "true_residual": true, "sampled_residual": false,
			"best_possible_error": false,
		} {
			if v, ok := m[field]; !ok || (v != nil) != set {
				t.Errorf("%v: %s is %v", solver, field, v)
			}
		}
		if len(r.History) == 0 || (solver != Direct && len(r.History) != r.Iterations+1) ||
			len(r.ColumnTrueResiduals) != 3 {
			t.Errorf("%v: %d rows of history, %d iterations, %d residuals", solver, len(r.History), r.Iterations,
				len(r.ColumnTrueResiduals))
		}
	}
}
