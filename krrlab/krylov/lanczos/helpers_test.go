package lanczos

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// dense is an operator with a dense matrix.
type dense struct{ mat.Symmetric }

func (a dense) Dim() int { return a.SymmetricDim() }

func (a dense) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	dst.Mul(a.Symmetric, src)
	return ctx.Err()
}

// countingOperator counts the products with an operator.
type countingOperator struct {
	Operator
	products int
}

func (a *countingOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	a.products++
	return a.Operator.MulTo(ctx, dst, src)
}

// metric is the Metric of a dense matrix M = BBᵀ. It counts the solves.
type metric struct {
	mat.Symmetric
	b      *mat.Dense
	chol   mat.Cholesky
	solves int
}

// newMetric returns M = BBᵀ.
func newMetric(t testing.TB, b *mat.Dense) *metric {
	t.Helper()
	var product mat.SymDense
	product.SymOuterK(1, b)
	m := &metric{Symmetric: &product, b: b}
	if !m.chol.Factorize(&product) {
		t.Fatal("BBᵀ is not positive definite")
	}
	return m
}

func (m *metric) Dim() int { return m.SymmetricDim() }

func (m *metric) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	m.solves++
	return m.chol.SolveTo(dst, r)
}

func (m *metric) NormalTo(_ context.Context, dst *mat.Dense, stream rng.Stream) error {
	_, k := m.b.Dims()
	normals := mat.NewDense(k, 1, nil)
	stream.Normals(normals.RawMatrix().Data, 0)
	dst.Mul(m.b, normals)
	return nil
}

// diagonal is a diagonal matrix with the given eigenvalues. The start vector is uniform on the sphere, so the process
// does not depend on the eigenvectors.
type diagonal []float64

func (a diagonal) Dim() int { return len(a) }

func (a diagonal) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	_, k := src.Dims()
	for i, v := range a {
		for j := range k {
			dst.Set(i, j, v*src.At(i, j))
		}
	}
	return ctx.Err()
}

// run returns the result of Run, and panics if Run fails.
func run(t testing.TB, a Operator, opts *Options) *Result {
	t.Helper()
	return testkit.Must(Run(t.Context(), a, opts))
}

// spectra returns lists of n eigenvalues, by name. Not all of them are sorted.
func spectra(n int) map[string][]float64 {
	makeSpectrum := func(f func(i int) float64) []float64 {
		spectrum := make([]float64, n)
		for i := range spectrum {
			spectrum[i] = f(i)
		}
		return spectrum
	}
	return map[string][]float64{
		"even":       makeSpectrum(func(i int) float64 { return 1 + float64(i) }),
		"geometric":  makeSpectrum(func(i int) float64 { return math.Pow(10, -3+4*float64(i)/float64(n)) }),
		"indefinite": makeSpectrum(func(i int) float64 { return -3 + 5*float64(i)/float64(n-1) }),
		"cluster": makeSpectrum(func(i int) float64 {
			switch i {
			case 0:
				return 0.2
			case n - 1:
				return 7
			}
			return 1 + 0.3*math.Sin(float64(i)-float64(n)/2)*float64(i)/float64(n)
		}),
	}
}
