package precond_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestOuterOf: ZZᵀ of rows that are filled in has the bits of one whose Z is held, and M's products without λ_p.
func TestOuterOf(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
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
	fill := func(dst []float32, i, j int) { copy(dst, z.Data[i*s:j*s]) }
	for _, threads := range []int{1, 3} {
		accel.SetThreads(threads)
		if got := product(precond.NewOuterOf(t.Context(), nil, n, s, fill)); !mat.Equal(got, want) {
			t.Errorf("%d threads: other bits", threads)
		}
	}
	if got := product(build(t, z, 0.1, precond.FormL).Outer(), nil); !mat.Equal(got, want) {
		t.Error("ZZᵀ of M has other bits")
	}
	nan := float32(0)
	nan /= nan
	for name, bad := range map[string]func(dst []float32, i, j int){
		"Z has NaN in row 1200, feature 7": func(dst []float32, i, j int) {
			if fill(dst, i, j); i <= 1200 && 1200 < j {
				dst[(1200-i)*s+7] = nan
			}
		},
		"another one when it is filled in again": func() func(dst []float32, i, j int) {
			calls := 0
			return func(dst []float32, i, j int) {
				if calls++; calls == 1 {
					dst[0] = nan
				}
			}
		}(),
	} {
		accel.SetThreads(1)
		testkit.Fails(t, testkit.ErrOf(precond.NewOuterOf(t.Context(), nil, n, s, bad)), name)
	}
}
