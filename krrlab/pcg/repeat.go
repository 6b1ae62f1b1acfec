package pcg

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// MedianByNorm returns the matrix whose column j is that of the candidate
// MedianIndex chooses.
func MedianByNorm(ctx context.Context, a Operator, xs []*mat.Dense) (*mat.Dense, error) {
	chosen, err := MedianIndex(ctx, a, xs)
	if err != nil {
		return nil, err
	}
	return pick(xs, chosen), nil
}

// MedianIndex chooses for every column one of the R = len(xs) candidates, n×t each:
// the i for which the entry number ⌊R/2⌋, counted from 0, of the sorted list
//
//	‖x_i − x_1‖_A, …, ‖x_i − x_R‖_A   (‖x_i − x_i‖_A = 0 among them)
//
// is least, the first such i on a tie. If more than R/2 of the candidates are within
// ε of the solution in the A-norm, the choice is within 3ε: that entry is at most 2ε
// for a good i, and any i for which it is has a good candidate within 2ε of it.
// Differences that are not finite count as infinite.
//
// Source: the remark on δ after theorem 6 of the paper. Work: R−1 products with A of
// t columns, and R²nt multiplications. Memory: 2(R−1)nt numbers. MedianIndex panics
// if there is no candidate or shapes differ; it returns the errors of a.
func MedianIndex(ctx context.Context, a Operator, xs []*mat.Dense) ([]int, error) {
	if len(xs) == 0 {
		panic("pcg: MedianIndex of no candidates")
	}
	n, t := xs[0].Dims()
	for _, x := range xs {
		if xn, xt := x.Dims(); xn != n || xt != t || a.Dim() != n {
			panic(fmt.Sprintf("pcg: candidates of %d×%d and %d×%d for A of order %d", n, t, xn, xt, a.Dim()))
		}
	}
	r := len(xs)
	chosen := make([]int, t)
	if r == 1 {
		return chosen, nil
	}
	// x_i − x_j = d_i − d_j with d_i = x_i − x_0: the products Ad_i have rounding errors
	// in proportion to the differences, not to the solutions.
	d, ad := make([]*mat.Dense, r), make([]*mat.Dense, r)
	for i := range xs {
		d[i], ad[i] = mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
		if i == 0 {
			continue
		}
		d[i].Sub(xs[i], xs[0])
		if err := a.MulTo(ctx, ad[i], d[i]); err != nil {
			return nil, err
		}
	}
	dist := make([][]float64, r*r) // dist[i*r+j][c] = ‖x_i−x_j‖²_A of column c
	for i := range r {
		for j := range i {
			v := energy(d[i], d[j], ad[i], ad[j])
			dist[i*r+j], dist[j*r+i] = v, v
		}
		dist[i*r+i] = make([]float64, t)
	}
	list := make([]float64, r)
	for c := range chosen {
		least := math.Inf(1)
		for i := range r {
			for j := range list {
				list[j] = dist[i*r+j][c]
			}
			slices.Sort(list)
			if m := list[r/2]; m < least {
				least, chosen[c] = m, i
			}
		}
	}
	return chosen, nil
}

// energy returns (x_j−y_j)ᵀ(Ax_j−Ay_j) for every column j.
func energy(x, y, ax, ay *mat.Dense) []float64 {
	n, t := x.Dims()
	xd, yd, axd, ayd := x.RawMatrix().Data, y.RawMatrix().Data, ax.RawMatrix().Data, ay.RawMatrix().Data
	sum := make([]float64, t)
	for i := range n {
		for c := range sum {
			k := i*t + c
			sum[c] += (xd[k] - yd[k]) * (axd[k] - ayd[k])
		}
	}
	for c, v := range sum {
		if !finite(v) {
			sum[c] = math.Inf(1)
		}
	}
	return sum
}

// pick returns the matrix with column c of xs[chosen[c]].
func pick(xs []*mat.Dense, chosen []int) *mat.Dense {
	n, t := xs[0].Dims()
	x := mat.NewDense(n, t, nil)
	for c, i := range chosen {
		for row := range n {
			x.Set(row, c, xs[i].At(row, c))
		}
	}
	return x
}
