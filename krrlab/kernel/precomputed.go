package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Precomputed is a kernel whose matrix K, N×N, is given. A point is the number i = 0 … N−1 of a row of K (Rows), and
// k(x_i, x_j) = K_ij. A new point z, which has no row, is the N numbers k(z, x_0) … k(z, x_{N−1}): of it and point j,
// k is the j-th. Two new points have no k: NaN. That K is positive semi-definite is not known (Semidefinite).
type Precomputed struct {
	n   int
	sum string // checksum of the lower half of K
	// *points.Dense or *points.Dense32, of which the lower half counts; nil in a model that was loaded
	k     points.Points
	sizes []float64 // max_j |K_ij|
}

var _ Kernel = (*Precomputed)(nil)

// asymmetry is what K_ij and K_ji may differ by, relative to √(K_iiK_jj), or to themselves where they are larger:
// rounding in float32, but no more.
const asymmetry = 1e-6

// NewPrecomputed returns the kernel of K, which is not copied if it is points.Dense or points.Dense32, and must not
// change any more. The lower half of K counts. It returns an error that says where K is not square, not finite, or
// not symmetric to 1e-6 of √(K_iiK_jj).
func NewPrecomputed(k points.Points) (*Precomputed, error) {
	n, d := k.Dims()
	if n != d || n < 2 {
		return nil, fmt.Errorf("kernel: K is %d×%d: want K(train, train), n×n for n ≥ 2 rows", n, d)
	}
	if err := points.CheckFinite(k); err != nil {
		return nil, fmt.Errorf("kernel: K: %w", err)
	}
	switch k.(type) {
	case *points.Dense, *points.Dense32:
	default:
		dense := points.NewDense(n, n, nil)
		points.Panel64To(k, dense.Data, n)
		k = dense
	}
	p := &Precomputed{n: n, k: k, sizes: make([]float64, n)}
	h, row := sha256.New(), make([]float64, n)
	for i := range n {
		k.RowTo(row, i)
		for j, v := range row[:i+1] {
			p.sizes[i], p.sizes[j] = max(p.sizes[i], math.Abs(v)), max(p.sizes[j], math.Abs(v))
			off, size := math.Abs(v-p.at(j, i)), math.Sqrt(math.Abs(row[i]))*math.Sqrt(math.Abs(p.at(j, j)))
			if off > asymmetry*max(size, math.Abs(v)) {
				return nil,
					fmt.Errorf("kernel: K is not symmetric: entry (%d, %d) is %g and (%d, %d) is %g, %.3g apart, "+
						"more than %g of √(K_iiK_jj): want K(train, train), such as (K+Kᵀ)/2",
						i, j, v, j, i, p.at(j, i), off, asymmetry)
			}
		}
		for _, v := range row[:i+1] {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
			h.Write(b[:])
		}
	}
	p.sum = fmt.Sprintf("%x", h.Sum(nil)[:8])
	return p, nil
}

// at returns entry (i, j) as it is stored.
func (k *Precomputed) at(i, j int) float64 {
	if m, ok := k.k.(*points.Dense32); ok {
		return float64(m.Data[i*m.Stride+j])
	}
	m := k.k.(*points.Dense)
	return m.Data[i*m.Stride+j]
}

// Rows returns the points of a Precomputed: the numbers 0 … n−1 of its first n rows, in one column.
func Rows(n int) *points.Dense {
	x := points.NewDense(n, 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	return x
}

// Given returns the Precomputed that k is; nil for none.
func AsPrecomputed(k Kernel) *Precomputed {
	p, _ := k.(*Precomputed)
	return p
}

// Semidefinite reports whether K is known to be positive semi-definite: not of a Precomputed. Of a user-defined kernel
// it is what being a Kernel means.
func Semidefinite(k Kernel) bool { return AsPrecomputed(k) == nil }

// Sizes returns s with |k(x_i, x_j)| ≤ √(s_i·s_j), given the diagonal of K: that itself, or of a kernel that is not
// known to be positive semi-definite, the largest |K_ij| of row i, times its weight.
func Sizes(k Kernel, x points.Points, diag []float64) []float64 {
	p := AsPrecomputed(k)
	if p == nil {
		return diag
	}
	x, factors := points.Split(x)
	n, d := x.Dims()
	row, s := make([]float64, d), make([]float64, n)
	for i := range s {
		x.RowTo(row, i)
		s[i] = p.sizes[int(row[0])]
	}
	for i, f := range factors {
		s[i] *= f * f
	}
	return s
}

// N returns the number of rows of K.
func (k *Precomputed) N() int { return k.n }

// Bytes returns the memory that K takes; 0 of nil.
func (k *Precomputed) Bytes() int64 {
	if k == nil || k.k == nil {
		return 0
	}
	return points.MemoryBytes(k.k)
}

// Eval implements Kernel.
func (k *Precomputed) Eval(x, z []float64) float64 {
	if len(z) > 1 {
		x, z = z, x
	}
	v := [1]float64{math.NaN()}
	if len(z) == 1 && (len(x) > 1 || k.k != nil) {
		k.rowTo(v[:], x, []int{int(z[0])})
	}
	return v[0]
}

// rowTo sets dst_b = k(x, x_j), j = to[b].
func (k *Precomputed) rowTo(dst, x []float64, to []int) {
	if len(x) > 1 {
		for b, j := range to {
			dst[b] = x[j]
		}
		return
	}
	i := int(x[0])
	for b, j := range to {
		dst[b] = k.at(max(i, j), min(i, j))
	}
}

// tile calls set with each row of a tile, for points z that are rows of K.
func (k *Precomputed) tile(x, z points.Points, w *Workspace, set func(a int, row []float64)) {
	nx, d := x.Dims()
	nz, _ := z.Dims()
	at, xa, row := buffer.Grow(&w.z, nz), buffer.Grow(&w.x, d), buffer.Grow(&w.row, nz)
	points.Panel64To(z, at, 1)
	to := buffer.Grow(&w.to, nz)
	for b, j := range at {
		to[b] = int(j)
	}
	for a := range nx {
		x.RowTo(xa, a)
		k.rowTo(row, xa, to)
		set(a, row)
	}
}

// Same is points.FirstEqual of points of a kernel: of a given K, whose points are numbers, that of the rows of K. New points
// of a given K are told apart from all.
func FirstEqual(k Kernel, sets ...points.Points) []int {
	p := AsPrecomputed(k)
	if p == nil || p.k == nil {
		return points.FirstEqual(sets...)
	}
	rows, first := points.FirstEqual(p.k), map[int]int{}
	var same []int
	for _, x := range sets {
		n, d := x.Dims()
		v := make([]float64, d)
		for i := range n {
			x.RowTo(v, i)
			at := len(same)
			if d == 1 {
				row := rows[int(v[0])]
				if _, seen := first[row]; !seen {
					first[row] = at
				}
				at = first[row]
			}
			same = append(same, at)
		}
	}
	return same
}

// CheckRows returns an error if a point is no row of K.
func (k *Precomputed) CheckRows(x points.Points) error {
	n, d := x.Dims()
	if d != 1 {
		return fmt.Errorf("kernel: points of a precomputed K have dimension %d: want the numbers of its rows "+
			"(kernel.Rows)", d)
	}
	var v [1]float64
	for i := range n {
		if x.RowTo(v[:], i); !(v[0] >= 0 && v[0] < float64(k.n)) || v[0] != math.Trunc(v[0]) {
			return fmt.Errorf("kernel: point %d is row %g of a precomputed K with the rows 0 to %d", i, v[0], k.n-1)
		}
	}
	return nil
}

// String names the kernel and K.
func (k *Precomputed) String() string { return fmt.Sprintf("precomputed(rows=%d, sum=%s)", k.n, k.sum) }

// given is what Spec.Params hold of a Precomputed.
type given struct {
	Rows int
	Sum  string
}

// spec returns what files say of the kernel.
func (k *Precomputed) spec() (Spec, error) {
	b, err := json.Marshal(given{k.n, k.sum})
	return Spec{Name: precomputedName, Params: Params(b)}, err
}

// precomputed returns the kernel without its K.
func precomputed(p Params) (*Precomputed, error) {
	var g given
	if err := json.Unmarshal([]byte(p), &g); err != nil || g.Rows < 2 {
		return nil, fmt.Errorf("kernel: precomputed with the parameters %q: want rows ≥ 2 and sum", p)
	}
	return &Precomputed{n: g.Rows, sum: g.Sum}, nil
}
