package verify

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestOnePoint checks a matrix of a single point, and that no points or no coordinates are an error.
func TestOnePoint(t *testing.T) {
	polynomial := kernel.Spec{Name: "polynomial", Gamma: 1, Coef0: 1, Degree: 2}
	for _, memory := range []int64{0, 8} {
		m := newMatrix(t, polynomial, points.NewDense(1, 1, []float64{2}), memory)
		testkit.Equal(t, m.Stored, (memory == 8), memory)
		s := testkit.Must(m.Cond(t.Context(), 5, 6, rng.New(1)))
		// The kernel of the point 2 with itself is (2·2+1)² = 25.
		if !s.Largest.Contains(25) || s.Largest.RelativeWidth() > 1+1e-9 || !s.Cond.Contains(1) ||
			!(s.SimpleBound >= 6 && s.SimpleBound <= 6*(1+1e-13)) || s.Passes != 6 {
			t.Errorf("with %d bytes: %+v, want λ_max = 25, κ = 1, the simple bound 1+25/5 and 6 passes", memory, s)
		}
	}
	for _, x := range []*points.Dense{points.NewDense(0, 1, nil), points.NewDense(1, 0, nil)} {
		if _, err := New(t.Context(), nil, polynomial, x, 0, nil); err == nil {
			t.Errorf("%d×%d points are no error", x.N, x.D)
		}
	}
}

// TestResidualFormula compares R, its norms and their rounding bounds with values computed by hand, for three points
// and two columns.
func TestResidualFormula(t *testing.T) {
	m := &Matrix{N: 3}
	const columns, lambda = 2, 10
	v, y, c := []float64{1, 0, 2, 0, 3, 1}, []float64{1, 4, 5, 0, 7, 1}, []float64{-1, 2, 3, -4, 5, 6}
	r := m.Residual(v, []float64{0.5, 0.25}, c, y, columns, lambda)
	norm := func(x ...float64) float64 { return floats.Norm(x, 2) }
	for _, test := range []struct {
		name      string
		got, want []float64
	}{
		{"R", r.R, []float64{0, 4, 3, 0, 4, 0}},
		{"norms", r.Norms, []float64{5, 4}},
		{"norms of y", r.TargetNorms, []float64{norm(1, 5, 7), norm(4, 0, 1)}},
		{"1-norms", r.OneNorms, []float64{9, 12}},
		{"rounding errors of norms", r.NormErrors, []float64{math.Sqrt(3) * 0.5, math.Sqrt(3) * 0.25}},
		{"norms of differences of columns", r.CrossNorms, []float64{0, norm(4, 3, 4), norm(4, 3, 4), 0}},
	} {
		if !floats.EqualApprox(test.got, test.want, 1e-13) {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
	r = m.Residual(v, []float64{0, 0}, c, y, columns, lambda)
	// The bounds in units of u are 4‖|y|+λ|c|‖ + n‖r‖.
	for j, want := range []float64{4*norm(11, 35, 57) + 3*5, 4*norm(24, 40, 61) + 3*4} {
		testkit.Near(t, r.NormErrors[j]/unitRoundoff, want, 1e-12*want, j)
	}
}
