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

// Matrix is K+λI for n points. Without ranks its methods may be called by several goroutines at the same time. Each
// running product then has its own scratch memory: 12nt bytes with float32 tiles, 24nt with float64, and two blocks of
// vectors per worker.
type Matrix struct {
	*source
	lambda      float64    // λ
	tiling      *tiling    // blocks of points, and the tiles of this rank
	pointTree   *tree.Tree // its leaves are the blocks of sparse tiles; nil if all tiles are formed
	skippedSums []float64  // for each leaf, a bound of the row sums of its skipped tiles
	tileShift   []float64  // vector by which centered tiles shift the points: mean, or in Extend that of fewer points
	choice      Choice     // how the tiles are stored and computed
	ops         operations // the tiles of this rank, and products with them
	comm        comm.Comm  // the ranks among which the tiles are distributed
}

// source is the kernel and the points of a matrix, with what is computed from them once. It does not change, and the
// matrices of the same points share it.
type source struct {
	k              kernel.Kernel         // the kernel
	x              points.Points         // the points without weights
	factors        []float64             // √w_i of points.Weighted; nil without weights
	placement      kernel.Placement      // the points without weights, shifted if that is more accurate
	mean           []float64             // mean of the points; nil unless the kernel depends on x−z only
	diag           []float64             // k(x_i, x_i)
	diagonalBounds []float64             // Placement.DiagonalBounds; diag if K is known to be positive semi-definite
	table          *kernel.DistanceTable // table of all kernel values if the points have few distances, else nil
}

// newSource returns the source of K for the kernel k and the points x. It returns an error if a norm overflows and the
// kernel needs norms, or if an entry of the diagonal is not finite.
func newSource(k kernel.Kernel, x points.Points) (*source, error) {
	x, factors := points.SplitFactors(x)
	placement := kernel.NewPlacement(k, x)
	for i, v := range placement.Original.Norms {
		if !(v <= math.MaxFloat64) && !kernel.IsPairwise(k) {
			return nil, fmt.Errorf("gram: point %d has ‖x‖² = %v", i, v)
		}
	}
	diag := placement.Diag()
	for i, v := range diag {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("gram: kernel %v of point %d with itself is %v", k, i, v)
		}
	}
	s := &source{k: k, x: x, factors: factors, placement: placement, diag: diag,
		diagonalBounds: placement.DiagonalBounds(diag), table: kernel.NewDistanceTable(k, placement.Panel)}
	if kernel.ShiftInvariant(k) {
		s.mean = placement.Mean()
	}
	return s, nil
}

// New returns K+λI for the points x, K_ij = k(x_i, x_j), and forms the tiles unless they are recomputed. For
// points.Weighted, K stands for SKS with S = diag(√w_i). The tiles still store the entries k(x_i, x_j), so storage,
// tiles and their cost do not depend on the weights; products, columns and the diagonal are scaled by S. All other
// statements about K, such as error bounds, refer to SKS.
//
// New returns an error if k is not valid, if x has no points or values too large to square, if λ is negative or not a
// number, if k overflows, and an *accel.MemoryError if the requested storage does not fit o.Memory (with Auto: if not
// even recomputing fits). It returns ctx's error if ctx is done. A nil o selects the defaults.
func New(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, o *Options) (*Matrix, error) {
	m, opt, err := newMatrix(k, x, lambda, o)
	if err != nil {
		return nil, err
	}
	if c := opt.Choice; c != nil && c.Bytes > 0 && opt.Memory.Fits(c.Bytes) {
		m.choice = *c
	} else if m.choice, err = m.chooseOnRanks(ctx, &opt); err != nil {
		return nil, err
	}
	if err := m.adoptTiling(ctx); err != nil {
		return nil, err
	}
	if err := m.formTiles(ctx, &opt); err != nil {
		return nil, err
	}
	m.choice.Bytes = m.Bytes()
	return m, nil
}

// formTiles forms the tiles, and replaces the predicted norm of the omitted entries by the actual one. If that is
// larger than predicted, it lowers the entry cutoff to the tile cutoff, below which n entries cannot sum to more than
// half of the allowance, and forms the tiles again. With Options.SameAs the tiles are never formed again, even if row
// sums are rounded differently than in the earlier matrix.
func (m *Matrix) formTiles(ctx context.Context, o *Options) error {
	m.buildEngine()
	if err := comm.Agree(ctx, m.comm, m.ops.formAll(ctx, o.Progress)); err != nil {
		return err
	}
	asPredicted, err := m.updateDroppedNorm(ctx)
	c := m.choice.Sparse
	if err != nil || asPredicted || o.SameAs != nil || c.EntryCutoff <= c.TileCutoff {
		return err
	}
	c.EntryCutoff = c.TileCutoff
	m.ops = nil // release the memory of the tiles
	return m.formTiles(ctx, o)
}

// Choose returns the choice that New would make, without forming a tile. It returns the errors of New. It does not
// communicate with other ranks.
func Choose(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, o *Options) (Choice, error) {
	m, opt, err := newMatrix(k, x, lambda, o)
	if err != nil {
		return Choice{}, err
	}
	return m.choose(ctx, &opt)
}

// newMatrix checks the arguments and returns a Matrix whose storage is not chosen yet, and the options with defaults.
func newMatrix(k kernel.Kernel, x points.Points, lambda float64, o *Options) (*Matrix, Options, error) {
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
	opt = o.withDefaults(n, lambda)
	if err := kernel.Check(k, x); err != nil {
		return nil, opt, err
	}
	src, err := newSource(k, x)
	if err != nil {
		return nil, opt, err
	}
	m := &Matrix{source: src, lambda: lambda, tileShift: src.mean, comm: opt.Comm}
	m.tiling = newTiling(n, opt.TileSize, cyclicDistribution{m.comm.Rank(), m.comm.Size()})
	m.choice = Choice{N: n, Tile: m.tiling.size}
	return m, opt, nil
}

// NewExact returns K+λI of the points x, recomputed in float64 for every product like Matrix.Exact. A nil c means no
// ranks. It returns the errors of New that concern the kernel, the points and λ.
func NewExact(k kernel.Kernel, x points.Points, lambda, accuracy float64, c comm.Comm) (*Matrix, error) {
	m, _, err := newMatrix(k, x, lambda, &Options{Comm: c})
	if err != nil {
		return nil, err
	}
	return m.Exact(accuracy), nil
}

// Dim returns n.
func (m *Matrix) Dim() int { return m.tiling.n }

// Lambda returns λ.
func (m *Matrix) Lambda() float64 { return m.lambda }

// Storage returns the storage in use. It is never Auto.
func (m *Matrix) Storage() Storage { return m.choice.Storage }

// ProductRounding returns 4u, where u = 2⁻²⁴ for products in float32 and 2⁻⁵³ for products in float64. The error of a
// product contains the part 4u·‖Kx‖₂.
func (m *Matrix) ProductRounding() float64 {
	if m.choice.usesFloat64() {
		return 0x1p-51
	}
	return 0x1p-22
}

// Choice returns a description of the storage and the arithmetic, and the measurements behind it.
func (m *Matrix) Choice() Choice {
	c := m.choice
	c.Tried = slices.Clone(c.Tried)
	return c
}

// Bytes returns the memory of the matrix: tiles, diagonal, norms and tables. The points belong to the caller and are
// not counted.
func (m *Matrix) Bytes() int64 {
	return m.ops.tileBytes() + tableBytes(m.tiling)
}

// tableBytes returns the size of the diagonal, the norms and the tables of tiles, in bytes.
func tableBytes(t *tiling) int64 {
	return tableBytesFor(int64(t.n), int64(t.tileCount()), int64(t.blocks))
}

// tableBytesFor is tableBytes for n points in the given numbers of tiles and blocks.
func tableBytesFor(n, tiles, blocks int64) int64 {
	const pointBytes = 24 // diagonal entry, norm and row scale of a point
	const refBytes, sliceBytes, panelBytes = 8, 24, 80
	return pointBytes*n + (refBytes+sliceBytes)*tiles + panelBytes*blocks
}

// Points returns x, without weights.
func (m *Matrix) Points() points.Points { return m.x }

// Kernel returns k.
func (m *Matrix) Kernel() kernel.Kernel { return m.k }

// Diag returns a copy of the diagonal of K, without λ, in float64.
func (m *Matrix) Diag() []float64 { return m.weighted(m.diag) }

// Trace returns tr K, without λ.
func (m *Matrix) Trace() float64 { return sum(m.weighted(m.diag)) }

// weighted returns the vector of the v_i·w_i, where w_i is the weight of point i.
func (m *Matrix) weighted(v []float64) []float64 {
	v = slices.Clone(v)
	for i, factor := range m.factors {
		v[i] *= factor * factor
	}
	return v
}

// maxWeight returns the largest weight w_i.
func (m *Matrix) maxWeight() float64 {
	if m.factors == nil {
		return 1
	}
	maxFactor := slices.Max(m.factors)
	return maxFactor * maxFactor
}

// scale multiplies the entries dst = K(rows, cols) by √w_i√w_j. If rows is nil, dst has all rows of K.
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

// sum returns Σ v_i.
func sum(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// MulTo sets dst = (K+λI)·src for n×t matrices, with one pass over K for all t columns. dst may be src, but must not
// overlap it otherwise. The result has the same bits for any number of threads and ranks. MulTo panics if the shapes do
// not fit. It returns ctx's error if ctx is done; dst is then undefined.
func (m *Matrix) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.mulTo(ctx, dst, src, m.lambda)
}

// KMulTo sets dst = K·src. It is MulTo without λ.
func (m *Matrix) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.mulTo(ctx, dst, src, 0)
}

// mulTo sets dst = (K+lambda·I)·src.
func (m *Matrix) mulTo(ctx context.Context, dst, src *mat.Dense, lambda float64) error {
	n, t := src.Dims()
	if dstRows, dstCols := dst.Dims(); n != m.tiling.n || dstRows != n || dstCols != t {
		panic(fmt.Sprintf("gram: product of a %d×%d matrix with %d×%d into %d×%d", m.tiling.n, m.tiling.n, n, t,
			dstRows, dstCols))
	}
	return m.ops.mul(ctx, dst.RawMatrix(), src.RawMatrix(), lambda)
}

// exactTileSize is the tile size of Exact. A smaller tile has shorter sums, which round less, but more overhead.
const exactTileSize = 128

// Exact returns the matrix of the same points recomputed tile by tile in float64 for every product. Solvers use the
// result to compute true residuals. Distances are formed from inner products if ‖E‖₂ ≤ accuracy can then be proved, and
// from coordinate differences otherwise. Choice().Error is the proved bound of ‖E‖₂, and Rounding bounds the error of a
// product.
//
// The result stores no K. A product costs n²d flops (n²d/2 multiply-adds) plus the kernel values; with differences it
// costs about ten times as much. If m stores K in float64 with a proved error (Choice().Certain), Exact returns m.
func (m *Matrix) Exact(accuracy float64) *Matrix {
	if m.choice.Certain && m.choice.Storage == Float64 {
		return m
	}
	n := m.tiling.n
	exact := &Matrix{source: m.source, lambda: m.lambda, tileShift: m.mean, comm: m.comm}
	exact.tiling = newTiling(n, min(n, exactTileSize), cyclicDistribution{m.comm.Rank(), m.comm.Size()})
	exact.choice = Choice{N: n, Storage: Recompute, Accuracy: accuracy, Certain: true, Reason: "exact",
		ExactProducts: kernel.HasExactProducts(m.k, m.placement.Summary)}
	exact.skipTilesOf(m, accuracy/2)
	method, bound := m.certainMethod(accuracy - exact.choice.dropped())
	exact.choice.Tile = exact.tiling.size
	exact.choice.Arithmetic, exact.choice.Centered = method.arithmetic, method.centered
	exact.choice.Error = bound + exact.choice.dropped()
	exact.buildEngine()
	exact.choice.Bytes = exact.Bytes()
	return exact
}

// Certified returns a matrix that shares the tiles of m and has a proved error bound (Choice().Certain). It returns nil
// if the tiles are sparse or not in float64. Its Rounding is often larger than that of Exact, but a product takes only
// as long as one with m. Certified costs O(nd).
func (m *Matrix) Certified() *Matrix {
	if m.choice.Storage != Float64 || m.choice.Sparse != nil {
		return nil
	}
	placed := m.placement.Original
	if m.choice.Centered {
		placed = points.NewPanel(m.computedPoints())
	}
	certified := *m
	certified.choice.Certain = true
	certified.choice.Error = sum(m.weighted(m.diagonalBounds)) *
		(kernel.EntryError(m.k, m.choice.Arithmetic, kernel.SummaryOf(placed)) + m.scaleError())
	return &certified
}

// sumRounding returns the bound of the relative rounding error of the sums in a product with float64 tiles.
func (m *Matrix) sumRounding() float64 { return float64(m.tiling.size+m.tiling.blocks+8) * 0x1p-53 }

// Rounding returns, for every column c of C, a proved bound of ‖fl((K+λI)c) − (K+λI)c‖₂, where fl is the result of
// MulTo and K is the kernel matrix of the points, not the stored one. It returns nil unless Choice().Certain. If
// entries have errors of at most δ·√(k_ii·k_jj), |k_ij| ≤ √(k_ii·k_jj), tiles sum T terms in float64, and n/T such sums
// are added, then
//
//	|fl(Ac)_i − (Ac)_i| ≤ (δ + (T + n/T + 8)u)·√k_ii·Σ_j √k_jj·|c_j| + 4uλ|c_i| + (n+8)·2⁻¹⁰⁷⁴,  u = 2⁻⁵³.
//
// Here the diagonal bounds (kernel.Placement) replace k_ii, and weights multiply them. The last term, for subnormal
// products, is multiplied by max(1, w_i). The norm of the omitted entries (Sparsity) times ‖c‖₂ is added.
func (m *Matrix) Rounding(c *mat.Dense) []float64 {
	const u = 0x1p-53
	if !m.choice.Certain {
		return nil
	}
	n, t := c.Dims()
	bound := make([]float64, t)
	weightedBounds := m.weighted(m.diagonalBounds)
	trace := floats.Sum(weightedBounds)
	perUnit := m.choice.Error - m.choice.dropped() + m.sumRounding()*trace // (δ + …)·tr K
	raw := c.RawMatrix()
	for j := range bound {
		var sum float64 // Σ √k_ii·|c_i|
		for i := range n {
			sum += math.Sqrt(weightedBounds[i]) * math.Abs(raw.Data[i*raw.Stride+j])
		}
		bound[j] = (4*u*m.lambda + m.choice.dropped()) * mat.Norm(c.ColView(j), 2)
		if sum > 0 {
			bound[j] += perUnit*(sum/math.Sqrt(trace)) +
				math.Sqrt(float64(n))*float64(n+8)*0x1p-1074*max(1, m.maxWeight())
		}
	}
	return bound
}
