package points

import "gonum.org/v1/gonum/floats"

// Transform returns the points Lx_i as dense float64. The slice l holds the matrix L with d columns, row by row. The
// sums Σ_k L_jk·x_k are taken in the order of k, so that the result for a point does not depend on the other points.
func Transform(x Points, l []float64) *Dense {
	n, d := x.Dims()
	rows := len(l) / d
	columns := make([]float64, len(l)) // L by columns
	for i, v := range l {
		columns[i%d*rows+i/d] = v
	}
	out, row := NewDense(n, rows, nil), make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		for k, v := range row {
			floats.AddScaled(out.Row(i), v, columns[k*rows:(k+1)*rows])
		}
	}
	return out
}
