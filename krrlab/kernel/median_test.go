package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestMedianDistance compares MedianDistance with medians worked out by hand.
func TestMedianDistance(t *testing.T) {
	x := points.NewDense(4, 2, []float64{0, 0, 3, 4, 6, 8, 0, 1})
	// ‖·‖₂: 5, 10, 1, 5, √18, √85; ‖·‖₁: 7, 14, 1, 7, 6, 13.
	testkit.Equal(t, kernel.MedianDistance(x, false), 5)
	testkit.Equal(t, kernel.MedianDistance(x, true), 7)
	testkit.Equal(t, kernel.MedianDistance(x.Slice(0, 1), false), 0)
	testkit.Equal(t, kernel.MedianDistance(points.NewDense(5, 1, []float64{1, 1, 1, 1, 4}), false), 3)
	testkit.Equal(t, kernel.MedianDistance(points.NewDense(3, 1, []float64{2, 2, 2}), true), 0)
	wide := &points.CSR{N: 3, D: math.MaxInt32, Ptr: []int{0, 1, 2, 3}, Col: []int32{0, 5, math.MaxInt32 - 1},
		Val: []float64{3, 4, 0}}
	testkit.Equal(t, kernel.MedianDistance(wide, false), 4)
}

// TestMedianOfMany checks that the median of more than 1,000 points comes from a sample that the order of the points
// does not bias, and that it is the same for dense and sparse points.
func TestMedianOfMany(t *testing.T) {
	const n = 5000
	x := points.NewDense(n, 3, nil)
	for i := range n { // sorted: the first 1,000 are near each other
		row := x.Row(i)
		row[0], row[2] = float64(i)/n, float64(i*i%7)/100
	}
	sparse := testkit.ToCSR(x)
	for _, l1 := range []bool{false, true} {
		var distances []float64
		for i := 0; i < n; i += 7 {
			for j := 0; j < i; j += 7 {
				first, last := math.Abs(x.Row(i)[0]-x.Row(j)[0]), math.Abs(x.Row(i)[2]-x.Row(j)[2])
				if l1 {
					distances = append(distances, first+last)
				} else {
					distances = append(distances, math.Hypot(first, last))
				}
			}
		}
		slices.Sort(distances)
		want := distances[len(distances)/2] // slightly above 1 − √½ = 0.29, the median of the first coordinate
		median, sparseMedian := kernel.MedianDistance(x, l1), kernel.MedianDistance(sparse, l1)
		// The tolerances are for the error of the sample and for rounding.
		if math.Abs(median/want-1) > 0.1 || math.Abs(sparseMedian/median-1) > 1e-14 {
			t.Errorf("median %g, of sparse points %g, want about %g", median, sparseMedian, want)
		}
	}
}
