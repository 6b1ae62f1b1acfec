package multilevel

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage"
)

// stored is K+λI with the storage error size·uuᵀ, where ‖u‖₂ = 1.
type stored struct {
	stage.Operator
	size float64
	u    []float64
}

func (k *stored) add(dst, src *mat.Dense, err error) error {
	u := mat.NewDense(len(k.u), 1, k.u)
	var c, e mat.Dense
	c.Mul(u.T(), src)
	e.Mul(u, &c)
	e.Scale(k.size, &e)
	dst.Add(dst, &e)
	return err
}

func (k *stored) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return k.add(dst, src, k.Operator.MulTo(ctx, dst, src))
}

func (k *stored) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return k.add(dst, src, k.Operator.KMulTo(ctx, dst, src))
}

// TestStored checks that the intervals contain the values of K itself although K is stored with an error along its
// first or last eigenvector. If the stored K+λI is indefinite, the result must say so and claim nothing about κ.
func TestStored(t *testing.T) {
	const n, lambda, lambdaP = 120, 0.05, 0.1
	p, k := setup(t, n, lambda, lambdaP)
	var eig mat.EigenSym
	if !eig.Factorize(k, true) {
		t.Fatal("no eigenvalues")
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	m := drawFeatures(t, 50, nil, 1)
	norm, kappa := Exact(t, OuterOf(m, p.X), k, lambda, lambdaP)
	for _, size := range []float64{0.02, -0.02, 0.045, -0.045, -0.2} {
		for _, col := range []int{0, n - 1} {
			q := *p
			q.A = &stored{p.A, size, mat.Col(nil, col, &vectors)}
			q.Error = math.Abs(size)
			if size == -0.2 {
				q.Error = 0.01 // a prediction that is far off
			}
			l := testkit.Must(measure(t.Context(), &q, m, rng.New(3), settled(Options{})))
			indefinite := size == -0.2 && col == 0
			testkit.Equal(t, l.Indefinite, indefinite, size, col)
			if size != -0.2 && !(l.Error.Lo <= norm*1.0001 && norm <= l.Error.Hi*1.0001) {
				t.Errorf("error %g along eigenvector %d: ‖ZZᵀ−K‖₂ in [%g, %g], want %g", size, col, l.Error.Lo,
					l.Error.Hi, norm)
			}
			if (size != -0.2 || indefinite) && !(l.Kappa.Lo <= kappa*1.0001 && kappa <= l.Kappa.Hi*1.0001) {
				t.Errorf("error %g along eigenvector %d: κ in [%g, %g], want %g", size, col, l.Kappa.Lo, l.Kappa.Hi,
					kappa)
			}
			if l.Kappa.Lo > l.Kappa.Hi || l.Error.Lo > l.Error.Hi {
				t.Errorf("an interval upside down: %+v", l)
			}
		}
	}
}
