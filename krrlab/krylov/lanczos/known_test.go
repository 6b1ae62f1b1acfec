package lanczos_test

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// TestPerturbedInnerEnds checks that the lower bound of λ_max and the upper bound of λ_min for A = (1±e)A', with an
// allowance for e, are valid for A'.
func TestPerturbedInnerEnds(t *testing.T) {
	const smallest, largest = 0.5, 9
	for _, e := range []float64{0, 0.01, 0.5, 1, 3} {
		for _, factor := range []float64{1 - e, 1 + e} {
			if factor <= 0 {
				continue
			}
			kappa, minInterval, maxInterval := lanczos.FromIntervals(
				estimate.Interval{Value: factor * smallest, Hi: factor * smallest, Confidence: 1, Method: "m"},
				estimate.Interval{Value: factor * largest, Lo: factor * largest, Hi: math.Inf(1), Confidence: 1,
					Method: "m"}).PerturbedIntervals(e)
			if minInterval.Hi < smallest || minInterval.Lo != 0 || maxInterval.Lo > largest ||
				!math.IsInf(maxInterval.Hi, 1) || kappa.Lo > largest/smallest ||
				kappa.Lo < 1 || !math.IsInf(kappa.Hi, 1) || kappa.Value != largest/smallest || kappa.Confidence != 1 ||
				kappa.Method != "m" {
				t.Errorf("e = %g, A = %gA': κ %v, λ_min %v, λ_max %v", e, factor, kappa, minInterval, maxInterval)
			}
		}
	}
}

// TestPerturbedKnownEnds checks κ from ends that are known to rounding: its interval has the size of their
// rounding, a storage error e widens it, and it has no upper end if λ_min may be 0.
func TestPerturbedKnownEnds(t *testing.T) {
	ends := lanczos.FromIntervals(estimate.Certain(2, 0.5, "m"), estimate.Certain(10, 0.5, "m"))
	kappa, _, _ := ends.PerturbedIntervals(0)
	if kappa.Value != 5 || kappa.Lo != 9.5/2.5 || kappa.Hi != 10.5/1.5 || kappa.Confidence != 1 || kappa.Method != "m" {
		t.Errorf("%+v", kappa)
	}
	if kappa, _, _ = ends.PerturbedIntervals(0.25); math.Abs(kappa.Lo-3.8*0.6) > 1e-12 ||
		math.Abs(kappa.Hi-7/0.6) > 1e-12 {
		t.Errorf("e = 0.25: %+v", kappa)
	}
	if kappa, _, _ = lanczos.FromIntervals(estimate.Certain(0.4, 0.5, "m"),
		estimate.Certain(10, 0.5, "m")).PerturbedIntervals(0); !math.IsInf(kappa.Hi, 1) || kappa.Lo != 9.5/0.9 {
		t.Errorf("%+v", kappa)
	}
}
