package baseline

import (
	"context"
	"math"
	"sync"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

const (
	crossRows = 128     // rows of K_nm formed at a time
	crossCols = 512     // columns of a tile
	checkRows = 128     // rows of which the error of tiles is measured
	checkFar  = 32      // of which these have the largest norms
	tileError = 0x1p-22 // root mean square of it that is accepted, relative to max k
)

// cross is K_nm, the kernel of n points and m centres, as tiles are formed in some precision. It
// is multiplied by in panels of rows; the sums of tasks are added in their order, so that
// results do not depend on the number of threads.
type cross interface {
	// form forms K_nm to be kept.
	form(ctx context.Context, progress func(stage string, done, total int)) error
	// pass sets u = K_nm·v − y for each point, where v and y may be nil for zero, adds K_nmᵀu to
	// dst unless that is nil, and returns ‖u‖_F². v and dst are t×m, y is t×n.
	pass(ctx context.Context, dst, v, y []float64, t int) (float64, error)
}

// crossOf is a cross of entries of type T.
type crossOf[T float32 | float64] struct {
	n, m     int
	x, c     points.Panel // points and centres
	fill     func(dst []T, ld int, x, z points.Panel, w *kernel.Workspace)
	forward  func(rows, cols int, tile []T, ld int, x []float64, xs int, u []float64, us, t int)
	backward func(rows, cols int, tile []T, ld int, y []float64, ys int, z []float64, zs, t int, w *simd.Workspace)
	keep     bool
	kept     []T // n×m
	tasks    [][2]int
	work     []crossScratch[T]
	part     [][]float64
}

type crossScratch[T float32 | float64] struct {
	kernel kernel.Workspace
	tile   []T
	u      []float64 // t×rows
	simd   simd.Workspace
}

// newCross64 returns K_nm in float64, with inner products or distances formed as arith says.
func newCross64(k kernel.Kernel, x, c points.Points, arith kernel.Arithmetic, keep bool) cross {
	fill := func(dst []float64, ld int, x, z points.Panel, w *kernel.Workspace) {
		kernel.Tile64(dst, ld, k, x, z, arith, w)
	}
	q := &crossOf[float64]{x: points.NewPanel(x), c: points.NewPanel(c), fill: fill, forward: simd.Forward64, backward: simd.Backward64, keep: keep}
	q.deal()
	return q
}

// newCross32 returns K_nm in float32, with inner products or distances in the precision arith.
func newCross32(k kernel.Kernel, x, c points.Points, arith kernel.Arithmetic, keep bool) cross {
	panel := points.NewPanel
	if arith == kernel.Float32 {
		panel = points.NewPanel32
	}
	fill := func(dst []float32, ld int, x, z points.Panel, w *kernel.Workspace) {
		kernel.Tile32(dst, ld, k, x, z, arith, w)
	}
	q := &crossOf[float32]{x: panel(x), c: panel(c), fill: fill, forward: simd.Forward, backward: simd.Backward, keep: keep}
	q.deal()
	return q
}

// deal settles the tasks of a pass, the same for any number of threads.
func (q *crossOf[T]) deal() {
	q.n, q.m = q.x.Len(), q.c.Len()
	k := max(1, min(passTasks, q.n/crossRows))
	for i := range k {
		q.tasks = append(q.tasks, [2]int{i * q.n / k, (i + 1) * q.n / k})
	}
	q.work = make([]crossScratch[T], accel.Threads())
}

// panelOf returns how many rows are multiplied together: few enough to stay in a cache for the
// second product where they are read from memory.
func (q *crossOf[T]) panelOf() int {
	if !q.keep {
		return crossRows
	}
	return max(8, min(passEntries/q.m, 96)&^7)
}

// formRows forms rows i0, …, i1-1 in dst, a tile at a time.
func (q *crossOf[T]) formRows(dst []T, i0, i1 int, w *crossScratch[T]) {
	x := q.x.Slice(i0, i1)
	for j0 := 0; j0 < q.m; j0 += crossCols {
		q.fill(dst[j0:], q.m, x, q.c.Slice(j0, min(j0+crossCols, q.m)), &w.kernel)
	}
}

func (q *crossOf[T]) form(ctx context.Context, progress func(stage string, done, total int)) error {
	if !q.keep {
		return nil
	}
	q.kept = make([]T, q.n*q.m)
	var mu sync.Mutex
	done := 0
	return accel.ForEach(ctx, (q.n+crossRows-1)/crossRows, func(worker, b int) {
		i0, i1 := b*crossRows, min((b+1)*crossRows, q.n)
		q.formRows(q.kept[i0*q.m:i1*q.m], i0, i1, &q.work[worker])
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			done += i1 - i0
			progress("tiles", done, q.n)
		}
	})
}

func (q *crossOf[T]) pass(ctx context.Context, dst, v, y []float64, t int) (float64, error) {
	for len(q.part) < len(q.tasks) {
		q.part = append(q.part, nil)
	}
	sums := make([]float64, len(q.tasks))
	panel := q.panelOf()
	err := accel.ForEach(ctx, len(q.tasks), func(worker, task int) {
		w := &q.work[worker]
		w.u = grow(w.u, t*crossRows)
		q.part[task] = grow(q.part[task], t*q.m)
		clear(q.part[task])
		for i0 := q.tasks[task][0]; i0 < q.tasks[task][1] && ctx.Err() == nil; i0 += panel {
			i1 := min(i0+panel, q.tasks[task][1])
			rows, u := i1-i0, w.u[:t*(i1-i0)]
			tile := q.tile(w, i0, i1)
			clear(u)
			if v != nil {
				q.forward(rows, q.m, tile, q.m, v, q.m, u, rows, t) // u = K_p v
			}
			for c := 0; c < t && y != nil; c++ {
				for r := range rows {
					u[c*rows+r] -= y[c*q.n+i0+r] // u ← u − y
				}
			}
			sums[task] += sumSquares(u)
			if dst != nil {
				q.backward(rows, q.m, tile, q.m, q.part[task], q.m, u, rows, t, &w.simd) // K_pᵀu
			}
		}
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, err
	}
	var sum float64
	for task := range q.tasks {
		sum += sums[task]
		for k := range dst {
			dst[k] += q.part[task][k]
		}
	}
	return sum, nil
}

// tile returns rows i0, …, i1-1, kept or formed anew.
func (q *crossOf[T]) tile(w *crossScratch[T], i0, i1 int) []T {
	if q.keep {
		return q.kept[i0*q.m : i1*q.m]
	}
	w.tile = grow(w.tile, crossRows*q.m)
	q.formRows(w.tile, i0, i1, w)
	return w.tile
}

// tilesOf returns K of some points and the centres, k×m, in float64; if single is set, rounded as
// Tile32 forms it.
func tilesOf(ctx context.Context, k kernel.Kernel, x, c points.Points, single bool, arith kernel.Arithmetic) ([]float64, error) {
	rows, _ := x.Dims()
	m, _ := c.Dims()
	panel := points.NewPanel
	if single && arith == kernel.Float32 {
		panel = points.NewPanel32
	}
	px, pc := panel(x), panel(c)
	dst := make([]float64, rows*m)
	err := accel.ForEach(ctx, (m+crossCols-1)/crossCols, func(_, b int) {
		var w kernel.Workspace
		j0, j1 := b*crossCols, min((b+1)*crossCols, m)
		if !single {
			kernel.Tile64(dst[j0:], m, k, px, pc.Slice(j0, j1), arith, &w)
			return
		}
		tile := make([]float32, rows*(j1-j0))
		kernel.Tile32(tile, j1-j0, k, px, pc.Slice(j0, j1), arith, &w)
		for q, v := range tile {
			dst[q/(j1-j0)*m+j0+q%(j1-j0)] = float64(v)
		}
	})
	return dst, err
}

// rmsDifference returns the root mean square of a−b.
func rmsDifference(a, b []float64) float64 {
	var sum float64
	for k, v := range a {
		sum += (v - b[k]) * (v - b[k])
	}
	return math.Sqrt(sum / float64(len(a)))
}
