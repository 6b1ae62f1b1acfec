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

// solveThreeClasses returns the solution of a problem with three classes, with its score on the training set.
func solveThreeClasses(t *testing.T, solver Solver) *Solution {
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
		sol := solveThreeClasses(t, solver)
		file := filepath.Join(t.TempDir(), "r.json")
		testkit.OK(t, stage.WriteJSON(file, sol))
		encoded := testkit.Must(os.ReadFile(file))
		var decoded Solution
		testkit.OK(t, json.Unmarshal(encoded, &decoded))
		if reencoded, err := json.MarshalIndent(&decoded, "", "  "); err != nil ||
			string(reencoded)+"\n" != string(encoded) {
			t.Errorf("%v: after JSON\n%s\nwant\n%s", solver, reencoded, encoded)
		}
		testkit.Equal(t, fmt.Sprint(decoded.Kappa, decoded.TestError, decoded.R2, decoded.Status, decoded.Solver),
			fmt.Sprint(sol.Kappa, sol.TestError, sol.R2, sol.Status, sol.Solver), solver, decoded)
		var fields map[string]any
		testkit.OK(t, json.Unmarshal(encoded, &fields))
		for field, isSet := range map[string]bool{
			"lambda_p": solver == PCG, "stat_dim_features": solver == PCG, "kappa": solver != Direct,
			"test_error": true, "rmse": false, "r2": false, "true_residual": true, "sampled_residual": false,
			"best_possible_error": false,
		} {
			if value, ok := fields[field]; !ok || (value != nil) != isSet {
				t.Errorf("%v: %s is %v", solver, field, value)
			}
		}
		if len(sol.History) == 0 || (solver != Direct && len(sol.History) != sol.Iterations+1) ||
			len(sol.ColumnTrueResiduals) != 3 {
			t.Errorf("%v: %d rows of history, %d iterations, %d residuals", solver, len(sol.History), sol.Iterations,
				len(sol.ColumnTrueResiduals))
		}
	}
}
