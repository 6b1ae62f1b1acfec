package precond

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// OuterProduct is ZZᵀ as a linear operator, without a factorization.
type OuterProduct struct{ w *Woodbury }

// NewOuterProduct returns ZZᵀ for the features Z, n×s. Each rank of c passes its rows z, which comm.RowRange determines
// in units of RankRows; if c is nil, z has all rows. The result refers to z. All ranks must call its methods together.
func NewOuterProduct(ctx context.Context, c comm.Comm, z *points.Dense32) (*OuterProduct, error) {
	distribution, err := newRowDistribution(ctx, c, z)
	if err != nil {
		return nil, err
	}
	return &OuterProduct{&Woodbury{n: distribution.n, s: z.D, form: FormL, z: z,
		distribution: distribution}}, nil
}

// OuterProduct returns ZZᵀ for M = ZZᵀ+λ_pI. For FormU, which does not store Z, its products return an error.
func (w *Woodbury) OuterProduct() *OuterProduct { return &OuterProduct{w} }

// Dim returns n.
func (o *OuterProduct) Dim() int { return o.w.n }

// KMulTo sets dst = ZZᵀ·src for n×t matrices. It has the name of the product with K, in whose place ZZᵀ may be used.
// See Woodbury.MulTo.
func (o *OuterProduct) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return o.w.mulTo(ctx, dst, src, 0)
}

// kernelMatrix is K, by its products with n×t matrices.
type kernelMatrix interface {
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Difference is the symmetric operator K−ZZᵀ, whose norm the Lanczos process computes.
type Difference struct {
	k       kernelMatrix
	product *OuterProduct
	zzSrc   mat.Dense // scratch: ZZᵀ·src
}

// SubtractFrom returns K−ZZᵀ for a K of the same order. The result is not safe for concurrent use.
func (o *OuterProduct) SubtractFrom(k kernelMatrix) *Difference {
	return &Difference{k: k, product: o}
}

// Dim returns n.
func (d *Difference) Dim() int { return d.product.Dim() }

// MulTo sets dst = K·src − ZZᵀ·src.
func (d *Difference) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	d.zzSrc.Reset()
	d.zzSrc.ReuseAs(src.Dims())
	if err := d.product.KMulTo(ctx, &d.zzSrc, src); err != nil {
		return err
	}
	if err := d.k.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	dst.Sub(dst, &d.zzSrc)
	return nil
}
