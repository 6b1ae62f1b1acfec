package krrlab

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestSmallTargets: with targets whose squares are 0 the residuals, those from the rows checked and those of
// verify are what they are with larger ones, and an answer after two iterations is not called converged.
func TestSmallTargets(t *testing.T) {
	const n = 120
	x, g := points.NewDense(n, 2, nil), rng.New(5)
	g.Normals(x.Data, 0)
	for _, policy := range []ResidualPolicy{ExactResidual, StoredResidual} {
		var want *Solution
		for _, e := range []int{0, -540, -600} {
			train := regression(x)
			for i, v := range train.Target {
				train.Target[i] = math.Ldexp(v, e)
			}
			sol := mustSolve(t, train, Config{
				Kernel: kernel.Gaussian{Sigma: 0.1}, Lambda: 1e-3, Tol: 1e-6, Solver: PCG, Repeat: 3, MaxIter: 2, Exact: policy,
				Precond: Features{S: 3}, Storage: gram.Float32,
			})
			if want == nil {
				want = sol
			}
			if sol.Converged() || !(math.Abs(sol.TrueResiduals[0]-want.TrueResiduals[0]) <= 1e-6*want.TrueResiduals[0]) {
				t.Errorf("%v, targets of 2^%d: %s, residual %g, want %g", policy, e, sol.Status, sol.TrueResiduals[0], want.TrueResiduals[0])
			}
			for j, v := range want.StorageResiduals {
				if !(math.Abs(sol.StorageResiduals[j]-v) <= 1e-6*v) {
					t.Errorf("%v, targets of 2^%d: %g from storage, want %g", policy, e, sol.StorageResiduals[j], v)
				}
			}
			v := verified(t, sol.Model, VerifyOptions{Train: train, Passes: 1})
			exact := worst(trueResiduals(sol.lab.cfg.Kernel, rows(x), 1e-3, sol.Model.C, sol.lab.Targets()))
			if !v.Residual.Known() || !v.Rounding.Known() || !(math.Abs(float64(v.Residual)-exact) <= float64(v.Rounding)) || !(math.Abs(float64(v.Residual)-sol.TrueResiduals[0]) < 1e-3) {
				t.Errorf("%v, targets of 2^%d: verify has %v, want %g", policy, e, float64(v.Residual), exact)
			}
		}
	}
}

// TestSubnormalTargets: the rounding that is certain of residuals, the direct solver's and verify's, covers that of products
// that are subnormal.
func TestSubnormalTargets(t *testing.T) {
	const n = 60
	x, g := points.NewDense(n, 2, nil), rng.New(5)
	g.Normals(x.Data, 0)
	for _, e := range []int{-1000, -1030, -1045, -1060} {
		train := regression(x)
		for i, v := range train.Target {
			train.Target[i] = math.Ldexp(v, e)
		}
		sol := mustSolve(t, train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1e-2, Tol: 1e-8, Solver: Direct})
		c, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil) // in units of which no product is subnormal
		c.Apply(func(i, _ int, v float64) float64 { return math.Ldexp(sol.Model.C.At(i, 0), 600) }, c)
		y.Apply(func(i, _ int, v float64) float64 { return math.Ldexp(train.Target[i], 600) }, y)
		exact := trueResiduals(sol.lab.cfg.Kernel, rows(x), 1e-2, c, y)[0]
		if v, off := sol.TrueResiduals[0], sol.Roundings[0]; !(math.Abs(v-exact) <= off) {
			t.Errorf("targets of 2^%d: residual %g ± %g, and it is %g", e, v, off, exact)
		}
		v := verified(t, sol.Model, VerifyOptions{Train: train, Passes: 1})
		if !(math.Abs(float64(v.Residual)-exact) <= float64(v.Rounding)) {
			t.Errorf("targets of 2^%d: verify has %g ± %g, and it is %g", e, float64(v.Residual), float64(v.Rounding), exact)
		}
	}
}

// TestConstantTarget: of a constant target, centered, the answer 0 is certain by every solver.
func TestConstantTarget(t *testing.T) {
	x := points.NewDense(40, 2, nil)
	rng.New(5).Normals(x.Data, 0)
	train := regression(x)
	for i := range train.Target {
		train.Target[i] = 3
	}
	for _, solver := range []Solver{Direct, CG, PCG, BlockPCG} {
		sol := mustSolve(t, train.Center(), Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: solver, Exact: ExactResidual})
		if e := sol.Model.Error; e == nil || !e.Certain || e.ANorm[0] != 0 {
			t.Errorf("%v: error %+v", solver, e)
		}
	}
}
