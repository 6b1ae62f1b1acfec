package statdim

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"

	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// TestFactorDistance checks that the certain distance of a landmark factor F bounds the differences of the eigenvalues
// of K and FFᵀ, and is at most about twice the trace of K−FFᵀ. A factor of unknown accuracy has an unknown distance.
func TestFactorDistance(t *testing.T) {
	x := testkit.RandomPoints(1, 60, 2)
	exactK := testkit.Must(gram.NewExact(kernel.Gaussian{Sigma: 1}, x, 0.1, 1e-12, nil))
	factor := testkit.Must(lowrank.RPCholesky(t.Context(), exactK, 12, rng.New(2), nil))
	woodbury := testkit.Must(precond.New(t.Context(), factor.F, 0.1, &precond.Options{Form: precond.FormEigen}))
	mu := testkit.Eigenvalues(t, testkit.KernelMatrix(kernel.Gaussian{Sigma: 1}, x))
	slices.Reverse(mu)
	sigma2 := slices.Sorted(slices.Values(woodbury.Eigenvalues()))
	slices.Reverse(sigma2)
	distance := factorDistance(factor)
	if !(distance.Below >= 0 && distance.Above > 0 && distance.Above < 2*factor.Residual+1e-6) {
		t.Errorf("%+v with a residual of %g", distance, factor.Residual)
	}
	for i, eigenvalue := range mu {
		factorValue := 0.0
		if i < len(sigma2) {
			factorValue = sigma2[i]
		}
		if eigenvalue < factorValue-distance.Below-1e-12 || eigenvalue > factorValue+distance.Above+1e-12 {
			t.Errorf("eigenvalue %d of K is %g, of FFᵀ %g, which differ by more than %+v", i, eigenvalue, factorValue,
				distance)
		}
	}
	testkit.Equal(t, factorDistance(&lowrank.Factor{F: factor.F, EntryError: math.Inf(1)}), unknownDistance)
}

// TestLambdaGridAndStatDims checks s_λ for given eigenvalues and values of λ, that the grid has each λ once in
// ascending order, and that a canceled context ends FromDense.
func TestLambdaGridAndStatDims(t *testing.T) {
	if got := statDims([]float64{1, 3, -1e-20}, []float64{1, 3}); got[0] != 1.25 || got[1] != 0.75 {
		t.Errorf("s_λ is %v, want 1.25 = 1/2+3/4 and 0.75 = 1/4+3/6", got)
	}
	if got := lambdaGrid(2, []float64{5, 1, 2}); !slices.Equal(got, []float64{1, 2, 5}) {
		t.Errorf("grid %v, want 1, 2, 5", got)
	}
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		return testkit.ErrOf(FromDense(ctx, mat.NewDense(2, 2, []float64{1, 0, 0, 1}), 0, 1, nil))
	})
}
