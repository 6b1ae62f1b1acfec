package stage

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Bounds formats an interval without its method.
func Bounds(e estimate.Interval) string {
	suffix := ""
	if e.Confidence < 1 {
		suffix = fmt.Sprintf(" with %.3g %%", 100*e.Confidence)
	}
	return Span(e, suffix)
}

// Span formats an interval with its ends rounded outward, and states which of its numbers are unknown. suffix follows
// the ends.
func Span(e estimate.Interval, suffix string) string {
	value := "not known"
	if !math.IsNaN(e.Value) {
		value = fmt.Sprintf("%.4g", e.Value)
	}
	if math.IsInf(e.Hi, 1) {
		value += ","
	}
	return value + " " + Range(e, 4, suffix)
}

// Range formats the ends of an interval, rounded outward, or only the lower end if there is no upper bound. suffix
// follows the ends.
func Range(e estimate.Interval, digits int, suffix string) string {
	if math.IsInf(e.Hi, 1) {
		return "at least " + outward.Down(e.Lo, digits) + suffix + ", without an upper bound"
	}
	return "in " + outward.Span(e.Lo, e.Hi, digits) + suffix
}
