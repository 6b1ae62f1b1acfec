package direct

import (
	"context"
	"math"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
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
	blocks := (n + tileSize - 1) / tileSize
	total := blocks * (blocks + 1) / 2
	var mu sync.Mutex
	done := 0
	return accel.ForEach(ctx, total, func(worker, q int) {
		i := int((math.Sqrt(8*float64(q)+1) - 1) / 2) // q = i(i+1)/2 + j
		for i*(i+1)/2 > q {
			i--
		}
		for (i+1)*(i+2)/2 <= q {
			i++
		}
		j := q - i*(i+1)/2
		body(worker, i*tileSize, min((i+1)*tileSize, n), j*tileSize, min((j+1)*tileSize, n))
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, total)
		}
	})
}

// byColumns calls body for the columns 0, …, t-1, a few at a time, on the pool of
// workers: the same ones for any number of threads.
func byColumns(t int, body func(j0, j1 int)) {
	const width = 4
	_ = accel.ForEach(context.Background(), (t+width-1)/width, func(_, b int) {
		body(b*width, min((b+1)*width, t))
	})
}

// factorOf is a factor in T, to which right-hand sides are rounded. The inner products or distances of
// its tiles are formed in float64, so that its error is that of rounding K and of the factorization only.
type factorOf[T float32 | float64] struct {
	n, t    int
	tile    func(dst []T, ld int, k kernel.Kernel, x, z points.Panel, arith kernel.Arithmetic, w *kernel.Workspace)
	potrf   func(n int, a []T, ld int) bool
	solveIn func(l []T, n int, b []T, ld, cols int) // the first cols columns of b, n×ld
	a       []T
	r       []T // n×t
}

func (f *factorOf[T]) form(ctx context.Context, d *state) error {
	n := f.n
	f.a, f.r = make([]T, n*n), make([]T, n*f.t)
	work := make([]kernel.Workspace, accel.Threads())
	err := eachTile(ctx, n, d.opt.Progress, func(worker, i0, i1, j0, j1 int) {
		f.tile(f.a[i0*n+j0:], n, d.k, d.p.Slice(i0, i1), d.p.Slice(j0, j1), d.arith, &work[worker]) // K_ij
	})
	for i, v := range d.exact.Diag() {
		f.a[i*n+i] = T(v + d.lambda) // k(x_i, x_i) + λ
	}
	return err
}

func (f *factorOf[T]) cholesky() bool { return f.potrf(f.n, f.a, f.n) }

// solve scales each column by a power of two, so that float32 neither under- nor
// overflows, and back.
func (f *factorOf[T]) solve(r *mat.Dense) {
	raw := r.RawMatrix()
	scale := make([]float64, f.t)
	for j := range scale {
		_, e := math.Frexp(mat.Norm(r.ColView(j), math.Inf(1)))
		scale[j] = math.Ldexp(1, max(-1000, min(e, 1000)))
	}
	for i := range f.n {
		for j, s := range scale {
			f.r[i*f.t+j] = T(raw.Data[i*raw.Stride+j] / s)
		}
	}
	byColumns(f.t, func(j0, j1 int) { f.solveIn(f.a, f.n, f.r[j0:], f.t, j1-j0) })
	for i := range f.n {
		for j, s := range scale {
			raw.Data[i*raw.Stride+j] = float64(f.r[i*f.t+j]) * s
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

func solve64(l []float64, n int, b []float64, ld, cols int) {
	tri := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: l}
	r := blas64.General{Rows: n, Cols: cols, Stride: ld, Data: b}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, tri, r) // r ← L⁻¹r
	blas64.Trsm(blas.Left, blas.Trans, 1, tri, r)   // r ← L⁻ᵀr
}

func solve32(l []float32, n int, b []float32, ld, cols int) {
	tri := blas32.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: l}
	r := blas32.General{Rows: n, Cols: cols, Stride: ld, Data: b}
	blas32.Trsm(blas.Left, blas.NoTrans, 1, tri, r)
	blas32.Trsm(blas.Left, blas.Trans, 1, tri, r)
}
