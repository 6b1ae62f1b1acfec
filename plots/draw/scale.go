package draw

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// scale is an axis of a figure with its ends and its ticks; a minor one has no label.
type scale struct {
	of       *plots.Axis
	min, max float64
	ticks    []plot.Tick
}

// norm maps the values of an axis to [0, 1]. Values far outside are brought nearer, so
// that lines to them can be clipped without overflow.
func (s *scale) norm(v float64) float64 {
	if s.of.Log && v <= 0 {
		return -1e3
	}
	to, _ := transform(s.of)
	return min(max((to(v)-to(s.min))/(to(s.max)-to(s.min)), -1e3), 1e3)
}

// transform returns the functions to where the axis is linear and back, there to a value
// that can be drawn.
func transform(a *plots.Axis) (to, from func(float64) float64) {
	if a.Log {
		return math.Log, func(v float64) float64 {
			return math.Min(math.Max(math.Exp(v), math.SmallestNonzeroFloat64), math.MaxFloat64)
		}
	}
	return func(v float64) float64 { return v }, func(v float64) float64 {
		return math.Min(math.Max(v, -math.MaxFloat64/4), math.MaxFloat64/4)
	}
}

// tight returns the axis with its free ends at the limits.
func tight(a *plots.Axis, l limits) *plots.Axis {
	t := *a
	t.Min, t.Max = a.Ends()
	if math.IsNaN(t.Min) {
		t.Min = math.Max(l.lo, -math.MaxFloat64/4) // hi−lo must not overflow
	}
	if math.IsNaN(t.Max) {
		t.Max = math.Min(l.hi, math.MaxFloat64/4)
	}
	return &t
}

// newScale chooses the ends of an axis for data within limits that the axis can show.
func newScale(a *plots.Axis, data limits) *scale {
	if data.lo > data.hi { // no data: the caller has fixed the ends
		data = limits{1, 10}
	}
	to, from := transform(a)
	l, h := to(data.lo), to(data.hi)
	if l == h {
		w := math.Max(math.Abs(l)*0.1, 1e-300)
		if a.Log {
			w = math.Ln2
		} else if l == 0 {
			w = 1
		}
		l, h = l-w, h+w
	}
	pad := 0.04*h - 0.04*l
	wide := limits{from(l - pad), from(h + pad)}
	if data.lo >= 0 { // no negative ground under data that has none
		wide.lo = math.Max(wide.lo, 0)
	}
	t := tight(a, wide)
	s := &scale{of: a, min: t.Min, max: t.Max}
	if s.min < s.max {
		return s
	}
	step := func(v float64) float64 { // beyond an end that is fixed beyond the data
		if a.Log {
			return math.Ln10
		}
		return math.Max(1, math.Abs(v))
	}
	if fixed, _ := a.Ends(); math.IsNaN(fixed) {
		s.min = from(to(s.max) - step(s.max))
	} else {
		s.max = from(to(s.min) + step(s.min))
	}
	return s
}

// label sets the ticks: some n round ones, or every so-manyth of the given values.
func (s *scale) label(n int, values []float64, every int) {
	switch {
	case values != nil:
		s.ticks = s.valueTicks(values, every)
	case s.of.Log:
		s.ticks = logTicks(s.min, s.max, n)
	default:
		s.ticks = linearTicks(s.min, s.max, n)
	}
	groupAlike(s.ticks)
}

// valueTicks labels every so-manyth of the given values that are on the scale.
func (s *scale) valueTicks(values []float64, every int) (ts []plot.Tick) {
	write := text.Plain
	for _, v := range values {
		if s.of.Shows(v) && !isPlain(v) {
			write = text.Scientific
		}
	}
	for i, v := range values {
		if !s.of.Shows(v) || v < s.min || v > s.max {
			continue
		}
		t := plot.Tick{Value: v}
		if i%every == 0 {
			t.Label = write(v)
		}
		ts = append(ts, t)
	}
	return ts
}

// groupAlike writes whole labels of four digits with a comma where a longer one of the axis has one.
func groupAlike(ts []plot.Tick) {
	if !slices.ContainsFunc(ts, func(t plot.Tick) bool { return strings.Contains(t.Label, ",") }) {
		return
	}
	for i, t := range ts {
		ts[i].Label = text.Commas(t.Label, 4)
	}
}

// dropLabels takes away every other label until they are not crowded, or two are left.
func (s *scale) dropLabels(crowded func() bool) {
	for crowded() && labeled(s.ticks) > 2 {
		for i, k := 0, 0; i < len(s.ticks); i++ {
			if s.ticks[i].Label != "" {
				if k++; k%2 == 0 {
					s.ticks[i].Label = ""
				}
			}
		}
	}
}
