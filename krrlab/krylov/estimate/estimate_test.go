package estimate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestIntervalJSON checks that intervals written to JSON are read back, and that infinite ends and NaN are null.
func TestIntervalJSON(t *testing.T) {
	for _, interval := range []Interval{
		{57.25, 55, 60.5, 0.95, "hutchinson", 1.5},
		{2, 1, math.Inf(1), 0.9, "lanczos", 0},
		{2, math.Inf(-1), 3, 0.9, "lanczos", 0},
	} {
		encoded, err := json.Marshal(interval)
		testkit.OK(t, err)
		var got Interval
		if err := json.Unmarshal(encoded, &got); err != nil || got != interval {
			t.Errorf("%s: got %+v, want %+v (%v)", encoded, got, interval, err)
		}
		testkit.Equal(t, strings.Contains(string(encoded), "null"),
			(math.IsInf(interval.Lo, 0) || math.IsInf(interval.Hi, 0)), encoded)
	}
	encoded, err := json.Marshal(Interval{Value: math.NaN()})
	var got Interval
	if err == nil {
		err = json.Unmarshal(encoded, &got)
	}
	if err != nil || !math.IsNaN(got.Value) {
		t.Errorf("%s: %+v, %v", encoded, got, err)
	}
}

// TestInterval checks Contains, RelativeWidth, String and the allowed confidences.
func TestInterval(t *testing.T) {
	interval := Interval{50, 45, 55, 0.95, "slq", 0}
	if !interval.Contains(45) || !interval.Contains(55) || interval.Contains(44.9) || interval.Contains(55.1) ||
		interval.Contains(math.NaN()) {
		t.Errorf("Contains is wrong for %v", interval)
	}
	testkit.Equal(t, interval.RelativeWidth(), 0.2)
	testkit.Equal(t, interval.String(), "50, in [45, 55] with 95 % confidence (slq)")
	if certain := Certain(3, 0, "eigenvalues"); certain.RelativeWidth() != 0 || !certain.Contains(3) ||
		certain.Confidence != 1 {
		t.Errorf("%+v", certain)
	}
	for _, confidence := range []float64{0, 1, -1, 2, math.NaN(), 0.9999999999999999} {
		if CheckConfidence(confidence) == nil {
			t.Errorf("CheckConfidence(%v) is nil", confidence)
		}
	}
	if err := CheckConfidence(0.95); err != nil {
		t.Error(err)
	}
}
