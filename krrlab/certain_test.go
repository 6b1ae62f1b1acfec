package krrlab

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// TestStoredAllowance: the interval of κ is that of K itself: with 16-bit numbers that shift λ_min by a
// good part of λ it covers κ, as narrow as the allowance lets it be.
func TestStoredAllowance(t *testing.T) {
	alone := 0
	for seed := range uint64(6) {
		train := regression(kinds(120, 4, seed)["float64"])
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 3}, Lambda: 1e-3, Solver: CG, Precond: None{},
			Storage: gram.Fixed16, Seed: seed}
		a := testkit.Must(newLab(t, train, cfg).K(t.Context()))
		cfg.Lambda = 2.1 * a.Choice().Error // the least that 16 bits allow, nearly
		l := newLab(t, train, cfg)
		q := testkit.Must(l.Quality(t.Context(), QualityOptions{NoSolve: true, Width: 0.001}))
		v := denseSpectrum(t, cfg.Kernel, train.X, cfg.Lambda, points.NewDense32(120, 1, nil), 1)
		kappa := v[119] / v[0]
		if !q.Kappa.Covers(kappa) || !q.Kappa.Covers(q.Exact.Value) {
			t.Errorf("seed %d: κ = %.6g, exact %.6g, in %v", seed, kappa, q.Exact.Value, q.Kappa)
		}
		e := q.KError / cfg.Lambda
		ritz := lanczos.Ritz(q.Alpha, q.Beta)
		if stored := ritz[len(ritz)-1] / ritz[0]; math.Abs(stored/kappa-1) > 0.01 {
			alone++ // the stored matrix alone would miss
		}
		if q.Kappa.Hi > 1.05*q.Kappa.Lo*math.Pow((1+e)/(1-e), 2) {
			t.Errorf("seed %d: %v is wider than ‖E‖₂ = %g·λ explains", seed, q.Kappa, e)
		}
	}
	if alone < 4 {
		t.Errorf("only %d of 6 stored matrices have another κ", alone)
	}
}
