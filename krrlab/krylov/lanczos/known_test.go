package lanczos_test

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// TestKnownInside: the bounds of λ_max from below and of λ_min from above hold for the A' that A = (1±e)A' stands for.
func TestKnownInside(t *testing.T) {
	const least, most = 0.5, 9
	for _, e := range []float64{0, 0.01, 0.5, 1, 3} {
		for _, off := range []float64{1 - e, 1 + e} {
			if off <= 0 {
				continue
			}
			kappa, low, high := lanczos.Known(
				estimate.Interval{Value: off * least, Hi: off * least, Confidence: 1, Method: "m"},
				estimate.Interval{Value: off * most, Lo: off * most, Hi: math.Inf(1), Confidence: 1,
					Method: "m"}).Allowing(e)
			if low.Hi < least || low.Lo != 0 || high.Lo > most || !math.IsInf(high.Hi, 1) || kappa.Lo > most/least ||
				kappa.Lo < 1 || !math.IsInf(kappa.Hi, 1) || kappa.Value != most/least || kappa.Confidence != 1 ||
				kappa.Method != "m" {
				t.Errorf("e = %g, A = %gA': κ %v, λ_min %v, λ_max %v", e, off, kappa, low, high)
			}
		}
	}
}

// TestKnownEnds: κ is known to a rounding if both ends are, and the error of K as stored is allowed for.
func TestKnownEnds(t *testing.T) {
	ends := lanczos.Known(estimate.Exact(2, 0.5, "m"), estimate.Exact(10, 0.5, "m"))
	kappa, _, _ := ends.Allowing(0)
	if kappa.Value != 5 || kappa.Lo != 9.5/2.5 || kappa.Hi != 10.5/1.5 || kappa.Confidence != 1 || kappa.Method != "m" {
		t.Errorf("%+v", kappa)
	}
	if kappa, _, _ = ends.Allowing(0.25); math.Abs(kappa.Lo-3.8*0.6) > 1e-12 || math.Abs(kappa.Hi-7/0.6) > 1e-12 {
		t.Errorf("off by a quarter: %+v", kappa)
	}
	if kappa, _, _ = lanczos.Known(estimate.Exact(0.4, 0.5, "m"),
		estimate.Exact(10, 0.5, "m")).Allowing(0); !math.IsInf(kappa.Hi, 1) || kappa.Lo != 9.5/0.9 {
		t.Errorf("%+v", kappa)
	}
}
