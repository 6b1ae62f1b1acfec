package solve

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// TestString checks that the report of a solution has the parameters of the kernel to four digits and the seconds in a
// suitable unit, and that the JSON has all digits.
func TestString(t *testing.T) {
	sol := &Solution{Header: stage.Header{Dataset: "a", Task: "regression", N: 100, D: 3, T: 1,
		Kernel: kernel.Spec{Name: "gaussian", Sigma: 1.575566020014298}, Lambda: 0.25},
		Approach: Approach{Solver: PCG, Precond: "features",
			Features: "Fourier features of gaussian(sigma=1.575566020014298)", S: 50, LambdaP: 0.25, Form: "L",
			Kappa: stage.Unknown},
		KernelMatrix: KernelMatrix{Storage: "float64", KBytes: 80000, KernelErrorBound: stage.Unknown},
		Outcome:      Outcome{Status: pcg.Converged}, Residuals: Residuals{TrueResidual: stage.Unknown},
		Environment: Environment{BLAS: "go", Threads: 2, PeakBytes: 5e7},
		Seconds: Seconds{Load: 0.00123, Kernel: 0.0214, Features: 0.001, Factor: 0.002, Solve: 0.003, Residual: 0.004,
			Predict: 0.0005, Total: 0.0331}}
	want := `data         a: regression, n = 100, d = 3, t = 1
problem      kernel gaussian(sigma=1.576), λ = 0.25
solver       pcg, Fourier features of gaussian(sigma=1.576), s = 50, λ_p = 0.25, form L
K            float64, 80 kB
result       converged
milliseconds load 1.2, kernel 21.4, features 1.0, factor 2.0, solve 3.0, residual 4.0, predict 0.5, total 33.1
machine      go, 2 threads, peak memory 50 MB
`
	testkit.Equal(t, sol.String(), want)
	// The time that is compared with the prediction of a plan does not include loading, as the plan does not predict
	// it.
	planned := *sol
	planned.Plan, planned.Seconds.Total = &plan.Report{Flags: "--by-name"}, 99
	testkit.Contains(t, planned.String(), "took 0.0319 s")
	text, err := json.Marshal(sol)
	if err != nil || strings.Count(string(text), "1.575566020014298") != 2 {
		t.Errorf("error %v; the JSON has not all digits of σ twice: %s", err, text)
	}
	testkit.Equal(t, sol.Plot().Title, "a: Gaussian kernel, σ = 1.576, λ = 0.25")
}

// TestResidualText checks that the text on the residual has all known numbers, and nothing about unknown ones.
func TestResidualText(t *testing.T) {
	s := NewSolution(stage.Header{Tol: 1e-3})
	testkit.Equal(t, s.residualText(), "")
	s.ResidualKind, s.TrueResidual, s.Rounding = "K as stored", 0.00123, 2e-12
	testkit.Equal(t, s.residualText(), ", true residual 1.23e-03 ± 2e-12 (K as stored), asked 0.001")
	s.Rounding, s.SampledResidual, s.StorageResidual, s.SampledRows = stage.Unknown, 0.0014, 0.0002, 288
	testkit.Equal(t, s.residualText(),
		", true residual 1.23e-03 (K as stored; about 1.4e-03, off by 2e-04, by 288 rows in float64), asked 0.001")
}

// TestSetScore checks that numbers of a score that are NaN or infinite become unknown.
func TestSetScore(t *testing.T) {
	s := new(Solution)
	s.SetScore(&model.Score{N: 4, ErrorRate: math.NaN(), RMSE: 2, RelErr: math.Inf(1), R2: 0.5, BestError: 1})
	if s.TestError.Known() || s.RMSE != 2 || s.RelErr.Known() || s.R2 != 0.5 || s.BestError != 1 || s.TestN != 4 {
		t.Errorf("%+v, want an RMSE of 2, R² of 0.5 and a best error of 1 of 4 rows; other numbers unknown", s)
	}
}

// TestNewSolution checks that all results of a new solution are unknown.
func TestNewSolution(t *testing.T) {
	s := NewSolution(stage.Header{N: 3})
	fields := reflect.ValueOf(*s)
	for i := range fields.NumField() {
		if field := fields.Field(i); field.CanInterface() && field.Type() == reflect.TypeFor[stage.Number]() &&
			field.Interface().(stage.Number).Known() {
			t.Errorf("%s is %g", fields.Type().Field(i).Name, field.Interface())
		}
	}
	if s.N != 3 || s.Converged() || s.CriterionMet() || s.Table().HTML() == "" {
		t.Errorf("%+v, want 3 points, no status and a table", s)
	}
}

// TestBoundsInTable checks that the table rounds an upper bound up, and an estimate to the nearest number.
func TestBoundsInTable(t *testing.T) {
	s := NewSolution(stage.Header{})
	s.Kappa, s.KappaBound = 1.2343, 2.34543
	testkit.Contains(t, s.Table().Text(), "1.234", "2.346")
}
