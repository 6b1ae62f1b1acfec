package draw

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

// labels returns the labels of ticks.
func labels(ticks []plot.Tick) (out []string) {
	for _, tick := range ticks {
		if tick.Label != "" {
			out = append(out, tick.Label)
		}
	}
	return out
}

// TestTicks checks the labels of linear and logarithmic axes, and that all ticks are on the axis.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int    // largest number of labels
		log    bool   // the axis is logarithmic
		want   string // the labels
	}{
		{0, 60, 6, false, "0 10 20 30 40 50 60"},
		{-0.31, 0.31, 5, false, "−0.2 0 0.2"},
		{0, 60000, 4, false, "0 20,000 40,000 60,000"},
		{0, 4.1e7, 2, false, "0 2×10⁷ 4×10⁷"},
		{0, 1e-5, 2, false, "0 0.5×10⁻⁵ 1.0×10⁻⁵"},
		{8e-4, 1.2, 7, true, "10⁻³ 10⁻² 10⁻¹ 10⁰"},
		{1e-9, 1, 4, true, "10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 10⁰"},
		{4, 45, 6, true, "5 10 20"},
		{1.2e-6, 6e-6, 6, true, "2×10⁻⁶ 3×10⁻⁶ 4×10⁻⁶ 5×10⁻⁶ 6×10⁻⁶"},
		{1, 1.05, 5, true, "1.00 1.01 1.02 1.03 1.04 1.05"},
	} {
		ticks := linearTicks(c.lo, c.hi, c.n)
		if c.log {
			ticks = logTicks(c.lo, c.hi, c.n)
		}
		if got := strings.Join(labels(ticks), " "); got != c.want {
			t.Errorf("ticks of [%g, %g]: %v, want %v", c.lo, c.hi, got, c.want)
		}
		for _, tick := range ticks {
			if tick.Value < c.lo-1e-9*math.Abs(c.lo) || tick.Value > c.hi+1e-9*math.Abs(c.hi) {
				t.Errorf("tick %g outside [%g, %g]", tick.Value, c.lo, c.hi)
			}
		}
	}
}
