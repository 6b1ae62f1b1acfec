package krrlab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
)

// TestAdverseStricter: on adverse problems solved in 16 bits and refined, a stricter tolerance gives no larger
// residual, and one that can be met within twenty bits is missed by what rounding hides at most. As a restart goes no
// further than 16 bits lead, the iterations grow with the digits, 9/6, and not with their square.
func TestAdverseStricter(t *testing.T) {
	const loose, strict = 1e-6, 1e-9
	judged, total := 0, [2]int{}
	for i := range problems() {
		h := newAdverse(i)
		if h.cfg.Storage != gram.Fixed16 {
			continue
		}
		h.cfg.Exact, h.cfg.MaxIter = ExactResidual, 1000
		var sols [2]*Solution
		var found [2]float64
		for q, tol := range []float64{loose, strict} {
			h.cfg.Tol = tol
			lab, err := New(h.train, h.cfg)
			if err != nil {
				t.Fatalf("%s: %v", h.name, err)
			}
			if sols[q], err = lab.Solve(t.Context()); err != nil {
				break // 16 bits are too coarse for λ
			}
			found[q] = worst(h.judge(t, sols[q]))
		}
		first, second := sols[0], sols[1]
		if second == nil {
			continue
		}
		judged++
		report := func(what string) {
			t.Errorf("%s: %s: τ = %g: %v, residual %.3g; %g: %v, %.3g ± %.2g", h.name, what,
				loose, first.Status, found[0], strict, second.Status, found[1], second.Roundings)
		}
		room := strict + worst(second.Roundings)
		if found[1] > max(2*found[0], room) { // of answers that miss the tolerance the residuals go up and down a little
			report("the stricter tolerance gives the larger residual")
		}
		if first.Converged() && second.Status == pcg.Inaccurate && found[1] > room {
			report("refinement ended early")
		}
		if first.Converged() && second.Converged() {
			total[0] += first.Iterations
			total[1] += second.Iterations
		}
	}
	t.Logf("%d judged, %d and %d iterations", judged, total[0], total[1])
	if 10*total[1] > 18*total[0] {
		t.Errorf("τ = %g in %d iterations, %g in %d", loose, total[0], strict, total[1])
	}
	if judged < problems()/12 {
		t.Errorf("%d judged", judged)
	}
}

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
		// Predicted is 2‖E‖_F/√n + ‖E‖₂ ≤ 3‖E‖₂ at most, all rows being looked at, and what entries in float64 are off by.
		return 3.1*coarseness(t, cfg.Kernel, x)+n*float64(len(x[0])+10)*0x1p-52 > cfg.Lambda/2
	case cfg.Solver == Direct && strings.Contains(s, "direct: K+λI"):
		unit := 0x1p-53
		if strings.Contains(s, "float32-refined") {
			unit = 0x1p-24
		}
		return cfg.Lambda < n*unit*slices.Max(kernel.Diag(cfg.Kernel, l.train.X))
	case strings.Contains(s, "precond: ZᵀZ+λ_pI"):
		z := wholeZ(t, l)
		return ridge(l) < float64(z.D)*0x1p-52*floats.Sum(points.SqNorms(z))
	case strings.Contains(s, "M is not positive definite"):
		// A solve with C = ZᵀZ+λ_pI is off by s·u·‖C‖, Z(C+ΔC)⁻¹Zᵀ so by s·u·‖C‖/4λ_p, and I−ZC⁻¹Zᵀ ≽ λ_p/‖C‖.
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
	var eig mat.EigenSym
	if !eig.Factorize(e, false) {
		t.Fatal("no eigenvalues")
	}
	v := eig.Values(nil)
	return max(-v[0], v[len(v)-1])
}
