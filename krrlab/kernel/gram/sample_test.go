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

// powerNorm returns ‖E‖₂ of E = K as stored − K by power iteration, from below.
func powerNorm(t *testing.T, m *gram.Matrix, n, steps int) (e float64) {
	t.Helper()
	exact := m.Exact(0)
	v, w, u := normal(1, n, 1), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for range steps {
		v.Scale(1/mat.Norm(v, 2), v)
		testkit.OK(t, errors.Join(m.KMulTo(ctx, w, v), exact.KMulTo(ctx, u, v)))
		v.Sub(w, u)
		e = mat.Norm(v, 2)
	}
	return e
}

// TestGrowth predicts for five times the rows of the sample: the error of inner products of points
// that lie off grows with n, and a prediction that did not would be a third of the truth.
func TestGrowth(t *testing.T) {
	const n = 5000
	x := moved(2, n, 6, 20)
	m := mustNew(t, kernel.Gaussian{Sigma: 2}, x, 1, &gram.Options{Storage: gram.Float32, Accuracy: 1e3})
	c := m.Choice()
	if c.Arithmetic != kernel.Float32 || c.Tried[0].Rows*4 > n {
		t.Fatalf("choice %+v", c)
	}
	if e := powerNorm(t, m, n, 6); e > c.Error || c.Error > 5*e {
		t.Errorf("‖E‖₂ = %.2g, predicted %.2g from %d rows", e, c.Error, c.Tried[0].Rows)
	}
}

// TestLook: New decides as Look does, or as it is told.
func TestLook(t *testing.T) {
	const n = 1300
	x, k, o := moved(3, n, 4, 1), kernel.Gaussian{Sigma: 2}, &gram.Options{PreferredAccuracy: 1e-5, Seed: 7}
	look, err := gram.Choose(ctx, k, x, 0.1, o)
	if err != nil {
		t.Fatal(look, err)
	}
	m := mustNew(t, k, x, 0.1, o)
	if c, l := m.Choice(), look; c.Storage != l.Storage || c.Arithmetic != l.Arithmetic || c.Centred != l.Centred ||
		c.Error != l.Error {
		t.Errorf("%v, and by Look %v", c, l)
	}
	told := look
	told.Reason = "told"
	o.Chosen = &told
	again := mustNew(t, k, x, 0.1, o)
	one, two := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil)
	y := normal(5, n, 2)
	if err := errors.Join(m.MulTo(ctx, one, y), again.MulTo(ctx, two, y)); err != nil || !mat.Equal(one, two) ||
		again.Choice().Reason != "told" {
		t.Errorf("%v: other products than of the matrix that decides itself: %v", again.Choice(), err)
	}
	if _, err := gram.Choose(ctx, k, x, -1, o); err == nil {
		t.Error("λ = −1 is looked at")
	}
}

// TestLookSparse: a K of sparse tiles that is formed as Look has cut the points is the one that New cuts itself.
func TestLookSparse(t *testing.T) {
	const n = 900
	x, k := points.NewDense(n, 2, normal(3, n, 2).RawMatrix().Data), kernel.Gaussian{Sigma: 0.05}
	o := &gram.Options{PreferredAccuracy: 1e-5, Seed: 7, Tiles: gram.SparseTiles, MaxDroppedNorm: 1e-6}
	alone := mustNew(t, k, x, 0.1, o)
	look, err := gram.Choose(ctx, k, x, 0.1, o)
	if err != nil || look.Sparse == nil {
		t.Fatal(look, err)
	}
	o.Chosen = &look
	told := mustNew(t, k, x, 0.1, o)
	one, two, y := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil), normal(5, n, 2)
	if err := errors.Join(alone.MulTo(ctx, one, y), told.MulTo(ctx, two, y)); err != nil || !mat.Equal(one, two) {
		t.Errorf("other products, %v", err)
	}
	if a, b := alone.Choice().Sparse, told.Choice().Sparse; a.Formed != b.Formed || a.Kept != b.Kept ||
		a.Dropped != b.Dropped {
		t.Errorf("%+v, told %+v", a, b)
	}
}
