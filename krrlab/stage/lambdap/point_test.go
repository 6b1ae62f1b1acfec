package lambdap

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
)

// TestClipByEta checks that the interval of κ combines the Lanczos process, widened for the storage error, with the
// bounds by η: for λ = 1, η = 3 and λ_p = 2 the spectrum lies in [1/5, 2].
func TestClipByEta(t *testing.T) {
	interval := func(lo, hi float64) estimate.Interval { return estimate.Interval{Value: lo, Lo: lo, Hi: hi} }
	for _, test := range []struct {
		name              string
		smallest, largest estimate.Interval // of the eigenvalues, by the Lanczos process
		kError            float64           // storage error, relative to λ
		wantLo, wantHi    float64           // wanted interval of κ
	}{
		{"η bounds both ends", interval(0.1, 0.5), interval(1.5, 4), 0, 3, 10},
		{"Lanczos bounds both ends", interval(0.25, 0.5), interval(1.5, 1.75), 0, 3, 7},
		{"Lanczos bounds λ_min, η bounds λ_max", interval(0.4, 0.5), interval(1.5, 4), 0, 3, 5},
		{"widened for the storage error", interval(0.25, 0.5), interval(1.25, 1.5), 0.1, 2.5 / 1.1 * 0.9,
			1.5 / 0.9 / (0.25 / 1.1)},
		{"the upper end of κ is not below the lower one", interval(1, 1), interval(2.5, 2.5), 0, 2.5, 2.5},
	} {
		point := Point{Row: pencil.Row{LambdaP: 2}}
		point.Kappa, point.Min, point.Max = lanczos.FromIntervals(test.smallest,
			test.largest).PerturbedIntervals(test.kError)
		point.ClipByEta(1, 3)
		if kappa := point.Kappa; math.Abs(kappa.Lo-test.wantLo) > 1e-14*test.wantLo ||
			math.Abs(kappa.Hi-test.wantHi) > 1e-14*test.wantHi {
			t.Errorf("%s: κ %+v, want [%g, %g]", test.name, point.Kappa, test.wantLo, test.wantHi)
		}
	}
	point := Point{Row: pencil.Row{LambdaP: 2, FailureReason: "A as stored is indefinite"}}
	point.Kappa, point.Min, point.Max = lanczos.FromIntervals(interval(-2, -1), interval(1, 2)).PerturbedIntervals(0)
	if point.ClipByEta(1, 3); !math.IsInf(point.Kappa.Hi, 1) {
		t.Errorf("κ of an indefinite K+λI: %+v, want no upper bound", point.Kappa)
	}
}

// TestAt checks that At finds a point by its λ_p, and returns nil if there is none.
func TestAt(t *testing.T) {
	sweep := &Sweep{Points: []Point{{Row: pencil.Row{LambdaP: 1}}, {Row: pencil.Row{LambdaP: 2}}}}
	for lambdaP, want := range map[float64]*Point{1: &sweep.Points[0], 2: &sweep.Points[1], 3: nil} {
		testkit.Equal(t, sweep.At(lambdaP), want, lambdaP)
	}
}
