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

// TestRankOneSpectrumBounds checks the guaranteed bounds of λ_max(K) and of κ(K+λI) for K = xxᵀ. The entries of x have
// magnitudes near 1, or are scaled by 2^±100 or 2^±160, so that their squares are very large or small. The reference is
// the only nonzero eigenvalue ‖x‖², computed in 400 bits.
func TestRankOneSpectrumBounds(t *testing.T) {
	for trial := range uint64(200) {
		stream := rng.New(trial)
		n := 1 + stream.IntN(0, 4)
		x := points.NewDense(n, 1, nil)
		stream.Normals(x.Data, 1)
		exponent := []int{0, 0, -100, -160, 100, 160}[trial%6]
		lambdaMax := new(big.Float).SetPrec(400) // ‖x‖², a sum of squares
		for i := range x.Data {
			x.Data[i] = math.Ldexp(x.Data[i], exponent)
			value := new(big.Float).SetPrec(400).SetFloat64(x.Data[i])
			lambdaMax.Add(lambdaMax, value.Mul(value, value))
		}
		spec := kernel.Spec{Name: "polynomial", Gamma: 1, Degree: 1} // xxᵀ
		matrix := testkit.Must(New(t.Context(), nil, spec, x, 1<<20, nil))
		for _, passes := range []int{1, 2, 7, 30} {
			lambda := math.Ldexp(1, 2*exponent-3) // an eighth of the scale of K
			spectrum := testkit.Must(matrix.Cond(t.Context(), lambda, passes, stream))
			exactLambda := new(big.Float).SetPrec(400).SetFloat64(lambda)
			kappa := new(big.Float).SetPrec(400).Add(lambdaMax, exactLambda)
			if kappa.Quo(kappa, exactLambda); n == 1 { // a 1×1 matrix has κ = 1
				kappa.SetFloat64(1)
			}
			checkWithin := func(name string, value *big.Float, lo, hi float64) {
				if value.Cmp(big.NewFloat(lo)) < 0 || value.Cmp(big.NewFloat(hi)) > 0 {
					t.Errorf("n = %d, x of 2^%d, %d passes: %s is %.20g, not in [%.20g, %.20g]", n, exponent, passes,
						name, value, lo, hi)
				}
			}
			checkWithin("λ_max", lambdaMax, spectrum.Largest.Lo, spectrum.Largest.Hi)
			checkWithin("κ", kappa, spectrum.Cond.Lo, spectrum.Cond.Hi)
			// SimpleBound is the upper bound 1 + n·max k(x,x)/λ of κ.
			checkWithin("κ, simple", kappa, 1, spectrum.SimpleBound)
		}
	}
}
