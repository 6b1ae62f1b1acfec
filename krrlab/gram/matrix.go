package gram

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Matrix is K+λI for n points. Its methods may be called by several goroutines
// at once where there are no ranks; each product under way has its own scratch, 12nt or
// 24nt bytes and two blocks a worker.
type Matrix struct {
	k      kernel.Kernel
	x      points.Points
	lambda float64
	diag   []float64 // k(x_i, x_i)
	tiling *tiling
	frame  frame
	choice Choice
	ops    operations
	comm   comm.Comm

	mu      sync.Mutex
	traffic comm.Traffic // of products
}

// operations is what a Matrix asks of its engine, whatever the type of its tiles.
type operations interface {
	formAll(ctx context.Context, progress func(done, total int)) error
	mul(ctx context.Context, dst, src blas64.General, lambda float64) error
	columns(ctx context.Context, dst *mat.Dense, idx []int) error
	dense(ctx context.Context, dst *mat.Dense) error
	tileBytes() int64
}

// New forms the kernel matrix of x, K_ij = k(x_i, x_j), and returns K+λI.
//
// It returns an error if k is not valid, if x has no points or values too large
// to square, if λ is negative or not a number, if k overflows, a *MemoryError if
// the storage asked for does not fit o.Memory (Auto: if not even recomputing
// fits), and ctx's error when ctx is done. A nil o means the defaults.
func New(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, o *Options) (*Matrix, error) {
	if err := kernel.Validate(k); err != nil {
		return nil, err
	}
	n, d := x.Dims()
	if n == 0 {
		return nil, fmt.Errorf("gram: no points")
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("gram: λ = %v, want a number ≥ 0", lambda)
	}
	opt := o.settled(n, lambda)
	fr, err := newFrame(k, x)
	if err != nil {
		return nil, err
	}
	m := &Matrix{k: k, x: x, lambda: lambda, diag: kernel.Diag(k, x), frame: fr, comm: opt.Comm}
	m.tiling = newTiling(n, opt.TileSize, share{m.comm.Rank(), m.comm.Size()})
	for i, v := range m.diag {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("gram: kernel %v of point %d with itself is %v", k, i, v)
		}
	}
	m.choice, err = m.agree(ctx, &opt, d)
	if err != nil {
		return nil, err
	}
	m.build()
	if err := comm.Agree(ctx, m.comm, m.ops.formAll(ctx, opt.Progress)); err != nil {
		return nil, err
	}
	m.choice.Bytes = m.Bytes()
	return m, nil
}

// build makes the engine that m.choice asks for, with no tile formed.
func (m *Matrix) build() {
	c := &m.choice
	view := m.frame.view(c.Centred)
	p := points.NewPanel(view)
	if c.Arithmetic == kernel.Float32 {
		p = points.NewPanel32(view)
	}
	panels := make([]points.Panel, m.tiling.blocks)
	for b := range panels {
		panels[b] = p.Slice(m.tiling.block(b))
	}
	own, peak, name := isOwn(m.k), m.peak(), m.k.String()
	switch {
	case c.Storage == Float64:
		g := grid[float64]{m.tiling, m.k, view, panels, m.diag, kernel.Tile64}
		m.ops = &engine[float64]{tiling: m.tiling, comm: m.comm, peak: peak, name: name, src: &kept[float64]{g, make([][]float64, len(m.tiling.order)), own}, mulTile: tileMul64}
	case c.Storage == Recompute && c.Arithmetic == kernel.Float64:
		g := grid[float64]{m.tiling, m.k, view, panels, m.diag, kernel.Tile64}
		m.ops = &engine[float64]{tiling: m.tiling, comm: m.comm, peak: peak, name: name, src: &recomputed[float64]{g}, mulTile: tileMul64}
	default:
		arith := c.Arithmetic
		g := grid[float32]{m.tiling, m.k, view, panels, m.diag, func(dst []float32, ld int, k kernel.Kernel, x, z points.Panel, w *kernel.Workspace) {
			kernel.Tile32(dst, ld, k, x, z, arith, w)
		}}
		var s source[float32] = &kept[float32]{g, make([][]float32, len(m.tiling.order)), own}
		switch c.Storage {
		case Recompute:
			s = &recomputed[float32]{g}
		case Fixed16:
			s = &packed{g, make([][]uint16, len(m.tiling.order))}
		}
		m.ops = &engine[float32]{tiling: m.tiling, comm: m.comm, peak: peak, name: name, src: s, mulTile: tileMul32}
	}
}

// formAll forms all tiles, in parallel.
func (e *engine[T]) formAll(ctx context.Context, progress func(done, total int)) error {
	if _, ok := e.src.(*recomputed[T]); ok {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := make([]worker[T], accel.Threads())
	var mu sync.Mutex
	done, total := 0, e.held()
	err := accel.ForEach(ctx, total, func(who, q int) {
		if err := e.src.form(&workers[who], e.nth(q)); err != nil {
			cancel(err)
			return
		}
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, total)
		}
	})
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (e *engine[T]) tileBytes() int64 { return e.src.bytes() }

// Dim returns n.
func (m *Matrix) Dim() int { return m.tiling.n }

// Lambda returns λ.
func (m *Matrix) Lambda() float64 { return m.lambda }

// Storage returns the storage in use, never Auto.
func (m *Matrix) Storage() Storage { return m.choice.Storage }

// Choice returns how and why the storage and the arithmetic were chosen.
func (m *Matrix) Choice() Choice {
	c := m.choice
	c.Tried = slices.Clone(c.Tried)
	return c
}

// Bytes returns the memory that the matrix holds: its tiles, diagonal, norms and
// tables. The points are the caller's and not counted.
func (m *Matrix) Bytes() int64 {
	return m.ops.tileBytes() + tableBytes(m.tiling)
}

// tableBytes is the size of the diagonal, the norms and the tables of tiles.
func tableBytes(t *tiling) int64 { return tablesOf(int64(t.n), int64(len(t.order)), int64(t.blocks)) }

func tablesOf(n, tiles, blocks int64) int64 {
	const refBytes, sliceBytes, panelBytes = 8, 24, 80
	return 16*n + (refBytes+sliceBytes)*tiles + panelBytes*blocks
}

// Points returns x.
func (m *Matrix) Points() points.Points { return m.x }

// Kernel returns k.
func (m *Matrix) Kernel() kernel.Kernel { return m.k }

// Diag returns a copy of the diagonal of K, without λ, in float64.
func (m *Matrix) Diag() []float64 { return slices.Clone(m.diag) }

// Trace returns tr K = Σ_i k(x_i, x_i), without λ.
func (m *Matrix) Trace() float64 {
	var s float64
	for _, v := range m.diag {
		s += v
	}
	return s
}

// MulTo sets dst = (K+λI)·src for n×t matrices, with one pass over K for all t
// columns. dst may be src, but must not overlap it otherwise. The result has the
// same bits for any number of threads and of ranks. MulTo panics if the shapes do not fit; it
// returns ctx's error when ctx is done, with dst undefined.
func (m *Matrix) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.mulTo(ctx, dst, src, m.lambda)
}

// KMulTo is MulTo without λ: dst = K·src.
func (m *Matrix) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.mulTo(ctx, dst, src, 0)
}

func (m *Matrix) mulTo(ctx context.Context, dst, src *mat.Dense, lambda float64) error {
	n, t := src.Dims()
	if dn, dt := dst.Dims(); n != m.tiling.n || dn != n || dt != t {
		panic(fmt.Sprintf("gram: product of a %d×%d matrix with %d×%d into %d×%d", m.tiling.n, m.tiling.n, n, t, dn, dt))
	}
	return m.counted(func() error { return m.ops.mul(ctx, dst.RawMatrix(), src.RawMatrix(), lambda) })
}

// Exact returns the same matrix recomputed tile by tile in float64 for every
// product: what true residuals are taken with. Its Choice has the ‖E‖₂ of float64, which is
// above rounding where groups of points are far apart beside σ. It holds no K; a product
// costs n²d flops (n²d/2 multiply-adds) and the kernel values.
func (m *Matrix) Exact() *Matrix {
	e := &Matrix{k: m.k, x: m.x, lambda: m.lambda, diag: m.diag, tiling: m.tiling, frame: m.frame, comm: m.comm}
	e.choice = Choice{
		N: m.choice.N, Tile: m.choice.Tile, Storage: Recompute, Arithmetic: kernel.Float64, Centred: m.frame.far,
		Accuracy: m.choice.Accuracy, Error: m.choice.floor, floor: m.choice.floor, Reason: "exact",
	}
	e.build()
	e.choice.Bytes = e.Bytes()
	return e
}
