package krrlab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// rightlyRefused reports whether the lab of points x has to end with err: in 16 bits for kernels whose values do not
// fit them, or a λ that they are too coarse for; directly, and in M, where λ is below what factors in float32 or
// float64 round.
func rightlyRefused(t *testing.T, l *Lab, x [][]float64, err error) bool {
	t.Helper()
	s, cfg, n := err.Error(), l.cfg, float64(len(x))
	switch {
	case cfg.Storage == gram.Fixed16 && strings.Contains(s, "fixed16 is for kernels"):
		return !kernel.Bounded01(cfg.Kernel)
	case cfg.Storage == gram.Fixed16 && strings.Contains(s, "more than λ/2"):
		// Predicted is 2‖E‖_F/√n + ‖E‖₂ ≤ 3‖E‖₂ at most, all rows being looked at, and what entries in float64 are off
		// by.
		return 3.1*coarseness(t, cfg.Kernel, x)+n*float64(len(x[0])+10)*0x1p-52 > cfg.Lambda/2
	case cfg.Solver == Direct && strings.Contains(s, "direct: K+λI"):
		unit := 0x1p-53
		if strings.Contains(s, "float32-refined") {
			unit = 0x1p-24
		}
		return cfg.Lambda < n*unit*slices.Max(kernel.Diag(cfg.Kernel, l.train.X))
	case strings.Contains(s, "too large for float32"):
		return cfg.Storage == gram.Float32 && slices.Max(kernel.Diag(cfg.Kernel, l.train.X)) > math.MaxFloat32
	case strings.Contains(s, "vecchia: K+λI among"):
		return cfg.Lambda < n*0x1p-52*slices.Max(kernel.Diag(cfg.Kernel, l.train.X))
	case strings.Contains(s, "precond: ZᵀZ+λ_pI"):
		z := wholeZ(t, l)
		return ridge(l) < float64(z.D)*0x1p-52*floats.Sum(points.SqNorms(z))
	case strings.Contains(s, "M is not positive definite"):
		// A solve with C = ZᵀZ+λ_pI has a backward error of s·u·‖C‖, hence Z(C+ΔC)⁻¹Zᵀ an error of s·u·‖C‖/4λ_p,
		// and I−ZC⁻¹Zᵀ ≽ λ_p/‖C‖.
		z := wholeZ(t, l)
		return ridge(l) < math.Sqrt(float64(z.D)*0x1p-53)/2*floats.Sum(points.SqNorms(z))
	}
	return false
}

// coarseness returns ‖E‖₂ of K with its values as multiples of 1/65535.
func coarseness(t *testing.T, k kernel.Kernel, x [][]float64) float64 {
	t.Helper()
	e := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i {
			v := k.Eval(x[i], x[j])
			e.SetSym(i, j, math.RoundToEven(v*65535)/65535-v)
		}
	}
	v := testkit.Eigenvalues(t, e)
	return max(-v[0], v[len(v)-1])
}
