package points

import (
	"math"
	"slices"
	"testing"
)

// TestFirstEqual checks that FirstEqual finds the first point with the same numbers, in any storage format, and that
// CountRepeated counts the others.
func TestFirstEqual(t *testing.T) {
	nan, zero := math.NaN(), math.Copysign(0, -1)
	dense := NewDense(6, 3, []float64{1, 2, 0, 1, 2, 1e-300, 1, 2, zero, nan, 2, 0, 2, 1, 0, nan, 2, 0})
	bytes := NewBytes(3, 3, 1, []byte{1, 2, 0, 0, 1, 2, 2, 1, 0})
	csr := &CSR{N: 3, D: 3, Ptr: []int{0, 3, 5, 5}, Col: []int32{0, 1, 2, 1, 2}, Val: []float64{1, 2, 0, 1, 2}}
	dense32 := NewDense32(2, 3, []float32{2, 1, 0, 0, 0, 0})
	empty := NewDense(0, 3, nil)
	wide := NewDense(1, 4, []float64{1, 2, 0, 0})
	for _, c := range []struct {
		sets []Points
		want []int
	}{
		{[]Points{dense}, []int{0, 1, 0, 3, 4, 3}},
		{[]Points{dense, empty, bytes, empty, csr, dense32}, []int{0, 1, 0, 3, 4, 3, 0, 7, 4, 0, 7, 11, 4, 11}},
		{[]Points{dense.Slice(2, 4), wide}, []int{0, 1, 2}},
		{[]Points{empty}, nil},
	} {
		got := FirstEqual(c.sets...)
		if !slices.Equal(got, c.want) {
			t.Errorf("FirstEqual is %v, want %v", got, c.want)
		}
	}
	if n := CountRepeated([]int{0, 1, 0, 3, 3, 3}); n != 3 {
		t.Errorf("CountRepeated is %d, want 3", n)
	}
}
