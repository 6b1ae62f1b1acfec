package krrlab

import (
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestFewBadRows: among points with isolated outliers, more than the farthest ones that are checked in any
// case, a few lie close together, where float32 inner products cannot tell their distance. Rows drawn at
// random miss them: theirs are looked at in any case, and the answer is not called converged.
func TestFewBadRows(t *testing.T) {
	const n, outliers, pairs = 4000, 300, 2
	for seed := range uint64(2) {
		x, g := points.NewDense(n, 2, nil), rng.New(seed)
		g.Sub("x").Normals(x.Data, 0)
		for i := range outliers { // far from each other
			at := 5 * i
			r, angle := 2000+20*float64(i), 2*math.Pi*g.Float64(uint64(i))
			x.Row(at)[0], x.Row(at)[1] = r*math.Cos(angle), r*math.Sin(angle)
		}
		for p := range pairs {
			a, b := x.Row(5*(outliers/3+7*p)), x.Row(5*(outliers/3+7*p)+1)
			b[0], b[1] = a[0]+0.1, a[1]
		}
		train := regression(x)
		for i := range train.Target {
			train.Target[i] = 1 + 0.1*g.Sub("y").Normal(uint64(i))
		}
		lab := newLab(t, train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Tol: 1e-3, Solver: CG,
			Precond: None{}, MaxIter: 500, Seed: seed})
		lab.policy.ExactWork, lab.policy.RefineWork = 0, 0 // as for a problem too large for residuals in float64
		sol := solveLab(t, lab)
		v := verified(t, sol.Model, VerifyOptions{Train: train, Passes: 1})
		if !strings.Contains(sol.Choice, "float32 tiles") || !strings.Contains(sol.Choice, "distances in float32") ||
			float64(v.Residual) < 2e-3 {
			t.Fatalf("seed %d: %s, residual %.3g: nothing to be found", seed, sol.Choice, float64(v.Residual))
		}
		if sol.Converged() || !(math.Abs(sol.SampledResiduals[0]-float64(v.Residual)) < 0.05*float64(v.Residual)) ||
			sol.SampledRows != outliers+pairs+256 {
			t.Errorf("seed %d: %s with a residual of %.3g; reported %.3g, %.3g by %d rows", seed, sol.Status,
				float64(v.Residual), sol.TrueResiduals[0], sol.SampledResiduals[0], sol.SampledRows)
		}
	}
}
