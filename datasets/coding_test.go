package datasets

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
)

// TestDecodeTies: the first of equal decision values wins, and zero stands for the first of two
// classes.
func TestDecodeTies(t *testing.T) {
	three := Coding{Labels: []string{"a", "b", "c"}}
	f := mat.NewDense(5, 3, []float64{
		1, 1, 0,
		0, 1, 1,
		0, 0, 0,
		-1, -2, -1,
		-3, -2, -2,
	})
	if got := three.Decode(f); !slices.Equal(got, []int{0, 1, 0, 0, 1}) {
		t.Errorf("ties of three classes: %v", got)
	}
	two := Coding{Labels: []string{"a", "b"}}
	zero := math.Copysign(0, -1)
	if got := two.Decode(mat.NewDense(4, 1, []float64{0, zero, 5e-324, -5e-324})); !slices.Equal(got,
		[]int{0, 0, 1, 0}) {
		t.Errorf("the sign of zero: %v", got)
	}
}

// TestEncodeLarge: a target that is not finite, or whose square overflows, is named.
func TestEncodeLarge(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), -1e308} {
		d := &Dataset{Name: "made", X: points.NewDense(3, 1, nil), Target: []float64{1, 2, v}}
		fails(t, errOf((Coding{}).Encode(d)), "made: the target of row 2 (counted from 0) is")
	}
}
