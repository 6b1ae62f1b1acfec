package fourier

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
)

// pieceRows and pieceCols are the size of the pieces into which the results of products and solves are cut. Each piece
// is computed on one thread, so that the bits do not depend on the number of threads, as they would with the threads of
// a BLAS library. Larger pieces are faster, but leave threads without work.
const pieceRows, pieceCols = 96, 192

// matrix returns the rows×cols matrix whose entries are data, row by row, without a copy.
func matrix(rows, cols int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// zeroMatrix returns a rows×cols matrix of zeros.
func zeroMatrix(rows, cols int) blas64.General { return matrix(rows, cols, make([]float64, rows*cols)) }

// submatrix returns at most the given numbers of rows from row i on and of columns from column j on, without a copy.
func submatrix(a blas64.General, i, rows, j, cols int) blas64.General {
	a.Data, a.Rows, a.Cols = a.Data[i*a.Stride+j:], min(rows, a.Rows-i), min(cols, a.Cols-j)
	return a
}

// multiply sets C = op(A)op(B) + βC, in pieces. op(A) is A, or Aᵀ for blas.Trans.
func multiply(transposeA, transposeB blas.Transpose, a, b blas64.General, beta float64, c blas64.General) {
	strip := func(a blas64.General, rows bool, begin, count int) blas64.General {
		if rows {
			return submatrix(a, begin, count, 0, a.Cols)
		}
		return submatrix(a, 0, a.Rows, begin, count)
	}
	across := (c.Cols + pieceCols - 1) / pieceCols
	accel.Each((c.Rows+pieceRows-1)/pieceRows*across, func(_, k int) {
		i, j := k/across*pieceRows, k%across*pieceCols
		blas64.Gemm(transposeA, transposeB, 1, strip(a, transposeA == blas.NoTrans, i, pieceRows),
			strip(b, transposeB == blas.Trans, j, pieceCols), beta, submatrix(c, i, pieceRows, j, pieceCols))
	})
}

// triangle returns the lower triangle of L as a BLAS argument, without a copy.
func triangle(l *mat.Dense) blas64.Triangular {
	raw := l.RawMatrix()
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: raw.Rows, Stride: raw.Stride, Data: raw.Data}
}

// solveLower replaces B by (LLᵀ)⁻¹B, on one thread for each pieceCols columns of B.
func solveLower(l, b *mat.Dense) {
	lower, all := triangle(l), b.RawMatrix()
	accel.Each((all.Cols+pieceCols-1)/pieceCols, func(_, k int) {
		columns := submatrix(all, 0, all.Rows, k*pieceCols, pieceCols)
		blas64.Trsm(blas.Left, blas.NoTrans, 1, lower, columns)
		blas64.Trsm(blas.Left, blas.Trans, 1, lower, columns)
	})
}

// Draw returns L⁻ᵀΞ, M×count, for ΦᵀΦ+λI = LLᵀ and standard normal Ξ from g. Its columns are independent normal vectors
// with the covariance (ΦᵀΦ+λI)⁻¹. Draw panics if ΦᵀΦ+λI was not factored.
func (f *Factor) Draw(count int, g rng.Stream) *mat.Dense {
	xi := mat.NewDense(len(f.series.modes), count, nil)
	all := xi.RawMatrix()
	g.Normals(all.Data, 0)
	accel.Each((count+pieceCols-1)/pieceCols, func(_, k int) {
		blas64.Trsm(blas.Left, blas.Trans, 1, triangle(f.lower), submatrix(all, 0, all.Rows, k*pieceCols, pieceCols))
	})
	return xi
}

// StatDim returns the statistical dimension s_λ(K̃) = tr K̃(K̃+λI)⁻¹ = M − λ‖L⁻¹‖_F², or NaN if ΦᵀΦ + λI was not
// factored. On several ranks only the first has a factor, and the others get NaN. StatDim copies and inverts L, in
// about M³/3 operations.
func (f *Factor) StatDim(ctx context.Context) (float64, error) {
	if f.lower == nil {
		return math.NaN(), nil
	}
	inverse := mat.DenseCopyOf(f.lower).RawMatrix() // L, which Dtrtri replaces by L⁻¹
	accel.Dtrtri(inverse.Rows, inverse.Data, inverse.Stride)
	sums := make([]float64, inverse.Rows)
	err := accel.ForEach(ctx, inverse.Rows, func(_, i int) {
		for _, v := range inverse.Data[i*inverse.Stride : i*inverse.Stride+i+1] {
			sums[i] += v * v
		}
	})
	trace := 0.0
	for _, v := range sums {
		trace += v
	}
	return float64(inverse.Rows) - f.lambda*trace, err
}
