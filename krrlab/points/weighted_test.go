package points_test

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestWeigh: weights go with their points through slices, copies and panels; what weights cannot be is refused.
func TestWeigh(t *testing.T) {
	base := points.NewDense(4, 1, []float64{3, 4, 5, 6})
	x := testkit.Must(points.Weigh(base, []float64{1, 4, 9, 16}))
	for name, got := range map[string]points.Points{"slice": x.Slice(1, 3), "copy": points.Gather(x, []int{1, 2})} {
		p := points.NewPanel(got)
		if _, weighted := p.X.(*points.Weighted); weighted || !slices.Equal(p.Factors, []float64{2, 3}) ||
			!slices.Equal(p.Norms, []float64{16, 25}) || !slices.Equal(points.NewPanel32(got).Slice(1, 2).Factors, []float64{3}) {
			t.Errorf("%s: %v", name, p)
		}
	}
	if points.Work(x) != points.Work(base) || points.Held(x) != points.Held(base)+32 {
		t.Errorf("work %g, %d bytes", points.Work(x), points.Held(x))
	}
	for want, w := range map[string][]float64{"2 weights for 4 points": {1, 2},
		"row 2 (counted from 0) is 0": {1, 1, 0, 1}, "row 0 (counted from 0) is NaN": {math.NaN(), 1, 1, 1},
		"row 3 (counted from 0) is 1e+151": {1, 1, 1, 1e151}, "row 1 (counted from 0) is -1": {1, -1, 1, 1}} {
		testkit.Fails(t, testkit.ErrOf(points.Weigh(base, w)), want)
	}
}

// TestDraw: sums over the drawn points, divided by their probabilities, are right on average, of the points and of
// their weights; heavy points are always drawn, each at most once.
func TestDraw(t *testing.T) {
	const n, count, draws = 300, 40, 400
	w := make([]float64, n)
	for i := range w {
		w[i] = 0.1 + float64(i%7)
	}
	w[17] = 4000
	x := testkit.Must(points.Weigh(points.NewDense(n, 1, nil), w))
	var points, weights, total float64
	for _, v := range w {
		total += v
	}
	for seed := range uint64(draws) {
		drawn, p := x.Draw(count, rng.New(seed))
		if !slices.IsSorted(drawn) || len(slices.Compact(slices.Clone(drawn))) != len(drawn) ||
			!slices.Contains(drawn, 17) || len(drawn) > count {
			t.Fatalf("%v of %d", drawn, count)
		}
		for a, i := range drawn {
			points += 1 / p[a] / draws
			weights += w[i] / p[a] / draws
		}
	}
	testkit.Near(t, points, n, 0.03*n, "number of points")
	testkit.Near(t, weights, total, 0.03*total, "sum of weights")
}
