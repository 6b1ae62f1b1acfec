package vecchia

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// build is a New under way.
type build struct {
	*Inverse
	k     *gram.Matrix
	exact *gram.Matrix
	f     *points.Dense32 // nil for none
	o     *Options
	comm  comm.Comm
	near  *gram.Near // nil where k = 0
	diag  []float64  // K_ii
	left  []float64  // ωR_ii+λ
	of    []float64  // ‖F(i, :)‖²
	rowOf []int32    // of the points, in G
	h     *points.Dense32
	// rows of F, G and H that this rank has, or makes
	lo, hi int
}

// gather gives all rows of F to each rank.
func (b *build) gather(ctx context.Context) error {
	own := b.f
	if own == nil || b.comm.Size() == 1 {
		return nil
	}
	b.f = points.NewDense32(b.n, own.D, nil)
	copy(b.f.Data[b.lo*own.D:], own.Data)
	return share(ctx, b, b.f.Data, func(i int) int64 { return int64(i * own.D) })
}

// share gives data of rows, that of row i from at(i) on, to all ranks.
func share[T int32 | float32](ctx context.Context, b *build, data []T, at func(i int) int64) error {
	for r := range b.comm.Size() {
		lo, hi := comm.Rows(b.n, precond.RankRows, r, b.comm.Size())
		part := data[at(lo):at(hi)]
		err := b.comm.Broadcast(ctx, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), 4*len(part)), r)
		if err != nil {
			return err
		}
	}
	return nil
}

// wider is by how much more neighbors are sought in K than are taken by R.
const wider = 3

func (b *build) neighbors(ctx context.Context) (err error) {
	if b.Inverse.k == 0 {
		return nil
	}
	count := b.Inverse.k
	if b.f != nil {
		count = min(wider*count, b.n-1)
	}
	b.near, err = b.k.Neighbors(ctx, b.o.Order, count)
	return err
}

// buildRows is the number of rows of G that a worker makes at a time.
const buildRows = 32

// worker is the scratch of one.
type worker struct {
	idx    []int     // points,
	rows   []int     // and their rows of G
	by     []float64 // the measure of each candidate
	places []int
	a      []float64 // (ωR+λI)_JJ, and its Cholesky factor
	z      []float64 // columns of it
	g      []float64 // row of G
	f      []float64 // rows of F
	near   []float32 // those of candidates
	own    []float64 // one,
	inner  []float64 // and its products with others
	h      []float64
	block  gram.BlockWorkspace
	simd   simd.Workspace
}

// factor makes G and H.
func (b *build) factor(ctx context.Context) error {
	b.weigh()
	b.lay()
	if b.f != nil {
		b.h = points.NewDense32(b.hi-b.lo, b.f.D, nil)
	}
	workers := make([]worker, accel.Threads())
	var bad atomic.Int64
	blocks := (b.hi - b.lo + buildRows - 1) / buildRows
	more := accel.Counter(blocks, b.o.Progress)
	err := accel.ForEach(ctx, blocks, func(who, q int) {
		for i := b.lo + q*buildRows; i < min(b.lo+(q+1)*buildRows, b.hi); i++ {
			if !b.row(&workers[who], i) {
				bad.CompareAndSwap(0, int64(b.lie[i])+1)
			}
		}
		more(1)
	})
	if i := bad.Load(); err == nil && i > 0 {
		err = fmt.Errorf("vecchia: K+λI among point %d and its neighbors is not positive definite: take a larger λ",
			i-1)
	}
	if err = comm.Agree(ctx, b.comm, err); err != nil {
		return err
	}
	at := func(i int) int64 { return b.rows.start[i] }
	if err := share(ctx, b, b.rows.col, at); err != nil {
		return err
	}
	if err := share(ctx, b, b.rows.value, at); err != nil {
		return err
	}
	b.columns = b.rows.transposed()
	return nil
}

// weigh sets b.left.
func (b *build) weigh() {
	b.diag = b.k.Diag()
	b.left, b.of = make([]float64, b.n), make([]float64, b.n)
	for i, v := range b.diag {
		if b.f != nil {
			for _, u := range b.f.Row(i) {
				b.of[i] += float64(u) * float64(u)
			}
		}
		b.left[i] = b.damping*max(0, v-b.of[i]) + b.k.Lambda()
	}
}

// inner returns the products of n rows of F, f, with row i; 0 without F.
func (b *build) inner(w *worker, i, n int, f *points.Dense32) []float64 {
	u := buffer.Grow(&w.inner, n)
	clear(u)
	if f != nil {
		own := buffer.Grow(&w.own, f.D)
		points.Widen(own, b.f.Row(i))
		simd.Forward(n, f.D, f.Data, f.Stride, own, f.D, u, n, 1)
	}
	return u
}

// lay gives the rows of G their places.
func (b *build) lay() {
	start := make([]int64, b.n+1)
	b.rowOf = make([]int32, b.n)
	for row, i := range b.lie {
		start[row+1], b.rowOf[i] = 1, int32(row)
		if b.near != nil {
			index, _ := b.near.Of(i)
			start[row+1] += int64(min(len(index), b.Inverse.k))
		}
	}
	for i := range b.n {
		start[i+1] += start[i]
	}
	b.rows = csr{start, make([]int32, start[b.n]), make([]float32, start[b.n])}
}

// row makes row i of G and of H, and reports whether (ωR+λI)_JJ is positive definite.
func (b *build) row(w *worker, i int) bool {
	cols, values := b.rows.row(i)
	idx := b.choose(w, i, len(cols)-1)
	k := len(idx)
	a, ld := b.among(w, idx)
	if !w.cholesky(k) {
		return false
	}
	g := buffer.Grow(&w.g, k) // Ug = e_k, so that g = z/√z_k of UᵀUz = e_k
	g[k-1] = 1 / a[(k-1)*ld+k-1]
	for r := k - 2; r >= 0; r-- {
		g[r] = -floats.Dot(a[r*ld+r+1:r*ld+k], g[r+1:]) / a[r*ld+r]
	}
	for c, j := range w.rows {
		cols[c], values[c] = int32(j), float32(g[c])
	}
	if b.h != nil {
		r := b.f.D
		h := buffer.Grow(&w.h, r)
		clear(h)
		for c := range idx {
			floats.AddScaled(h, float64(values[c]), w.f[c*r:(c+1)*r])
		}
		for c, v := range h {
			b.h.Row(i - b.lo)[c] = float32(v)
		}
	}
	return true
}

// choose returns the points of k neighbors of row i, in the order of their rows, which w.rows holds, and then its own.
func (b *build) choose(w *worker, row, k int) []int {
	w.rows, w.idx = w.rows[:0], w.idx[:0]
	if k > 0 {
		i := b.lie[row]
		index, value := b.near.Of(i)
		if b.f != nil && len(index) > k {
			index = b.nearer(w, i, k, index, value)
		}
		for _, j := range index[:k] {
			w.rows = append(w.rows, int(b.rowOf[j]))
		}
		slices.Sort(w.rows)
	}
	w.rows = append(w.rows, row)
	for _, j := range w.rows {
		w.idx = append(w.idx, b.lie[j])
	}
	return w.idx
}

// nearer orders the neighbors of i by |R_ij|/√((ωR_ii+λ)(ωR_jj+λ)), the largest first and of equal ones as they were,
// and returns the first k.
func (b *build) nearer(w *worker, i, k int, index []int32, value []float32) []int32 {
	by, r := buffer.Grow(&w.by, len(index)), b.f.D
	f := points.NewDense32(len(index), r, buffer.Grow(&w.near, len(index)*r))
	for a, j := range index {
		copy(f.Row(a), b.f.Row(int(j)))
	}
	inner := b.inner(w, i, f.N, f)
	for a, j := range index {
		r := float64(value[a])*math.Sqrt(b.diag[i]*b.diag[j]) - inner[a]
		by[a] = math.Abs(r) / math.Sqrt(b.left[i]*b.left[j])
	}
	places := buffer.Grow(&w.places, len(index))
	for a := range places {
		places[a] = a
	}
	slices.SortFunc(places, func(x, y int) int { return cmp.Or(cmp.Compare(by[y], by[x]), x-y) })
	out := make([]int32, k)
	for a := range out {
		out[a] = index[places[a]]
	}
	return out
}

// among leaves the upper triangle of (ωR+λI)(J, J), J = idx, in w.a, and F(J, :) in w.f. R is rounded as F
// is, to ‖R − R̂‖₂ ≤ 2⁻²³‖F_J‖_F², which its diagonal has more, so that it stays positive semi-definite.
func (b *build) among(w *worker, idx []int) (a []float64, ld int) {
	k := len(idx)
	ld = stride(k)
	a = buffer.Grow(&w.a, k*ld)
	clear(a) // what is beyond k is multiplied, too
	b.exact.Block(a, ld, idx, &w.block)
	var slack float64
	if b.f != nil {
		r := b.f.D
		f := buffer.Grow(&w.f, k*r)
		for c, j := range idx {
			points.Widen(f[c*r:(c+1)*r], b.f.Row(j))
			slack += 0x1p-23 * b.of[j]
		}
		blas64.Syrk(blas.NoTrans, -1, blas64.General{Rows: k, Cols: r, Stride: r, Data: f}, 1,
			blas64.Symmetric{Uplo: blas.Upper, N: k, Stride: ld, Data: a})
	}
	for c := range idx {
		row := a[c*ld+c : c*ld+k]
		if b.damping != 1 {
			floats.Scale(b.damping, row)
		}
		row[0] += b.damping*slack + b.k.Lambda()
	}
	return a, ld
}

// lanes is the number of columns that a turn of the loops of package simd takes at most.
const lanes = 16

// stride is that of the rows of a matrix of order k.
func stride(k int) int { return (k + lanes - 1) &^ (lanes - 1) }

// together is the number of rows of a Cholesky factor that are made together.
const together = 4

// cholesky overwrites the upper triangle of w.a, of order k, by U of UᵀU, and reports whether there is one. With the
// rows above known, a few rows J are at a time
//
//	A(J, j:) − U(:j, J)ᵀ·U(:j, j:),
//
// the product of all that is known with few vectors, less what the rows of J take from each other.
func (w *worker) cholesky(k int) bool {
	a, ld, z := w.a, stride(k), buffer.Grow(&w.z, together*k)
	for j := 0; j < k; j += together {
		t := min(together, k-j)
		for r := range j {
			for c, v := range a[r*ld+j : r*ld+j+t] {
				z[c*j+r] = -v
			}
		}
		from := j &^ (lanes - 1)
		simd.Backward(j, ld-from, a[from:], ld, a[j*ld+from:], ld, z, j, t, &w.simd)
		for r := j; r < j+t; r++ {
			row := a[r*ld+r : r*ld+k]
			for c := j; c < r; c++ {
				floats.AddScaled(row, -a[c*ld+r], a[c*ld+r:c*ld+k])
			}
			pivot := math.Sqrt(row[0])
			if !(pivot > 0) {
				return false
			}
			floats.Scale(1/pivot, row)
		}
	}
	return true
}

// inverse makes W.
func (b *build) inverse(ctx context.Context) (err error) {
	if b.f != nil {
		b.w, err = precond.New(ctx, b.h, 1, &precond.Options{Form: precond.FormLInv, Comm: b.comm})
	}
	return err
}
