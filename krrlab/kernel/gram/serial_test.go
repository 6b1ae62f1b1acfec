package gram

import (
	"math"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestTables: a rank of 1,024 holds at most 40 bytes for each of its tiles of ten million points, of which all ranks
// have 190 million.
func TestTables(t *testing.T) {
	const n, ranks = 10_000_000, 1024
	for _, rank := range []int{0, 700, ranks - 1} {
		var tl *tiling
		bytes := testkit.Allocated(func() {
			tl = newTiling(n, 512, rankShare{rank, ranks})
			tl.assignTiles()
		})
		own := int64(len(tl.order))
		if all := int64(tl.blocks) * int64(tl.blocks+1) / 2; own != (all-int64(rank)+ranks-1)/ranks {
			t.Fatalf("rank %d has %d of %d tiles", rank, own, all)
		}
		if bytes += own * int64(unsafe.Sizeof([]float32{})); bytes > 40*own {
			t.Errorf("rank %d: %d bytes for %d tiles", rank, bytes, own)
		}
		for _, q := range []int{0, 1, int(own) / 2, int(own) - 1} {
			r := tl.order[q]
			if at, ok := tl.indexOf(int(r.i), int(r.j)); !ok || at != q || r.j < 0 || int(r.i) >= tl.blocks {
				t.Errorf("rank %d: tile %d is %v, found at %d, %v", rank, q, r, at, ok)
			}
		}
	}
}

// without returns what a product does beside its tiles, for n points and t columns.
func without[T entry](n, t int, shift float64) (*product[T], []float64) {
	tl := newTiling(n, 512, rankShare{0, 1})
	tl.assignTiles()
	e := &engine[T]{tiling: tl, comm: comm.Alone(), shift: shift, rowScale: make([]float64, n)}
	e.order = nil
	for i := range e.rowScale {
		e.rowScale[i] = math.Ldexp(1, i%3-1)
	}
	x, y := make([]float64, n*t), make([]float64, n*t)
	rng.New(4).Normals(x, 0)
	p := e.acquire(t)
	p.src, p.dst = blas64.General{Rows: n, Cols: t, Stride: t, Data: x}, blas64.General{Rows: n, Cols: t, Stride: t,
		Data: y}
	p.lambda = 0.5
	return p, y
}

// TestPasses holds what is made of src and the sums, but for tiles, to plain loops over all rows: the same bits on any
// number of threads, and of the sum of src those of one loop.
func TestPasses(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n, cols, shift = 5000, 3, 0.25
	want := make([]float64, n*cols)
	for _, threads := range []int{1, 2, 5} {
		accel.SetThreads(threads)
		p, y := without[float32](n, cols, shift)
		testkit.OK(t, p.run(t.Context()))
		for c := range cols {
			var top, sum float64
			for i := range n {
				top = max(top, math.Abs(p.src.Data[i*cols+c]))
			}
			scale := math.Exp2(math.Ceil(math.Log2(top)))
			for i := range n {
				sum += p.src.Data[i*cols+c] / scale
			}
			for i := range n {
				v := p.src.Data[i*cols+c]
				want[i*cols+c] = 0.5*v + float64(shift*sum)*scale
				lo, hi := p.e.block(p.e.blockOf(i))
				if got := p.x[lo*cols+c*(hi-lo)+i-lo]; got != float32(v/scale) {
					t.Fatalf("%d threads: x of row %d, column %d is %v, want %v", threads, i, c, got, v/scale)
				}
			}
		}
		for k, v := range y {
			if v != want[k] {
				t.Fatalf("%d threads: y_%d = %v, want %v", threads, k, v, want[k])
			}
		}
	}
}
