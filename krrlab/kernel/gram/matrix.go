package gram

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Matrix is K+λI for n points. Its methods may be called by several goroutines
// at once where there are no ranks; each product under way has its own scratch, 12nt or
// 24nt bytes and two blocks a worker.
type Matrix struct {
	k       kernel.Kernel
	x       points.Points // without weights
	factors []float64     // √w_i of points.Weighted; nil without weights
	lambda  float64
	diag    []float64 // k(x_i, x_i)
	sizes   []float64 // kernel.Sizes: diag, where K is known to be positive semi-definite
	tiling  *tiling
	leaves  *tree.Tree // of a tiling that has not all tiles, else nil
	lost    []float64  // of each leaf what a row lacks by tiles that are not formed
	frame   frame
	levels  *kernel.DistanceTable // of points of few distances, else nil
	choice  Choice
	ops     operations
	comm    comm.Comm
}

// New forms the kernel matrix of x, K_ij = k(x_i, x_j), and returns K+λI. Of points.Weighted K is SKS with S =
// diag(√w_i): what is stored are the entries k(x_i, x_j), as without weights, so that storage, tiles and their cost are
// the same, and products, columns and the diagonal are scaled by S. All else that is said of K, such as its error
// bounds, is of SKS.
//
// It returns an error if k is not valid, if x has no points or values too large
// to square, if λ is negative or not a number, if k overflows, a *MemoryError if
// the storage asked for does not fit o.Memory (Auto: if not even recomputing
// fits), and ctx's error when ctx is done. A nil o means the defaults.
func New(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, o *Options) (*Matrix, error) {
	m, opt, err := begin(k, x, lambda, o)
	if err != nil {
		return nil, err
	}
	_, d := x.Dims()
	if c := opt.Chosen; c != nil && c.Bytes > 0 && (opt.Memory == 0 || c.Bytes <= opt.Memory) {
		m.choice = *c
	} else if m.choice, err = m.agree(ctx, &opt, d); err != nil {
		return nil, err
	}
	if err := m.cut(ctx); err != nil {
		return nil, err
	}
	if err := m.form(ctx, &opt); err != nil {
		return nil, err
	}
	m.choice.Bytes = m.Bytes()
	return m, nil
}

// form forms the tiles, and again if more was dropped than expected, of which n entries below Least cannot be the cause
// then. Those of an earlier choice are as they were, also where sums are rounded otherwise.
func (m *Matrix) form(ctx context.Context, o *Options) error {
	m.build()
	if err := comm.Agree(ctx, m.comm, m.ops.formAll(ctx, o.Progress)); err != nil {
		return err
	}
	within, err := m.settleDropped(ctx)
	c := m.choice.Sparse
	if err != nil || within || o.SameAs != nil || c.Least <= c.Far {
		return err
	}
	c.Least = c.Far
	m.ops = nil // the memory
	return m.form(ctx, o)
}

// Look decides how New would keep K+λI, and forms no tile of it. Its errors are those of New; ranks are not asked.
func Choose(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, o *Options) (Choice, error) {
	m, opt, err := begin(k, x, lambda, o)
	if err != nil {
		return Choice{}, err
	}
	_, d := x.Dims()
	return m.choose(ctx, &opt, d)
}

// begin checks the arguments and returns a Matrix without a choice of how to keep K.
func begin(k kernel.Kernel, x points.Points, lambda float64, o *Options) (*Matrix, Options, error) {
	var opt Options
	if err := kernel.Validate(k); err != nil {
		return nil, opt, err
	}
	n, _ := x.Dims()
	if n == 0 {
		return nil, opt, fmt.Errorf("gram: no points")
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, opt, fmt.Errorf("gram: λ = %v, want a number ≥ 0", lambda)
	}
	opt = o.settled(n, lambda)
	if err := kernel.Check(k, x); err != nil {
		return nil, opt, err
	}
	x, factors := points.Split(x)
	fr, err := newFrame(k, x)
	if err != nil {
		return nil, opt, err
	}
	diag := kernel.Diag(k, x)
	m := &Matrix{k: k, x: x, factors: factors, lambda: lambda, diag: diag, sizes: kernel.Sizes(k, x, diag), frame: fr,
		levels: kernel.NewDistanceTable(k, x, fr.Panel.Norms), comm: opt.Comm}
	m.tiling = newTiling(n, opt.TileSize, share{m.comm.Rank(), m.comm.Size()})
	m.choice = Choice{N: n, Tile: m.tiling.size}
	for i, v := range m.diag {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, opt, fmt.Errorf("gram: kernel %v of point %d with itself is %v", k, i, v)
		}
	}
	return m, opt, nil
}

// NewExact returns K+λI of the points x recomputed in float64 for every product, as Exact of a
// Matrix does; a nil c means no ranks. Its errors are those of New that concern the kernel, the points
// and λ.
func NewExact(k kernel.Kernel, x points.Points, lambda, accuracy float64, c comm.Comm) (*Matrix, error) {
	m, _, err := begin(k, x, lambda, &Options{Comm: c})
	if err != nil {
		return nil, err
	}
	return m.Exact(accuracy), nil
}

// Dim returns n.
func (m *Matrix) Dim() int { return m.tiling.n }

// Lambda returns λ.
func (m *Matrix) Lambda() float64 { return m.lambda }

// Storage returns the storage in use, never Auto.
func (m *Matrix) Storage() Storage { return m.choice.Storage }

// Unit returns 4u, u = 2⁻²⁴ for products in float32 and 2⁻⁵³ for those in float64: the part 4u·‖Kx‖₂ of their error.
func (m *Matrix) Unit() float64 {
	if m.choice.wide() {
		return 0x1p-51
	}
	return 0x1p-22
}

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
func tableBytes(t *tiling) int64 { return tablesOf(int64(t.n), int64(t.tiles()), int64(t.blocks)) }

func tablesOf(n, tiles, blocks int64) int64 {
	const refBytes, sliceBytes, panelBytes = 8, 24, 80
	return 24*n + (refBytes+sliceBytes)*tiles + panelBytes*blocks
}

// Points returns x, without weights.
func (m *Matrix) Points() points.Points { return m.x }

// Kernel returns k.
func (m *Matrix) Kernel() kernel.Kernel { return m.k }

// Diag returns a copy of the diagonal of K, without λ, in float64.
func (m *Matrix) Diag() []float64 { return m.weighted(m.diag) }

// Trace returns tr K, without λ.
func (m *Matrix) Trace() float64 { return total(m.weighted(m.diag)) }

// weighted returns v_i·w_i.
func (m *Matrix) weighted(v []float64) []float64 {
	v = slices.Clone(v)
	for i, f := range m.factors {
		v[i] *= f * f
	}
	return v
}

// heaviest returns max w_i.
func (m *Matrix) heaviest() float64 {
	if m.factors == nil {
		return 1
	}
	f := slices.Max(m.factors)
	return f * f
}

// scale multiplies entries K(rows, cols) by the factors of both; nil rows are all.
func (m *Matrix) scale(dst blas64.General, rows, cols []int) {
	if m.factors == nil {
		return
	}
	for a := range dst.Rows {
		i := a
		if rows != nil {
			i = rows[a]
		}
		row := dst.Data[a*dst.Stride:]
		for b, j := range cols {
			row[b] *= m.factors[i] * m.factors[j]
		}
	}
}

func total(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
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
		panic(fmt.Sprintf("gram: product of a %d×%d matrix with %d×%d into %d×%d", m.tiling.n, m.tiling.n, n, t, dn,
			dt))
	}
	return m.ops.mul(ctx, dst.RawMatrix(), src.RawMatrix(), lambda)
}

// exactTile is the tile size of Exact: short sums round less.
const exactTile = 128

// Exact returns the same matrix recomputed tile by tile in float64 for every product: what true
// residuals are taken with. Distances are formed from inner products where ‖E‖₂ is then certain to
// be at most the accuracy given, and from differences otherwise; Choice().Error is the certain
// bound, Rounding that of a product. It holds no K; a product costs n²d flops (n²d/2
// multiply-adds) and the kernel values, differences some ten times as much. Where a kernel.Costly is kept in float64 it
// is that.
func (m *Matrix) Exact(accuracy float64) *Matrix {
	if m.choice.Certain && m.choice.Storage == Float64 {
		return m
	}
	n := m.tiling.n
	e := &Matrix{k: m.k, x: m.x, factors: m.factors, lambda: m.lambda, diag: m.diag, sizes: m.sizes, frame: m.frame,
		levels: m.levels, comm: m.comm}
	e.tiling = newTiling(n, min(n, exactTile), share{m.comm.Rank(), m.comm.Size()})
	e.choice = Choice{N: n, Storage: Recompute, Accuracy: accuracy, Certain: true, Reason: "exact",
		Whole: kernel.HasExactProducts(m.k, m.x)}
	e.leaveOutAs(m, accuracy/2)
	by, bound := m.accurate(accuracy - e.choice.dropped())
	e.choice.Tile, e.choice.Arithmetic, e.choice.Centred, e.choice.Error = e.tiling.size, by.arith, by.centered,
		bound+e.choice.dropped()
	e.build()
	e.choice.Bytes = e.Bytes()
	return e
}

// Rounding returns, for every column c of C, a certain bound of ‖fl((K+λI)c) − (K+λI)c‖₂ as MulTo
// computes it, K that of the points and not as stored; nil unless Choice().Certain. With entries
// wrong by at most δ·√(k_ii·k_jj), |k_ij| ≤ √(k_ii·k_jj), sums of tiles of T terms in float64 and
// n/T sums of these, where kernel.Sizes take the place of k_ii,
//
//	|fl(Ac)_i − (Ac)_i| ≤ (δ + (T + n/T + 8)u)·√k_ii·Σ_j √k_jj·|c_j| + 4uλ|c_i| + (n+8)·2⁻¹⁰⁷⁴,  u = 2⁻⁵³,
//
// the last for products that are subnormal, times max(1, w_i), and with the bound of what is dropped (Sparse), times
// ‖c‖₂. Weights multiply k_ii.
func (m *Matrix) Rounding(c *mat.Dense) []float64 {
	const u = 0x1p-53
	if !m.choice.Certain {
		return nil
	}
	n, t := c.Dims()
	bound := make([]float64, t)
	sizes := m.weighted(m.sizes)
	trace := floats.Sum(sizes)
	share := m.choice.Error - m.choice.dropped() + float64(m.tiling.size+m.tiling.blocks+8)*u*trace // (δ + …)·tr K
	raw := c.RawMatrix()
	for j := range bound {
		var sum float64 // Σ √k_ii·|c_i|
		for i := range n {
			sum += math.Sqrt(sizes[i]) * math.Abs(raw.Data[i*raw.Stride+j])
		}
		bound[j] = (4*u*m.lambda + m.choice.dropped()) * mat.Norm(c.ColView(j), 2)
		if sum > 0 {
			bound[j] += share*(sum/math.Sqrt(trace)) + math.Sqrt(float64(n))*float64(n+8)*0x1p-1074*max(1, m.heaviest())
		}
	}
	return bound
}
