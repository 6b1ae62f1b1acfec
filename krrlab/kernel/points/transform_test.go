package points

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestTransform compares Transform with a matrix product, for each type of points and matrices that are not square. A
// point alone must have the same bits.
func TestTransform(t *testing.T) {
	a, a32, s := inFormats(3, 9, 4, 0.5)
	for _, x := range []Points{a, a32, s, Shift(a, Mean(a))} {
		for _, rows := range []int{1, 4, 6} {
			l := make([]float64, rows*4)
			for i := range l {
				l[i] = math.Sin(float64(3*i + rows))
			}
			got, dense := Transform(x, l), make([]float64, 9*4)
			RowsTo(x, dense, 4)
			var want mat.Dense
			want.Mul(mat.NewDense(9, 4, dense), mat.NewDense(rows, 4, l).T())
			if !mat.EqualApprox(mat.NewDense(9, rows, got.Data), &want, 1e-14) {
				t.Errorf("%T, %d rows: %v, want %v", x, rows, got.Data, want)
			}
			if alone := Transform(x.Slice(5, 6), l); !slices.Equal(alone.Data, got.Row(5)) {
				t.Errorf("%T: %v alone, %v among others", x, alone.Data, got.Row(5))
			}
		}
	}
}
