package statdim

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// dense implements matrix for a dense K.
type dense struct{ *mat.SymDense }

func (d dense) Dim() int { return d.SymmetricDim() }

func (d dense) Trace() float64 { return mat.Trace(d.SymDense) }

func (d dense) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	dst.Mul(d.SymDense, src)
	return ctx.Err()
}

// spectrum is a formula for the eigenvalues μ_i, i = 0 … n−1.
type spectrum struct {
	name   string
	mu     func(i, n int) float64
	lambda float64
}

// spectra range from flat to steep, and from s_λ near n to s_λ near 1.
var spectra = []spectrum{
	{"power", func(i, n int) float64 { return float64(n) * math.Pow(float64(i+1), -2) }, 0.01},
	{"exponential", func(i, n int) float64 { return float64(n) * math.Exp(-float64(i)/5) }, 0.01},
	{"flat", func(_, _ int) float64 { return 1 }, 1},
	{"step", func(i, n int) float64 {
		if i < 20 {
			return 100
		}
		return 1e-4
	}, 0.1},
	{"dominated", func(i, n int) float64 {
		if i == 0 {
			return float64(n)
		}
		return 0.5 / float64(i)
	}, 0.05},
	{"singular", func(i, n int) float64 {
		if i < n/4 {
			return 3 / float64(1+i)
		}
		return 0
	}, 0.02},
}

// matrixWithSpectrum is a matrix K = UDUᵀ with known eigenvalues.
type matrixWithSpectrum struct {
	k       dense
	mu      []float64  // eigenvalues, the diagonal of D
	statDim float64    // s_λ(K) for the λ of the spectrum
	u       *mat.Dense // orthogonal matrix U of the eigenvectors
}

// newMatrix returns UDUᵀ with a random orthogonal U.
func (s spectrum) newMatrix(n int, seed uint64) *matrixWithSpectrum {
	testMatrix := &matrixWithSpectrum{}
	for i := range n {
		eigenvalue := s.mu(i, n)
		testMatrix.mu = append(testMatrix.mu, eigenvalue)
		testMatrix.statDim += eigenvalue / (eigenvalue + s.lambda)
	}
	testMatrix.k.SymDense, testMatrix.u = testkit.WithEigenvalues(seed, testMatrix.mu)
	return testMatrix
}

// features returns Z, n×s, whose columns are the first s eigenvectors, scaled by √μ_j, plus noise, so that ZZᵀ ≈ K.
func (m *matrixWithSpectrum) features(s int, noise float64, seed uint64) *points.Dense32 {
	n := len(m.mu)
	z := points.NewDense32(n, s, nil)
	stream := rng.New(seed).Sub("noise")
	for i := range n {
		for j := range s {
			perturbation := noise * stream.Normal(uint64(i*s+j)) / math.Sqrt(float64(n))
			z.Data[i*s+j] = float32(math.Sqrt(m.mu[j]) * (m.u.At(i, j) + perturbation))
		}
	}
	return z
}

// controlVariate returns ZZᵀ+λ_pI in the form of the eigenvalues and eigenvectors of ZᵀZ.
func controlVariate(t testing.TB, z *points.Dense32, lambdaP float64) *precond.Woodbury {
	t.Helper()
	return testkit.Must(precond.New(t.Context(), z, lambdaP, &precond.Options{Form: precond.FormEigen}))
}

// minCovered returns for how many of count seeds a 95 % interval must cover s_λ: for 90 if there are 100 or more seeds,
// and otherwise for all but three. At a coverage of 95 %, 6 or fewer of 10 intervals cover with probability 1e-3.
func minCovered(count int) int {
	if count >= 100 {
		return 90
	}
	return count - 3
}
