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
	for _, c := range []struct {
		v       []float64
		columns int
		want    []float64 // nil if the labels are not recovered
	}{
		{[]float64{0.5, -1.5, 1.5, -0.5, 1, -1}, 1, []float64{1, -1, 1, -1, 1, -1}},
		{[]float64{1, 0.4999}, 1, nil}, {[]float64{1, -0.4999}, 1, nil}, {[]float64{1.5001}, 1, nil},
		{[]float64{-1.5001, 1}, 1, nil}, {[]float64{math.NaN()}, 1, nil},
		{[]float64{1, -1, -1, -1, -1, 1}, 3, []float64{1, -1, -1, -1, -1, 1}},
		{[]float64{1, -1, -1, -1, -1, -1}, 3, nil}, {[]float64{1, -1, -1, -1, 1, 1}, 3, nil},
		{[]float64{1, 1, 1, 1, -1, -1}, 3, nil},
	} {
		if got := recoverLabels(c.v, c.columns); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%v in %d columns: %v, want %v", c.v, c.columns, got, c.want)
		}
	}
}

// TestFirstDifference checks the first row with a different number, or −1. Numbers count as equal if they differ by at
// most a millionth of the larger one, or of 1e-30 if both are smaller.
func TestFirstDifference(t *testing.T) {
	a := points.NewDense(3, 2, []float64{1, 2, 0, -4, 1e-20, 6})
	for _, c := range []struct{ row, col, want int }{{-1, 0, -1}, {0, 0, 0}, {1, 1, 1}, {2, 0, 2}, {2, 1, 2}} {
		for _, change := range []float64{0.9e-6, -0.9e-6, 1.2e-6, -1.2e-6} {
			b := points.NewDense(3, 2, slices.Clone(a.Data))
			want := -1
			if c.row >= 0 {
				b.Row(c.row)[c.col] *= 1 + change
				if math.Abs(change) > 1e-6 {
					want = c.want
				}
			}
			testkit.Equal(t, firstDifference(a, b), want, c, change)
		}
	}
	for v, want := range map[float64]int{0: -1, 0.9e-36: -1, -1.1e-36: 1, 1e-30: 1} { // numbers compared with a zero
		b := points.NewDense(3, 2, slices.Clone(a.Data))
		b.Row(1)[0] = v
		testkit.Equal(t, firstDifference(a, b), want, v)
	}
}
