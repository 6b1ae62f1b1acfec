package fourier

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// BenchmarkPlane fits a million points in the plane and evaluates the fit at them.
func BenchmarkPlane(b *testing.B) {
	const n = 1_000_000
	x, y := points.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	rng.New(1).Float64s(x.Data, 0)
	rng.New(2).Normals(y.RawMatrix().Data, 0)
	for b.Loop() {
		s := testkit.Must(New(kernel.Gaussian{Sigma: 0.1}, Options{}, x))
		normal, projected, err := s.NormalEquations(b.Context(), x, nil, y)
		testkit.OK(b, err)
		beta, _, err := testkit.Must(normal.Factor(b.Context(), 0.01)).Solve(b.Context(), projected, 1e-10)
		testkit.OK(b, err)
		testkit.Must(s.Eval(b.Context(), x, beta))
		b.ReportMetric(float64(s.Modes()), "modes")
	}
}
