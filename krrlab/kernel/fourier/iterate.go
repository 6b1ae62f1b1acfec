package fourier

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// maxIterations is the largest number of iterations of conjugate gradients for one column.
const maxIterations = 5000

// weightPreconditioner is a block diagonal approximation P of ΦᵀΦ + λI. It equals ΦᵀΦ + λI on the modes of largest
// weight, which come first, and is diagonal on the others.
type weightPreconditioner struct {
	factor   *mat.Dense // Cholesky factor of the block of the first modes
	diagonal []float64  // diagonal of P, for points spread evenly over the periods
}

// newWeightPreconditioner returns the preconditioner of normal + λI. It returns an error if the block is not positive
// definite in float64.
func newWeightPreconditioner(ctx context.Context, normal *NormalMatrix, lambda float64) (*weightPreconditioner, error) {
	s := normal.series
	count := s.exactModes(normal.n, lambda) // the modes are in order of their weights
	p := &weightPreconditioner{diagonal: make([]float64, len(s.modes))}
	block := &NormalMatrix{series: &Series{axes: s.axes, modes: s.modes[:count]}, moments: normal.moments}
	var err error
	if p.factor, err = block.cholesky(ctx, lambda); err != nil {
		return nil, err
	}
	total := normal.moments[0] // Σ w_i: the moment of frequency 0
	for k := range p.diagonal {
		p.diagonal[k] = total*s.modes[k].weight/math.Pow(2, float64(s.modes[k].oscillatingAxes(s))) + lambda
	}
	return p, nil
}

// oscillatingAxes returns the number k of axes along which a mode is not constant. The mean square of the mode without
// its weight is 2^−k.
func (m *mode) oscillatingAxes(s *Series) (axes int) {
	for a := range s.axes {
		if m.index[a] != 0 {
			axes++
		}
	}
	return axes
}

// solve sets dst = P⁻¹r.
func (p *weightPreconditioner) solve(dst, r []float64) {
	for k, d := range p.diagonal {
		dst[k] = r[k] / d
	}
	block := blas64.Vector{N: p.factor.RawMatrix().Rows, Inc: 1, Data: dst}
	copy(dst[:block.N], r)
	blas64.Trsv(blas.NoTrans, triangle(p.factor), block) // for a single column Trsm would copy the factor
	blas64.Trsv(blas.Trans, triangle(p.factor), block)
}

// iterate replaces the right-hand sides b by the solutions of (ΦᵀΦ + λI)β = b, by preconditioned conjugate gradients
// (Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.1), one column after the other. A column
// ends at a relative residual of tol, or without an error after maxIterations. iterations is the largest number over
// the columns.
func (f *Factor) iterate(ctx context.Context, b *mat.Dense, tol float64) (iterations int, err error) {
	size, columns := b.Dims()
	for j := range columns {
		beta, residual := make([]float64, size), mat.Col(nil, j, b)
		z, direction, product := make([]float64, size), make([]float64, size), make([]float64, size)
		initialNorm := floats.Norm(residual, 2)
		f.precond.solve(z, residual)
		copy(direction, z)
		rho := floats.Dot(residual, z)
		count := 0
		for ; count < maxIterations && floats.Norm(residual, 2) > tol*initialNorm; count++ {
			if err := f.normalGrid.multiply(ctx, product, direction, f.lambda); err != nil {
				return count, err
			}
			alpha := rho / floats.Dot(direction, product)
			if !(alpha > 0) {
				return count, errNotDefinite(f.lambda)
			}
			floats.AddScaled(beta, alpha, direction)
			floats.AddScaled(residual, -alpha, product)
			f.precond.solve(z, residual)
			previous := rho
			rho = floats.Dot(residual, z)
			floats.Scale(rho/previous, direction)
			floats.Add(direction, z)
		}
		iterations = max(iterations, count)
		b.SetCol(j, beta)
	}
	return iterations, nil
}
