package results

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/loo"
)

// TestLeaveOneOutPlot: an interval without upper end is drawn to the top, not to its value.
func TestLeaveOneOutPlot(t *testing.T) {
	r := &LeaveOneOut{Best: 1}
	for i, hi := range []float64{math.Inf(1), 3, 7} {
		r.Scores = append(r.Scores, loo.Score{Lambda: float64(i + 1), Error: estimate.Interval{Value: 2, Lo: 1, Hi: hi, Confidence: 0.95}})
	}
	if s := r.Plot().Series[0]; s.Hi[0] != 7 || s.Hi[1] != 3 || s.Lo[0] != 1 {
		t.Errorf("band %v to %v", s.Lo, s.Hi)
	}
}
