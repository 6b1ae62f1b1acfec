package solve

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestWordsOfAReport: the kernel's parameters are written to four digits and the seconds in a unit that
// shows them; JSON has all digits.
func TestWordsOfAReport(t *testing.T) {
	r := &Solution{
		Header: stage.Header{Dataset: "a", Task: "regression", N: 100, D: 3, T: 1,
			Kernel: kernel.Spec{Name: "gaussian", Sigma: 1.575566020014298}, Lambda: 0.25},
		Solver: PCG, Precond: "features", Features: "Fourier features of gaussian(sigma=1.575566020014298)", S: 50,
		LambdaP: 0.25, Form: "L",
		Storage: "float64", KBytes: 80000, Status: pcg.Converged, TrueResidual: stage.Unknown, KBound: stage.Unknown,
		Kappa: stage.Unknown, BLAS: "go", Threads: 2, PeakBytes: 5e7,
		Seconds: Seconds{Load: 0.00123, Kernel: 0.0214, Features: 0.001, Factor: 0.002, Solve: 0.003, Residual: 0.004,
			Predict: 0.0005, Total: 0.0331},
	}
	want := `data         a: regression, n = 100, d = 3, t = 1
problem      kernel gaussian(sigma=1.576), λ = 0.25
solver       pcg, Fourier features of gaussian(sigma=1.576), s = 50, λ_p = 0.25, form L
K            float64, 80 kB
result       converged
milliseconds load 1.2, kernel 21.4, features 1.0, factor 2.0, solve 3.0, residual 4.0, predict 0.5, total 33.1
machine      go, 2 threads, peak memory 50 MB
`
	testkit.Equal(t, r.String(), want)
	// what a plan took is what it predicts: neither loading nor tuning
	again := *r
	again.Plan, again.Seconds.Total = &plan.Report{Flags: "--by-name"}, 99
	if got := again.String(); !strings.Contains(got, "took 0.0319 s") {
		t.Error(got)
	}
	js, err := json.Marshal(r)
	if err != nil || strings.Count(string(js), "1.575566020014298") != 2 {
		t.Errorf("%s, %v", js, err)
	}
	testkit.Equal(t, r.Plot().Title, "a: Gaussian kernel, σ = 1.576, λ = 0.25")
}

// TestResidualWords: what is known of a residual, and no more.
func TestResidualWords(t *testing.T) {
	of := func(tol float64, kind string, residual, rounding, sampled, storage stage.Number, rows int) Solution {
		return Solution{Header: stage.Header{Tol: tol}, ResidualKind: kind, TrueResidual: residual, Rounding: rounding,
			SampledResidual: sampled, StorageResidual: storage, SampledRows: rows}
	}
	for _, c := range []struct {
		r    Solution
		want string
	}{
		{of(1e-3, "", stage.Unknown, stage.Unknown, stage.Unknown, stage.Unknown, 0), ""},
		{of(1e-3, "K as stored", 0.00123, stage.Unknown, stage.Unknown, stage.Unknown, 0),
			", true residual 1.23e-03 (K as stored), asked 0.001"},
		{of(1e-3, "K recomputed", 0.00123, 2e-12, stage.Unknown, stage.Unknown, 0),
			", true residual 1.23e-03 ± 2e-12 (K recomputed), asked 0.001"},
		{of(1e-3, "K as stored", 0.00123, stage.Unknown, 0.0014, 0.0002, 288),
			", true residual 1.23e-03 (K as stored; about 1.4e-03, off by 2e-04, by 288 rows in float64), asked 0.001"},
		{of(2.6e-7, "K recomputed", 4.4e-10, 2e-12, stage.Unknown, stage.Unknown, 0),
			", true residual 4.40e-10 ± 2e-12 (K recomputed), asked 2.6e-07"},
	} {
		testkit.Equal(t, c.r.residualText(), c.want)
	}
}

// TestSetScore: what a score does not know is unknown.
func TestSetScore(t *testing.T) {
	s := new(Solution)
	s.SetScore(&model.Score{N: 4, ErrorRate: math.NaN(), RMSE: 2, RelErr: math.Inf(1), R2: 0.5, BestError: 1})
	if s.TestError.Known() || s.RMSE != 2 || s.RelErr.Known() || s.R2 != 0.5 || s.BestError != 1 || s.TestN != 4 {
		t.Errorf("SetScore: %+v", s)
	}
}

// TestNewSolution: nothing is known of it but the problem.
func TestNewSolution(t *testing.T) {
	s := NewSolution(stage.Header{N: 3})
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInterface() && f.Type() == reflect.TypeFor[stage.Number]() &&
			f.Interface().(stage.Number).Known() {
			t.Errorf("%s is %g", v.Type().Field(i).Name, f.Interface())
		}
	}
	if s.N != 3 || s.Converged() || s.Reached() || s.Table().HTML() == "" {
		t.Errorf("%+v", s)
	}
}

// TestTableOutward: the table shows bounds rounded outward.
func TestTableOutward(t *testing.T) {
	s := NewSolution(stage.Header{})
	s.Kappa, s.KappaBound = 1.2343, 2.34543
	if text := s.Table().Text(); !strings.Contains(text, "1.234") || !strings.Contains(text, "2.346") {
		t.Error(text)
	}
}

// TestLinesOfAReport: a fact that is known adds its words to a report, and one that is not adds none.
func TestLinesOfAReport(t *testing.T) {
	auc := 0.75
	for want, know := range map[string]func(*Solution){
		"result       failed after 1 iteration\n": func(s *Solution) { s.Status, s.Iterations = pcg.Failed, 1 },
		"κ(M⁻¹A)      ≈ 12.3 (from":               func(s *Solution) { s.Kappa = 12.3 },
		"stop         labels=1%: not met\n":       func(s *Solution) { s.Stop = bound.Stop{Rule: bound.Labels, Share: 0.01} },
		"anorm: met by the bound of the error; 3 of 4": func(s *Solution) {
			s.Stop.Rule, s.Criterion, s.LabelsOf, s.LabelsOpen = bound.ANorm, "anorm", 4, 1
		},
		"labels are settled, 25 % open":                    func(s *Solution) { s.Stop.Rule, s.LabelsOf, s.LabelsOpen = bound.ANorm, 4, 1 },
		"not certain, as the residual is not\n":            func(s *Solution) { s.Error = new(bound.Errors) },
		"as nothing proves that the kernel":                func(s *Solution) { s.Error, s.Rounding = new(bound.Errors), 1 },
		"certain: 0.0e+00\n":                               func(s *Solution) { s.Error = &bound.Errors{Certain: []float64{0}} },
		"training     RMSE 0.5 on the 4 points of the fit": func(s *Solution) { s.TrainError, s.TrueResidual = 0.5, 0 },
		"training     error 50.00 %": func(s *Solution) {
			s.TrainError, s.TrueResidual, s.Task = 0.5, 0, datasets.Classification.String()
		},
		"test         ":                     func(s *Solution) { s.TestN = 3 },
		", points in bytes, products exact": func(s *Solution) { s.KWhole = true },
		", sparse: 25 % of the entries, ‖·‖₂ of the others at most 1.0e-03": func(s *Solution) { s.KKept, s.KDropped = 0.25, 1e-3 },
		"; given: the residual is of its entries":                           func(s *Solution) { s.Kernel.Name = "precomputed" },
		"solver       auto, preconditioner sparse (why)\n":                  func(s *Solution) { s.Precond, s.Features, s.Reason = "vecchia", "sparse", "why" },
		"Nyström landmarks, s = 3, λ_p = 2, form L\n":                       func(s *Solution) { s.Precond, s.S, s.LambdaP, s.Form = "nystrom", 3, 2, "L" },
		"preconditioner randomly pivoted Cholesky\n":                        func(s *Solution) { s.Precond = "rpcholesky" },
		"ranks        2 (1 on this machine); 1 kB sent by each, 0.5 s in": func(s *Solution) {
			s.Ranks = &Ranks{Count: 2, OnNode: 1, Bytes: 1000, Seconds: 0.5}
		},
		"ranks        2; 0 B":              func(s *Solution) { s.Ranks = &Ranks{Count: 2} },
		"; iterations 7, 5\n":              func(s *Solution) { s.Iterations, s.Plan = 5, &plan.Report{Choice: plan.Candidate{Iterations: 7}} },
		"race         ":                    func(s *Solution) { s.Plan = &plan.Report{Raced: make([]plan.Raced, 2)} },
		"over to direct\n":                 func(s *Solution) { s.Plan = &plan.Report{Over: "direct"} },
		"|AUC|0.75|":                       func(s *Solution) { s.Classes = &model.Classes{AUC: &auc} },
		"|share of the largest class|0.5|": func(s *Solution) { s.Classes = &model.Classes{BaseRate: 0.5} },
	} {
		of := func(s *Solution) string {
			var cells strings.Builder
			for _, row := range s.Table().Rows {
				fmt.Fprint(&cells, "|")
				for _, cell := range row {
					fmt.Fprintf(&cells, "%v|", cell)
				}
			}
			return s.String() + cells.String()
		}
		s := NewSolution(stage.Header{N: 4, Task: "regression"})
		if strings.Contains(of(s), want) {
			t.Errorf("%q of what is not known", want)
		}
		know(s)
		testkit.Contains(t, of(s), want)
	}
}
