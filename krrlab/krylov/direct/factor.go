package direct

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// factor is a matrix that is first K+λI and then L, in the lower triangle of one n×n array.
type factor interface {
	form(ctx context.Context, s *state) error // computes K + λI
	cholesky() bool                           // computes L with LLᵀ = K + λI, in place; false if that fails
	solve(r *mat.Dense)                       // r ← (LLᵀ)⁻¹r
	badPivot() int                            // returns the index, from 1, of the pivot that failed, or 0 if unknown
}

// tileSize is the number of rows and columns of a tile. Larger tiles need more scratch memory for each worker.
const tileSize = 512

// forEachTile calls body for the tiles of the lower triangle. A tile consists of rows i0, …, i1-1 and columns j0, …,
// j1-1, with j0 ≤ i0.
func forEachTile(ctx context.Context, n int, progress func(completed, total int),
	body func(worker, i0, i1, j0, j1 int)) error {
	var tiles [][2]int
	for i0 := 0; i0 < n; i0 += tileSize {
		for j0 := 0; j0 <= i0; j0 += tileSize {
			tiles = append(tiles, [2]int{i0, j0})
		}
	}
	count := accel.ProgressCounter(len(tiles), progress)
	return accel.ForEach(ctx, len(tiles), func(worker, tile int) {
		i0, j0 := tiles[tile][0], tiles[tile][1]
		body(worker, i0, min(i0+tileSize, n), j0, min(j0+tileSize, n))
		count(1)
	})
}

// factorOf is a factor with entries of type T. The inner products or distances of its tiles are computed in float64, so
// its only errors are from rounding K and from the factorization.
type factorOf[T float32 | float64] struct {
	n, t  int
	tile  func(dst []T, ld int, k kernel.Kernel, x, z points.Panel, arith kernel.Arithmetic, w *kernel.Workspace)
	potrf func(n int, a []T, ld int) bool
	a     []T // n×n, row-major
}

// form implements factor. It copies the matrix for true residuals if gram stores that matrix, and otherwise forms the
// tiles.
func (f *factorOf[T]) form(ctx context.Context, s *state) error {
	n := f.n
	f.a = make([]T, n*n)
	work := make([]kernel.Workspace, accel.Threads())
	if s.exact.Storage() == gram.Float64 {
		return f.copyStored(ctx, s)
	}
	err := forEachTile(ctx, n, s.opt.Progress, func(worker, i0, i1, j0, j1 int) {
		f.tile(f.a[i0*n+j0:], n, s.k, s.panel.Slice(i0, i1), s.panel.Slice(j0, j1), s.arith, &work[worker]) // K_ij
	})
	for i, diagonal := range s.exact.Diag() {
		f.a[i*n+i] = T(diagonal + s.lambda) // k(x_i, x_i) + λ
	}
	return err
}

// copyStored sets the lower triangle to K + λI, from the stored matrix s.exact. It copies columns of K, which are also
// its rows.
func (f *factorOf[T]) copyStored(ctx context.Context, s *state) error {
	for start := 0; start < f.n; start += tileSize {
		indices := make([]int, min(tileSize, f.n-start))
		for i := range indices {
			indices[i] = start + i
		}
		columns := mat.NewDense(f.n, len(indices), nil)
		if err := s.exact.Columns(ctx, indices, columns); err != nil {
			return err
		}
		for column, i := range indices {
			for j := range i + 1 {
				f.a[i*f.n+j] = T(columns.At(j, column))
			}
			f.a[i*f.n+i] += T(s.lambda)
		}
	}
	return nil
}

// cholesky implements factor.
func (f *factorOf[T]) cholesky() bool { return f.potrf(f.n, f.a, f.n) }

// These constants are the block sizes of the triangular solves; larger blocks are more efficient and leave threads
// idle. L⁻¹r is computed in blocks of blockRows rows: first the products with the entries of L left of the diagonal
// block are subtracted, in strips of stripRows rows for each worker, and then the diagonal block is solved. L⁻ᵀr solves
// the diagonal block first, and then subtracts its products from the rows above, in strips of stripColumns columns of
// L.
const (
	blockRows    = 96
	stripRows    = 24
	stripColumns = 256
)

// solve implements factor. It reads L once for L⁻¹r and once for L⁻ᵀ(L⁻¹r), whatever the number of columns. The columns
// of r are copied to v one after the other. Solved rows have the opposite sign in v, so that simd.AddProduct
// and simd.AddTransposeProduct, which add products, subtract them.
func (f *factorOf[T]) solve(r *mat.Dense) {
	n, t := f.n, f.t
	v := make([]float64, n*t)
	for j := range t {
		mat.Col(v[j*n:(j+1)*n], j, r)
	}
	work := make([]simd.Workspace, accel.Threads())
	for start := 0; start < n; start += blockRows {
		rows := min(blockRows, n-start)
		forEachStrip(rows, stripRows, func(_, i, end int) {
			simd.AddProduct(f.a[(start+i)*n:], n, blas64.General{Rows: t, Cols: start, Stride: n, Data: v},
				blas64.General{Rows: t, Cols: end - i, Stride: n, Data: v[start+i:]})
		})
		f.solveDiagonalBlock(blas.NoTrans, start, rows, v)
	}
	floats.Scale(-1, v) // L⁻¹r

	for start := (n - 1) / blockRows * blockRows; start >= 0; start -= blockRows {
		rows := min(blockRows, n-start)
		f.solveDiagonalBlock(blas.Trans, start, rows, v)
		forEachStrip(start, stripColumns, func(worker, j, end int) {
			simd.AddTransposeProduct(f.a[start*n+j:], n, blas64.General{Rows: t, Cols: end - j, Stride: n, Data: v[j:]},
				blas64.General{Rows: t, Cols: rows, Stride: n, Data: v[start:]}, &work[worker])
		})
	}
	floats.Scale(-1, v) // L⁻ᵀL⁻¹r
	for j := range t {
		r.SetCol(j, v[j*n:(j+1)*n])
	}
}

// forEachStrip is accel.ForEachBlock without a context, because a solve is short.
func forEachStrip(n, strip int, body func(worker, lo, hi int)) {
	_ = accel.ForEachBlock(context.Background(), n, strip, body)
}

// solveDiagonalBlock solves with the diagonal block of L that starts at row lo, and stores the negative result.
func (f *factorOf[T]) solveDiagonalBlock(trans blas.Transpose, start, rows int, v []float64) {
	block, rhs := make([]float64, rows*rows), make([]float64, rows*f.t)
	for i := range rows {
		for j, entry := range f.a[(start+i)*f.n+start : (start+i)*f.n+start+i+1] {
			block[i*rows+j] = float64(entry)
		}
		for j := range f.t {
			rhs[i*f.t+j] = v[j*f.n+start+i]
		}
	}
	forEachStrip(1, 1, func(int, int, int) { // one thread, so that the bits do not depend on the number of threads
		triangle := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: rows, Stride: rows, Data: block}
		blas64.Trsm(blas.Left, trans, 1, triangle, blas64.General{Rows: rows, Cols: f.t, Stride: f.t, Data: rhs})
	})
	for i := range rows {
		for j := range f.t {
			v[j*f.n+start+i] = -rhs[i*f.t+j]
		}
	}
}

// badPivot implements factor.
func (f *factorOf[T]) badPivot() int {
	for i := range f.n {
		if !(f.a[i*f.n+i] > 0) {
			return i + 1
		}
	}
	return 0
}
