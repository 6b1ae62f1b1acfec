package krrlab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage"
)

// solved returns a solved problem with its judgment.
func solved(t *testing.T, solver Solver) *Solution {
	t.Helper()
	x := kinds(90, 4, 3)["float64"]
	sol := mustSolve(t, classes(x, 3), Config{Kernel: gauss, Lambda: 0.1, Precond: precondFor(solver, Features{S: 30}),
		Solver: solver, Seed: 7})
	score := testkit.Must(sol.Model.Evaluate(t.Context(), classes(x, 3), nil))
	sol.SetScore(score)
	return sol
}

// TestReportJSON checks that a report is the same after JSON, and that what does not apply
// is null.
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
		if fmt.Sprint(back.Kappa, back.TestError, back.R2, back.Status, back.Solver) != fmt.Sprint(r.Kappa, r.TestError,
			r.R2, r.Status, r.Solver) {
			t.Errorf("%v: after JSON %+v", solver, back)
		}
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
		if len(r.History) == 0 || (solver != Direct && len(r.History) != r.Iterations+1) || len(r.TrueResiduals) != 3 {
			t.Errorf("%v: %d rows of history, %d iterations, %d residuals", solver, len(r.History), r.Iterations,
				len(r.TrueResiduals))
		}
	}
}

// TestReportText checks that the lines say what happened.
func TestReportText(t *testing.T) {
	for solver, words := range map[Solver][]string{
		PCG: {"n = 90, d = 4, t = 3", "gaussian(sigma=1.5), λ = 0.1", "s = 30, λ_p = 0.1", "converged after",
			"κ(M⁻¹A)", "error", "seconds"},
		CG:     {"cg", "converged after", "κ(M⁻¹A)"},
		Direct: {"direct", "converged, true residual", "dense float64"},
	} {
		text := solved(t, solver).String()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in\n%s", solver, w, text)
			}
		}
		if solver != PCG && strings.Contains(text, "λ_p") {
			t.Errorf("%v: speaks of a preconditioner:\n%s", solver, text)
		}
	}
}

// TestConvergenceFigure checks that the figure holds the history, and that a direct
// solve, without one, is drawn all the same.
func TestConvergenceFigure(t *testing.T) {
	for _, solver := range []Solver{PCG, CG, Direct} {
		r := solved(t, solver)
		s := r.ConvergenceSeries()
		if len(s.X) != len(r.History) || len(s.Y) != len(s.X) {
			t.Fatalf("%v: %d points for %d rows", solver, len(s.X), len(r.History))
		}
		for i, h := range r.History {
			if s.X[i] != float64(h.Iteration) || s.Y[i] != h.Residual {
				t.Errorf("%v: point %d is %g, %g, want %d, %g", solver, i, s.X[i], s.Y[i], h.Iteration, h.Residual)
			}
		}
		if solver == Direct {
			r.History = nil
		}
		if err := r.Plot().Validate(); err != nil {
			t.Error(err)
		}
	}
}
