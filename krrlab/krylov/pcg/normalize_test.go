package pcg_test

import (
	"context"
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// scaledInverse is m with M⁻¹ multiplied by factor.
func scaledInverse(m pcg.Preconditioner, factor float64) pcg.Preconditioner {
	return funcOperator{m.Dim(), func(ctx context.Context, dst, src *mat.Dense) error {
		err := m.SolveTo(ctx, dst, src)
		dst.Scale(factor, dst)
		return err
	}}
}

// TestPreconditionerScale checks that the answer, the residuals and the error bounds of a solve, and of a resumed
// solve, do not depend on the scale of M in any bit, for ten powers of two between 10⁻³⁰⁰ and 10³⁰⁰.
func TestPreconditionerScale(t *testing.T) {
	const n = 60
	exact, _ := exactAndRounded(n)
	b := gaussianMatrix(21, n, 3)
	diag := make(diagonal, n)
	for i := range diag {
		diag[i] = 1 + 0.1*float64(i%7)
	}
	for name, solve := range solvers {
		options := func(factor float64) *pcg.Options { return &pcg.Options{Tol: 1e-8, LambdaMin: 5e-3 * factor} }
		want := testkit.Must(solve(t.Context(), dense{exact}, diag, b, options(1)))
		testkit.Equal(t, want.Status, pcg.Converged)
		for _, exponent := range []int{-996, -800, -600, -402, -100, 100, 402, 600, 800, 996} {
			factor := math.Ldexp(1, exponent)
			m, opts := scaledInverse(diag, factor), options(factor)
			var state []byte
			opts.Checkpoint = func(checkpoint *pcg.State) (err error) {
				if checkpoint.Iterations() == 5 {
					state, err = checkpoint.MarshalBinary()
				}
				return err
			}
			got := testkit.Must(solve(t.Context(), dense{exact}, m, b, opts))
			opts.Resume = state
			resumed := testkit.Must(solve(t.Context(), dense{exact}, m, b, opts))
			for _, res := range []*pcg.Result{got, resumed} {
				if !mat.Equal(res.X, want.X) || !reflect.DeepEqual(res.History.RelRes, want.History.RelRes) ||
					!reflect.DeepEqual(res.History.ErrorBounds, want.History.ErrorBounds) || res.Status != want.Status {
					t.Errorf("%s, M⁻¹ times 2^%d: %v, without %v", name, exponent, res, want)
				}
			}
		}
	}
}

// TestSubnormalProducts checks that a solve does not depend on the scale of M in any bit either if the products
// with M⁻¹ are subnormal, or so large that the next powers of two overflow.
func TestSubnormalProducts(t *testing.T) {
	const n = 30
	a, b := spd(24, geometric(n, 100)), gaussianMatrix(25, n, 2)
	diag := make(diagonal, n)
	for i := range diag {
		diag[i] = 1 + 0.1*float64(i%7)
	}
	for name, solve := range solvers {
		want := testkit.Must(solve(t.Context(), dense{a}, diag, b, &pcg.Options{Tol: 1e-8}))
		testkit.Equal(t, want.Status, pcg.Converged)
		for _, exponent := range []int{-1060, -1030, -1022, 1018} {
			m := scaledInverse(diag, math.Ldexp(1, exponent))
			res := testkit.Must(solve(t.Context(), dense{a}, m, b, &pcg.Options{Tol: 1e-8}))
			if res.Status != want.Status || !mat.Equal(res.X, want.X) {
				t.Errorf("%s, M⁻¹ times 2^%d: %v, without %v", name, exponent, res, want)
			}
		}
	}
}

// TestNormalizedFactor checks that Normalized does not change an M⁻¹ of the size 2^±199, and scales one of the size
// 2^±202.
func TestNormalizedFactor(t *testing.T) {
	r, dst := mat.NewDense(1, 1, []float64{1}), mat.NewDense(1, 1, nil)
	for exponent, want := range map[int]float64{-199: 1, 199: 1, -202: 0x1p200, 202: 0x1p-202} {
		m := pcg.Normalize(scaledInverse(diagonal{1}, math.Ldexp(1, exponent)))
		testkit.Equal(t, m.Factor(), 1, exponent)
		testkit.OK(t, m.SolveTo(t.Context(), dst, r))
		testkit.Equal(t, m.Factor(), want, exponent)
		testkit.Equal(t, dst.At(0, 0), math.Ldexp(want, exponent), exponent)
	}
}

// TestUnusableProducts checks that the report names an M⁻¹r that is zero or not finite as the reason for the end of a
// solve.
func TestUnusableProducts(t *testing.T) {
	const n = 20
	a, b := spd(22, geometric(n, 100)), gaussianMatrix(23, n, 2)
	for name, solve := range solvers {
		for factor, reason := range map[float64]string{
			0:           "rᵀM⁻¹r = 0: M⁻¹r is zero",
			math.Inf(1): "Inf is not finite",
			math.NaN():  "rᵀM⁻¹r = NaN is not finite",
		} {
			m := make(diagonal, n)
			for i := range m {
				m[i] = 1
			}
			res := testkit.Must(solve(t.Context(), dense{a}, scaledInverse(m, factor), b, nil))
			testkit.Contains(t, res.String(), reason)
			testkit.Equal(t, mat.Norm(res.X, 2), 0, name)
		}
	}
}
