package pcg

import (
	"math"
	"testing"
)

// TestRemainingIterations checks predictions from geometric sequences of residuals, and compares others with the
// formula.
func TestRemainingIterations(t *testing.T) {
	for _, test := range []struct {
		rate float64
		k    int
	}{{0.5, 4}, {0.5, 9}, {0.9, 20}, {0.99, 300}} {
		var residuals []float64
		for j := range test.k + 1 {
			residuals = append(residuals, math.Pow(test.rate, float64(j)))
		}
		tol := math.Pow(test.rate, float64(test.k)+17)
		low, expected := RemainingIterations(residuals, tol)
		rate := -math.Log(test.rate)
		want := 17 * rate / (rate + 1/float64(test.k-test.k/2))
		if math.Abs(expected-17) > 1e-9*17 || math.Abs(low-want) > 1e-6 {
			t.Errorf("rate %g after %d: %g iterations left, at least %g, want 17 and %g", test.rate, test.k, expected,
				low, want)
		}
	}
	inf, thousand := math.Inf(1), math.Log(1000)
	for name, test := range map[string]struct {
		residuals []float64
		want      [2]float64 // low and expected
	}{
		"no iteration":              {[]float64{1}, [2]float64{0, inf}},
		"one iteration":             {[]float64{1, 0.1}, [2]float64{math.Log(100) / (math.Log(10) + 1), 2}},
		"flat":                      {[]float64{1, 1, 1, 1, 1}, [2]float64{2 * thousand, inf}},
		"rising":                    {[]float64{1, 2, 3, 4, 5}, [2]float64{2 * thousand, inf}},
		"tolerance reached":         {[]float64{1, 1e-1, 1e-3}, [2]float64{0, 0}},
		"tolerance reached earlier": {[]float64{1, 1e-4, 1e-1, 1, 1, 1}, [2]float64{0, 0}},
		// The smallest residual falls from 0.1 (up to r_2) to 0.01 in 2 iterations. The factor that remains is also 10.
		"smallest residual earlier": {[]float64{1, 0.1, 0.5, 0.01, 0.02},
			[2]float64{2 * math.Log(10) / (math.Log(10) + 1), 2}},
	} {
		low, expected := RemainingIterations(test.residuals, 1e-3)
		for i, v := range []float64{low, expected} {
			if v != test.want[i] && !(math.Abs(v-test.want[i]) < 1e-9) {
				t.Errorf("%s: %v, want %v", name, []float64{low, expected}, test.want)
				break
			}
		}
	}
}
