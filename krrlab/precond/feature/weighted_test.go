package feature_test

import (
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// TestMatrixWeighted checks that the features of a point of weight w are √w times those of the point, for dense and
// sparse points.
func TestMatrixWeighted(t *testing.T) {
	dense := points.NewDense(3, 2, []float64{1, 0, 0, 2, -1, 3})
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}} {
		for _, x := range []points.Points{dense, testkit.ToCSR(dense)} {
			m := testkit.Must(testkit.Must(feature.For(k)).Sample(2, 8, rng.New(1)))
			want := testkit.Must(feature.Matrix(t.Context(), m, x, nil))
			weighted := testkit.Must(points.NewWeighted(x, []float64{4, 1, 0.25}))
			got := testkit.Must(feature.Matrix(t.Context(), m, weighted, nil))
			for i, root := range []float32{2, 1, 0.5} {
				for j, v := range want.Row(i) {
					testkit.Equal(t, got.Row(i)[j], root*v, k, i, j)
				}
			}
		}
	}
}
