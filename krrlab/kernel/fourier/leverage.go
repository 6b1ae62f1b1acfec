package fourier

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// leverageParts is the number of parts in which the tensor of leverages is summed, at most one thread for each. It is
// constant, so that the bits do not depend on the number of threads.
const leverageParts = 4

// LeverageBytes returns the memory, in bytes, that each call of Leverages takes for n points and t columns of β.
func LeverageBytes(n, t int) int64 { return 8 * int64(n) * int64(t+1) }

// Leverages calls visit, for one point x_i after the other, with values = row i of Φβ and h = h(x_i) =
// φ(x_i)ᵀ(ΦᵀWΦ+λI)⁻¹φ(x_i), in one pass. λh(x) is the posterior variance, without noise, of a Gaussian process with the
// covariance K̃ = ΦΦᵀ and the noise variance λ. If x_i is a point of the fit with weight w_i, W = diag(w), then
// w_i·h(x_i) is its leverage, 1 − λ((W^½K̃W^½+λI)⁻¹)_ii.
//
// h is a trigonometric polynomial of twice the frequencies, so that a pass costs as much as the moments. With M modes,
// the first call takes M³ multiply-adds and the memory of 3M² numbers. Each call takes LeverageBytes. If β is nil,
// values is empty. The function visit must not keep values. Leverages returns an error if ΦᵀΦ+λI was not factored, or
// on several ranks.
func (f *Factor) Leverages(ctx context.Context, x points.Points, beta *mat.Dense,
	visit func(i int, values []float64, h float64)) error {
	if f.series.options.Comm.Size() > 1 {
		return errors.New("leverages take one process")
	}
	if f.lower == nil {
		return fmt.Errorf("leverages take a Cholesky factor, and %d modes are more than the %d that are factored",
			f.series.Modes(), f.series.options.DirectModes)
	}
	s := f.series
	if f.leverage == nil {
		var err error
		if f.leverage, err = f.leverageTensor(ctx); err != nil {
			f.leverage = nil
			return err
		}
	}
	evaluated := []tensor{s.newTensor(2)}
	evaluated[0].data = f.leverage
	if beta != nil {
		evaluated = append(evaluated, s.coefficients(beta)...)
	}
	n, _ := x.Dims()
	all := mat.NewDense(n, len(evaluated), nil)
	err := s.pass(ctx, x, 2, evaluated, nil, func(i int, values, _ []float64) { all.SetRow(i, values) })
	for i := 0; i < n && err == nil; i++ {
		row := all.RawRowView(i)
		visit(i, row[1:], row[0])
	}
	return err
}

// leverageTensor returns the coefficients of φ(x)ᵀ(ΦᵀΦ+λI)⁻¹φ(x), as a tensor with twice the frequencies of the series.
// The products of two modes are written as sums, as for the entries of ΦᵀΦ.
func (f *Factor) leverageTensor(ctx context.Context) ([]float64, error) {
	s, size := f.series, len(f.series.modes)
	r := mat.DenseCopyOf(f.lower).RawMatrix() // L, which Dtrtri replaces by R = L⁻¹
	for i := range size {
		clear(r.Data[i*size+i+1 : (i+1)*size])
	}
	accel.Dtrtri(size, r.Data, size)

	// Form the lower triangle of the inverse (ΦᵀΦ+λI)⁻¹ = RᵀR, with one thread for each strip of rows.
	inverse := mat.NewDense(size, size, nil)
	strips := (size + pieceRows - 1) / pieceRows
	accel.Each(strips, func(_, k int) {
		i := k * pieceRows
		below := submatrix(r, i, size-i, 0, size) // the rows above do not contribute to this strip
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, submatrix(below, 0, size, i, pieceRows),
			submatrix(below, 0, size, 0, i+pieceRows), 0, submatrix(inverse.RawMatrix(), i, pieceRows, 0, i+pieceRows))
	})

	widths := newMomentWidths(s)
	parts := make([][]float64, leverageParts)
	err := accel.ForEach(ctx, leverageParts, func(_, index int) {
		tensor := s.newTensor(2).data
		for p := index; p < size; p += leverageParts {
			for k, v := range inverse.RawRowView(p)[:p+1] {
				if v *= s.modes[p].root * s.modes[k].root; k < p { // the inverse is symmetric
					v *= 2
				}
				terms, count := widths.terms(&s.modes[p], &s.modes[k], v)
				for _, t := range terms[:count] {
					tensor[t.index] += t.coefficient
				}
			}
		}
		parts[index] = tensor
	})
	if err != nil {
		return nil, err
	}
	for _, tensor := range parts[1:] {
		for k, v := range tensor {
			parts[0][k] += v
		}
	}
	return parts[0], nil
}
