package lanczos

import (
	"fmt"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// TestPerturbedIntervalsByHand compares the intervals of κ, λ_min and λ_max with values worked out by hand, and checks
// that invalid e panic.
func TestPerturbedIntervalsByHand(t *testing.T) {
	result := &Result{N: 9, Min: estimate.Interval{Value: 1.5, Lo: 1, Hi: 2},
		Max: estimate.Interval{Value: 9, Lo: 8, Hi: 10}}
	for e, want := range map[float64][6]float64{ // the lower and upper ends of κ, λ_min and λ_max
		0:   {4, 10, 1, 2, 8, 10},
		0.1: {4 / 1.1 * 0.9, 10 * 1.1 / 0.9, 1 / 1.1, 2 / 0.9, 8 / 1.1, 10 / 0.9},
		0.8: {1, 10 * 1.8 / 0.2, 1 / 1.8, 2 / 0.2, 8 / 1.8, 10 / 0.2},
		1:   {1, math.Inf(1), 0.5, math.Inf(1), 4, math.Inf(1)},
		3:   {1, math.Inf(1), 0.25, math.Inf(1), 2, math.Inf(1)},
	} {
		kappa, minInterval, maxInterval := result.PerturbedIntervals(e)
		for i, got := range []float64{kappa.Lo, kappa.Hi, minInterval.Lo, minInterval.Hi, maxInterval.Lo,
			maxInterval.Hi} {
			if got != want[i] && !(math.Abs(got-want[i]) <= 1e-14*want[i]) {
				t.Errorf("e = %g: end %d is %g, want %g", e, i, got, want[i])
			}
		}
	}
	for _, e := range []float64{-1e-9, math.NaN()} {
		testkit.Panics(t, map[string]func(){fmt.Sprint(e): func() { result.PerturbedIntervals(e) }})
	}
}
