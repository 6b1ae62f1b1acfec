package bound

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestTraceEstimate checks that the estimate is at least the limit of a geometric series, at most the bound from the
// residual, and 1 if nothing is known.
func TestTraceEstimate(t *testing.T) {
	// The decreases are those of ‖x‖_A² for random signs. The deviation of the mean of 2⁴⁰ signs is negligible.
	const n, lambda = 1 << 40, 0.5
	for _, rate := range []float64{0.3, 0.6, 0.8} {
		var decrease []float64
		v := (1 - rate) * 0.4 / lambda // the sum tends to 0.4
		for range 8 {
			decrease = append(decrease, v)
			v *= rate
		}
		b := TraceEstimate(decrease, 10, lambda, n) // the residual 10 bounds nothing
		if !(b >= 0.4 && b < 1) {
			t.Errorf("rate %g: %g, want about 0.4", rate, b)
		}
		remainder := 0.4 * math.Pow(rate, 8)
		testkit.Near(t, TraceEstimate(decrease, math.Sqrt(remainder), lambda, n), 0.4, 1e-5, rate)
	}
	// The series still grows, so nothing is known.
	testkit.Equal(t, TraceEstimate([]float64{0.1, 0.2}, 10, lambda, n), 1.0)
	fromFew, fromMany := TraceEstimate([]float64{0.8, 0}, 10, lambda, 100),
		TraceEstimate([]float64{0.8, 0}, 10, lambda, 10000)
	testkit.Near(t, fromFew-0.4, 3*math.Sqrt(2*0.4*0.6/100), 1e-12) // three deviations of the mean of 100 signs
	testkit.Near(t, fromMany-0.4, (fromFew-0.4)/10, 1e-12)
}

// TestExpectedTol checks that ExpectedTol is τ for every rule but ByPredictions, for which it is larger if τ is small.
func TestExpectedTol(t *testing.T) {
	for rule := DefaultRule; rule <= ByPredictions; rule++ {
		s := Stop{Rule: rule}
		testkit.Equal(t, s.ExpectedTol(0.1), 0.1, rule)
		testkit.Equal(t, s.ExpectedTol(1e-5) > 1e-3, rule == ByPredictions, rule)
	}
}
