package pencil

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/plots"
)

// diagonal is a diagonal matrix A.
type diagonal []float64

func (a diagonal) Dim() int { return len(a) }

func (a diagonal) MulTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return a[i] * v }, src)
	return nil
}

// TestRowErrorBounds checks that the error bounds are those of package pcg where these are below ‖r‖₂/√λ, for values μ
// that are lower bounds of the spectrum and for those that the iterations refute. There are no bounds without a lower
// bound of λ_min(A).
func TestRowErrorBounds(t *testing.T) {
	const n = 60
	a, b := make(diagonal, n), mat.NewDense(n, 1, nil)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range a {
		a[i] = 0.1 + float64(i*i)
		b.Set(i, 0, random.NormFloat64())
	}
	for _, mu := range []float64{0.1, 0.11, 0.3, 0.9, 1.2, 2, 5, 20} {
		res, err := pcg.Solve(context.Background(), a, nil, b, &pcg.Options{Tol: 1e-9, LambdaMin: mu})
		testkit.OK(t, err)
		set := &Set{Rows: []*Row{new(Row)}, LambdaMin: []float64{mu}, LambdaMinA: 0.1}
		set.setSolve(res, 0, 1)
		row := set.Rows[0]
		for k, errorBound := range row.ErrorBounds {
			want := row.Residuals[k] / math.Sqrt(0.1)
			if bound := res.History.ErrorBounds[k][0]; k > 0 && bound < want {
				want = bound
			}
			testkit.Near(t, errorBound/want, 1, 1e-9, mu, k, errorBound, want)
		}
		set = &Set{Rows: []*Row{new(Row)}, StorageError: 0.1}
		set.setSolve(res, 0, 1)
		if row = set.Rows[0]; row.ErrorBounds != nil || len(row.Residuals) != res.Iterations+1 {
			t.Errorf("bounds %v of %d residuals", row.ErrorBounds, len(row.Residuals))
		}
		if ritz := res.Ritz(0); row.Min.Hi != ritz[0]/0.9 || row.Max.Lo != ritz[len(ritz)-1]/1.1 {
			t.Errorf("λ_min %v, λ_max %v, Ritz values %v", row.Min, row.Max, row.Ritz)
		}
	}
}

// TestLikelihoodOfStored checks the likelihood for K = 0 that is stored as −λ/2·I. The energy yᵀA⁻¹y of the true A is
// half of that of the stored one.
func TestLikelihoodOfStored(t *testing.T) {
	det := estimate.Certain(0, 0, "")
	set := &Set{A: diagonal{0.5}, StorageError: 0.5, squaredNorm: 1e6,
		Rows: []*Row{{Determinant: Determinant{LogDetA: &det}, energyBounds: [2]float64{2, 2}}}}
	set.setLikelihoods()
	if likelihood, want := set.Rows[0].Likelihood, 1e6+math.Log(2*math.Pi); !likelihood.Contains(want) {
		t.Errorf("%v, want %g in it", likelihood, want)
	}
}

// TestExploreTolerance checks that the tolerance is the second slider and that its range contains its value.
func TestExploreTolerance(t *testing.T) {
	for _, tau := range []float64{1e-9, 1e-3, 0.7} {
		sliders := ExploreControls(map[string]any{}, 0.9, tau, plots.Slider{Name: "λ_p"},
			plots.Slider{Name: "s"}).Sliders
		if len(sliders) != 3 || sliders[1].Name != "τ" || sliders[1].Value != tau || sliders[1].Min > tau ||
			sliders[1].Max < tau {
			t.Errorf("τ = %g: %+v", tau, sliders)
		}
	}
}

// TestFormatEstimated checks that the width of an interval determines the number of decimals, also if it is 0 or
// infinite.
func TestFormatEstimated(t *testing.T) {
	for halfWidth, want := range map[float64]string{0.25: "3.14 ± 0.25", 30: "3 ± 30", 0: "3.14158999999999988 ± 0",
		math.Inf(1): "3 ± +Inf"} {
		interval := estimate.Interval{Value: 3.14159, Lo: 3.14159 - halfWidth, Hi: 3.14159 + halfWidth}
		if halfWidth == 0.25 {
			interval.Lo, interval.Hi = interval.Value, interval.Value+0.2444
		}
		if got := formatEstimated(interval); !strings.HasPrefix(got, want+" with") {
			t.Errorf("%g: %s, want %s", halfWidth, got, want)
		}
	}
}
