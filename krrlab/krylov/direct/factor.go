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

// factor is K+λI, and then L, in one n×n array of which the lower triangle counts.
type factor interface {
	form(ctx context.Context, d *state) error // K + λI
	cholesky() bool                           // L, LLᵀ = K + λI, in place
	solve(r *mat.Dense)                       // r ← (LLᵀ)⁻¹r
	badPivot() int                            // after a failure: its number from 1, 0 if unknown
}

const tileSize = 512

// eachTile calls body for the tiles of the lower triangle: rows i0, …, i1-1 and columns
// j0, …, j1-1, j0 ≤ i0.
func eachTile(ctx context.Context, n int, progress func(done, total int), body func(worker, i0, i1, j0, j1 int)) error {
	var tiles [][2]int
	for i := 0; i < n; i += tileSize {
		for j := 0; j <= i; j += tileSize {
			tiles = append(tiles, [2]int{i, j})
		}
	}
	more := accel.Counter(len(tiles), progress)
	return accel.ForEach(ctx, len(tiles), func(worker, q int) {
		i, j := tiles[q][0], tiles[q][1]
		body(worker, i, min(i+tileSize, n), j, min(j+tileSize, n))
		more(1)
	})
}

// factorOf is a factor in T. The inner products or distances of its tiles are formed in float64, so that its error is
// that of rounding K and of the factorization only.
type factorOf[T float32 | float64] struct {
	n, t  int
	tile  func(dst []T, ld int, k kernel.Kernel, x, z points.Panel, arith kernel.Arithmetic, w *kernel.Workspace)
	potrf func(n int, a []T, ld int) bool
	a     []T
}

func (f *factorOf[T]) form(ctx context.Context, d *state) error {
	n := f.n
	f.a = make([]T, n*n)
	work := make([]kernel.Workspace, accel.Threads())
	if d.exact.Storage() == gram.Float64 {
		return f.take(ctx, d)
	}
	err := eachTile(ctx, n, d.opt.Progress, func(worker, i0, i1, j0, j1 int) {
		f.tile(f.a[i0*n+j0:], n, d.k, d.p.Slice(i0, i1), d.p.Slice(j0, j1), d.arith, &work[worker]) // K_ij
	})
	for i, v := range d.exact.Diag() {
		f.a[i*n+i] = T(v + d.lambda) // k(x_i, x_i) + λ
	}
	return err
}

// take takes the entries that residuals are taken with, by columns, which are rows.
func (f *factorOf[T]) take(ctx context.Context, d *state) error {
	for lo := 0; lo < f.n; lo += tileSize {
		idx := make([]int, min(tileSize, f.n-lo))
		for i := range idx {
			idx[i] = lo + i
		}
		columns := mat.NewDense(f.n, len(idx), nil)
		if err := d.exact.Columns(ctx, idx, columns); err != nil {
			return err
		}
		for k, i := range idx {
			for j := range i + 1 {
				f.a[i*f.n+j] = T(columns.At(j, k))
			}
			f.a[i*f.n+i] += T(d.lambda)
		}
	}
	return nil
}

func (f *factorOf[T]) cholesky() bool { return f.potrf(f.n, f.a, f.n) }

// The blocks of a triangular solve: blockRows rows of L are solved by themselves after what is left of them, stripRows
// by each worker, or, of Lᵀ, before what is above them, stripColumns by each.
const (
	blockRows    = 96
	stripRows    = 24
	stripColumns = 256
)

// solve reads L once for L⁻¹r and once for L⁻ᵀ of it, whatever the number of columns. v has the columns of r one after
// the other, and of rows that are solved their negatives.
func (f *factorOf[T]) solve(r *mat.Dense) {
	n, t := f.n, f.t
	v := make([]float64, n*t)
	for j := range t {
		mat.Col(v[j*n:(j+1)*n], j, r)
	}
	work := make([]simd.Workspace, accel.Threads())
	for lo := 0; lo < n; lo += blockRows {
		rows := min(blockRows, n-lo)
		f.each(rows, stripRows, func(_, i, m int) {
			simd.Forward(m, lo, f.a[(lo+i)*n:], n, v, n, v[lo+i:], n, t)
		})
		f.block(blas.NoTrans, lo, rows, v)
	}
	floats.Scale(-1, v)
	for lo := (n - 1) / blockRows * blockRows; lo >= 0; lo -= blockRows {
		rows := min(blockRows, n-lo)
		f.block(blas.Trans, lo, rows, v)
		f.each(lo, stripColumns, func(who, j, m int) {
			simd.Backward(rows, m, f.a[lo*n+j:], n, v[j:], n, v[lo:], n, t, &work[who])
		})
	}
	floats.Scale(-1, v)
	for j := range t {
		r.SetCol(j, v[j*n:(j+1)*n])
	}
}

// each calls body for strips of 0, …, n-1, from i on m of them.
func (f *factorOf[T]) each(n, strip int, body func(worker, i, m int)) {
	_ = accel.ForEach(context.Background(), (n+strip-1)/strip, func(worker, b int) {
		body(worker, b*strip, min(strip, n-b*strip))
	})
}

// block solves with the rows of L from lo on and the columns of the same numbers.
func (f *factorOf[T]) block(trans blas.Transpose, lo, rows int, v []float64) {
	l, b := make([]float64, rows*rows), make([]float64, rows*f.t)
	for i := range rows {
		for j, x := range f.a[(lo+i)*f.n+lo : (lo+i)*f.n+lo+i+1] {
			l[i*rows+j] = float64(x)
		}
		for j := range f.t {
			b[i*f.t+j] = v[j*f.n+lo+i]
		}
	}
	f.each(1, 1, func(int, int, int) { // on one thread: the same bits for any number of them
		tri := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: rows, Stride: rows, Data: l}
		blas64.Trsm(blas.Left, trans, 1, tri, blas64.General{Rows: rows, Cols: f.t, Stride: f.t, Data: b})
	})
	for i := range rows {
		for j := range f.t {
			v[j*f.n+lo+i] = -b[i*f.t+j]
		}
	}
}

func (f *factorOf[T]) badPivot() int {
	for i := range f.n {
		if !(f.a[i*f.n+i] > 0) {
			return i + 1
		}
	}
	return 0
}
