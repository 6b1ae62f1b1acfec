package stage

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// IntervalText formats an interval without its method. The ends are rounded outward, and unknown numbers are stated.
func IntervalText(interval estimate.Interval) string {
	confidence := ""
	if interval.Confidence < 1 {
		confidence = fmt.Sprintf(" with %.3g %%", 100*interval.Confidence)
	}
	return valueText(interval) + endsText(interval, 4, confidence)
}

// PlainIntervalText formats an interval like IntervalText, but without the confidence.
func PlainIntervalText(interval estimate.Interval) string {
	return valueText(interval) + endsText(interval, 4, "")
}

// EndsText formats the ends of an interval, rounded outward, or only the lower end if there is no upper bound.
func EndsText(interval estimate.Interval, digits int) string { return endsText(interval, digits, "") }

// valueText formats the value of an interval, to be followed by its ends.
func valueText(interval estimate.Interval) string {
	value := "not known"
	if !math.IsNaN(interval.Value) {
		value = fmt.Sprintf("%.4g", interval.Value)
	}
	if math.IsInf(interval.Hi, 1) {
		value += ","
	}
	return value + " "
}

// endsText formats the ends like EndsText, followed by the text of the confidence.
func endsText(interval estimate.Interval, digits int, confidence string) string {
	if math.IsInf(interval.Hi, 1) {
		return "at least " + outward.Down(interval.Lo, digits) + confidence + ", without an upper bound"
	}
	return "in " + outward.Span(interval.Lo, interval.Hi, digits) + confidence
}
