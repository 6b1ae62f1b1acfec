package precond

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
)

// Outer is ZZᵀ as an operator, with nothing factored.
type Outer struct{ w *Woodbury }

// NewOuter returns ZZᵀ for the features Z, n×s, of which each rank of c has the rows z that
// comm.Rows deals it in units of RankRows; nil is for all rows in one process. z is kept. All
// ranks call its methods together.
func NewOuter(ctx context.Context, c comm.Comm, z *points.Dense32) (*Outer, error) {
	k, err := newRows(ctx, c, z)
	if err != nil {
		return nil, err
	}
	return &Outer{&Woodbury{n: k.n, s: z.D, form: FormL, z: z, rows: k}}, nil
}

// Dim returns n.
func (o *Outer) Dim() int { return o.w.n }

// KMulTo sets dst = ZZᵀ·src for n×t matrices, as the method ZZMulTo of a Woodbury.
func (o *Outer) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return o.w.ZZMulTo(ctx, dst, src)
}
