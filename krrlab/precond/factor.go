package precond

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// lower returns rows and columns i0, …, i0+n-1 of the factor L as a triangular matrix.
func (w *Woodbury) lower(i0, n int) blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: w.s, Data: w.factor[i0*w.s+i0:]}
}

// factorize overwrites ZᵀZ by the Cholesky factor L of C = ZᵀZ+λ_pI = LLᵀ, and sets w.logDet. The upper triangle of an
// L that is not shared is set to zero. If ranks share the factor, the factorization fails on all of them or on none.
func (w *Woodbury) factorize(ctx context.Context, gram gramian) error {
	gram.Diagonal(func(v *float64) { *v += w.lambdaP }) // C = ZᵀZ + λ_pI
	row, pivot, err := gram.Potrf()                     // C = LLᵀ
	if err == nil && row < w.s {
		err = w.notDefinite(row, pivot, gram.trace)
	}
	for i := 0; i < w.s && w.factor != nil; i++ {
		clear(w.factor[i*w.s+i+1 : (i+1)*w.s])
	}
	// The logarithms are added in fixed point, so that their sum does not depend on the number of ranks. The sum is
	// bounded by 1500s, because |ln v| < 750 for every positive float64 v.
	sum, fixedPoint := []int64{0}, comm.NewFixedPoint(1500*float64(w.s))
	gram.Diagonal(func(v *float64) { fixedPoint.Add(sum, []float64{2 * math.Log(*v)}) })
	if err == nil && gram.Size > 1 {
		err = w.distribution.comm.AllReduceInt64(ctx, sum)
	}
	w.logDet = fixedPoint.Value(sum[0]) // ln det C, with an error of at most 1500s²·2⁻⁶¹
	return err
}

// notDefinite returns an error for a factorization that failed at the given row, counted from 0, with the pivot found
// there. The trace is that of ZᵀZ.
func (w *Woodbury) notDefinite(row int, pivot, trace float64) error {
	return fmt.Errorf("precond: ZᵀZ+λ_pI is not positive definite in float64: pivot %d of %d, %.3g, is not positive, "+
		"at λ_p = %.3g and tr ZᵀZ = %.3g; take λ_p above s·2⁻⁵²·tr ZᵀZ = %.3g, fewer features, or the eigen form",
		row+1, w.s, pivot, w.lambdaP, trace, float64(w.s)*0x1p-52*trace)
}

// invert overwrites L, stored in w.factor, by L⁻¹, and sets w.linv and w.statDim.
func (w *Woodbury) invert() error {
	if !accel.Dtrtri(w.s, w.factor, w.s) {
		return fmt.Errorf("precond: the Cholesky factor of ZᵀZ+λ_pI is singular at λ_p = %g", w.lambdaP)
	}
	w.linv = newLinv(w.s)
	w.linv.stride = w.s
	for block := range w.linv.rows {
		c0 := block * colBlock
		w.linv.rows[block], w.linv.columns[block] = w.factor[c0*w.s:], w.factor[c0*w.s+c0:]
	}
	var sqNorm float64 // ‖L⁻¹‖_F²
	for i := range w.s {
		sqNorm += sumSquares(w.factor[i*w.s : i*w.s+i+1])
	}
	w.statDim = float64(w.s) - w.lambdaP*sqNorm
	return nil
}

// statDimFromL returns the statistical dimension s − λ_p‖L⁻¹‖_F² = tr(C⁻¹ZᵀZ). It solves LX = E for blocks E of columns
// of the identity. Column j of L⁻¹ is zero above row j, so the solves start at row j.
func (w *Woodbury) statDimFromL() float64 {
	const width = 128
	sums := make([]float64, (w.s+width-1)/width) // ‖X‖_F² of each block
	_ = accel.ForEachBlock(context.Background(), w.s, width, func(_, j, end int) {
		rows, cols := w.s-j, end-j
		x := make([]float64, rows*cols)
		for i := range cols {
			x[i*cols+i] = 1
		}
		blas64.Trsm(blas.Left, blas.NoTrans, 1, w.lower(j, rows),
			blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: x})
		sums[j/width] = sumSquares(x)
	})
	return float64(w.s) - w.lambdaP*floats.Sum(sums)
}

// computeU computes this rank's rows of Uᵀ = ZL⁻ᵀ, n×s, by panels of rows. It sets w.uT and w.statDim, and releases L
// and Z.
func (w *Woodbury) computeU(ctx context.Context) error {
	distribution := w.distribution
	panelSqNorms := make([]int64, distribution.panels())
	fixedPoint := comm.NewFixedPoint(1.01 * float64(min(w.n, w.s))) // ‖U‖_F² ≤ min(n, s), and rounding errors
	uT := make([]float64, distribution.count*w.s)
	err := accel.ForEach(ctx, distribution.panels(), func(_, panel int) {
		i0, i1 := distribution.panelRange(panel)
		if i0 >= i1 {
			return
		}
		for i := i0; i < i1; i++ {
			w.z.RowTo(uT[i*w.s:(i+1)*w.s], i)
		}
		rows := blas64.General{Rows: i1 - i0, Cols: w.s, Stride: w.s, Data: uT[i0*w.s:]}
		blas64.Trsm(blas.Right, blas.Trans, 1, w.lower(0, w.s), rows) // Uᵀ = ZL⁻ᵀ
		fixedPoint.Add(panelSqNorms[panel:panel+1], []float64{sumSquares(uT[i0*w.s : i1*w.s])})
	})
	if err = comm.Agree(ctx, distribution.comm, err); err != nil {
		return err
	}
	sqNorm := []int64{0}
	for _, v := range panelSqNorms {
		sqNorm[0] += v
	}
	if err := distribution.comm.AllReduceInt64(ctx, sqNorm); err != nil {
		return err
	}
	w.statDim = fixedPoint.Value(sqNorm[0]) // ‖U‖_F²
	for j := range distribution.scale {
		distribution.scale[j] = 1 // |U_ij| ≤ ‖U‖₂ < 1, see rowDistribution.scale
	}
	w.uT, w.z, w.factor = uT, nil, nil
	return nil
}

// eigendecompose overwrites ZᵀZ = VΣ²Vᵀ by its eigenvectors V, and sets w.sigma2, w.statDim and w.logDet.
func (w *Woodbury) eigendecompose(ctx context.Context) (err error) {
	w.sigma2, err = accel.Eigen(ctx, lapack.EVCompute,
		blas64.Symmetric{Uplo: blas.Lower, N: w.s, Stride: w.s, Data: w.factor})
	if err != nil {
		return fmt.Errorf("precond: ZᵀZ: %w", err)
	}
	for k, v := range w.sigma2 {
		w.sigma2[k] = max(v, 0) // rounding may make an eigenvalue negative
	}
	w.setFromEigenvalues()
	return nil
}

// setFromEigenvalues sets w.statDim, the statistical dimension Σ_i σ_i²/(σ_i²+λ_p), and w.logDet = ln det C.
func (w *Woodbury) setFromEigenvalues() {
	w.statDim, w.logDet = 0, 0
	for _, v := range w.sigma2 {
		w.statDim += v / (v + w.lambdaP)
		w.logDet += math.Log(v + w.lambdaP)
	}
}

// Eigenvalues returns the eigenvalues σ_i² of ZᵀZ in ascending order, or nil if the form is not FormEigen.
func (w *Woodbury) Eigenvalues() []float64 { return slices.Clone(w.sigma2) }

// WithLambda returns ZZᵀ+λ_pI for another λ_p, at a cost of O(s). The result shares Z and the eigenvectors with w.
// WithLambda returns an error if the form is not FormEigen, or if λ_p is not positive and finite.
func (w *Woodbury) WithLambda(lambdaP float64) (*Woodbury, error) {
	if err := cmp.Or(w.requireEigen(), checkRidge(lambdaP)); err != nil {
		return nil, err
	}
	changed := &Woodbury{n: w.n, s: w.s, lambdaP: lambdaP, form: w.form, distribution: w.distribution, z: w.z,
		factor: w.factor, sigma2: w.sigma2, trace: w.trace, seconds: w.seconds}
	changed.setFromEigenvalues()
	return changed, nil
}

// sumSquares returns Σ x_i². It adds the sums of blocks of 1,024 numbers, for accuracy.
func sumSquares(x []float64) (sum float64) {
	for block := range slices.Chunk(x, 1024) {
		sum += floats.Dot(block, block)
	}
	return sum
}
