package points_test

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestNewWeighted checks that weights stay with their points in slices, copies and panels, and that invalid weights are
// errors.
func TestNewWeighted(t *testing.T) {
	base := points.NewDense(4, 1, []float64{3, 4, 5, 6})
	x := testkit.Must(points.NewWeighted(base, []float64{1, 4, 9, 16}))
	for name, got := range map[string]points.Points{"slice": x.Slice(1, 3), "copy": points.Gather(x, []int{1, 2}),
		"shifted": points.Shift(points.Shift(x, []float64{2}), []float64{-2}).Slice(1, 3)} {
		p := points.NewPanel(got)
		if _, weighted := p.X.(*points.Weighted); weighted || !slices.Equal(p.Factors, []float64{2, 3}) ||
			!slices.Equal(p.Norms, []float64{16, 25}) || !slices.Equal(points.NewPanel32(got).Slice(1, 2).Factors, []float64{3}) {
			t.Errorf("%s: %v", name, p)
		}
	}
	if points.DistanceWork(x) != points.DistanceWork(base) || points.MemoryBytes(x) != points.MemoryBytes(base)+32 {
		t.Errorf("work %g, %d bytes", points.DistanceWork(x), points.MemoryBytes(x))
	}
	for want, w := range map[string][]float64{"2 weights for 4 points": {1, 2},
		"row 2 (counted from 0) is 0": {1, 1, 0, 1}, "row 0 (counted from 0) is NaN": {math.NaN(), 1, 1, 1},
		"row 3 (counted from 0) is 1e+151": {1, 1, 1, 1e151}, "row 1 (counted from 0) is -1": {1, -1, 1, 1}} {
		testkit.Fails(t, testkit.ErrOf(points.NewWeighted(base, w)), want)
	}
}
