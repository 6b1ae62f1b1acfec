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
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// TestFactorDistance checks that the certain distance of a landmark factor bounds the differences of the eigenvalues of
// K and FFᵀ, and is not much too large. It also checks degreesAt, grid, and that a canceled context ends Dense.
func TestFactorDistance(t *testing.T) {
	const n = 60
	x := points.NewDense(n, 2, nil)
	rng.New(1).Normals(x.Data, 0)
	a := testkit.Must(gram.NewExact(kernel.Gaussian{Sigma: 1}, x, 0.1, 1e-12, nil))
	f := testkit.Must(lowrank.RPCholesky(t.Context(), a, 12, rng.New(2), nil))
	w := testkit.Must(precond.New(t.Context(), f.F, 0.1, &precond.Options{Form: precond.FormEigen}))
	mu := testkit.Eigenvalues(t, testkit.KernelMatrix(kernel.Gaussian{Sigma: 1}, x))
	slices.Reverse(mu)
	sigma2 := slices.Sorted(slices.Values(w.Eigenvalues()))
	slices.Reverse(sigma2)
	d := factorDistance(f)
	if !(d.Below >= 0 && d.Above > 0 && d.Above < 2*f.Residual+1e-6) {
		t.Errorf("%+v with a residual of %g", d, f.Residual)
	}
	for i, v := range mu {
		s := 0.0
		if i < len(sigma2) {
			s = sigma2[i]
		}
		if v < s-d.Below-1e-12 || v > s+d.Above+1e-12 {
			t.Errorf("eigenvalue %d is %g, of FFᵀ %g, %+v", i, v, s, d)
		}
	}
	testkit.Equal(t, factorDistance(&lowrank.Factor{F: f.F, EntryError: math.Inf(1)}), unknownDistance)
	if got := degreesAt([]float64{1, 3, -1e-20}, []float64{1, 3}); got[0] != 1.25 || got[1] != 0.75 {
		t.Errorf("degrees %v", got)
	}
	if got := grid(2, []float64{5, 1, 2}); !slices.Equal(got, []float64{1, 2, 5}) {
		t.Errorf("grid %v", got)
	}
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		return testkit.ErrOf(FromDense(ctx, mat.NewDense(2, 2, []float64{1, 0, 0, 1}), 0, 1, nil))
	})
}
