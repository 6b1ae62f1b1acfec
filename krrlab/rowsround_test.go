package krrlab

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRowsRounding: near the least residual that float64 can tell, some √n·2⁻⁵³/λ for noise, what the rows checked
// call converged is, by a residual in twice the digits. Points come in threes, whose errors add up.
func TestRowsRounding(t *testing.T) {
	converged, count := 0, problems()
	for i := range count {
		g := rng.New(5).Sub("rounding", uint64(i))
		f, n, d := g.Sub("float"), 60+g.Sub("n").IntN(0, 120), 1+g.Sub("d").IntN(0, 40)
		h := &adverse{rows: adversePoints("duplicates", n, d, g)}
		h.train = &datasets.Dataset{Task: datasets.Regression, X: points.NewDense(n, d, slices.Concat(h.rows...))}
		for q := range n {
			h.train.Target = append(h.train.Target, g.Sub("noise").Normal(uint64(q)))
		}
		var norm float64
		for _, v := range h.rows[0] {
			norm += v * v
		}
		sigma := math.Sqrt(norm) * between(f, 0, -0.3, 1)
		if i%2 == 0 {
			sigma *= 1e-4 // K of ones and zeros
		}
		h.cfg = Config{
			Kernel: kernel.Matern52{Sigma: sigma}, Lambda: between(f, 1, -10, -5),
			Precond: Nystrom{S: n / 2}, Solver: PCG, Storage: gram.Float64, Exact: StoredResidual, Seed: uint64(i),
			MaxIter: 1000,
		}
		h.cfg.Tol = between(f, 2, -1, 2) * 0x1p-53 * math.Sqrt(float64(n)) / h.cfg.Lambda
		sol := mustSolve(t, h.train, h.cfg)
		if !sol.Converged() {
			continue
		}
		converged++
		if r := trueResiduals(h.cfg.Kernel, h.rows, h.cfg.Lambda, sol.Model.C, sol.System.Y)[0]; !(r <= h.cfg.Tol) {
			t.Errorf("problem %d: converged with a residual of %.3g, τ = %.3g; reported %.3g, rows %.3g, storage %.3g",
				i, r, h.cfg.Tol, sol.TrueResiduals[0], sol.SampledResiduals[0], sol.StorageResiduals[0])
		}
	}
	if converged < count/10 {
		t.Errorf("%d of %d converged", converged, count)
	}
	t.Logf("%d of %d converged", converged, count)
}
