package compare

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// TestPlotAgainst checks the plot of iterations against rank and bytes. Names that differ only in the rank form one
// series. Rows without a rank, failed rows and rows that did not converge are omitted.
func TestPlotAgainst(t *testing.T) {
	row := func(name string, s, iterations int) pencil.Row {
		return pencil.Row{Name: name, S: s, Cost: pencil.Cost{Bytes: int64(s)},
			Iteration: pencil.Iteration{Iterations: &iterations, Status: pcg.Converged}}
	}
	result := &Result{Header: stage.Header{Kernel: kernel.Spec{Name: "gaussian", Sigma: 1}}, KBytes: 1000,
		Rows: []pencil.Row{
			row("none", 0, 99), row("nystrom features=10 form=u", 10, 20), row("nystrom features=40 form=u", 40, 5),
			row("b", 10, 7), row("b (2)", 20, 6)}}
	failed, unconverged := row("b", 30, 1), row("b", 40, 1)
	failed.FailureReason, unconverged.Status = "M", pcg.MaxIterations
	result.Rows = append(result.Rows, failed, unconverged)
	for _, test := range []struct {
		against string
		want    []plots.Series
	}{
		{"rank", []plots.Series{{Name: "Nyström, form = u", X: []float64{10, 40}, Y: []float64{20, 5}},
			{Name: "b", X: []float64{10, 20}, Y: []float64{7, 6}}}},
		{"bytes", []plots.Series{{Name: "none", X: []float64{1000}, Y: []float64{99}},
			{Name: "Nyström, form = u", X: []float64{1010, 1040}, Y: []float64{20, 5}},
			{Name: "b", X: []float64{1010, 1020}, Y: []float64{7, 6}}}},
	} {
		result.Against = test.against
		for i := range test.want {
			test.want[i].Style = plots.Points
		}
		if figure := result.Plot(); !reflect.DeepEqual(figure.Series, test.want) {
			t.Errorf("series against %s: %+v, want %+v", test.against, figure.Series, test.want)
		}
	}
}

// TestPanels checks the four panels of a comparison: residuals against iterations and against seconds, error bounds,
// and the cumulative share of the eigenvalues. Of several draws, the one with the median number of iterations is shown.
// A row with one residual (b) and unknown error bounds are omitted.
func TestPanels(t *testing.T) {
	row := func(name string, draw, iterations int) pencil.Row {
		r := pencil.Row{Name: name, Draw: draw,
			Iteration: pencil.Iteration{Iterations: &iterations, Residuals: make([]float64, iterations+1)},
			Cost:      pencil.Cost{Build: 3, Solve: 2},
			Spectrum:  pencil.Spectrum{Exact: new(estimate.Interval), Nodes: []float64{1, 2, 4, 8}}}
		for iteration := range r.Residuals {
			r.Residuals[iteration] = math.Pow(0.1, float64(iteration))
		}
		return r
	}
	r := &Result{Product: 5, To: 1e-3, Rows: []pencil.Row{row("a", 0, 4), row("a", 1, 2), row("a", 2, 3),
		row("b", 0, 9)}}
	r.Rows[2].ErrorBounds, r.Rows[3].Residuals = []float64{4, 3, 2, 1}, []float64{1}
	want := [][2][]float64{{{0, 1, 2, 3}, {1, 0.1, 0.01, 0.001}}, {{3, 10, 17, 24}, {1, 0.1, 0.01, 0.001}},
		{{3, 10, 17, 24}, {4, 3, 2, 1}}, {{1, 2, 4, 8}, {0.25, 0.5, 0.75, 1}}}
	for i, panel := range r.Plot().Panels {
		series := panel.Series
		if len(series) != 1 || series[0].Name != "a" || !floats.EqualApprox(series[0].X, want[i][0], 1e-12) ||
			!floats.EqualApprox(series[0].Y, want[i][1], 1e-12) || panel.X.Log != (i == 0 || i == 3) {
			t.Errorf("panel %q: %+v, want the points %v", panel.Title, series, want[i])
		}
	}
	// Quadrature nodes of weight 0 are omitted, and the axis of short times is linear.
	r.Rows[2].Build, r.Rows[2].Exact, r.Rows[2].Weights = 0.01, nil, []float64{0, 0.5, 0.25, 0.25}
	r.Product, r.Rows[2].Solve = 0.0005, 0.0004
	panels := r.Plot().Panels
	if nodes := panels[3].Series[0].X; !slices.Equal(nodes, []float64{2, 4, 8}) || panels[1].X.Log {
		t.Errorf("nodes %v, want 2, 4, 8; logarithmic seconds: %t", nodes, panels[1].X.Log)
	}
	testkit.Contains(t, panels[3].Title, "by quadrature")
}

// TestMedianDraws checks which draw of a preconditioner is shown: the one with the median number of iterations, the
// upper one of two, among those that neither failed nor have an unknown number. If there is none, it is the first draw.
func TestMedianDraws(t *testing.T) {
	row := func(name string, draw, iterations int) pencil.Row {
		return pencil.Row{Name: name, Draw: draw, Iteration: pencil.Iteration{Iterations: &iterations}}
	}
	failed := func(name string, draw int) pencil.Row {
		r := row(name, draw, 0) // few iterations, because it failed
		r.FailureReason = "M"
		return r
	}
	withoutIterations := func(name string, draw int) pencil.Row { return pencil.Row{Name: name, Draw: draw} }
	r := &Result{Rows: []pencil.Row{
		failed("a", 0), row("a", 1, 9), row("a", 2, 5), failed("a", 3), row("a", 4, 7), failed("a", 5), failed("a", 6),
		failed("b", 0), failed("b", 1),
		withoutIterations("c", 0), row("c", 1, 4), withoutIterations("c", 2), row("c", 3, 2)}}
	var got []string
	for _, row := range r.medianDraws() {
		got = append(got, fmt.Sprint(row.Name, row.Draw))
	}
	testkit.Equal(t, fmt.Sprint(got), "[a4 b0 c1]")
}
