package verify

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRecoverLabels checks that labels are recovered only if each number is within ½ of ±1, and if each row of several
// columns has exactly one +1.
func TestRecoverLabels(t *testing.T) {
	for _, test := range []struct {
		product    []float64 // entries of the n×columns matrix (K+λI)C by rows, for the coefficients C
		columns    int
		wantLabels []float64 // nil if the labels are not recovered
	}{
		{[]float64{0.5, -1.5, 1.5, -0.5, 1, -1}, 1, []float64{1, -1, 1, -1, 1, -1}},
		{[]float64{1, 0.4999}, 1, nil}, {[]float64{1, -0.4999}, 1, nil}, {[]float64{1.5001}, 1, nil},
		{[]float64{-1.5001, 1}, 1, nil}, {[]float64{math.NaN()}, 1, nil},
		{[]float64{1, -1, -1, -1, -1, 1}, 3, []float64{1, -1, -1, -1, -1, 1}},
		{[]float64{1, -1, -1, -1, -1, -1}, 3, nil}, {[]float64{1, -1, -1, -1, 1, 1}, 3, nil},
		{[]float64{1, 1, 1, 1, -1, -1}, 3, nil},
	} {
		labels := recoverLabels(test.product, test.columns)
		if !slices.Equal(labels, test.wantLabels) || (labels == nil) != (test.wantLabels == nil) {
			t.Errorf("%v in %d columns: %v, want %v", test.product, test.columns, labels, test.wantLabels)
		}
	}
}

// TestFirstDifference checks the index of the first row with a different number, or −1. Numbers count as equal if they
// differ by at most a millionth of the larger one, or by at most 1e-36 if the magnitudes of both are below 1e-30.
func TestFirstDifference(t *testing.T) {
	a := points.NewDense(3, 2, []float64{1, 2, 0, -4, 1e-20, 6})
	for _, position := range []struct{ row, column int }{{-1, 0}, {0, 0}, {1, 1}, {2, 0}, {2, 1}} { // −1: none
		for _, relativeChange := range []float64{0.9e-6, -0.9e-6, 1.2e-6, -1.2e-6} {
			b := points.NewDense(3, 2, slices.Clone(a.Data))
			wantRow := -1
			if position.row >= 0 {
				b.Row(position.row)[position.column] *= 1 + relativeChange
				if math.Abs(relativeChange) > 1e-6 {
					wantRow = position.row
				}
			}
			testkit.Equal(t, firstDifference(a, b), wantRow, position, relativeChange)
		}
	}
	for number, wantRow := range map[float64]int{0: -1, 0.9e-36: -1, -1.1e-36: 1, 1e-30: 1} { // compared with a zero
		b := points.NewDense(3, 2, slices.Clone(a.Data))
		b.Row(1)[0] = number
		testkit.Equal(t, firstDifference(a, b), wantRow, number)
	}
}
