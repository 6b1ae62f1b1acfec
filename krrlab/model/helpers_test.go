package model

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// kernels holds one kernel of each kind that has parameters.
var kernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 3}, kernel.Matern32{Sigma: 1.5}, kernel.Matern52{Sigma: 1.5},
	kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3},
}

// pointsInFormats returns n points of dimension d in each storage format. A third of their numbers are not zero. The
// formats have the same points, except for bytes.
func pointsInFormats(n, d int, seed uint64) map[string]points.Points {
	return testkit.PointsInEachFormat(n, d, rng.New(seed).Sub("points"))
}

// randomModel returns a model of the points x with random coefficients. It is a regression if there are no labels.
func randomModel(k kernel.Kernel, x points.Points, t int, labels ...string) *Model {
	n, _ := x.Dims()
	return &Model{
		Kernel: k, Lambda: 0.25, X: x, C: testkit.RandomMatrix(99, n, t), Labels: labels,
		Origin: Origin{Dataset: "test", Solver: "pcg", Status: "converged", Tol: 1e-3, TrueResidual: new(9e-4), Seed: 7,
			Version: "v0", Created: "2026-01-02T03:04:05Z"},
	}
}

// decideByDefinition returns f(z_a) = Σ_i k(x_i, z_a)·C_i at the points z, computed with Eval.
func decideByDefinition(m *Model, z points.Points) *mat.Dense {
	n, d, t := m.Dims()
	rows, _ := z.Dims()
	f := mat.NewDense(rows, t, nil)
	xi, za := make([]float64, d), make([]float64, d)
	for a := range rows {
		z.RowTo(za, a)
		for i := range n {
			m.X.RowTo(xi, i)
			kernelValue := m.Kernel.Eval(xi, za)
			for j := range t {
				f.Set(a, j, f.At(a, j)+kernelValue*m.C.At(i, j))
			}
		}
	}
	return f
}

// exampleScaling returns a scaling of d features.
func exampleScaling(d int) *datasets.Scaling {
	s := &datasets.Scaling{Kind: "standard", Shift: make([]float64, d), Scale: make([]float64, d)}
	for j := range d {
		s.Shift[j], s.Scale[j] = 0.1*float64(j), 1+0.25*float64(j)
	}
	return s
}

// decide returns the decision values at the points z.
func decide(t testing.TB, m *Model, z points.Points, o *Options) *mat.Dense {
	t.Helper()
	return testkit.Must(m.Decision(t.Context(), z, o))
}
