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

// storedOperator is K+λI with the storage error size·uuᵀ, where ‖u‖₂ = 1.
type storedOperator struct {
	stage.Operator
	size float64
	u    *mat.VecDense
}

// addErrorTo adds size·uuᵀ·src to dst and returns err.
func (a storedOperator) addErrorTo(dst, src *mat.Dense, err error) error {
	var inner mat.VecDense
	inner.MulVec(src.T(), a.u)
	dst.RankOne(dst, a.size, a.u, &inner)
	return err
}

func (a storedOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return a.addErrorTo(dst, src, a.Operator.MulTo(ctx, dst, src))
}

func (a storedOperator) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return a.addErrorTo(dst, src, a.Operator.KMulTo(ctx, dst, src))
}

// TestStorageError checks that the intervals contain the values of K itself although K is stored with an error along
// its first or last eigenvector. If the stored K+λI is indefinite, the result must say so and claim nothing about κ.
func TestStorageError(t *testing.T) {
	const n, lambda, lambdaP = 120, 0.05, 0.1
	p, k := newTestProblem(t, n, lambda, lambdaP)
	var eig mat.EigenSym
	if !eig.Factorize(k, true) {
		t.Fatal("no eigenvalues")
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	featureMap := drawFeatures(t, 50, nil, 1)
	norm, kappa := DenseReference(t, OuterProduct(featureMap, p.X), k, lambda, lambdaP)
	for _, size := range []float64{0.02, -0.02, 0.045, -0.045, -0.2} {
		for _, col := range []int{0, n - 1} {
			storedProblem := *p
			storedProblem.A = storedOperator{p.A, size, mat.VecDenseCopyOf(vectors.ColView(col))}
			storedProblem.Error = math.Abs(size)
			underestimated := size == -0.2
			if underestimated {
				storedProblem.Error = 0.01
			}
			measurement := testkit.Must(measure(t.Context(), &storedProblem, featureMap, rng.New(3),
				completeOptions(Options{})))
			indefinite := underestimated && col == 0 // the smallest eigenvalue of K+λI becomes about λ − 0.2
			testkit.Equal(t, measurement.Indefinite, indefinite, size, col)
			if !underestimated && !(measurement.Error.Lo <= norm*1.0001 && norm <= measurement.Error.Hi*1.0001) {
				t.Errorf("error %g along eigenvector %d: ‖ZZᵀ−K‖₂ in [%g, %g], want %g", size, col,
					measurement.Error.Lo, measurement.Error.Hi, norm)
			}
			if (!underestimated || indefinite) && !(measurement.Kappa.Lo <= kappa*1.0001 &&
				kappa <= measurement.Kappa.Hi*1.0001) {
				t.Errorf("error %g along eigenvector %d: κ in [%g, %g], want %g", size, col, measurement.Kappa.Lo,
					measurement.Kappa.Hi, kappa)
			}
			if measurement.Kappa.Lo > measurement.Kappa.Hi || measurement.Error.Lo > measurement.Error.Hi {
				t.Errorf("error %g along eigenvector %d: the lower end of an interval exceeds the upper one: %+v", size,
					col, measurement)
			}
		}
	}
}
