package precond

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
)

// Outer is ZZᵀ as an operator, with nothing factored.
type Outer struct{ w *Woodbury }

// NewOuter returns ZZᵀ for the features Z, n×s, in the rows of z, which is kept.
func NewOuter(z *points.Dense32) *Outer {
	return &Outer{&Woodbury{n: z.N, s: z.D, form: FormL, src: feature32{z}}}
}

// Dim returns n.
func (o *Outer) Dim() int { return o.w.n }

// KMulTo sets dst = ZZᵀ·src for n×t matrices, as the method ZZMulTo of a Woodbury.
func (o *Outer) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return o.w.ZZMulTo(ctx, dst, src)
}
