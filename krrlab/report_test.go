package krrlab

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/plots"
)

// solved returns a solved problem with its judgement.
func solved(t *testing.T, solver Solver) *Report {
	t.Helper()
	x := kinds(90, 4, 3)["float64"]
	sol := mustSolve(t, classes(x, 3), Config{Kernel: gauss, Lambda: 0.1, Features: 30, Solver: solver, Seed: 7})
	score, err := sol.Model.Evaluate(t.Context(), classes(x, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := sol.Report()
	r.SetScore(score)
	return r
}

// TestReportJSON checks that a report is the same after JSON, and that what does not apply
// is null.
func TestReportJSON(t *testing.T) {
	for _, solver := range []Solver{PCG, CG, Direct} {
		r := solved(t, solver)
		name := filepath.Join(t.TempDir(), "r.json")
		if err := r.WriteFile(name); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var back Report
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*r, back) {
			t.Errorf("%v: after JSON\n%+v\nwant\n%+v", solver, back, *r)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for field, set := range map[string]bool{
			"lambda_p": solver == PCG, "s": solver == PCG, "stat_dim_features": solver == PCG, "kappa": solver != Direct,
			"test_error": true, "rmse": false, "r2": false, "true_residual": true, "sampled_residual": false, "best_possible_error": false,
		} {
			if v, ok := m[field]; !ok || (v != nil) != set {
				t.Errorf("%v: %s is %v", solver, field, v)
			}
		}
		if len(r.History) == 0 || (solver != Direct && len(r.History) != r.Iterations+1) || len(r.Residuals) != 3 {
			t.Errorf("%v: %d rows of history, %d iterations, %d residuals", solver, len(r.History), r.Iterations, len(r.Residuals))
		}
	}
}

// TestReportText checks that the lines say what happened.
func TestReportText(t *testing.T) {
	for solver, words := range map[Solver][]string{
		PCG:    {"n = 90, d = 4, t = 3", "gaussian(sigma=1.5), λ = 0.1", "s = 30, λ_p = 0.1", "converged after", "κ(M⁻¹A)", "error", "seconds"},
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
		name := filepath.Join(t.TempDir(), "c.svg")
		if err := r.ConvergenceFigure().Save(name); err != nil {
			t.Fatal(err)
		}
		if err := plots.CheckFormat(name); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), "<svg") {
			t.Errorf("%v: no picture: %v", solver, err)
		}
	}
}

// TestNumber checks that what JSON cannot carry becomes null.
func TestNumber(t *testing.T) {
	if Number(math.NaN()) != nil || Number(math.Inf(-1)) != nil || *Number(2) != 2 {
		t.Error("Number")
	}
	if finiteOnly([]float64{1, math.NaN()}) != nil || len(finiteOnly([]float64{1, 2})) != 2 {
		t.Error("finiteOnly")
	}
	if !math.IsNaN(worst([]float64{1, math.NaN(), 2})) || worst([]float64{1, 3, 2}) != 3 {
		t.Error("worst")
	}
	r := &Report{}
	r.SetScore(&model.Score{N: 4, ErrorRate: math.NaN(), RMSE: 2, RelErr: math.Inf(1), R2: 0.5, BestError: 1})
	if r.TestError != nil || *r.RMSE != 2 || r.RelErr != nil || *r.R2 != 0.5 || *r.BestError != 1 || r.TestN != 4 {
		t.Errorf("SetScore: %+v", r)
	}
}

// TestBytes checks the units.
func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 12345678: "12.3 MB", 7.26e9: "7.26 GB", 5e15: "5e+03 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
