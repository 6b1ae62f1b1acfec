package vecchia

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Options configures New. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Neighbors is the number k of off-diagonal entries in a row of G. Values above n−1 mean n−1, and negative values
	// mean no neighbors. Default: 15, 30, 60 or 120. The default rule doubles k as long as that lowers the conditional
	// variances by 5 %.
	Neighbors int
	// Damping is ω in (0, 1]. Default: max(ρ³, 0.05), where ρ is the share of the squared correlations of R that the
	// neighbors account for.
	Damping float64
	// Order[i] is the position of point i in the order π. Default: a random order, drawn from Seed.
	Order []int32
	// Seed is the random stream for the default order.
	Seed rng.Stream
	// Comm is the group of ranks over which the tiles of K, and the rows of F, G and H, are distributed. Each rank also
	// stores all of G, and all of F during the construction. Default: comm.Alone().
	Comm comm.Comm
}

// Inverse represents M = FFᵀ+V by its inverse GᵀW⁻¹G; see the package documentation. Rows of G are stored in an order
// in which nearby points are adjacent. Methods are safe for concurrent use.
type Inverse struct {
	n, k        int
	damping     float64           // ω
	pointOf     []int             // pointOf[row] is the point of that row of G
	rowsInOrder []int32           // rowsInOrder[p] is the row of G of the point at position p of π
	g           csr               // G: in each row the neighbors in ascending order, then the diagonal
	gt          csr               // Gᵀ, stored like G
	w           *precond.Woodbury // W = I+HHᵀ; nil if W = I
	h           *points.Dense32   // rows of H of this rank; nil if W = I

	mu   sync.Mutex
	pool []*mat.Dense // unused scratch matrices, guarded by mu
}

// csr is a sparse matrix in compressed sparse row format. The last entry of each row is its diagonal entry.
type csr struct {
	start []int64 // entries start[i] to start[i+1]-1 form row i
	col   []int32
	value []float32
}

// New returns M for the matrix K+λI that k represents. f is the low-rank factor F of K, nil for r = 0; if k is
// distributed over ranks, f has the rows of this rank, as package lowrank returns them. The stored kernel matrix is
// read once to find candidates for neighbors; entries between neighbors are recomputed in float64. The result is a
// function of the points, the storage of k, f and the options. It has the same bits for any number of threads and
// ranks.
//
// New returns an error if ctx ends, or if (ωR+λI)_JJ is not positive definite for some point. The latter happens if K
// is not positive semi-definite or f is not a factor of it. New panics if an option is out of range or λ is not
// positive.
func New(ctx context.Context, k *gram.Matrix, f *points.Dense32, options *Options) (*Inverse, error) {
	b := newBuilder(k, f, options)
	for _, step := range []func(context.Context) error{b.gatherF, b.chooseParameters, b.findCandidates, b.computeG,
		b.computeW} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return b.Inverse, nil
}

// Extend returns M for the matrix that k represents, whose first points must be the points of m. The result has the
// number of neighbors, the ω and the rows of F, G and H of m. The other points come last in π, so that their neighbors
// are among all points. f has the rows of F for all points; its first rows must be the rows of F from which m was
// computed. The result is for one process, without ranks; the factor of W follows precond.Woodbury.Extend. Extend
// returns the errors of New, and panics if the shapes do not fit.
func (m *Inverse) Extend(ctx context.Context, k *gram.Matrix, f *points.Dense32) (*Inverse, error) {
	n := k.Dim()
	if n < m.n || (f == nil) != (m.w == nil) || f != nil && (f.N != n || f.D != m.h.D) {
		panic(fmt.Sprintf("vecchia: order %d and rank %d extended to order %d", m.n, m.Rank(), n))
	}
	extended := &Inverse{n: n, k: m.k, damping: m.damping, pointOf: slices.Clone(m.pointOf),
		rowsInOrder: slices.Clone(m.rowsInOrder)}
	opt := &Options{Order: make([]int32, n)}
	for i := m.n; i < n; i++ {
		extended.pointOf, extended.rowsInOrder = append(extended.pointOf, i), append(extended.rowsInOrder, int32(i))
	}
	for position, row := range extended.rowsInOrder {
		opt.Order[extended.pointOf[row]] = int32(position)
	}
	b := &builder{Inverse: extended, matrix: k, exact: exactMatrix(k), f: f, options: opt, comm: comm.Alone(), hi: n,
		original: m}
	err := b.findCandidates(ctx)
	if err == nil {
		err = b.computeG(ctx)
	}
	if err == nil && f != nil {
		extended.w, err = m.w.Extend(ctx, extended.h)
	}
	return extended, err
}

// newBuilder checks the arguments of New and determines the order π. It panics if an argument is out of range.
func newBuilder(k *gram.Matrix, f *points.Dense32, options *Options) *builder {
	opt := *cmp.Or(options, &Options{})
	n := k.Dim()
	ranks := comm.OrAlone(opt.Comm)
	lo, hi := comm.RowRange(n, precond.RankRows, ranks.Rank(), ranks.Size())
	if !(opt.Damping >= 0 && opt.Damping <= 1) || !(k.Lambda() > 0) || opt.Order != nil && len(opt.Order) != n ||
		f != nil && f.N != hi-lo {
		panic(fmt.Sprintf("vecchia: %d neighbors, damping %v, λ = %v, n = %d", opt.Neighbors, opt.Damping, k.Lambda(),
			n))
	}
	if opt.Order == nil {
		opt.Order = make([]int32, n)
		for position, i := range opt.Seed.Sub("order").Perm(n) {
			opt.Order[i] = int32(position)
		}
	}
	m := &Inverse{n: n, pointOf: k.TreeOrder(), rowsInOrder: make([]int32, n)}
	for row, i := range m.pointOf {
		m.rowsInOrder[opt.Order[i]] = int32(row)
	}
	return &builder{Inverse: m, matrix: k, exact: exactMatrix(k), f: f, options: &opt, comm: ranks, lo: lo, hi: hi}
}

// exactMatrix returns k recomputed in float64 with an error that is negligible compared with λ.
func exactMatrix(k *gram.Matrix) *gram.Matrix { return k.Exact(k.Lambda() / 1000) }

// Dim returns n.
func (m *Inverse) Dim() int { return m.n }

// Rank returns r, the number of columns of F.
func (m *Inverse) Rank() int {
	if m.w == nil {
		return 0
	}
	return m.w.Features()
}

// Neighbors returns k.
func (m *Inverse) Neighbors() int { return m.k }

// Damping returns ω.
func (m *Inverse) Damping() float64 { return m.damping }

// Bytes returns the memory that M occupies, in bytes.
func (m *Inverse) Bytes() int64 {
	total := 12*int64(m.n) + 8*int64(len(m.g.start)+len(m.gt.start)) + 8*int64(len(m.g.col)+len(m.gt.col))
	if m.w != nil {
		total += m.w.Bytes()
	}
	return total
}

// Flops returns floating-point operations: build, n(k²r + k³/3 + 2kr + r²), for computing M from K and F with k
// neighbors and rank r, and apply, 4nk + 4nr, for the product of M⁻¹ with a vector.
func (m *Inverse) Flops() (build, apply float64) {
	n, k, r := float64(m.n), float64(m.k), float64(m.Rank())
	return n * (k*k*r + k*k*k/3 + 2*k*r + r*r), n * 4 * (k + r)
}

// LogDet returns ln det M = ln det W − 2Σ_i ln G_ii.
func (m *Inverse) LogDet() (sum float64) {
	if m.w != nil {
		sum = m.w.LogDet()
	}
	for _, end := range m.g.start[1:] {
		sum -= 2 * math.Log(float64(m.g.value[end-1]))
	}
	return sum
}

// Description returns a few words about M: the number of neighbors, ω and the number of pivots.
func (m *Inverse) Description() string {
	text := fmt.Sprintf("sparse inverse on %d neighbors, ω = %.2g", m.k, m.damping)
	if r := m.Rank(); r > 0 {
		text += fmt.Sprintf(", beside %d pivots", r)
	}
	return text
}

// String returns Description and the order n of M.
func (m *Inverse) String() string { return fmt.Sprintf("%s, n = %d", m.Description(), m.n) }

// applyRows is the number of rows of G in one unit of work of a product. Larger units balance threads less evenly.
const applyRows = 512

// mulTo sets dst = S·src for any number of columns. The rows of dst and src must be contiguous in memory.
func (s *csr) mulTo(ctx context.Context, dst, src *mat.Dense) error {
	y, x := dst.RawMatrix(), src.RawMatrix()
	n, t := len(s.start)-1, x.Cols
	return accel.ForEachBlock(ctx, n, applyRows, func(_, lo, hi int) {
		simd.GatherDot(s.start[lo:hi+1], s.col, s.value, x.Data, y.Data[lo*t:hi*t], t)
	})
}

// row returns the column indices and values of row i.
func (s *csr) row(i int) ([]int32, []float32) {
	lo, hi := s.start[i], s.start[i+1]
	return s.col[lo:hi], s.value[lo:hi]
}

// solveRow replaces row i of x by row i of S⁻¹x, which is one step of a forward substitution. The rows of x to which
// the off-diagonal entries in row i of S refer must have been replaced before.
func (s *csr) solveRow(i int, x *mat.Dense) {
	raw := x.RawMatrix()
	cols, values := s.row(i)
	out := raw.Data[i*raw.Stride : i*raw.Stride+raw.Cols]
	diagonal := len(cols) - 1
	for entry, j := range cols[:diagonal] {
		v := float64(values[entry])
		for c, xj := range raw.Data[int(j)*raw.Stride : int(j)*raw.Stride+raw.Cols] {
			out[c] -= float64(v * xj)
		}
	}
	for c := range out {
		out[c] /= float64(values[diagonal])
	}
}

// SolveTo sets dst = M⁻¹r = GᵀW⁻¹Gr for n×t matrices; dst may be r. The result has the same bits for any number of
// threads and ranks. It panics if the shapes do not match, and returns the error of ctx if ctx ends.
func (m *Inverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	v, u := m.scratch(dst, r), m.scratch(dst, r)
	defer m.release(v, u)
	x, y := r.RawMatrix(), v.RawMatrix()
	for row, i := range m.pointOf {
		copy(y.Data[row*y.Cols:(row+1)*y.Cols], x.Data[i*x.Stride:])
	}
	if err := m.g.mulTo(ctx, u, v); err != nil {
		return err
	}
	if m.w != nil {
		if err := m.w.SolveTo(ctx, u, u); err != nil {
			return err
		}
	}
	if err := m.gt.mulTo(ctx, v, u); err != nil {
		return err
	}
	m.permuteRows(dst, v)
	return nil
}

// permuteRows copies v, whose rows are in the order of the rows of G, to dst, whose rows are in the order of the
// points.
func (m *Inverse) permuteRows(dst, v *mat.Dense) {
	x, y := v.RawMatrix(), dst.RawMatrix()
	for row, i := range m.pointOf {
		copy(y.Data[i*y.Stride:], x.Data[row*x.Cols:(row+1)*x.Cols])
	}
}

// NormalTo sets the columns of dst, n×t, to independent draws from the normal distribution with mean 0 and covariance
// M. A draw is G⁻¹(g₂ + Hg₁) with standard normal g₁ ∈ R^r and g₂ ∈ R^n. Column j depends on g and j only.
func (m *Inverse) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	u := m.scratch(dst, dst)
	defer m.release(u)
	if m.w != nil {
		if err := m.w.NormalTo(ctx, u, g); err != nil {
			return err
		}
	} else {
		column := make([]float64, m.n)
		for j := range u.RawMatrix().Cols {
			g.Sub("points", uint64(j)).Normals(column, 0)
			u.SetCol(j, column)
		}
	}
	return m.solveG(ctx, dst, u)
}

// solveG sets dst = G⁻¹u and overwrites u.
func (m *Inverse) solveG(ctx context.Context, dst, u *mat.Dense) error {
	for _, i := range m.rowsInOrder {
		m.g.solveRow(int(i), u)
	}
	m.permuteRows(dst, u)
	return ctx.Err()
}

// scratch checks the shapes of dst and src, n×t, and returns an n×t scratch matrix with undefined contents, which the
// caller passes to release after use.
func (m *Inverse) scratch(dst, src *mat.Dense) *mat.Dense {
	n, t := src.Dims()
	if dstRows, dstColumns := dst.Dims(); n != m.n || dstRows != n || dstColumns != t {
		panic(fmt.Sprintf("vecchia: %d×%d into %d×%d for order %d", n, t, dstRows, dstColumns, m.n))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.pool, func(u *mat.Dense) bool { return u.RawMatrix().Cols == t })
	if i < 0 {
		return mat.NewDense(n, t, nil)
	}
	u := m.pool[i]
	m.pool = slices.Delete(m.pool, i, i+1)
	return u
}

// release returns scratch matrices to the pool.
func (m *Inverse) release(u ...*mat.Dense) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pool = append(m.pool, u...)
}

// transposed returns Sᵀ. Every row of S must have its diagonal entry, in the last place; the same holds for Sᵀ.
func (s *csr) transposed() csr {
	n := len(s.start) - 1
	t := csr{make([]int64, n+1), make([]int32, len(s.col)), make([]float32, len(s.col))}
	for _, j := range s.col {
		t.start[j+1]++
	}
	for i := range n {
		t.start[i+1] += t.start[i]
	}
	free := slices.Clone(t.start[:n]) // the next free entry of each row of Sᵀ
	for i := range n {
		cols, values := s.row(i)
		for a, j := range cols {
			entry := free[j]
			free[j]++
			if int(j) == i { // the diagonal goes to the end of the row, and its entry remains free
				entry = t.start[j+1] - 1
				free[j]--
			}
			t.col[entry], t.value[entry] = int32(i), values[a]
		}
	}
	return t
}
