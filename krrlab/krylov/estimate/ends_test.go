package estimate

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestIntervalEnds checks both ends of an exact interval, the relative width of intervals of a negative value, of zero
// and of unbounded ones, and the largest allowed confidence.
func TestIntervalEnds(t *testing.T) {
	if interval := Certain(3, 0.5, "m"); interval.Lo != 2.5 || interval.Hi != 3.5 || interval.Value != 3 ||
		interval.Method != "m" {
		t.Errorf("%+v", interval)
	}
	testkit.Equal(t, (Interval{Value: -2, Lo: -3, Hi: -1}).RelativeWidth(), 1)
	testkit.Equal(t, (Interval{Value: 0, Lo: 0, Hi: 0}).RelativeWidth(), 0)
	if width := (Interval{Value: 1, Lo: math.Inf(-1), Hi: 2}).RelativeWidth(); !math.IsInf(width, 1) {
		t.Errorf("unbounded width %g", width)
	}
	if CheckConfidence(1-1.05e-12) != nil || CheckConfidence(1-0.9e-12) == nil {
		t.Error("the largest confidence is not 1 − 1e-12")
	}
}

// TestNullInJSON checks that missing ends in JSON are read as unbounded on their side.
func TestNullInJSON(t *testing.T) {
	var interval Interval
	testkit.OK(t, json.Unmarshal([]byte(`{"value":null,"lo":null,"hi":null,"confidence":0.9,"method":"x","seconds":2}`),
		&interval))
	if !math.IsNaN(interval.Value) || !math.IsInf(interval.Lo, -1) || !math.IsInf(interval.Hi, 1) ||
		interval.Confidence != 0.9 || interval.Seconds != 2 {
		t.Errorf("null is read as %+v", interval)
	}
}
