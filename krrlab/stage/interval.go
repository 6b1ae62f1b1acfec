package stage

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Bounds writes an interval without its method.
func Bounds(e estimate.Interval) string {
	with := ""
	if e.Confidence < 1 {
		with = fmt.Sprintf(" with %.3g %%", 100*e.Confidence)
	}
	return Span(e, with)
}

// Span writes an interval, its ends rounded outward, and in words what is not known of it.
func Span(e estimate.Interval, with string) string {
	value := "not known"
	if !math.IsNaN(e.Value) {
		value = fmt.Sprintf("%.4g", e.Value)
	}
	if math.IsInf(e.Hi, 1) {
		value += ","
	}
	return value + " " + Range(e, 4, with)
}

// Range writes the ends of an interval, rounded outward, or what is known of them.
func Range(e estimate.Interval, digits int, with string) string {
	if math.IsInf(e.Hi, 1) {
		return "at least " + outward.Down(e.Lo, digits) + with + ", without an upper bound"
	}
	return "in " + outward.Span(e.Lo, e.Hi, digits) + with
}
