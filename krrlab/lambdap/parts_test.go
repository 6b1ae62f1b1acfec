package lambdap

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/points"
	"gonum.org/v1/gonum/mat"
)

// TestKappaOfBoth: κ's interval is that of Lanczos, widened for K as stored, and no wider than η allows: with λ = 1,
// η = 3 and λ_p = 2 the spectrum lies in [1/5, 2].
func TestKappaOfBoth(t *testing.T) {
	at := func(lo, hi float64) estimate.Interval { return estimate.Interval{Value: lo, Lo: lo, Hi: hi} }
	for _, c := range []struct {
		what        string
		least, most estimate.Interval
		kError      float64
		lo, hi      float64
	}{
		{"η at both ends", at(0.1, 0.5), at(1.5, 4), 0, 3, 10},
		{"Lanczos at both ends", at(0.25, 0.5), at(1.5, 1.75), 0, 3, 7},
		{"Lanczos below", at(0.4, 0.5), at(1.5, 4), 0, 3, 5},
		{"widened", at(0.25, 0.5), at(1.25, 1.5), 0.1, 2.5 / 1.1 * 0.9, 1.5 / 0.9 / (0.25 / 1.1)},
		{"never below", at(1, 1), at(2.5, 2.5), 0, 2.5, 2.5},
	} {
		s := &sweep{o: &Options{KError: c.kError, Confidence: 0.9}, res: &Result{Lambda: 1, Eta: at(2, 3)}}
		if k, _, _ := s.kappa(&lanczos.Result{Min: c.least, Max: c.most}, 2); math.Abs(k.Lo-c.lo) > 1e-14*c.lo || math.Abs(k.Hi-c.hi) > 1e-14*c.hi || k.Confidence != 0.9 {
			t.Errorf("%s: %+v, want [%g, %g]", c.what, k, c.lo, c.hi)
		}
	}
	s := &sweep{o: &Options{Confidence: 0.9}, res: &Result{Lambda: 1, Eta: at(2, 3)}}
	if k, _, _ := s.kappa(&lanczos.Result{Min: at(-2, -1), Max: at(1, 2)}, 2); !math.IsInf(k.Hi, 1) {
		t.Errorf("of an indefinite K+λI: %+v", k)
	}
}

// TestSpectrumSlack: n·2⁻⁵³·tr A, and n·2⁻⁵³·tr A/λ_p with a preconditioner; a shape that does not fit is refused.
func TestSpectrumSlack(t *testing.T) {
	k := mat.NewDense(3, 3, []float64{2, 0, 0, 0, 3, 0, 0, 0, 4})
	v, slack, err := Spectrum(t.Context(), mat.DenseCopyOf(k), 1, nil, 0)
	if err != nil || !slices.Equal(v, []float64{3, 4, 5}) || slack != 3*0x1p-53*12 {
		t.Errorf("%v, slack %g, %v", v, slack, err)
	}
	z := points.NewDense32(3, 1, []float32{1, 0, 0}) // M = diag(3, 2, 2)
	v, slack, err = Spectrum(t.Context(), mat.DenseCopyOf(k), 1, z, 2)
	if err != nil || math.Abs(v[0]-1) > 1e-15 || math.Abs(v[1]-2) > 1e-15 || math.Abs(v[2]-2.5) > 1e-15 || slack != 3*0x1p-53*6 {
		t.Errorf("%v, slack %g, %v", v, slack, err)
	}
	for what, f := range map[string]func(){
		"not square":   func() { _, _, _ = Spectrum(t.Context(), mat.NewDense(3, 2, nil), 1, nil, 0) },
		"other points": func() { _, _, _ = Spectrum(t.Context(), mat.NewDense(2, 2, nil), 1, z, 1) },
		"λ = 0":        func() { Bound(0, 1, 1) },
		"λ_p = 0":      func() { Bound(1, 0, 1) },
		"η < 0":        func() { Bound(1, 1, -1e-300) },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "lambdap: ") {
					t.Errorf("%s: panic %q", what, v)
				}
			}()
			f()
		}()
	}
	r := &Result{Points: []Point{{LambdaP: 1, Steps: 5}, {LambdaP: 2, Steps: 7}}}
	if r.At(2) != &r.Points[1] || r.At(1) != &r.Points[0] || r.At(3) != nil {
		t.Error("points by their λ_p")
	}
}
