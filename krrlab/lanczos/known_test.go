package lanczos_test

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
)

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
