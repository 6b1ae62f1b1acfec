package baseline

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/rng"
)

// TestLogisticProxStarts: from any start Halley's method ends at the root that bisection finds.
func TestLogisticProxStarts(t *testing.T) {
	g := rng.New(4)
	for i := range uint64(4000) {
		c, rho := 30*g.Normal(4*i), math.Exp(4*g.Normal(4*i+1))
		lo, hi := c, c+1/rho
		for range 200 {
			if m := lo + (hi-lo)/2; rho*(m-c) < 1/(1+math.Exp(m)) {
				lo = m
			} else {
				hi = m
			}
		}
		for _, start := range []float64{c, c + 1/rho, c - 5, 40 * g.Normal(4*i+2), lo} {
			if m := logisticProx(c, rho, start); !(math.Abs(m-lo) <= 1e-13*(1+math.Abs(lo))) {
				t.Errorf("c = %g, ρ = %g from %g: %.17g, want %.17g", c, rho, start, m, lo)
			}
		}
	}
}
