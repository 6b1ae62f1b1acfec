package loo

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
)

// TestUnits: scores of targets in another unit are those in that unit, also where squares of coefficients under- or
// overflow, and targets whose squares do are refused.
func TestUnits(t *testing.T) {
	const n = 60
	lambdas := []float64{1e-3, 1}
	for _, set := range sets(t, n) {
		classes, y, k := set.classes, set.y, mat.NewDense(n, n, nil)
		if err := set.k.DenseTo(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		m, e := precondOf(t, set.k, 30, 1)
		methods := map[string]func(y *mat.Dense) ([]Score, error){
			"dense": func(y *mat.Dense) ([]Score, error) {
				return Dense(t.Context(), k, y, lambdas, &Options{Classes: classes, Residuals: true})
			},
			"path": func(y *mat.Dense) ([]Score, error) {
				return Path(t.Context(), set.k, m, y, lambdas, &Options{Classes: classes, Residuals: true, Below: e, Stream: rng.New(1)})
			},
		}
		for name, run := range methods {
			want, err := run(y)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, unit := range []float64{0x1p-460, 0x1p460} {
				var scaled mat.Dense
				scaled.Scale(unit, y)
				got, err := run(&scaled)
				if err != nil {
					t.Fatalf("%s, targets times %g: %v", name, unit, err)
				}
				for q, w := range want {
					g, square := got[q], unit*unit
					if classes {
						square = 1
					}
					if g.Error.Value != square*w.Error.Value || g.Error.Lo != square*w.Error.Lo || g.Error.Hi != square*w.Error.Hi || g.GCV != unit*unit*w.GCV || g.Residuals.At(3, 0) != unit*w.Residuals.At(3, 0) {
						t.Errorf("%s, classes %v, targets times %g, λ = %g: %v, GCV %g, want %v, GCV %g, times it", name, classes, unit, w.Lambda, g.Error, g.GCV, w.Error, w.GCV)
					}
				}
			}
			for _, unit := range []float64{0x1p-500, 0x1p500} {
				var scaled mat.Dense
				scaled.Scale(unit, y)
				if _, err := run(&scaled); err == nil || !strings.Contains(err.Error(), "another unit") {
					t.Errorf("%s, targets times %g: %v", name, unit, err)
				}
			}
		}
	}
}

// TestExtremes: errors and GCV are finite, in their intervals, for λ from 1e-290 to 1e290, and of targets that are all
// zero 0 however little is known of A.
func TestExtremes(t *testing.T) {
	const n = 40
	identity, y := mat.NewDense(n, n, nil), mat.NewDense(n, 1, nil)
	var square float64
	for i := range n {
		identity.Set(i, i, 1)
		y.Set(i, 0, math.Sin(float64(i)))
		square += y.At(i, 0) * y.At(i, 0) / n
	}
	lambdas := []float64{1e-290, 1e-20, 1, 1e160, 1e290}
	scores, err := Dense(t.Context(), identity, y, lambdas, nil) // A⁻¹ is a multiple of I: every residual is y_i
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scores {
		if !(math.Abs(s.Error.Value/square-1) < 1e-12) || !(s.Error.Lo <= square && square <= s.Error.Hi) || !(math.Abs(s.GCV/square-1) < 1e-12) {
			t.Errorf("λ = %g: %v, GCV %g, want %g", s.Lambda, s.Error, s.GCV, square)
		}
	}
	zero, err := Dense(t.Context(), identity, mat.NewDense(n, 1, nil), []float64{1e-20, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range zero {
		if s.Error.Value != 0 || s.Error.Lo != 0 || s.Error.Hi != 0 || s.GCV != 0 {
			t.Errorf("zeros, λ = %g: %v, GCV %g", s.Lambda, s.Error, s.GCV)
		}
	}
	set := sets(t, n)[1]
	m, e := precondOf(t, set.k, 20, 1)
	path := func(lambda float64) ([]Score, error) {
		return Path(t.Context(), set.k, m, set.y, []float64{lambda}, &Options{Below: e, Stream: rng.New(1)})
	}
	scores, err = path(1e149) // f = 0
	if want := mat.Dot(set.y.ColView(0), set.y.ColView(0)) / n; err != nil || !(math.Abs(scores[0].Error.Value/want-1) < 1e-9) {
		t.Errorf("λ = 1e149: %v, %v, want %g", scores, err, want)
	}
	for _, l := range []float64{1e-300, 1e300} {
		if _, err := path(l); err == nil || !strings.Contains(err.Error(), "λ = ") {
			t.Errorf("λ = %g: %v", l, err)
		}
	}
}
