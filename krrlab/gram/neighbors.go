package gram

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Near lists for each of n points others that are near it in the metric of K, the nearest first.
type Near struct {
	Count int       // places of a point
	Index []int32   // n·Count; −1 in places that are empty, the last ones
	Value []float32 // K_ij/√(K_ii·K_jj) of point i and its j in Index
}

// Of returns the neighbors of point i and their values.
func (n *Near) Of(i int) (index []int32, value []float32) {
	lo := i * n.Count
	hi := lo
	for hi < lo+n.Count && n.Index[hi] >= 0 {
		hi++
	}
	return n.Index[lo:hi], n.Value[lo:hi]
}

// Neighbors returns for every point i the count points j with before[j] < before[i] of largest
// |K_ij|/√(K_ii·K_jj), or all of these if they are fewer; of equal values the smaller j. before holds the
// places of the points in an order. The entries are those of K as stored, read once, rounded to float32; the
// result does not depend on the number of threads or ranks. It takes 8·n·count bytes, on ranks as many for each rank.
// It panics if before has not n entries or count is not positive.
func (m *Matrix) Neighbors(ctx context.Context, before []int32, count int) (*Near, error) {
	n := m.tiling.n
	if len(before) != n || count < 1 {
		panic(fmt.Sprintf("gram: %d neighbors in an order of %d of %d points", count, len(before), n))
	}
	s := &search{
		before: before, floor: make([]float32, n), held: make([]int32, n), locks: make([]sync.Mutex, m.tiling.blocks),
		near: &Near{Count: count, Index: make([]int32, n*count), Value: make([]float32, n*count)},
	}
	for i := range s.floor {
		s.floor[i] = -1
	}
	if !kernel.Bounded01(m.k) {
		s.scale = make([]float32, n)
		for i, v := range m.diag {
			if v > 0 {
				s.scale[i] = float32(1 / math.Sqrt(v))
			}
		}
	}
	if err := m.ops.scan(ctx, s); err != nil {
		return nil, err
	}
	if m.comm.Size() > 1 {
		if err := s.merge(ctx, m); err != nil {
			return nil, err
		}
	}
	return s.near, accel.ForEach(ctx, (n+searchRows-1)/searchRows, func(_, b int) {
		for i := b * searchRows; i < min((b+1)*searchRows, n); i++ {
			s.sort(i)
		}
	})
}

// searchRows is the number of points that a worker sorts the neighbors of at a time.
const searchRows = 256

// search is a Neighbors under way. The neighbors of a point are a heap with the farthest on top.
type search struct {
	before []int32
	scale  []float32 // 1/√K_ii; nil for 1, of entries that are not negative
	near   *Near
	held   []int32   // neighbors of a point so far
	floor  []float32 // the least size of a value among them, −1 while there is room
	locks  []sync.Mutex
}

func (e *engine[T]) scan(ctx context.Context, s *search) error {
	workers := make([]worker[T], accel.Threads())
	return accel.ForEach(ctx, e.held(), func(who, q int) {
		p := e.nth(q)
		i, j := int(e.order[p].i), int(e.order[p].j)
		tile := e.src.tile(&workers[who], p)
		s.locks[j].Lock() // i ≥ j, so that nobody waits for somebody who waits
		defer s.locks[j].Unlock()
		if i != j {
			s.locks[i].Lock()
			defer s.locks[i].Unlock()
		}
		i0, i1 := e.block(i)
		j0, j1 := e.block(j)
		for a := i0; a < i1; a++ {
			row := tile[(a-i0)*(j1-j0):][:min(j1, max(a, j0))-j0] // of a diagonal tile what is left of the diagonal
			offerRow(s, a, j0, row, e.shift)
		}
	})
}

// offerRow offers the entries (i, j0 …) of K, row + shift.
func offerRow[T float](s *search, i, j0 int, row []T, shift float64) {
	floors := s.floor[j0 : j0+len(row)]
	if s.scale == nil {
		for b, v := range row {
			if w := float32(float64(v) + shift); w >= s.floor[i] || w >= floors[b] {
				s.offer(i, j0+b, w)
			}
		}
		return
	}
	scales := s.scale[j0 : j0+len(row)]
	for b, v := range row {
		w := float32(float64(v)+shift) * s.scale[i] * scales[b]
		if size := abs(w); size >= s.floor[i] || size >= floors[b] {
			s.offer(i, j0+b, w)
		}
	}
}

// offer takes i and j for neighbors of value w, for the one that comes later in the order.
func (s *search) offer(i, j int, w float32) {
	if s.before[i] < s.before[j] {
		i, j = j, i
	}
	s.push(i, int32(j), w)
}

// push puts j among the neighbors of i, in place of the farthest if there is no room.
func (s *search) push(i int, j int32, w float32) {
	lo, held := i*s.near.Count, int(s.held[i])
	index, value := s.near.Index[lo:lo+s.near.Count], s.near.Value[lo:lo+s.near.Count]
	at := held
	if held < len(index) { // sift up
		s.held[i]++
		for at > 0 && farther(w, j, value[(at-1)/2], index[(at-1)/2]) {
			index[at], value[at] = index[(at-1)/2], value[(at-1)/2]
			at = (at - 1) / 2
		}
		held++
	} else { // sift down
		if !farther(value[0], index[0], w, j) {
			return
		}
		for at = 0; 2*at+1 < held; {
			c := 2*at + 1
			if c+1 < held && farther(value[c+1], index[c+1], value[c], index[c]) {
				c++
			}
			if !farther(value[c], index[c], w, j) {
				break
			}
			index[at], value[at] = index[c], value[c]
			at = c
		}
	}
	index[at], value[at] = j, w
	if held == len(index) {
		s.floor[i] = abs(value[0])
	}
}

// farther reports whether neighbor j of value v comes after neighbor l of value w.
func farther(v float32, j int32, w float32, l int32) bool {
	return abs(v) < abs(w) || abs(v) == abs(w) && j > l
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// sort orders the neighbors of i, the nearest first.
func (s *search) sort(i int) {
	lo, held := i*s.near.Count, int(s.held[i])
	index, value := s.near.Index[lo:lo+s.near.Count], s.near.Value[lo:lo+s.near.Count]
	order := make([]int, held)
	for a := range order {
		order[a] = a
	}
	slices.SortFunc(order, func(a, b int) int {
		if farther(value[b], index[b], value[a], index[a]) {
			return -1
		}
		return 1
	})
	was, valued := slices.Clone(index[:held]), slices.Clone(value[:held])
	for a, b := range order {
		index[a], value[a] = was[b], valued[b]
	}
	for a := held; a < len(index); a++ {
		index[a], value[a] = -1, 0
	}
}

// merge makes one of the lists of all ranks: each has looked at its tiles.
func (s *search) merge(ctx context.Context, m *Matrix) error {
	n, count, c := m.tiling.n, s.near.Count, m.comm
	for i0 := 0; i0 < n; i0 += mergeRows {
		rows := min(mergeRows, n-i0)
		part := 2 * rows * count
		all := make([]float64, part*c.Size())
		own := all[c.Rank()*part:]
		for a := range rows {
			for k := range int(s.held[i0+a]) {
				at := (i0+a)*count + k
				own[2*(a*count+k)], own[2*(a*count+k)+1] = float64(s.near.Index[at])+1, float64(s.near.Value[at])
			}
		}
		if err := c.AllGather(ctx, all, slices.Repeat([]int{part}, c.Size())); err != nil {
			return err
		}
		for r := range c.Size() {
			if r == c.Rank() {
				continue
			}
			for k := range rows * count {
				if at := r*part + 2*k; all[at] > 0 {
					s.push(i0+k/count, int32(all[at])-1, float32(all[at+1]))
				}
			}
		}
	}
	return nil
}

// mergeRows is the number of points whose neighbors ranks exchange at a time.
const mergeRows = 1 << 14

// blockRows is the number of rows of a block that are formed together.
const blockRows = 32

// BlockWorkspace is the scratch of Block. The zero value is ready; goroutines have one each.
type BlockWorkspace struct {
	kernel kernel.Workspace
	x      points.Dense
	norms  []float64
}

// Block sets the upper triangle of dst, in rows of stride ld, to that of K(idx, idx) in float64; some of what is below it
// is overwritten. The matrix is one that Exact returns; others panic.
func (m *Matrix) Block(dst []float64, ld int, idx []int, w *BlockWorkspace) {
	var s *grid[float64]
	if e, ok := m.ops.(*engine[float64]); ok {
		s = e.src.(interface{ of() *grid[float64] }).of() // the entries are formed again, also of tiles that are kept
	} else {
		panic("gram: a block of a matrix that is not in float64")
	}
	z, k := s.among(idx, w), len(idx)
	for a := 0; a < k; a += blockRows {
		s.fill(dst[a*ld+a:], ld, s.k, z.Slice(a, min(a+blockRows, k)), z.Slice(a, k), &w.kernel)
	}
	for a, i := range idx {
		dst[a*ld+a] = s.diag[i]
	}
}

// among is gather for few points at a time.
func (s *grid[T]) among(idx []int, w *BlockWorkspace) points.Panel {
	x, ok := s.x.(*points.Dense)
	if !ok {
		return s.gather(idx)
	}
	d := x.D
	w.x = points.Dense{N: len(idx), D: d, Stride: d, Data: buffer.Grow(&w.x.Data, len(idx)*d)}
	norms := buffer.Grow(&w.norms, len(idx))
	for a, i := range idx {
		copy(w.x.Row(a), x.Row(i))
		norms[a] = s.panels[i/s.size].Norms[i%s.size]
	}
	return points.Panel{X: &w.x, Norms: norms}
}
