package compare

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// diagonal is A.
type diagonal []float64

func (a diagonal) Dim() int { return len(a) }

func (a diagonal) MulTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return a[i] * v }, src)
	return nil
}

// TestBounds: bounds of the error are those of package pcg where these are less than ‖r‖₂/√λ, with a μ that is a lower
// bound and with those that the iterations refute; there are none without a bound of λ_min(A).
func TestBounds(t *testing.T) {
	const n = 60
	a, b := make(diagonal, n), mat.NewDense(n, 1, nil)
	g := rand.New(rand.NewPCG(1, 2))
	for i := range a {
		a[i] = 0.1 + float64(i*i)
		b.Set(i, 0, g.NormFloat64())
	}
	for _, mu := range []float64{0.1, 0.11, 0.3, 0.9, 1.2, 2, 5, 20} {
		res, err := pcg.Solve(context.Background(), a, nil, b, &pcg.Options{Tol: 1e-9, LambdaMin: mu})
		testkit.OK(t, err)
		var row Row
		row.take(res, 0, mu, 0.1, 0)
		for k, v := range row.Bounds {
			want := row.Residuals[k] / math.Sqrt(0.1)
			if e := res.History.Error[k][0]; k > 0 && e < want {
				want = e
			}
			if math.Abs(v/want-1) > 1e-9 {
				t.Errorf("μ = %g, iteration %d: %g, want %g", mu, k, v, want)
			}
		}
		row = Row{}
		if row.take(res, 0, 0, 0, 0.1); row.Bounds != nil || len(row.Residuals) != res.Iterations+1 {
			t.Errorf("bounds %v of %d residuals", row.Bounds, len(row.Residuals))
		}
		if ritz := res.Ritz(0); row.Min.Hi != ritz[0]/0.9 || row.Max.Lo != ritz[len(ritz)-1]/1.1 {
			t.Errorf("λ_min %v, λ_max %v, Ritz values %v", row.Min, row.Max, row.Ritz)
		}
	}
}

// TestAgainst: iterations are drawn against rank and bytes, those of the same name but for the rank in one series,
// without what has no rank, failed, or did not come to the residual.
func TestAgainst(t *testing.T) {
	row := func(name string, s, its int) Row {
		return Row{Name: name, S: s, Bytes: int64(s), Iterations: its, Status: pcg.Converged}
	}
	r := &Result{Header: stage.Header{Kernel: kernel.Spec{Name: "gaussian", Sigma: 1}}, KBytes: 1000, Rows: []Row{
		row("none", 0, 99), row("a features=10 form=u", 10, 20), row("a features=40 form=u", 40, 5), row("b", 10, 7),
		row("b (2)", 20, 6)}}
	failed, slow := row("b", 30, 1), row("b", 40, 1)
	failed.Why, slow.Status = "M", pcg.MaxIterations
	r.Rows = append(r.Rows, failed, slow)
	for _, c := range []struct {
		against string
		want    []plots.Series
	}{
		{"rank", []plots.Series{{Name: "a form=u", X: []float64{10, 40}, Y: []float64{20, 5}},
			{Name: "b", X: []float64{10, 20}, Y: []float64{7, 6}}}},
		{"bytes", []plots.Series{{Name: "none", X: []float64{1000}, Y: []float64{99}},
			{Name: "a form=u", X: []float64{1010, 1040}, Y: []float64{20, 5}},
			{Name: "b", X: []float64{1010, 1020}, Y: []float64{7, 6}}}},
	} {
		r.Against = c.against
		for i := range c.want {
			c.want[i].Style = plots.Points
		}
		if f := r.Plot(); !reflect.DeepEqual(f.Series, c.want) {
			t.Errorf("%s: %+v, want %+v", c.against, f.Series, c.want)
		}
	}
}
