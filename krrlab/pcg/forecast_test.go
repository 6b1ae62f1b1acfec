package pcg

import (
	"math"
	"testing"
)

// TestForecast compares forecasts with what geometric sequences do, and with the formula.
func TestForecast(t *testing.T) {
	for _, c := range []struct {
		rate float64
		k    int
	}{{0.5, 4}, {0.5, 9}, {0.9, 20}, {0.99, 300}} {
		var r []float64
		for j := range c.k + 1 {
			r = append(r, math.Pow(c.rate, float64(j)))
		}
		tol := math.Pow(c.rate, float64(c.k)+17)
		low, mid, high := Forecast(r, tol)
		f := 1 + 8/float64(c.k)
		if math.Abs(mid-17) > 1e-9*17 || math.Abs(low*f-17) > 1e-6 || math.Abs(high/f-17) > 1e-6 {
			t.Errorf("rate %g after %d: %g iterations left in [%g, %g], want 17, by %g", c.rate, c.k, mid, low, high, f)
		}
	}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		r    []float64
		want [3]float64
	}{
		"none":       {[]float64{1}, [3]float64{0, inf, inf}},
		"few":        {[]float64{1, 0.1}, [3]float64{0, 2, inf}},
		"flat":       {[]float64{1, 1, 1, 1, 1}, [3]float64{inf, inf, inf}},
		"rising":     {[]float64{1, 2, 3, 4, 5}, [3]float64{inf, inf, inf}},
		"done":       {[]float64{1, 1e-1, 1e-3}, [3]float64{0, 0, 0}},
		"there once": {[]float64{1, 1e-4, 1e-1, 1, 1, 1}, [3]float64{0, 0, 0}},
		// from r_2, of which 0.1 is the least so far, to 0.01
		"least": {[]float64{1, 0.1, 0.5, 0.01, 0.02}, [3]float64{1 / 3.0, 1, 3}},
	} {
		low, mid, high := Forecast(c.r, 1e-3)
		if name == "least" { // ln 10 in 2 iterations, ln 10 to go
			c.want = [3]float64{2.0 / 3, 2, 6}
		}
		for i, v := range []float64{low, mid, high} {
			if v != c.want[i] && !(math.Abs(v-c.want[i]) < 1e-9) {
				t.Errorf("%s: %v, want %v", name, []float64{low, mid, high}, c.want)
				break
			}
		}
	}
}
