package pencil

import (
	"context"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
)

// skewed is M⁻¹ with extra added to the entry (1, 0), so that it is not symmetric.
type skewed struct {
	pcg.Preconditioner
	extra float64
}

func (m skewed) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	row := mat.Row(nil, 0, r)
	err := m.Preconditioner.SolveTo(ctx, dst, r)
	floats.AddScaled(dst.RawRowView(1), m.extra, row)
	return err
}

// TestEigenvalues compares the eigenvalues of (A, M) with those of dense matrices. The slack must cover an M⁻¹ that is
// not exactly symmetric, and a large asymmetry must be detected.
func TestEigenvalues(t *testing.T) {
	const n, s, lambda, lambdaP = 130, 40, 0.05, 0.2
	normals, z64, z := mat.NewDense(n, n, nil), mat.NewDense(n, s, nil), points.NewDense32(n, s, nil)
	rng.New(1).Normals(normals.RawMatrix().Data, 0)
	for i, eigenvalue := range normals.RawMatrix().Data[:n*s] {
		z.Data[i] = float32(eigenvalue / 3)
		z64.RawMatrix().Data[i] = float64(z.Data[i])
	}
	var k, zz mat.SymDense
	k.SymOuterK(1.0/n, normals)
	zz.SymOuterK(1, z64)
	want := testkit.PencilEigenvalues(t, testkit.AddRidge(&k, lambda), testkit.AddRidge(&zz, lambdaP))
	m := testkit.Must(precond.New(t.Context(), z, lambdaP, &precond.Options{Form: precond.FormLInv}))
	// The keys are the fractions of 1/λ_p that are added to one off-diagonal entry of M⁻¹.
	for fraction, want := range map[float64][]float64{0: want, 0.01: want, 3: nil} {
		got, slack, isDefinite, err := eigenvalues(t.Context(), mat.DenseCopyOf(&k), lambda, skewed{m,
			fraction / lambdaP})
		if err != nil || isDefinite != (want != nil) || fraction == 0 && slack > 1e-8 {
			t.Fatalf("slack %g, definite %v (%v)", slack, isDefinite, err)
		}
		for i, eigenvalue := range got {
			testkit.Near(t, eigenvalue, want[i], slack+1e-10*want[n-1], i, slack)
		}
	}
	withoutM, _, _, err := eigenvalues(t.Context(), mat.DenseCopyOf(&k), lambda, nil)
	testkit.OK(t, err)
	for i, eigenvalue := range testkit.Eigenvalues(t, &k) {
		testkit.Near(t, withoutM[i]-eigenvalue, lambda, 1e-12*withoutM[n-1], i, withoutM[i], eigenvalue+lambda)
	}
}

// TestEigenvaluesSlack checks that the slack without a preconditioner is n·2⁻⁵³·‖A‖_∞.
func TestEigenvaluesSlack(t *testing.T) {
	k := mat.NewDense(3, 3, []float64{2, 0, 0, 0, 3, 0, 0, 0, 4})
	values, slack, isDefinite, err := eigenvalues(t.Context(), k, 1, nil)
	if err != nil || !isDefinite || !slices.Equal(values, []float64{3, 4, 5}) || slack != 3*0x1p-53*5 {
		t.Errorf("%v, slack %g, %v", values, slack, err)
	}
}
