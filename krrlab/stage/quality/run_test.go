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

// inverse hides all methods of a preconditioner except those that apply M⁻¹.
type inverse struct{ pcg.Preconditioner }

// TestViews checks that the report, the table and the figure say what is known of κ for each kind of M, and what is
// not.
func TestViews(t *testing.T) {
	train := datasets.SyntheticRegression(60, 2, 0.1, 1)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 1e-2, Precond: krrlab.Nystrom{S: 20}}
	m := testkit.Must(testkit.Must(krrlab.New(train, cfg)).M(t.Context()))
	for _, c := range []struct {
		p      krrlab.Preconditioner
		lines  []string
		json   string
		series int    // number of series in the figure
		title  string // part of the title of the figure
	}{
		{krrlab.None{}, []string{"I (no preconditioner)", "by all 60 eigenvalues κ is", "PCG"}, "", 3, "κ(M⁻¹A) "},
		{krrlab.Nystrom{S: 5}, []string{"ZZᵀ+λ_pI, s = 5, λ_p = 0.01, Nyström landmarks", "certain"}, "kappa_certain", 3, ""},
		{krrlab.Vecchia{Neighbors: 6}, []string{"sparse inverse on 6 neighbors"}, `"neighbors":6`, 3, ""},
		{krrlab.Given{M: inverse{m}}, []string{"M has no NormalTo", "unbounded"}, "", 1, "κ(M⁻¹A) at least"},
		{krrlab.Features{S: 40, LambdaP: 1e-12}, []string{"no κ by all eigenvalues: M⁻¹ as applied is not"},
			`"inverse_indefinite":true`, 3, "without an upper bound"},
	} {
		cfg.Precond = c.p
		q := testkit.Must(testkit.Must(krrlab.New(train, cfg)).Quality(t.Context(), quality.Options{}))
		testkit.Contains(t, q.String(), c.lines...)
		testkit.Contains(t, string(testkit.Must(json.Marshal(q))), c.json)
		if q.Exact != nil && !q.Kappa.Contains(q.Exact.Value) || q.NotDefinite == (q.Exact != nil) {
			t.Errorf("κ %v, exactly %v", q.Kappa, q.Exact)
		}
		f := q.Plot()
		testkit.Contains(t, f.Title, c.title)
		if rows := q.Table().Rows; len(rows) != 1 || len(f.Series) != c.series {
			t.Errorf("%v: %d rows of a table, %d series", q, len(rows), len(f.Series))
		}
	}
}

// TestUnknown checks the report for repeated rows and a λ below the rounding error of K, for which neither the Lanczos
// process nor all eigenvalues give an upper bound of κ.
func TestUnknown(t *testing.T) {
	x := make([]float64, 60)
	for i := range x {
		x[i] = float64(i % 10)
	}
	train := &datasets.Dataset{Name: "repeated", Task: datasets.Regression, X: points.NewDense(60, 1, x),
		Target: slices.Clone(x)}
	lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 1e-18, Precond: krrlab.None{}}))
	q := testkit.Must(lab.Quality(t.Context(), quality.Options{}))
	if q.Exact == nil || !math.IsNaN(q.Exact.Value) || !math.IsInf(q.Exact.Hi, 1) {
		t.Fatalf("κ = %v by all eigenvalues", q.Exact)
	}
	lines := q.String() + q.Plot().Title
	if strings.Contains(lines, "NaN") || strings.Contains(lines, "Inf") ||
		!strings.Contains(lines, "without an upper bound, as rounding in float64 may hide the least of them") {
		t.Error(lines)
	}
}
