package precond_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/precond"
)

// TestOuter: ZZᵀ has the bits of M's products without λ_p.
func TestOuter(t *testing.T) {
	const n, s = 1300, 600 // more than one block of columns, and a short unit of rows
	z, _ := features(5, n, s, 0.999)
	src := random(6, n, 3)
	product := func(o *precond.Outer, err error) *mat.Dense {
		t.Helper()
		dst := mat.NewDense(n, 3, nil)
		if err == nil {
			err = o.KMulTo(t.Context(), dst, src)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dst
	}
	want := product(precond.NewOuter(t.Context(), nil, z))
	if got := product(build(t, z, 0.1, precond.FormL).Outer(), nil); !mat.Equal(got, want) {
		t.Error("ZZᵀ of M has other bits")
	}
}
