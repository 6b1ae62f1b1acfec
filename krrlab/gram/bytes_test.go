package gram_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// TestBytesMatrix compares K of points in bytes, far from zero and some close together, with that of the same points in
// float64, whose distances come from differences: the error is what Choice says, float32 is accurate enough
// where it is not of the numbers in float32, and products that are recomputed are certain.
func TestBytesMatrix(t *testing.T) {
	const n, d = 230, 900
	x := points.NewBytes(n, d, 1.0/255, nil)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = uint8(255 - j%2)
		}
		for j := range i % 23 {
			x.Row(i)[(7*i+j)%d] -= uint8(i % 5)
		}
	}
	dense := points.NewDense(n, d, nil)
	x.Panel64To(dense.Data, d)
	k := kernel.Gaussian{Sigma: 0.02}
	const lambda = 1e-3
	m := mustNew(t, k, x, lambda, nil)
	c := m.Choice()
	if c.Storage != gram.Float32 || !c.Whole || c.Error > c.Accuracy || !strings.Contains(c.String(), "points in bytes, products exact in integers") {
		t.Errorf("bytes: %v", c)
	}
	numbers := mustNew(t, k, dense, lambda, &gram.Options{Storage: gram.Float32}).Choice()
	if numbers.Whole || len(numbers.Tried) < 2 {
		t.Errorf("the same numbers in float64: %v", numbers)
	}
	truth := mat.NewDense(n, n, nil)
	exact := mustNew(t, k, dense, lambda, nil).Exact(0) // differences
	if err := exact.DenseTo(t.Context(), truth); err != nil {
		t.Fatal(err)
	}
	for _, s := range []gram.Storage{gram.Float32, gram.Float64, gram.Recompute, gram.Fixed16} {
		lambda := lambda
		if s == gram.Fixed16 {
			lambda = 1
		}
		m := mustNew(t, k, x, lambda, &gram.Options{Storage: s})
		if norm := errorNorm(t, m); !(norm <= m.Choice().Error) {
			t.Errorf("%v: ‖E‖₂ = %g, above %g", s, norm, m.Choice().Error)
		}
		ones := mat.NewDense(n, 1, nil)
		for i := range n {
			ones.Set(i, 0, 1-2*float64(i%2))
		}
		certain, want, out := m.Exact(1e-300), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		if err := certain.MulTo(t.Context(), out, ones); err != nil {
			t.Fatal(err)
		}
		want.Mul(truth, ones)
		for i := range n {
			want.Set(i, 0, want.At(i, 0)+lambda*ones.At(i, 0))
		}
		want.Sub(want, out)
		bound := certain.Rounding(ones)[0]
		if off := mat.Norm(want, 2); off > bound || bound > 1e-9 || !certain.Choice().Whole || certain.Choice().Arithmetic != kernel.Float64 {
			t.Errorf("%v: a product is off by %g, %g is certain; %v", s, off, bound, certain.Choice())
		}
		if v := m.Exact(0).EntryError(); !(v < 1e-14) || math.IsInf(v, 0) {
			t.Errorf("%v: entries are right to %g", s, v)
		}
	}
}
