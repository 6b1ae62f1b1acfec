package precond_test

import (
	"context"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond"
)

// doubled is the matrix 2ZZᵀ.
type doubled struct{ *precond.OuterProduct }

func (k doubled) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	err := k.OuterProduct.KMulTo(ctx, dst, src)
	dst.Scale(2, dst)
	return err
}

// TestOuterProduct checks that the products with ZZᵀ have the same bits whether OuterProduct comes from M or from
// NewOuterProduct, and that SubtractFrom gives K−ZZᵀ.
func TestOuterProduct(t *testing.T) {
	const n, s = 1300, 600 // more than one block of columns, and a short unit of rows
	z, _ := decayingFeatures(5, n, s, 0.999)
	src := normalMatrix(6, n, 3)
	product := func(outerProduct *precond.OuterProduct, err error) *mat.Dense {
		t.Helper()
		dst := mat.NewDense(n, 3, nil)
		if err == nil {
			err = outerProduct.KMulTo(t.Context(), dst, src)
		}
		testkit.OK(t, err)
		return dst
	}
	want := product(precond.NewOuterProduct(t.Context(), nil, z))
	if got := product(buildForm(t, z, 0.1, precond.FormL).OuterProduct(), nil); !mat.Equal(got, want) {
		t.Error("ZZᵀ of M has other bits")
	}
	outerProduct := testkit.Must(precond.NewOuterProduct(t.Context(), nil, z))
	d, got := outerProduct.SubtractFrom(doubled{outerProduct}), mat.NewDense(n, 3, nil) // 2ZZᵀ−ZZᵀ
	if err := d.MulTo(t.Context(), got, src); err != nil || d.Dim() != n || !mat.EqualApprox(got, want, 1e-12) {
		t.Errorf("of order %d, not K−ZZᵀ: %v", d.Dim(), err)
	}
}
