package gram_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestColumnsAndSubmatrix compares Columns with DenseTo of the same matrix. The columns are in any order, repeated, one
// or all of them, and part of a wider matrix. Stored matrices must agree bit for bit; a recomputed matrix may sum inner
// products in another order, so it must agree to rounding. Submatrix must agree to rounding for every storage.
func TestColumnsAndSubmatrix(t *testing.T) {
	for _, c := range []struct{ n, tile int }{{53, 8}, {41, 41}, {30, 1}, {130, 0}} {
		for _, x := range pointsInFormats(4, c.n, 12, 1) {
			for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute, gram.Fixed16} {
				m := mustNew(t, kernel.Gaussian{Sigma: 2.5}, x, 0.3, &gram.Options{Storage: storage, TileSize: c.tile})
				dense := mat.NewDense(c.n, c.n, nil)
				testkit.OK(t, m.DenseTo(ctx, dense))
				perm := rand.New(rand.NewPCG(5, uint64(c.n))).Perm(c.n)
				for _, idx := range [][]int{{c.n - 1}, {7, 0, 7, 3, 0}, perm[:c.n/2], perm} {
					bordered := mat.NewDense(c.n+1, len(idx)+2, nil) // its border of −7 must not change
					for i := range c.n + 1 {
						for j := range len(idx) + 2 {
							bordered.Set(i, j, -7)
						}
					}
					dst := bordered.Slice(0, c.n, 1, len(idx)+1).(*mat.Dense)
					testkit.OK(t, m.Columns(ctx, idx, dst))
					var tol float64
					if storage == gram.Recompute {
						tol = tolerance(storage, m.Choice().Arithmetic)
					}
					checkColumns(t, fmt.Sprintf("n=%d tile=%d %T %v, %d columns", c.n, c.tile, x, storage, len(idx)),
						bordered,
						dense, idx, tol)
					rows := slices.Concat(perm[c.n/3:], perm[:1])
					part := mat.NewDense(len(rows), len(idx), nil)
					testkit.OK(t, m.Submatrix(ctx, rows, idx, part.RawMatrix()))
					for a, i := range rows {
						for b, j := range idx {
							deviation := math.Abs(part.At(a, b) - dense.At(i, j))
							if deviation > tolerance(storage, m.Choice().Arithmetic) {
								t.Fatalf("n=%d tile=%d %T %v: entry (%d, %d) of a part has error %g", c.n, c.tile, x,
									storage, i, j, deviation)
							}
						}
					}
				}
			}
		}
	}
}

// TestSubmatrixBits checks that an entry of Submatrix has the bits of the same entry of Columns, for any number of rows
// and also in the last, shorter block.
func TestSubmatrixBits(t *testing.T) {
	const n, d = 270, 40
	x, perm := points.NewDense(n, d, nil), rng.New(2).Perm(n)
	rng.New(1).Normals(x.Data, 0)
	m := mustNew(t, kernel.Gaussian{Sigma: 2}, x, 0.1, nil).Exact(1e-6)
	testkit.EachBLAS(t, func(t *testing.T) {
		for _, cols := range []int{1, 7, 16, 30, 131} {
			columns := mat.NewDense(n, cols, nil)
			testkit.OK(t, m.Columns(ctx, perm[:cols], columns))
			for _, rows := range [][]int{perm[:1], perm[:14], perm[5:35], {n - 1, 3, n - 2}, perm} {
				part := mat.NewDense(len(rows), cols, nil)
				testkit.OK(t, m.Submatrix(ctx, rows, perm[:cols], part.RawMatrix()))
				for a, i := range rows {
					equal := slices.Equal(part.RawRowView(a), columns.RawRowView(i))
					testkit.Equal(t, equal, true, len(rows), cols, i)
				}
			}
		}
	})
}

// checkColumns compares the interior of bordered with the columns idx of dense, and its border with −7.
func checkColumns(t *testing.T, name string, bordered, dense *mat.Dense, idx []int, tol float64) {
	t.Helper()
	rows, cols := bordered.Dims()
	for i := range rows {
		for j := range cols {
			want := -7.0
			if i < rows-1 && j > 0 && j < cols-1 {
				want = dense.At(i, idx[j-1])
			}
			if got := bordered.At(i, j); !(got-want <= tol && want-got <= tol) {
				t.Fatalf("%s: entry (%d, %d) is %v, want %v", name, i, j, got, want)
			}
		}
	}
}
