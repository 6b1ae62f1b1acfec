package pcg

import (
	"math"
	"testing"
)

// TestAim: a run that is restarted reduces the residual by Refine, and to the goal where that is near.
func TestAim(t *testing.T) {
	s := &solver{opt: Options{Refine: 0.1}}
	for _, c := range []struct{ rel, want float64 }{{0.5, 0.05}, {0.11, 0.011}, {0.09, 1e-3}, {2, 0.2}} {
		if got := s.aim(1e-3, c.rel); math.Abs(got-c.want) > 1e-16 {
			t.Errorf("from %g: %g, want %g", c.rel, got, c.want)
		}
	}
}
