package draw

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// scale holds an axis of a figure with its ends and its ticks.
type scale struct {
	axis     *plots.Axis
	min, max float64     // ends of the axis
	ticks    []plot.Tick // ticks in increasing order; a minor tick has no label
}

// fraction maps the values of the axis linearly, or logarithmically, to [0, 1]. Results are limited to [−1000, 1000],
// so that lines to values far outside can be clipped without overflow.
func (s *scale) fraction(v float64) float64 {
	if s.axis.Log && v <= 0 {
		return -1e3
	}
	forward, _ := transform(s.axis)
	return min(max((forward(v)-forward(s.min))/(forward(s.max)-forward(s.min)), -1e3), 1e3)
}

// transform returns the function that maps values to the coordinate in which the axis is linear (the logarithm on a log
// axis), and its inverse. The result of inverse is limited to finite values that can be drawn.
func transform(a *plots.Axis) (forward, inverse func(float64) float64) {
	if a.Log {
		return math.Log, func(v float64) float64 {
			return math.Min(math.Max(math.Exp(v), math.SmallestNonzeroFloat64), math.MaxFloat64)
		}
	}
	return func(v float64) float64 { return v }, func(v float64) float64 {
		return math.Min(math.Max(v, -math.MaxFloat64/4), math.MaxFloat64/4)
	}
}

// withFixedEnds returns a copy of the axis in which the ends that the caller has not fixed are at the limits l.
func withFixedEnds(a *plots.Axis, l limits) *plots.Axis {
	fixed := *a
	fixed.Min, fixed.Max = a.Ends()
	if math.IsNaN(fixed.Min) {
		fixed.Min = math.Max(l.lo, -math.MaxFloat64/4) // so that hi−lo does not overflow
	}
	if math.IsNaN(fixed.Max) {
		fixed.Max = math.Min(l.hi, math.MaxFloat64/4)
	}
	return &fixed
}

// newScale returns a scale without ticks for data within limits that the axis can show. An end that the caller has not
// fixed is chosen such that the data fill the axis except for a margin of 4 %.
func newScale(a *plots.Axis, data limits) *scale {
	if data.lo > data.hi { // there are no data, so the caller has fixed the ends
		data = limits{1, 10}
	}
	forward, inverse := transform(a)
	low, high := forward(data.lo), forward(data.hi)
	if low == high {
		halfWidth := math.Max(math.Abs(low)*0.1, 1e-300)
		if a.Log {
			halfWidth = math.Ln2
		} else if low == 0 {
			halfWidth = 1
		}
		low, high = low-halfWidth, high+halfWidth
	}
	pad := 0.04*high - 0.04*low
	padded := limits{inverse(low - pad), inverse(high + pad)}
	if data.lo >= 0 { // the margin does not extend the axis to negative values if no datum is negative
		padded.lo = math.Max(padded.lo, 0)
	}
	ends := withFixedEnds(a, padded)
	s := &scale{axis: a, min: ends.Min, max: ends.Max}
	if s.min < s.max {
		return s
	}
	// The caller has fixed an end beyond the data, so the other end is a step beyond the fixed one.
	step := func(v float64) float64 {
		if a.Log {
			return math.Ln10
		}
		return math.Max(1, math.Abs(v))
	}
	if fixed, _ := a.Ends(); math.IsNaN(fixed) {
		s.min = inverse(forward(s.max) - step(s.max))
	} else {
		s.max = inverse(forward(s.min) + step(s.min))
	}
	return s
}

// setTicks sets the ticks: about n round values, or the given values with labels at every every-th of them.
func (s *scale) setTicks(n int, values []float64, every int) {
	switch {
	case values != nil:
		s.ticks = s.valueTicks(values, every)
	case s.axis.Log:
		s.ticks = logTicks(s.min, s.max, n)
	default:
		s.ticks = linearTicks(s.min, s.max, n)
	}
	if s.axis.Names == nil {
		unifyCommas(s.ticks)
	}
}

// valueTicks returns ticks at the given values that are on the scale. Every every-th of the given values has a label.
// The labels are the axis's names. Without names, all are written with powers of ten if one of the values would be long
// without.
func (s *scale) valueTicks(values []float64, every int) (ticks []plot.Tick) {
	write := text.Plain
	for _, v := range values {
		if s.axis.Shows(v) && !isShortPlain(v) {
			write = text.Compact
		}
	}
	for i, v := range values {
		if !s.axis.Shows(v) || v < s.min || v > s.max {
			continue
		}
		tick := plot.Tick{Value: v}
		switch {
		case i%every != 0:
		case s.axis.Names != nil:
			tick.Label = s.axis.Names[i]
		default:
			tick.Label = write(v)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// unifyCommas inserts commas into whole labels of four digits if a longer label of the axis has commas.
func unifyCommas(ticks []plot.Tick) {
	if !slices.ContainsFunc(ticks, func(tick plot.Tick) bool { return strings.Contains(tick.Label, ",") }) {
		return
	}
	for i, tick := range ticks {
		ticks[i].Label = text.GroupFrom(tick.Label, 4)
	}
}

// dropLabels removes every second label, repeatedly, until isCrowded reports false or at most two labels remain.
func (s *scale) dropLabels(isCrowded func() bool) {
	for isCrowded() && labelCount(s.ticks) > 2 {
		for i, k := 0, 0; i < len(s.ticks); i++ {
			if s.ticks[i].Label != "" {
				if k++; k%2 == 0 {
					s.ticks[i].Label = ""
				}
			}
		}
	}
}
