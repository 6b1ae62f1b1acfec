package pcg

import (
	"math"
	"testing"
)

// TestRemainingIterations checks predictions from geometric sequences of residuals, and compares others with the
// formula.
func TestRemainingIterations(t *testing.T) {
	for _, c := range []struct {
		rate float64
		k    int
	}{{0.5, 4}, {0.5, 9}, {0.9, 20}, {0.99, 300}} {
		var r []float64
		for j := range c.k + 1 {
			r = append(r, math.Pow(c.rate, float64(j)))
		}
		tol := math.Pow(c.rate, float64(c.k)+17)
		low, mid := RemainingIterations(r, tol)
		rate := -math.Log(c.rate)
		want := 17 * rate / (rate + 1/float64(c.k-c.k/2))
		if math.Abs(mid-17) > 1e-9*17 || math.Abs(low-want) > 1e-6 {
			t.Errorf("rate %g after %d: %g iterations left, at least %g, want 17 and %g", c.rate, c.k, mid, low, want)
		}
	}
	inf, thousand := math.Inf(1), math.Log(1000)
	for name, c := range map[string]struct {
		r    []float64
		want [2]float64
	}{
		"no iteration":              {[]float64{1}, [2]float64{0, inf}},
		"one iteration":             {[]float64{1, 0.1}, [2]float64{math.Log(100) / (math.Log(10) + 1), 2}},
		"flat":                      {[]float64{1, 1, 1, 1, 1}, [2]float64{2 * thousand, inf}},
		"rising":                    {[]float64{1, 2, 3, 4, 5}, [2]float64{2 * thousand, inf}},
		"tolerance reached":         {[]float64{1, 1e-1, 1e-3}, [2]float64{0, 0}},
		"tolerance reached earlier": {[]float64{1, 1e-4, 1e-1, 1, 1, 1}, [2]float64{0, 0}},
		// from the smallest residual up to r_2, 0.1, to 0.01: ln 10 in 2 iterations, and ln 10 remains
		"smallest residual earlier": {[]float64{1, 0.1, 0.5, 0.01, 0.02},
			[2]float64{2 * math.Log(10) / (math.Log(10) + 1), 2}},
	} {
		low, mid := RemainingIterations(c.r, 1e-3)
		for i, v := range []float64{low, mid} {
			if v != c.want[i] && !(math.Abs(v-c.want[i]) < 1e-9) {
				t.Errorf("%s: %v, want %v", name, []float64{low, mid}, c.want)
				break
			}
		}
	}
}
