package verify

import (
	"math"
	"math/big"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRankOne checks the certain bounds of the spectrum and of κ for K = xxᵀ, with x of very different sizes. The only
// nonzero eigenvalue ‖x‖² is computed in 400 bits.
func TestRankOne(t *testing.T) {
	for trial := range uint64(200) {
		g := rng.New(trial)
		n := 1 + g.IntN(0, 4)
		x := points.NewDense(n, 1, nil)
		g.Normals(x.Data, 1)
		e := []int{0, 0, -100, -160, 100, 160}[trial%6]
		exact := new(big.Float).SetPrec(400)
		for i := range x.Data {
			x.Data[i] = math.Ldexp(x.Data[i], e)
			v := new(big.Float).SetPrec(400).SetFloat64(x.Data[i])
			exact.Add(exact, v.Mul(v, v))
		}
		m := testkit.Must(New(t.Context(), nil, kernel.Spec{Name: "polynomial", Gamma: 1, Degree: 1}, x, 1<<20, nil))
		for _, passes := range []int{1, 2, 7, 30} {
			lambda := math.Ldexp(1, 2*e-3)
			s := testkit.Must(m.Cond(t.Context(), lambda, passes, g))
			l := new(big.Float).SetPrec(400).SetFloat64(lambda)
			kappa := new(big.Float).SetPrec(400).Add(exact, l)
			if kappa.Quo(kappa, l); n == 1 {
				kappa.SetFloat64(1)
			}
			within := func(what string, v *big.Float, lo, hi float64) {
				if v.Cmp(big.NewFloat(lo)) < 0 || v.Cmp(big.NewFloat(hi)) > 0 {
					t.Errorf("n = %d, x of 2^%d, %d passes: %s is %.20g, in [%.20g, %.20g]", n, e, passes, what, v, lo,
						hi)
				}
			}
			within("λ_max", exact, s.Largest.Lo, s.Largest.Hi)
			within("κ", kappa, s.Cond.Lo, s.Cond.Hi)
			within("κ, simple", kappa, 1, s.SimpleBound)
		}
	}
}
