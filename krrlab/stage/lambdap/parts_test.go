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
	at := func(lo, hi float64) estimate.Interval { return estimate.Interval{Value: lo, Lo: lo, Hi: hi} }
	for _, c := range []struct {
		name              string
		smallest, largest estimate.Interval
		kError            float64
		lo, hi            float64
	}{
		{"η at both ends", at(0.1, 0.5), at(1.5, 4), 0, 3, 10},
		{"Lanczos at both ends", at(0.25, 0.5), at(1.5, 1.75), 0, 3, 7},
		{"Lanczos below", at(0.4, 0.5), at(1.5, 4), 0, 3, 5},
		{"widened", at(0.25, 0.5), at(1.25, 1.5), 0.1, 2.5 / 1.1 * 0.9, 1.5 / 0.9 / (0.25 / 1.1)},
		{"never below", at(1, 1), at(2.5, 2.5), 0, 2.5, 2.5},
	} {
		p := Point{Row: pencil.Row{LambdaP: 2}}
		p.Kappa, p.Min, p.Max = lanczos.FromIntervals(c.smallest, c.largest).PerturbedIntervals(c.kError)
		p.ClipByEta(1, 3)
		if k := p.Kappa; math.Abs(k.Lo-c.lo) > 1e-14*c.lo || math.Abs(k.Hi-c.hi) > 1e-14*c.hi {
			t.Errorf("%s: %+v, want [%g, %g]", c.name, p.Kappa, c.lo, c.hi)
		}
	}
	p := Point{Row: pencil.Row{LambdaP: 2, FailureReason: "A as stored is indefinite"}}
	p.Kappa, p.Min, p.Max = lanczos.FromIntervals(at(-2, -1), at(1, 2)).PerturbedIntervals(0)
	if p.ClipByEta(1, 3); !math.IsInf(p.Kappa.Hi, 1) {
		t.Errorf("of an indefinite K+λI: %+v", p.Kappa)
	}
}

// TestAt checks that At finds points by their λ_p, and that Bound panics on invalid arguments.
func TestAt(t *testing.T) {
	r := &Sweep{Points: []Point{{Row: pencil.Row{LambdaP: 1}}, {Row: pencil.Row{LambdaP: 2}}}}
	if r.At(2) != &r.Points[1] || r.At(1) != &r.Points[0] || r.At(3) != nil {
		t.Error("points by their λ_p")
	}
	testkit.Panics(t, map[string]func(){
		"λ = 0": func() { Bound(0, 1, 1) }, "λ_p = 0": func() { Bound(1, 0, 1) },
		"η = -1e-300": func() { Bound(1, 1, -1e-300) },
	})
}
