package stage

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// IntervalText formats an interval without its method. The ends are rounded outward, and unknown numbers are stated.
func IntervalText(e estimate.Interval) string {
	confidence := ""
	if e.Confidence < 1 {
		confidence = fmt.Sprintf(" with %.3g %%", 100*e.Confidence)
	}
	return valueText(e) + endsText(e, 4, confidence)
}

// PlainIntervalText is IntervalText without the confidence.
func PlainIntervalText(e estimate.Interval) string { return valueText(e) + endsText(e, 4, "") }

// EndsText formats the ends of an interval, rounded outward, or only the lower end if there is no upper bound.
func EndsText(e estimate.Interval, digits int) string { return endsText(e, digits, "") }

// valueText formats the value of an interval, to be followed by its ends.
func valueText(e estimate.Interval) string {
	value := "not known"
	if !math.IsNaN(e.Value) {
		value = fmt.Sprintf("%.4g", e.Value)
	}
	if math.IsInf(e.Hi, 1) {
		value += ","
	}
	return value + " "
}

// endsText is EndsText with the confidence, as text, after the ends.
func endsText(e estimate.Interval, digits int, confidence string) string {
	if math.IsInf(e.Hi, 1) {
		return "at least " + outward.Down(e.Lo, digits) + confidence + ", without an upper bound"
	}
	return "in " + outward.Span(e.Lo, e.Hi, digits) + confidence
}
