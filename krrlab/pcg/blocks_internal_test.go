package pcg

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
)

// TestBlockProducts: XᵀY, XY and Xᵀ of blocks of any numbers of rows and columns are those of package mat, and
// nothing beyond them is read or written.
func TestBlockProducts(t *testing.T) {
	draw := func(n, k int, seed uint64) *mat.Dense {
		x := mat.NewDense(n, k, make([]float64, n*k)[:n*k:n*k])
		rng.New(seed).Normals(x.RawMatrix().Data, 0)
		return x
	}
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 11, rowBlock - 1, rowBlock, rowBlock + 1, 2*rowBlock + 6} {
		for k := 1; k <= 9; k++ {
			x, y := draw(n, k, 1), draw(n, k, 2)
			got, s := slices.Repeat([]float64{math.NaN()}, k*k+1), &solver{n: n, t: k}
			s.cross(got, x, y)
			var want mat.Dense
			want.Mul(x.T(), y)
			if !mat.EqualApprox(mat.NewDense(k, k, got[:k*k]), &want, 1e-12*float64(n)) || !math.IsNaN(got[k*k]) {
				t.Errorf("XᵀY of %d×%d", n, k)
			}
			for l := 1; l <= 5; l++ {
				z := draw(k, l, 3)
				got := slices.Repeat([]float64{math.NaN()}, n*l+1)
				product(got, x.RawMatrix().Data, z.RawMatrix().Data, n, k, l)
				var want mat.Dense
				want.Mul(x, z)
				if !mat.EqualApprox(mat.NewDense(n, l, got[:n*l]), &want, 1e-13*float64(k)) || !math.IsNaN(got[n*l]) {
					t.Errorf("XZ of %d×%d and %d×%d", n, k, k, l)
				}
			}
			for l := 1; l <= k; l++ { // in their place, as narrow or narrower
				f, add := draw(k, l, 4), draw(n, l, 5)
				got := append(slices.Clone(x.RawMatrix().Data), math.NaN())
				s.times(got, k, l, f.RawMatrix().Data, add.RawMatrix().Data)
				var want mat.Dense
				want.Mul(x, f)
				want.Add(&want, add)
				if !mat.EqualApprox(mat.NewDense(n, l, got[:n*l]), &want, 1e-13*float64(k)) || !math.IsNaN(got[n*k]) {
					t.Errorf("A+XF of %d×%d and %d×%d", n, k, k, l)
				}
			}
			back := make([]float64, n*k)
			transpose(back, x.RawMatrix().Data, n, k)
			if !mat.Equal(mat.NewDense(k, n, back), x.T()) {
				t.Errorf("Xᵀ of %d×%d", n, k)
			}
		}
	}
	one := slices.Repeat([]float64{7}, 10)
	if identity(one, 3); !slices.Equal(one, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1, 7}) {
		t.Errorf("I = %v", one)
	}
}
