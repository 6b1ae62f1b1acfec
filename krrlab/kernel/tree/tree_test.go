package tree

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// pointSets returns point sets of several shapes.
func pointSets(n int) map[string]points.Points {
	newPoints := func(d int, edit func(row []float64, i int)) *points.Dense {
		x := points.NewDense(n, d, nil)
		rng.New(uint64(d)).Normals(x.Data, 0)
		for i := range n {
			edit(x.Row(i), i)
		}
		return x
	}
	return map[string]points.Points{
		"normal":     newPoints(4, func([]float64, int) {}),
		"line":       newPoints(1, func([]float64, int) {}),
		"far groups": newPoints(3, func(row []float64, i int) { row[i%3] += 1e6 * float64(i%5) }),
		"0 and 1": newPoints(30, func(row []float64, i int) {
			for c := range row {
				row[c] = float64(i >> (c % 9) & 1)
			}
		}),
		"identical":             newPoints(2, func(row []float64, i int) { row[0], row[1] = 3, 4 }),
		"very different scales": newPoints(5, func(row []float64, i int) { row[2] *= 1e8; row[3] *= 1e-8 }),
		"all but one identical": newPoints(2, func(row []float64, i int) {
			if row[0], row[1] = 0, 0; i == n/2 {
				row[0] = 1
			}
		}),
	}
}

// TestTree checks that each point is in one leaf, that no leaf has more points than allowed, and that Pairs bounds
// the kernel: the values between two leaves, and the row and column sums of the pairs that it omits.
func TestTree(t *testing.T) {
	const n, size = 300, 16
	ctx := context.Background()
	for name, x := range pointSets(n) {
		tr := testkit.Must(New(ctx, x, size))
		seen := slices.Clone(tr.Order)
		slices.Sort(seen)
		for i, v := range seen {
			if i != v {
				t.Fatalf("%s: the order is no permutation", name)
			}
		}
		other := testkit.Must(New(ctx, x.Slice(0, n/3), size))
		for leaf := range tr.LeafCount() {
			if count := tr.Start[leaf+1] - tr.Start[leaf]; count < 1 || count > size {
				t.Errorf("%s: leaf %d has %d points", name, leaf, count)
			}
		}
		for _, metric := range []Metric{SquaredEuclidean, Manhattan} {
			for _, u := range []*Tree{tr, other} {
				for _, scale := range []float64{0.1, 1, 1e6} {
					checkPairs(t, name, x, tr, u, metric, scale)
				}
			}
		}
	}
}

// TestSkippedSums checks that Pairs counts each point of a skipped leaf once, with a bound that is ½ for all skipped
// pairs.
func TestSkippedSums(t *testing.T) {
	const n = 300
	for name, x := range pointSets(n) {
		tr, other := testkit.Must(New(t.Context(), x, 16)), testkit.Must(New(t.Context(), x.Slice(0, n/3), 16))
		for _, u := range []*Tree{tr, other} {
			for _, limit := range []float64{-1, 0.1, 1, 1e6} { // no pair is closer than −1
				step := func(distance float64) float64 {
					if distance > limit {
						return 0.5
					}
					return 1
				}
				pairs, rowSums, columnSums, err := tr.Pairs(t.Context(), u, SquaredEuclidean, step, 1)
				testkit.OK(t, err)
				wantRowSums, wantColumnSums := make([]float64, tr.LeafCount()), make([]float64, u.LeafCount())
				for leaf := range wantRowSums {
					wantRowSums[leaf] = 0.5 * float64(len(u.Order))
				}
				for leaf := range wantColumnSums {
					wantColumnSums[leaf] = 0.5 * float64(len(tr.Order))
				}
				for _, p := range pairs {
					wantRowSums[p.A] -= 0.5 * float64(u.Start[p.B+1]-u.Start[p.B])
					wantColumnSums[p.B] -= 0.5 * float64(tr.Start[p.A+1]-tr.Start[p.A])
					if u == tr && p.A != p.B {
						wantRowSums[p.B] -= 0.5 * float64(tr.Start[p.A+1]-tr.Start[p.A])
						wantColumnSums[p.A] -= 0.5 * float64(u.Start[p.B+1]-u.Start[p.B])
					}
				}
				if !slices.Equal(rowSums, wantRowSums) || !slices.Equal(columnSums, wantColumnSums) {
					t.Errorf("%s, limit %g, %d pairs: sums of rows %v, want %v; of columns %v, want %v", name, limit,
						len(pairs), rowSums, wantRowSums, columnSums, wantColumnSums)
				}
			}
		}
	}
}

// checkPairs compares Pairs with all pairs of points, for the kernel exp(−distance/scale).
func checkPairs(t *testing.T, name string, x points.Points, tr, u *Tree, metric Metric, scale float64) {
	k := func(distance float64) float64 { return math.Exp(-distance / scale) }
	const cutoff = 0.01
	pairs, rowBounds, columnBounds, err := tr.Pairs(context.Background(), u, metric, k, cutoff)
	testkit.OK(t, err)
	bounds := map[[2]int]float64{}
	for _, p := range pairs {
		bounds[[2]int{p.A, p.B}] = p.Bound
		if u == tr {
			bounds[[2]int{p.B, p.A}] = p.Bound
		}
	}
	_, d := x.Dims()
	xRow, zRow := make([]float64, d), make([]float64, d)
	columnSums := make([]float64, len(u.Order)) // sums of the omitted pairs, by columns
	for leafA := range tr.LeafCount() {
		for _, i := range tr.Order[tr.Start[leafA]:tr.Start[leafA+1]] {
			x.RowTo(xRow, i)
			rowSum := 0.0
			for leafB := range u.LeafCount() {
				bound, listed := bounds[[2]int{leafA, leafB}]
				for position := u.Start[leafB]; position < u.Start[leafB+1]; position++ {
					x.RowTo(zRow, u.Order[position])
					var distance float64
					for c := range xRow {
						if v := xRow[c] - zRow[c]; metric == SquaredEuclidean {
							distance += v * v
						} else {
							distance += math.Abs(v)
						}
					}
					switch v := k(distance); {
					case listed && v > bound*(1+1e-14), !listed && v >= cutoff:
						t.Fatalf("%s: points of leaves %d and %d have the kernel %v, bound %v", name, leafA, leafB, v,
							bound)
					case !listed:
						rowSum += v
						columnSums[position] += v
					}
				}
			}
			if rowSum > rowBounds[leafA]*(1+1e-12) {
				t.Fatalf("%s: the omitted entries of a row of leaf %d sum to %v, bound %v", name, leafA, rowSum,
					rowBounds[leafA])
			}
		}
	}
	for leafB := range u.LeafCount() {
		for position := u.Start[leafB]; position < u.Start[leafB+1]; position++ {
			if columnSums[position] > columnBounds[leafB]*(1+1e-12) {
				t.Fatalf("%s: the omitted entries of a column of leaf %d sum to %v, bound %v", name, leafB,
					columnSums[position], columnBounds[leafB])
			}
		}
	}
}
