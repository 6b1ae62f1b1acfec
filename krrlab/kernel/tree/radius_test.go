package tree

import (
	"context"
	"math"
	"math/big"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// exactDistance returns Σ|x_c−z_c|^power without rounding, for power 1 or 2.
func exactDistance(x, z []float64, power int) *big.Float {
	sum := new(big.Float).SetPrec(500)
	for c, v := range x {
		difference := new(big.Float).SetPrec(500).Sub(big.NewFloat(v), big.NewFloat(z[c]))
		if difference.Abs(difference); power == 2 {
			difference.Mul(difference, difference)
		}
		sum.Add(sum, difference)
	}
	return sum
}

// TestBoundsWithRounding searches for points at which rounding violates the bounds of the tree. They lie at equal
// distances on a line along the diagonal, shifted by a few units in the last place, so that the triangle inequalities
// behind the radii and the gaps are equalities and rounding alone decides. No two points of two nodes may be closer
// than minDistance, and each inner node must contain its points in its ball. Without the allowance in the radius of an
// inner node the second check fails. With a slightly smaller radius the first fails as well, and a tile of the kernel
// matrix that is not negligible would be skipped.
func TestBoundsWithRounding(t *testing.T) {
	const n = 16
	for seed := range uint64(40) {
		d := 1 + int(seed%3)
		x, noise := points.NewDense(n, d, nil), make([]float64, n*d+2)
		rng.New(seed).Normals(noise, 0)
		for i := range n {
			for c := range d {
				x.Row(i)[c] = (noise[n*d] + float64(i)*noise[n*d+1]) * (1 + 0x1p-52*math.Round(noise[i*d+c]))
			}
		}
		tr := testkit.Must(New(context.Background(), x, 1+int(seed%2)))
		pointsOf := func(k int) []int { return tr.Order[tr.nodes[k].start:tr.nodes[k].end] }
		for a, nd := range tr.nodes {
			lo, hi, center := tr.box(a)
			for _, i := range pointsOf(a) {
				radius := new(big.Float).SetPrec(200).SetFloat64(nd.radius)
				if nd.leftChild > 0 && exactDistance(x.Row(i), center, 2).Cmp(radius.Mul(radius, radius)) > 0 {
					t.Errorf("seed %d: the ball of node %d with radius %g does not contain point %d", seed, a,
						nd.radius,
						i)
				}
			}
			if nd.radius > distance(lo, hi)*(1+1e-12) {
				t.Errorf("seed %d: node %d has the radius %g, larger than the diagonal of its box", seed, a, nd.radius)
			}
			for b := range a + 1 {
				for _, i := range pointsOf(a) {
					for _, j := range pointsOf(b) {
						for metric, power := range map[Metric]int{SquaredEuclidean: 2, Manhattan: 1} {
							distance := exactDistance(x.Row(i), x.Row(j), power)
							if gap := tr.minDistance(a, tr, b, metric); distance.Cmp(big.NewFloat(gap)) < 0 {
								t.Fatalf("seed %d: minDistance of nodes %d and %d is %g, points %d and %d have the distance %g", seed, a, b, gap, i, j,
									distance)
							}
						}
					}
				}
			}
		}
	}
}

// TestSplitValue checks that numbers are split nearest to the median, or at the widest gap between the quartiles if
// that gap is at least an eighth of the range. Equal numbers stay together.
func TestSplitValue(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64 // threshold
		cut  bool    // whether the values are divided
	}{
		{[]float64{3, 3, 3}, 0, false}, {[]float64{3}, 0, false}, {[]float64{1, 2}, 1, true}, {[]float64{1, 1, 1, 2}, 1, true},
		{[]float64{0, 1, 2, 4, 6, 8, 14, 16}, 8, true},        // the gap of 6 has a quarter of the numbers above it
		{[]float64{0, 1, 2, 4, 6, 8, 9, 16}, 2, true},         // the gap of 7 has an eighth above it; ties: the first
		{[]float64{0, 6, 12, 18, 24, 30.5, 36, 52}, 24, true}, // only the last gap is an eighth of the range
		{[]float64{0, 6, 12, 18, 24, 30.5, 36, 51}, 24, true},
		{[]float64{0, 5, 11, 17, 23, 30, 36, 56}, 23, true}, // 7 is an eighth
		{[]float64{0, 5, 11, 17, 23, 30, 36, 57}, 17, true}, // and here less
		{[]float64{100, 105, 111, 117, 123, 130, 136, 156}, 123, true},
		{[]float64{0, 0, 0, 1, 1, 1, 1, 1}, 0, true}, {[]float64{0, 9, 10, 11}, 0, true},
		{[]float64{0, 1, 9, 10, 11, 12, 13, 14}, 1, true},      // a quarter is below the gap of 8
		{[]float64{0, 1, 9, 10, 11, 12, 13, 14, 15}, 10, true}, // and here less
	} {
		if value, cut := splitValue(c.v); value != c.want || cut != c.cut {
			t.Errorf("%v: split at %v, %v, want %v, %v", c.v, value, cut, c.want, c.cut)
		}
	}
	// One point differs from all others, of which only some are sampled.
	x := points.NewDense(3*maxSampledPoints, 1, nil)
	x.Data[1] = 1
	tr := testkit.Must(New(context.Background(), x, 3*maxSampledPoints-1))
	if tr.LeafCount() != 2 || tr.Start[1] != 3*maxSampledPoints-1 {
		t.Errorf("leaves begin at %v", tr.Start)
	}
	tr = testkit.Must(New(context.Background(), x, maxSampledPoints))
	constant := func(float64) float64 { return 0.5 }
	allPairs := tr.LeafCount() * (tr.LeafCount() + 1) / 2
	// A kernel equal to the limit is not negligible.
	for cutoff, want := range map[float64]int{0.5: allPairs, math.Nextafter(0.5, 1): 0} {
		pairs, _, _, err := tr.Pairs(context.Background(), tr, SquaredEuclidean, constant, cutoff)
		testkit.OK(t, err)
		testkit.Equal(t, len(pairs), want)
	}
}
