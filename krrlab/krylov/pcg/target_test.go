package pcg

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestReachableTarget checks that a restarted run reduces the residual by ReachableReduction, or to the goal if that is
// near.
func TestReachableTarget(t *testing.T) {
	s := &solver{opt: Options{ReachableReduction: 0.1}}
	for _, test := range []struct{ rel, want float64 }{{0.5, 0.05}, {0.11, 0.011}, {0.09, 1e-3}, {2, 0.2}} {
		testkit.Near(t, s.reachableTarget(1e-3, test.rel), test.want, 1e-16, test.rel)
	}
}
