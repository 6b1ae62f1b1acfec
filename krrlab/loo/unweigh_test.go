package loo

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
)

// TestUnweigh: of residuals √w_i·e_i the mean square becomes Σw_i·e_i²/Σw_i, and they become e_i; errors of classes are shares of rows.
func TestUnweigh(t *testing.T) {
	w, e := []float64{1, 4, 16}, []float64{3, -2, 0.5}
	scores := func() []Score {
		r := mat.NewDense(3, 1, nil)
		var mean float64
		for i := range w {
			r.Set(i, 0, math.Sqrt(w[i])*e[i])
			mean += w[i] * e[i] * e[i] / 3
		}
		return []Score{{Error: estimate.Interval{Value: mean, Lo: mean / 2, Hi: 2 * mean}, GCV: mean, Residuals: r}}
	}
	s, want := scores(), (9+16+4)/21.0
	Unweigh(s, w, false)
	if got := s[0]; math.Abs(got.Error.Value-want) > 1e-12 || math.Abs(got.Error.Lo-want/2) > 1e-12 || math.Abs(got.Error.Hi-2*want) > 1e-12 || math.Abs(got.GCV-want) > 1e-12 || got.Residuals.At(1, 0) != -2 {
		t.Errorf("%+v, want %g", got, want)
	}
	s, plain := scores(), scores()
	if Unweigh(s, w, true); s[0].Error != plain[0].Error || math.Abs(s[0].GCV-want) > 1e-12 {
		t.Errorf("classes: %+v", s[0])
	}
	if Unweigh(plain, nil, false); plain[0].Residuals.At(1, 0) != -4 {
		t.Errorf("without weights: %+v", plain[0])
	}
}
