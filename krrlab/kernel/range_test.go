package kernel_test

import (
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// TestBeyondRange: kernels of points so far apart, beside σ, that r/σ or its square overflows are
// 0, and 1 on the diagonal.
func TestBeyondRange(t *testing.T) {
	for _, c := range []struct{ sigma, r float64 }{{1e-154, 1e3}, {1e-154, 1e10}, {1, 1e153}, {1e-154, 1e153}, {1e-3, 1e5}} {
		x := points.NewDense(2, 1, []float64{0, c.r})
		p := points.NewPanel(x)
		for _, k := range []kernel.Kernel{
			kernel.Gaussian{Sigma: c.sigma}, kernel.Laplacian{Sigma: c.sigma}, kernel.Matern32{Sigma: c.sigma}, kernel.Matern52{Sigma: c.sigma},
		} {
			if v := k.Eval(x.Row(0), x.Row(1)); v != 0 {
				t.Errorf("%v at distance %g: %v", k, c.r, v)
			}
			var w kernel.Workspace
			tile := make([]float64, 4)
			kernel.Tile64(tile, 2, k, p, p, kernel.Float64, &w)
			if tile[0] != 1 || tile[1] != 0 || tile[2] != 0 || tile[3] != 1 {
				t.Errorf("%v at distance %g: tile %v", k, c.r, tile)
			}
			single := make([]float32, 4)
			kernel.Tile32(single, 2, k, p, p, kernel.Float64, &w)
			if single[0] != 1 || single[1] != 0 || single[2] != 0 || single[3] != 1 {
				t.Errorf("%v at distance %g: float32 tile %v", k, c.r, single)
			}
		}
	}
}
