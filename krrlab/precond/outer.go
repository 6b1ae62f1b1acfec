package precond

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
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

// Outer returns ZZᵀ of M = ZZᵀ+λ_pI. FormU keeps no Z, and products return an error.
func (w *Woodbury) Outer() *Outer { return &Outer{w} }

// Dim returns n.
func (o *Outer) Dim() int { return o.w.n }

// KMulTo sets dst = ZZᵀ·src for n×t matrices, as MulTo of a Woodbury.
func (o *Outer) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return o.w.mulTo(ctx, dst, src, 0)
}

// Difference is the symmetric operator K−ZZᵀ, whose norm the Lanczos process finds.
type Difference struct {
	k interface {
		KMulTo(ctx context.Context, dst, src *mat.Dense) error
	}
	z  *Outer
	zz mat.Dense
}

// From returns K−ZZᵀ for a K of the same order. It is for one caller at a time.
func (o *Outer) From(k interface {
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}) *Difference {
	return &Difference{k: k, z: o}
}

// Dim returns n.
func (d *Difference) Dim() int { return d.z.Dim() }

// MulTo sets dst = K·src − ZZᵀ·src.
func (d *Difference) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	d.zz.Reset()
	d.zz.ReuseAs(src.Dims())
	if err := d.z.KMulTo(ctx, &d.zz, src); err != nil {
		return err
	}
	if err := d.k.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	dst.Sub(dst, &d.zz)
	return nil
}
