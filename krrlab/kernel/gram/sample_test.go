package gram_test

import (
	"errors"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// powerNorm returns a lower bound of ‖E‖₂, E = K̃ − K, by power iteration.
func powerNorm(t *testing.T, m *gram.Matrix, n, steps int) (norm float64) {
	t.Helper()
	exact := m.Exact(0)
	v, stored, exactProduct := gaussianMatrix(1, n, 1), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for range steps {
		v.Scale(1/mat.Norm(v, 2), v)
		testkit.OK(t, errors.Join(m.KMulTo(ctx, stored, v), exact.KMulTo(ctx, exactProduct, v)))
		v.Sub(stored, exactProduct)
		norm = mat.Norm(v, 2)
	}
	return norm
}

// TestPredictionGrowsWithN checks ‖E‖₂ predicted from a sample of less than a quarter of the rows against power
// iteration. The error of inner products of points far from the origin grows with n: a prediction that ignored this
// would be a third of the true norm.
func TestPredictionGrowsWithN(t *testing.T) {
	const n = 5000
	x := shiftedPoints(2, n, 6, 20)
	m := mustNew(t, kernel.Gaussian{Sigma: 2}, x, 1, &gram.Options{Storage: gram.Float32, Accuracy: 1e3})
	c := m.Choice()
	if c.Arithmetic != kernel.Float32 || c.Tried[0].Rows*4 > n {
		t.Fatalf("choice %+v", c)
	}
	if norm := powerNorm(t, m, n, 6); norm > c.Error || c.Error > 5*norm {
		t.Errorf("‖E‖₂ = %.2g, predicted %.2g from %d rows", norm, c.Error, c.Tried[0].Rows)
	}
}

// TestChoose checks that New makes the choice that Choose returns, and that Options.Choice replaces it.
func TestChoose(t *testing.T) {
	const n = 1300
	x, k, opts := shiftedPoints(3, n, 4, 1), kernel.Gaussian{Sigma: 2}, &gram.Options{PreferredAccuracy: 1e-5, Seed: 7}
	choice, err := gram.Choose(ctx, k, x, 0.1, opts)
	if err != nil {
		t.Fatal(choice, err)
	}
	m := mustNew(t, k, x, 0.1, opts)
	if byNew, byChoose := m.Choice(), choice; byNew.Storage != byChoose.Storage ||
		byNew.Arithmetic != byChoose.Arithmetic || byNew.Centered != byChoose.Centered ||
		byNew.Error != byChoose.Error {
		t.Errorf("New chooses %v, Choose %v", byNew, byChoose)
	}
	userChoice := choice
	userChoice.Reason = "set by the user"
	opts.Choice = &userChoice
	byUser := mustNew(t, k, x, 0.1, opts)
	first, second := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil)
	y := gaussianMatrix(5, n, 2)
	if err := errors.Join(m.MulTo(ctx, first, y), byUser.MulTo(ctx, second, y)); err != nil ||
		!mat.Equal(first, second) || byUser.Choice().Reason != "set by the user" {
		t.Errorf("%v: the products differ from those without Options.Choice, error %v", byUser.Choice(), err)
	}
	if _, err := gram.Choose(ctx, k, x, -1, opts); err == nil {
		t.Error("λ = −1 is accepted")
	}
}

// TestChooseSparse checks that New forms the same sparse tiles with the tree of an earlier Choose as with a tree of
// its own.
func TestChooseSparse(t *testing.T) {
	const n = 900
	x, k := points.NewDense(n, 2, gaussianMatrix(3, n, 2).RawMatrix().Data), kernel.Gaussian{Sigma: 0.05}
	opts := &gram.Options{PreferredAccuracy: 1e-5, Seed: 7, Tiles: gram.SparseTiles, MaxDroppedNorm: 1e-6}
	alone := mustNew(t, k, x, 0.1, opts)
	choice, err := gram.Choose(ctx, k, x, 0.1, opts)
	if err != nil || choice.Sparse == nil {
		t.Fatal(choice, err)
	}
	opts.Choice = &choice
	given := mustNew(t, k, x, 0.1, opts)
	first, second, y := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil), gaussianMatrix(5, n, 2)
	if err := errors.Join(alone.MulTo(ctx, first, y), given.MulTo(ctx, second, y)); err != nil ||
		!mat.Equal(first, second) {
		t.Errorf("the products differ, error %v", err)
	}
	if own, fromChoose := alone.Choice().Sparse, given.Choice().Sparse; own.FormedShare != fromChoose.FormedShare ||
		own.StoredShare != fromChoose.StoredShare ||
		own.DroppedNorm != fromChoose.DroppedNorm {
		t.Errorf("New forms %+v, with the tree of Choose %+v", own, fromChoose)
	}
}
