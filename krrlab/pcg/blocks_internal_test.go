package pcg

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
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

// TestBlockThreads: sums over rows and blocks of rows have the same bits on any number of threads.
func TestBlockThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n, k = 20*rowBlock + 7, 3
	var want []float64
	for _, threads := range []int{1, 2, 3, 8} {
		accel.SetThreads(threads)
		x, y := mat.NewDense(n, k, nil), mat.NewDense(n, k, nil)
		rng.New(1).Normals(x.RawMatrix().Data, 0)
		rng.New(2).Normals(y.RawMatrix().Data, 0)
		s := &solver{n: n, t: k, moved: make([]float64, 3*k), x: y, r: x, p: x, w: y, cols: []int{0, 1, 2},
			alpha: []float64{1, 2, 3}, rr: make([]float64, k), xx: make([]float64, k), dx: make([]float64, k)}
		got := make([]float64, k+k*k)
		s.dots(got, x, y)
		s.cross(got[k:], x, y)
		s.step()
		s.times(y.RawMatrix().Data, k, k, got[k:], x.RawMatrix().Data)
		got = slices.Concat(got, s.rr, s.xx, s.dx, x.RawMatrix().Data, y.RawMatrix().Data)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("other bits on %d threads", threads)
		}
	}
}

// TestTable: rows of zeros that do not overlap, more of them than there was room for.
func TestTable(t *testing.T) {
	h := newTable(3, 2)
	for i := range 2*slabRows + 5 {
		row := h.add()
		if len(row) != 3 || cap(row) != 3 || !slices.Equal(row, make([]float64, 3)) {
			t.Fatalf("row %d is %v", i, row)
		}
		row[0], row[2] = float64(i), -1
	}
	if len(h.rows) != 2*slabRows+5 {
		t.Errorf("%d rows", len(h.rows))
	}
	for i, row := range h.rows {
		if !slices.Equal(row, []float64{float64(i), 0, -1}) {
			t.Errorf("row %d became %v", i, row)
		}
	}
}
