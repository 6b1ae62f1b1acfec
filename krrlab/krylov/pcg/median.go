package pcg

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// MedianByNorm chooses, for every column, one of the R = len(xs) candidates, n×t each, and returns the matrix of the
// chosen columns. It chooses the candidate i for which entry number ⌊R/2⌋, counted from 0, of the sorted list
//
//	‖x_i − x_1‖_A, …, ‖x_i − x_R‖_A   (including ‖x_i − x_i‖_A = 0)
//
// is smallest, and the first such i on a tie. If more than R/2 of the candidates are within ε of the solution in the
// A-norm, the chosen one is within 3ε. Proof: the entry is at most 2ε if candidate i is within ε. If the entry of any i
// is at most 2ε, then one of the candidates within 2ε of x_i is within ε of the solution. Differences that are not
// finite count as infinite.
//
// Source: the remark on the failure probability δ after theorem 6 of Avron, Clarkson and Woodruff (2017). Work: R−1
// products with A of t columns, and R²nt multiplications. Memory: 2(R−1)nt numbers. MedianByNorm panics if there is no
// candidate or shapes differ; it returns the errors of a.
func MedianByNorm(ctx context.Context, a Operator, xs []*mat.Dense) (*mat.Dense, error) {
	if len(xs) == 0 {
		panic("pcg: MedianByNorm of no candidates")
	}
	chosen := mat.DenseCopyOf(xs[0])
	n, t := chosen.Dims()
	// x_i − x_j = d_i − d_j with d_i = x_i − x_0: the products Ad_i have rounding errors
	// in proportion to the differences, not to the solutions.
	d, ad := make([]*mat.Dense, len(xs)), make([]*mat.Dense, len(xs)) // d_i and Ad_i
	for i, x := range xs {
		d[i], ad[i] = mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
		if i == 0 {
			continue
		}
		d[i].Sub(x, xs[0])
		if err := a.MulTo(ctx, ad[i], d[i]); err != nil {
			return nil, err
		}
	}
	squares := make([]float64, len(xs)) // ‖x_i−x_j‖²_A of column c for one i and all j
	for c := range t {
		smallest := math.Inf(1)
		for i, x := range xs {
			for j := range squares {
				var sum float64
				for k := range n {
					sum += (d[i].At(k, c) - d[j].At(k, c)) * (ad[i].At(k, c) - ad[j].At(k, c))
				}
				if squares[j] = sum; !finite(sum) {
					squares[j] = math.Inf(1)
				}
			}
			slices.Sort(squares)
			if median := squares[len(xs)/2]; median < smallest {
				smallest = median
				chosen.SetCol(c, mat.Col(nil, c, x))
			}
		}
	}
	return chosen, nil
}
