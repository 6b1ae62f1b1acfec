package baseline

import (
	"math"
	"testing"
)

// TestDualBound checks that dualBound is at least the quadratic at every θ of a grid, and close to its maximum there,
// also for q = 0.
func TestDualBound(t *testing.T) {
	for _, c := range []float64{-3, -1, -0.25, 0, 0.25, 2} {
		for _, q := range []float64{0, 0.5, 1, 4} {
			largest := math.Inf(-1)
			for k := range 1025 {
				theta := float64(k) / 1024
				largest = max(largest, -theta*c-theta*theta*q/2)
			}
			if got := dualBound(c, q); !(got >= largest && got <= largest+1e-6) {
				t.Errorf("c = %g, q = %g: %g, want %g", c, q, got, largest)
			}
		}
	}
}
