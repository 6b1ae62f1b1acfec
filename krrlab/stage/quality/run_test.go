package quality_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage/quality"
)

// inverseOnly wraps a preconditioner and hides all of its methods except those that apply M⁻¹.
type inverseOnly struct{ pcg.Preconditioner }

// TestViews checks the report, the table and the figure for several kinds of M: κ known exactly, certainly bounded,
// bounded from below only, or unknown because M⁻¹ is indefinite.
func TestViews(t *testing.T) {
	train := datasets.SyntheticRegression(60, 2, 0.1, 1)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 1e-2, Precond: krrlab.Nystrom{S: 20}}
	nystrom := testkit.Must(testkit.Must(krrlab.New(train, cfg)).M(t.Context()))
	for _, test := range []struct {
		precond krrlab.Preconditioner
		lines   []string // parts of the report
		json    string   // part of the JSON
		series  int      // number of series in the figure
		title   string   // part of the title of the figure
	}{
		{krrlab.None{}, []string{"I (no preconditioner)", "by all 60 eigenvalues κ is", "PCG"}, "", 3, "κ(M⁻¹A) "},
		{krrlab.Nystrom{S: 5}, []string{"ZZᵀ+λ_pI, s = 5, λ_p = 0.01, Nyström landmarks", "certain"}, "kappa_certain",
			3, ""}, {krrlab.Vecchia{Neighbors: 6}, []string{"sparse inverse on 6 neighbors"}, `"neighbors":6`, 3, ""},
		{krrlab.Given{M: inverseOnly{nystrom}}, []string{"M has no NormalTo", "unbounded"}, "", 1, "κ(M⁻¹A) at least"},
		{krrlab.Features{S: 40, LambdaP: 1e-12}, []string{"no κ by all eigenvalues: M⁻¹ as applied is not"},
			`"inverse_indefinite":true`, 3, "without an upper bound"},
	} {
		cfg.Precond = test.precond
		result := testkit.Must(testkit.Must(krrlab.New(train, cfg)).Quality(t.Context(), quality.Options{}))
		testkit.Contains(t, result.String(), test.lines...)
		testkit.Contains(t, string(testkit.Must(json.Marshal(result))), test.json)
		if result.Exact != nil && !result.Kappa.Contains(result.Exact.Value) ||
			result.NotDefinite == (result.Exact != nil) {
			t.Errorf("%v: κ %v, by all eigenvalues %v; M⁻¹ not definite: %t", test.precond, result.Kappa, result.Exact,
				result.NotDefinite)
		}
		figure := result.Plot()
		testkit.Contains(t, figure.Title, test.title)
		if rows := result.Table().Rows; len(rows) != 1 || len(figure.Series) != test.series {
			t.Errorf("%v: %d rows of the table, want 1; %d series, want %d", test.precond, len(rows),
				len(figure.Series), test.series)
		}
	}
}

// TestUnknownKappa checks the report for repeated rows and a λ below the rounding error of K, for which neither the
// Lanczos process nor all eigenvalues give an upper bound of κ.
func TestUnknownKappa(t *testing.T) {
	x := make([]float64, 60)
	for i := range x {
		x[i] = float64(i % 10)
	}
	train := &datasets.Dataset{Name: "repeated", Task: datasets.Regression, X: points.NewDense(60, 1, x),
		Target: slices.Clone(x)}
	lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 1e-18,
		Precond: krrlab.None{}}))
	result := testkit.Must(lab.Quality(t.Context(), quality.Options{}))
	if result.Exact == nil || !math.IsNaN(result.Exact.Value) || !math.IsInf(result.Exact.Hi, 1) {
		t.Fatalf("κ = %v by all eigenvalues, want no value and no upper bound", result.Exact)
	}
	text := result.String() + result.Plot().Title
	testkit.Contains(t, text, "without an upper bound, as rounding in float64 may hide the least of them")
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("the report shows numbers that are not finite:\n%s", text)
	}
}
