package lowrank

import (
	"math"
	"slices"
	"testing"
)

// TestWeigh: points may be drawn in proportion to what is left of them, landmarks and what is at
// rounding level excepted.
func TestWeigh(t *testing.T) {
	p := &partial{
		build: &build{diag: []float64{1, 1, 4, 1, 1}, trace: 8},
		left:  []float64{0.5, 0.5, 3.9 * pivotFloor, 0.25, -1e-9},
		dead:  []bool{false, true, false, false, false},
		sums:  make([]float64, 5),
	}
	if sum := p.weigh(); sum != 0.75 || p.last != 3 || !slices.Equal(p.sums, []float64{0.5, 0.5, 0.5, 0.75, 0.75}) {
		t.Errorf("%g in all, %v, the last is %d", sum, p.sums, p.last)
	}
	p.left[0], p.left[3] = 0, 2*pivotFloor
	if sum := p.weigh(); sum != 2*pivotFloor {
		t.Errorf("%g in all, want %g", sum, 2*pivotFloor)
	}
	p.trace = math.Ldexp(2*pivotFloor, 24)
	if sum := p.weigh(); sum != 0 {
		t.Errorf("%g in all is a 2⁻²⁴th of the trace, want none", sum)
	}
}
