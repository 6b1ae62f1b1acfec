package fourier

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// triangle returns the lower triangle of L as BLAS takes it.
func triangle(l *mat.Dense) blas64.Triangular {
	r := l.RawMatrix()
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: r.Rows, Stride: r.Stride, Data: r.Data}
}

// solveLower replaces B by (LLᵀ)⁻¹B.
func solveLower(l, b *mat.Dense) {
	t := triangle(l)
	blas64.Trsm(blas.Left, blas.NoTrans, 1, t, b.RawMatrix())
	blas64.Trsm(blas.Left, blas.Trans, 1, t, b.RawMatrix())
}

// StatDim returns s_λ(K̃) = tr K̃(K̃+λI)⁻¹ = M − λ‖L⁻¹‖_F², or NaN if ΦᵀΦ + λI was not factored. It copies and inverts
// L: about a third of M³ operations.
func (f *Factor) StatDim(ctx context.Context) (float64, error) {
	if f.lower == nil {
		return math.NaN(), nil
	}
	r := mat.DenseCopyOf(f.lower).RawMatrix()
	accel.Dtrtri(r.Rows, r.Data, r.Stride)
	sums := make([]float64, r.Rows)
	err := accel.ForEach(ctx, r.Rows, func(_, i int) {
		for _, v := range r.Data[i*r.Stride : i*r.Stride+i+1] {
			sums[i] += v * v
		}
	})
	trace := 0.0
	for _, v := range sums {
		trace += v
	}
	return float64(r.Rows) - f.lambda*trace, err
}
