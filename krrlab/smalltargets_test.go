package krrlab

import (
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestConstantTarget: of a constant target, centered, the answer 0 is certain by every solver.
func TestConstantTarget(t *testing.T) {
	x := points.NewDense(40, 2, nil)
	rng.New(5).Normals(x.Data, 0)
	train := regression(x)
	for i := range train.Target {
		train.Target[i] = 3
	}
	for _, solver := range []Solver{Direct, CG, PCG, BlockPCG} {
		sol := mustSolve(t, train.Center(), Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: solver,
			Exact: ExactResidual})
		if e := sol.Model.Error; e == nil || !e.Certain || e.ANorm[0] != 0 {
			t.Errorf("%v: error %+v", solver, e)
		}
	}
}
