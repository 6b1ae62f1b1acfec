package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestProbeRows checks that ProbeRows returns one random point of each part of the rows and then the outliers, none
// twice, and all points if there are few. Over many seeds every point must be drawn, so that a pattern with a fixed
// period cannot be missed.
func TestProbeRows(t *testing.T) {
	norms := make([]float64, 103)
	for i := range norms {
		norms[i] = float64(i * 37 % 103)
	}
	outliers := make([]int, len(norms))
	for i := range outliers {
		outliers[i] = i
	}
	slices.SortFunc(outliers, func(a, b int) int { return int(norms[b] - norms[a]) })
	for _, c := range []struct{ n, random, farthest int }{{103, 10, 5}, {103, 98, 4}, {103, 98, 5}, {103, 100, 4},
		{103, 1, 0}, {103, 20, 20}} {
		idx, randomCount := kernel.ProbeRows(norms[:c.n], c.random, c.farthest, rng.New(1))
		if c.n <= c.random+c.farthest {
			if len(idx) != c.n || randomCount != c.n || !slices.IsSorted(idx) {
				t.Errorf("%+v: %d points, %d of them at random, want all %d", c, len(idx), randomCount, c.n)
			}
			continue
		}
		testkit.Equal(t, randomCount, c.random, c)
		for k, i := range idx[:randomCount] {
			if i < k*c.n/c.random || i >= (k+1)*c.n/c.random {
				t.Errorf("%+v: part %d has point %d", c, k, i)
			}
		}
		for _, i := range outliers[:c.farthest] {
			if !slices.Contains(idx, i) {
				t.Errorf("%+v: the outlier %d is missing", c, i)
			}
		}
		for _, i := range idx[randomCount:] {
			if !slices.Contains(outliers[:c.farthest], i) {
				t.Errorf("%+v: point %d is not among the outliers", c, i)
			}
		}
		if s := slices.Sorted(slices.Values(idx)); len(slices.Compact(s)) != len(idx) {
			t.Errorf("%+v: a point twice in %v", c, idx)
		}
	}
	drawn := map[int]bool{}
	for seed := range uint64(400) { // a point of a part of 10 or 11 is missed with probability 1e-17
		idx, randomCount := kernel.ProbeRows(norms, 10, 5, rng.New(seed))
		for _, i := range idx[:randomCount] {
			drawn[i] = true
		}
	}
	testkit.Equal(t, len(drawn), len(norms))
}

// TestChooseArithmetic checks that ChooseArithmetic chooses inner products in float64 if their proved error is small
// enough or the kernel has no other arithmetic.
func TestChooseArithmetic(t *testing.T) {
	centered := kernel.SummaryOf(points.NewPanel(points.NewDense(2, 2, []float64{1, 0, 0, 1})))
	distant := kernel.SummaryOf(points.NewPanel(points.NewDense(2, 2, []float64{1e6, 0, -1e6, 1})))
	gauss, poly := kernel.Gaussian{Sigma: 1}, kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}
	for name, c := range map[string]struct {
		k        kernel.Kernel
		summary  kernel.PointSummary
		accuracy float64
		want     kernel.Arithmetic
	}{
		"points near zero": {gauss, centered, 1e-12, kernel.Float64}, "points far from zero": {gauss, distant, 1e-12,
			kernel.Differences},
		"far from zero, low accuracy": {gauss, distant, 1, kernel.Float64},
		"polynomial, accuracy 0":      {poly, distant, 0, kernel.Float64}, "accuracy 0": {gauss, centered, 0,
			kernel.Differences},
	} {
		arithmetic, bound := kernel.ChooseArithmetic(c.k, c.summary, c.accuracy)
		if arithmetic != c.want || bound != kernel.EntryError(c.k, arithmetic, c.summary) || !(bound >= 0) ||
			math.IsInf(bound, 1) {
			t.Errorf("%s: %v with error %g, want %v", name, arithmetic, bound, c.want)
		}
		if c.want == kernel.Float64 && c.k == kernel.Kernel(gauss) && bound > c.accuracy {
			t.Errorf("%s: error %g", name, bound)
		}
	}
}

// TestDifferenceTiles checks that tiles from coordinate differences equal Eval to a few roundings, however far from
// zero the points are, for every shift-invariant kernel.
func TestDifferenceTiles(t *testing.T) {
	const n, d = 9, 3
	x := points.NewDense(n, d, nil)
	rng.New(3).Normals(x.Data, 0)
	for i := range x.Data {
		x.Data[i] += 1e7 * float64(1-2*(i/d%2))
	}
	p := points.NewPanel(x)
	got := make([]float64, n*n)
	for _, k := range kernels {
		if !kernel.ShiftInvariant(k) {
			continue
		}
		kernel.Tile64(got, n, k, p, p, kernel.Differences, &kernel.Workspace{})
		for i, want := range evalAll(k, x, x) {
			// The exponent is at most about 700 if the value is not 0, and has d+3 roundings.
			testkit.Near(t, got[i], want, 700*(d+3)*0x1p-52*want, k, i/n, i%n)
		}
	}
}

// TestEntryErrorOfShiftedPoints checks that EntryError covers the rounding of points that are shifted by their mean.
// Half of the points form a group that is much smaller than that rounding.
func TestEntryErrorOfShiftedPoints(t *testing.T) {
	const n = 40
	g := rng.New(5)
	x := points.NewDense(n, 2, nil)
	for i := range n {
		x.Row(i)[0], x.Row(i)[1] = 1000.37, 100*g.Float64(uint64(i))
		if i%2 == 0 {
			x.Row(i)[1] = 1e-9 + 1e-10*g.Float64(uint64(n+i))
		}
	}
	for _, k := range []kernel.Kernel{kernel.Laplacian{Sigma: 1e-10}, kernel.Gaussian{Sigma: 1e-10},
		kernel.Laplacian{Sigma: 1e-3}, kernel.Matern32{Sigma: 1}} {
		placement := kernel.NewPlacement(k, x)
		if placement.Shift == nil {
			t.Fatal("the points are not shifted")
		}
		panel, bound := placement.Panel, kernel.EntryError(k, kernel.Float64, placement.Summary)
		tile := make([]float64, n*n)
		kernel.Tile64(tile, n, k, panel, panel, kernel.Float64, &kernel.Workspace{})
		for i := range n {
			for j := range n {
				// The last term is the rounding of Eval.
				if deviation := math.Abs(tile[i*n+j] - k.Eval(x.Row(i), x.Row(j))); deviation > bound+20*0x1p-53 {
					t.Fatalf("%v: entry (%d, %d) has an error of %g, at most %g", k, i, j, deviation, bound)
				}
			}
		}
		if chosen, arithmetic := placement.WithAccuracy(1e-12); bound > 1e-12 &&
			(arithmetic != kernel.Differences || chosen.Shift != nil || chosen.Panel.X != points.Points(x)) {
			t.Errorf("%v: %v of points shifted by %v, want Differences without a shift", k, arithmetic, chosen.Shift)
		}
	}
}
