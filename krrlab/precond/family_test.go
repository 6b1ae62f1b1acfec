package precond_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
)

var (
	_ pcg.ColumnPreconditioner = (*precond.RidgeFamily)(nil)
	_ lanczos.Metrics          = (*precond.RidgeFamily)(nil)
	_ lanczos.Metric           = (*precond.Woodbury)(nil)
)

// TestRidgeFamily checks the family of M = ZZᵀ+λ_pI for several ridges λ_p. Each column must agree with a dense solve
// with its λ_p, for columns in any order, and draws with those of Woodbury with the same λ_p. RidgeFamily must refuse
// invalid λ_p and form L.
func TestRidgeFamily(t *testing.T) {
	const n = 700
	z, z64 := decayingFeatures(21, n, 60, 0.97)
	lambdas := []float64{1e-3, 0.1, 5, 1e3}
	family := testkit.Must(buildForm(t, z, 1, precond.FormEigen).WithLambdas(lambdas))
	cols := []int{2, 0, 3, 3}
	r := normalMatrix(5, n, len(cols))
	got := mat.NewDense(n, len(cols), nil)
	testkit.OK(t, family.SolveColumnsTo(t.Context(), got, r, cols))
	for j, c := range cols {
		var want mat.Dense
		testkit.OK(t, want.Solve(denseM(z64, lambdas[c]), r.Slice(0, n, j, j+1)))
		var diff mat.Dense
		diff.Sub(&want, got.Slice(0, n, j, j+1))
		if relative := mat.Norm(&diff, 2) / mat.Norm(&want, 2); relative > 1e-9 {
			t.Errorf("column %d, λ_p = %g: relative error %.2g", j, lambdas[c], relative)
		}
	}
	x := mat.NewDense(n, 4, nil)
	// Column 3 has λ_p number 3 in both calls.
	if err := family.SolveTo(t.Context(), x, r); err != nil ||
		math.Abs(x.At(3, 3)-got.At(3, 3)) > 1e-12*math.Abs(got.At(3, 3)) {
		t.Errorf("SolveTo is not SolveColumnsTo of all (%v)", err)
	}
	testkit.OK(t, family.NormalColumnsTo(t.Context(), x, rng.New(9)))
	for c, lambda := range lambdas { // compare with the draws of Woodbury with this λ_p
		w := testkit.Must(buildForm(t, z, 1, precond.FormEigen).WithLambda(lambda))
		draw := mat.NewDense(n, 1, nil)
		if err := w.NormalTo(t.Context(), draw, rng.New(9)); err != nil ||
			!mat.EqualApprox(draw, x.Slice(0, n, c, c+1), 1e-11) {
			t.Errorf("λ_p = %g: another draw than NormalTo's (%v)", lambda, err)
		}
	}
	for _, bad := range [][]float64{nil, {1, 0}, {-1}, {math.NaN()}, {math.Inf(1)}} {
		if _, err := buildForm(t, z, 1, precond.FormEigen).WithLambdas(bad); err == nil {
			t.Errorf("the ridges %v are accepted", bad)
		}
	}
	if _, err := buildForm(t, z, 1, precond.FormL).WithLambdas(lambdas); err == nil {
		t.Error("form L has a family")
	}
}
