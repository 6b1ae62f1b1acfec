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

// Options of New. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Neighbors is the number k of entries in a row of G beside the diagonal; more than n−1 are n−1, and a negative
	// number is none. Default: 15, 30, 60 or 120, doubled as long as that lowers the conditional variances by 5 %.
	Neighbors int
	// Damping is ω in (0, 1]. Default: max(ρ³, 0.05), ρ being the share of the neighbors in the squared correlations of
	// R.
	Damping float64
	// Order holds the place of each point in π. Default: a random order, from Seed.
	Order []int32
	// Seed draws the order.
	Seed rng.Stream
	// Comm is the group of ranks that K's tiles, and the rows of F, G and H, are dealt to; each holds all of G, and F
	// until G is made. Default: comm.Alone().
	Comm comm.Comm
	// Progress, if not nil, is called as rows of G are made, with done rising to total, never at the same time.
	Progress func(done, total int)
}

// Inverse is M = FFᵀ+V by its inverse; see the package doc. Its methods may be called by several goroutines at once.
type Inverse struct {
	n, k    int
	damping float64
	lie     []int             // the points of the rows of G, as they lie together
	order   []int32           // rows by their place in π
	rows    csr               // G: of row i its neighbors in ascending order, then i
	columns csr               // Gᵀ: of row j the rows that have it as a neighbor in ascending order, then j
	w       *precond.Woodbury // I+HHᵀ; nil for I

	mu   sync.Mutex
	idle []*mat.Dense
}

// csr is a sparse matrix with the diagonal last in each row.
type csr struct {
	start []int64
	col   []int32
	value []float32
}

// New returns M for K+λI = k, with the factor f of K, nil for none; on ranks its rows as those of package lowrank. K is
// read once as it is stored, and entries among neighbors are formed again in float64. The result is a function of the
// points, k's storage, f and the options, with the same bits for any number of threads and ranks.
//
// It returns an error if (ωR+λI)_JJ is not positive definite for some point, which is so where K is not positive
// semi-definite or f is no factor of it, or if ctx ends. It panics if an option is out of its range, or λ is 0.
func New(ctx context.Context, k *gram.Matrix, f *points.Dense32, o *Options) (*Inverse, error) {
	b := begin(k, f, o)
	for _, step := range []func(context.Context) error{b.gather, b.settle, b.neighbors, b.factor, b.inverse} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return b.Inverse, nil
}

// begin checks what New is given, and sets the order.
func begin(k *gram.Matrix, f *points.Dense32, o *Options) *build {
	opt := *cmp.Or(o, &Options{})
	n := k.Dim()
	c := comm.OrAlone(opt.Comm)
	lo, hi := comm.Rows(n, precond.RankRows, c.Rank(), c.Size())
	if !(opt.Damping >= 0 && opt.Damping <= 1) || !(k.Lambda() > 0) || opt.Order != nil && len(opt.Order) != n ||
		f != nil && f.N != hi-lo {
		panic(fmt.Sprintf("vecchia: %d neighbors, damping %v, λ = %v, n = %d", opt.Neighbors, opt.Damping, k.Lambda(),
			n))
	}
	if opt.Order == nil {
		opt.Order = make([]int32, n)
		for at, i := range opt.Seed.Sub("order").Perm(n) {
			opt.Order[i] = int32(at)
		}
	}
	m := &Inverse{n: n, lie: k.Lie(), order: make([]int32, n)}
	for row, i := range m.lie {
		m.order[opt.Order[i]] = int32(row)
	}
	return &build{Inverse: m, k: k, exact: k.Exact(k.Lambda() / 1000), f: f, o: &opt, comm: c, lo: lo,
		hi: hi}
}

// Dim returns n.
func (m *Inverse) Dim() int { return m.n }

// Rank returns r, the columns of F.
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

// Bytes returns the memory that M takes.
func (m *Inverse) Bytes() int64 {
	b := 12*int64(m.n) + 8*int64(len(m.rows.start)+len(m.columns.start)) + 8*int64(len(m.rows.col)+len(m.columns.col))
	if m.w != nil {
		b += m.w.Bytes()
	}
	return b
}

// Flops returns those of making M of K and F, with k neighbors and rank r n(k²r + k³/3), and with F 2nkr + nr², and of
// M⁻¹ times a vector, 4nk + 4nr.
func (m *Inverse) Flops() (build, apply float64) {
	n, k, r := float64(m.n), float64(m.k), float64(m.Rank())
	return n * (k*k*r + k*k*k/3 + 2*k*r + r*r), n * 4 * (k + r)
}

// LogDet returns ln det M = ln det W − 2Σ_i ln G_ii.
func (m *Inverse) LogDet() (sum float64) {
	if m.w != nil {
		sum = m.w.LogDet()
	}
	for _, end := range m.rows.start[1:] {
		sum -= 2 * math.Log(float64(m.rows.value[end-1]))
	}
	return sum
}

// What says what M consists of.
func (m *Inverse) What() string {
	s := fmt.Sprintf("sparse inverse on %d neighbors, ω = %.2g", m.k, m.damping)
	if r := m.Rank(); r > 0 {
		s += fmt.Sprintf(", beside %d pivots", r)
	}
	return s
}

func (m *Inverse) String() string { return fmt.Sprintf("%s, n = %d", m.What(), m.n) }

// applyRows is the number of rows of G that a worker multiplies by at a time.
const applyRows = 512

// mulTo sets dst = S·src, in any number of columns, which lie without gaps.
func (s *csr) mulTo(ctx context.Context, dst, src *mat.Dense) error {
	y, x := dst.RawMatrix(), src.RawMatrix()
	n, t := len(s.start)-1, x.Cols
	return accel.ForEach(ctx, (n+applyRows-1)/applyRows, func(_, b int) {
		lo, hi := b*applyRows, min((b+1)*applyRows, n)
		simd.GatherDot(s.start[lo:hi+1], s.col, s.value, x.Data, y.Data[lo*t:hi*t], t)
	})
}

func (s *csr) row(i int) ([]int32, []float32) {
	lo, hi := s.start[i], s.start[i+1]
	return s.col[lo:hi], s.value[lo:hi]
}

// solve replaces row i of x by that of S⁻¹x, where the rows of the other columns of row i have been before.
func (s *csr) solve(i int, x *mat.Dense) {
	raw := x.RawMatrix()
	cols, values := s.row(i)
	out := raw.Data[i*raw.Stride : i*raw.Stride+raw.Cols]
	last := len(cols) - 1
	for a, j := range cols[:last] {
		v := float64(values[a])
		for c, w := range raw.Data[int(j)*raw.Stride : int(j)*raw.Stride+raw.Cols] {
			out[c] -= float64(v * w)
		}
	}
	for c := range out {
		out[c] /= float64(values[last])
	}
}

// SolveTo sets dst = M⁻¹r = GᵀW⁻¹Gr for n×t matrices; dst may be r. The result has the same bits for any number of
// threads and ranks. It panics if the shapes do not fit, and returns ctx's error when ctx is done.
func (m *Inverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	v, u := m.scratch(dst, r), m.scratch(dst, r)
	defer m.release(v, u)
	x, y := r.RawMatrix(), v.RawMatrix()
	for row, i := range m.lie {
		copy(y.Data[row*y.Cols:(row+1)*y.Cols], x.Data[i*x.Stride:])
	}
	if err := m.rows.mulTo(ctx, u, v); err != nil {
		return err
	}
	if m.w != nil {
		if err := m.w.SolveTo(ctx, u, u); err != nil {
			return err
		}
	}
	if err := m.columns.mulTo(ctx, v, u); err != nil {
		return err
	}
	m.toPoints(dst, v)
	return nil
}

// toPoints sets the rows of dst from those of G.
func (m *Inverse) toPoints(dst, v *mat.Dense) {
	x, y := v.RawMatrix(), dst.RawMatrix()
	for row, i := range m.lie {
		copy(y.Data[i*y.Stride:], x.Data[row*x.Cols:(row+1)*x.Cols])
	}
}

// NormalTo sets the columns of dst, n×t, to independent draws of the normal distribution with mean 0 and covariance M,
// G⁻¹(g₂ + Hg₁) of standard normal g₁ ∈ R^r and g₂ ∈ R^n. Column j is a function of (g, j) alone.
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
	return m.back(ctx, dst, u)
}

// back sets dst = G⁻¹u and spoils u.
func (m *Inverse) back(ctx context.Context, dst, u *mat.Dense) error {
	for _, i := range m.order {
		m.rows.solve(int(i), u)
	}
	m.toPoints(dst, u)
	return ctx.Err()
}

// scratch returns an n×t matrix after a check of the shapes.
func (m *Inverse) scratch(dst, src *mat.Dense) *mat.Dense {
	n, t := src.Dims()
	if dn, dt := dst.Dims(); n != m.n || dn != n || dt != t {
		panic(fmt.Sprintf("vecchia: %d×%d into %d×%d for order %d", n, t, dn, dt, m.n))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.idle, func(u *mat.Dense) bool { return u.RawMatrix().Cols == t })
	if at < 0 {
		return mat.NewDense(n, t, nil)
	}
	u := m.idle[at]
	m.idle = slices.Delete(m.idle, at, at+1)
	return u
}

func (m *Inverse) release(u ...*mat.Dense) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = append(m.idle, u...)
}

// transposed returns Sᵀ, S having the diagonal in each row and place.
func (s *csr) transposed() csr {
	n := len(s.start) - 1
	t := csr{make([]int64, n+1), make([]int32, len(s.col)), make([]float32, len(s.col))}
	for _, j := range s.col {
		t.start[j+1]++
	}
	for i := range n {
		t.start[i+1] += t.start[i]
	}
	next := slices.Clone(t.start[:n])
	for i := range n {
		cols, values := s.row(i)
		for a, j := range cols {
			at := next[j]
			next[j]++
			if int(j) == i { // last, and what comes after takes its place
				at = t.start[j+1] - 1
				next[j]--
			}
			t.col[at], t.value[at] = int32(i), values[a]
		}
	}
	return t
}
