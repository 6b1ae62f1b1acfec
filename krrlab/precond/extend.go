package precond

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// extendRows is the order of the blocks in which Extend recovers ZᵀZ from the factor.
const extendRows = 128

// Extend returns ZZᵀ+λ_pI for z, whose first rows must be the rows from which w was computed, with the λ_p and the form
// of w. For FormL and FormLInv the cost is ms² + 2s³ flops for m new rows: ZᵀZ of the earlier rows is recovered from
// the factor of w, with a relative error of s·2⁻⁵³ in ZᵀZ+λ_pI, times the condition number of L. For other forms, and
// on several ranks, Extend calls New, at the cost of New. The result has the same bits for any number of threads.
// Extend returns the errors of New, and panics if z has fewer rows than w or another number of columns.
func (w *Woodbury) Extend(ctx context.Context, z *points.Dense32) (*Woodbury, error) {
	if z.N < w.distribution.count || z.D != w.s {
		panic(fmt.Sprintf("precond: %d×%d features extended to %d×%d", w.distribution.count, w.s, z.N, z.D))
	}
	c := w.distribution.comm
	if w.form != FormL && w.form != FormLInv || c.Size() > 1 || z.N == w.n {
		return New(ctx, z, w.lambdaP, &Options{Form: w.form, Fast: true, Comm: c})
	}
	extended, err := newWoodbury(ctx, z, w.lambdaP, &Options{Form: w.form})
	if err != nil {
		return nil, err
	}
	s, factorL := w.s, w.factor
	if w.form == FormLInv {
		if factorL = slices.Clone(factorL); !accel.Dtrtri(s, factorL, s) {
			return nil, fmt.Errorf("precond: the inverse of the Cholesky factor is singular")
		}
	}
	var g Gram
	if err := g.Grow(ctx, c, z.Slice(w.n, z.N).(*points.Dense32)); err != nil {
		return nil, err
	}
	extended.factor = g.TakeShifted(-w.lambdaP)
	err = accel.ForEachBlock(ctx, s, extendRows, func(_, lo, hi int) { // add LLᵀ = ZᵀZ+λ_pI of the rows of w
		for j := 0; j < hi; j += extendRows { // rows j, …, end-1 of L are zero from column end on
			end := min(j+extendRows, hi)
			rows := blas64.General{Rows: hi - lo, Cols: end, Stride: s, Data: factorL[lo*s:]}
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, rows,
				blas64.General{Rows: end - j, Cols: end, Stride: s, Data: factorL[j*s:]}, 1,
				blas64.General{Rows: hi - lo, Cols: end - j, Stride: s, Data: extended.factor[lo*s+j:]})
		}
	})
	if err != nil {
		return nil, err
	}
	return extended, extended.finish(ctx, extended.localGram())
}
