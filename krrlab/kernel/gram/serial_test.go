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

// TestTilingMemoryAndIndex checks that each of 1,024 ranks needs at most 40 bytes for each of its tiles, for ten
// million points, although all ranks together have 190 million tiles, and that a tile is found at its position. It
// tests the first, a middle and the last rank.
func TestTilingMemoryAndIndex(t *testing.T) {
	const n, ranks = 10_000_000, 1024
	for _, rank := range []int{0, 700, ranks - 1} {
		var tiles *tiling
		bytes := testkit.AllocatedBytes(func() {
			tiles = newTiling(n, 512, cyclicDistribution{rank, ranks})
			tiles.assignTiles()
		})
		ownTiles := int64(len(tiles.order))
		allTiles := int64(tiles.blocks) * int64(tiles.blocks+1) / 2
		if ownTiles != (allTiles-int64(rank)+ranks-1)/ranks {
			t.Fatalf("rank %d has %d of %d tiles", rank, ownTiles, allTiles)
		}
		if bytes += ownTiles * int64(unsafe.Sizeof([]float32{})); bytes > 40*ownTiles {
			t.Errorf("rank %d: %d bytes for %d tiles", rank, bytes, ownTiles)
		}
		for _, k := range []int{0, 1, int(ownTiles) / 2, int(ownTiles) - 1} {
			ref := tiles.order[k]
			position, found := tiles.indexOf(int(ref.i), int(ref.j))
			if !found || position != k || ref.j < 0 || int(ref.i) >= tiles.blocks {
				t.Errorf("rank %d: tile %d is %v, found at %d, %v", rank, k, ref, position, found)
			}
		}
	}
}

// productWithoutTiles returns a product that has no tiles, with its result vector, for n points and t columns. Its
// run makes the passes over the vectors only.
func productWithoutTiles[T entry](n, t int, shift float64) (*product[T], []float64) {
	tiles := newTiling(n, 512, cyclicDistribution{0, 1})
	tiles.assignTiles()
	e := &engine[T]{tiling: tiles, comm: comm.Alone(), shift: shift, rowScale: make([]float64, n)}
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

// TestPassesOverVectors compares the passes over the right-hand sides and the results with plain loops over all rows.
// They must have the same bits on any number of threads, and the sum of a column must have the bits of one loop.
func TestPassesOverVectors(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n, cols, shift = 5000, 3, 0.25
	want := make([]float64, n*cols)
	for _, threads := range []int{1, 2, 5} {
		accel.SetThreads(threads)
		p, y := productWithoutTiles[float32](n, cols, shift)
		testkit.OK(t, p.run(t.Context()))
		for c := range cols {
			var largest, sum float64
			for i := range n {
				largest = max(largest, math.Abs(p.src.Data[i*cols+c]))
			}
			scale := math.Exp2(math.Ceil(math.Log2(largest)))
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
		for index, v := range y {
			if v != want[index] {
				t.Fatalf("%d threads: y_%d = %v, want %v", threads, index, v, want[index])
			}
		}
	}
}
