package gram

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Near lists for each of n points others that are near it in the metric of K, the nearest first.
type NeighborLists struct {
	Count int       // places of a point
	Index []int32   // n·Count; −1 in places that are empty, the last ones
	Value []float32 // K_ij/√(K_ii·K_jj) of point i and its j in Index
}

// Of returns the neighbors of point i and their values.
func (n *NeighborLists) Of(i int) (index []int32, value []float32) {
	index = n.Index[i*n.Count:][:n.Count]
	if end := slices.Index(index, -1); end >= 0 {
		index = index[:end]
	}
	return index, n.Value[i*n.Count:][:len(index)]
}

// Neighbors returns for every point i the count points j with before[j] < before[i] of largest |K_ij|/√(K_ii·K_jj), or
// all of these if they are fewer; of equal values the smaller j, with sparse tiles in their order. before holds the
// places of the points in an order. The entries are those of K as stored, read once, rounded to float32, and those that
// are 0 are left out; the result does not depend on the number of threads or ranks. It takes 8·n·count bytes, and as
// many while it runs, on ranks each of them. It panics if before has not n entries or count is not positive.
func (m *Matrix) Neighbors(ctx context.Context, before []int32, count int) (*NeighborLists, error) {
	n := m.tiling.n
	if len(before) != n || count < 1 {
		panic(fmt.Sprintf("gram: %d neighbors in an order of %d of %d points", count, len(before), n))
	}
	s := &search{
		before: placed(m.tiling, before), floor: make([]float32, n), held: make([]int32, n),
		locks: make([]sync.Mutex, m.tiling.blocks),
		count: count, keys: make([]uint64, n*count),
	}
	for i := range s.floor {
		s.floor[i] = 0x1p-126
	}
	if !kernel.Bounded01(m.k) {
		s.scale = make([]float32, n)
		for i, v := range placed(m.tiling, m.diag) {
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
	near := &NeighborLists{Count: count, Index: make([]int32, n*count), Value: make([]float32, n*count)}
	return near, accel.ForEach(ctx, (n+searchRows-1)/searchRows, func(_, b int) {
		for i := b * searchRows; i < min((b+1)*searchRows, n); i++ {
			s.list(near, m.tiling, i)
		}
	})
}

// searchRows is the number of points that a worker sorts the neighbors of at a time.
const searchRows = 256

// search is a Neighbors under way. The keys of the neighbors of a point are a heap with the least on top.
type search struct {
	before []int32
	scale  []float32 // 1/√K_ii; nil for 1, of entries that are not negative
	count  int
	keys   []uint64
	held   []int32   // neighbors of a point so far
	floor  []float32 // the least size of a value among them, of a normal number while there is room
	locks  []sync.Mutex
}

// key is larger for a nearer neighbor, and of equal values for the smaller index: the size of the value, then the
// index, then the sign.
func key(j int, w float32) uint64 {
	b := math.Float32bits(w)
	return uint64(b&^(1<<31))<<32 | uint64(math.MaxInt32-j)<<1 | uint64(b>>31)
}

// ofKey is the inverse of key.
func ofKey(k uint64) (j int32, w float32) {
	return math.MaxInt32 - int32(uint32(k)>>1), math.Float32frombits(uint32(k>>32) | uint32(k)<<31)
}

// lockedRows is the number of rows of a tile that are read under a lock.
const lockedRows = 16

func (e *engine[T]) scan(ctx context.Context, s *search) error {
	return e.each(ctx, func(w *worker[T], p, i, j int) {
		tile := e.tile(w, p)
		i0, i1 := e.block(i)
		j0, j1 := e.block(j)
		group := func(lo int) {
			s.locks[j].Lock() // i ≥ j, so that nobody waits for somebody who waits
			defer s.locks[j].Unlock()
			if i != j {
				s.locks[i].Lock()
				defer s.locks[i].Unlock()
			}
			for a := lo; a < min(lo+lockedRows, i1); a++ {
				// of a diagonal tile what is left of the diagonal
				w.offer(s, a, j0, tile[(a-i0)*(j1-j0):][:min(j1, max(a, j0))-j0], e.shift)
			}
		}
		for lo := i0; lo < i1; lo += lockedRows {
			group(lo)
		}
	})
}

// offer offers the entries (i, j0 …) of K, row + shift, to the later one of the two points in the order.
func (w *worker[T]) offer(s *search, i, j0 int, row []T, shift float64) {
	values, plain := any(row).([]float32)
	if !plain || shift != 0 || s.scale != nil {
		values = buffer.Grow(&w.row, len(row))
		for b, v := range row {
			values[b] = float32(float64(v) + shift)
		}
		if s.scale != nil {
			for b, v := range s.scale[j0 : j0+len(row)] {
				values[b] *= s.scale[i] * v
			}
		}
	}
	at, place := buffer.Grow(&w.at, len(row)), s.before[i]
	n := simd.Candidates(at, values, s.floor[j0:j0+len(row)], s.before[j0:j0+len(row)], s.floor[i], place)
	for _, b := range at[:n] {
		if j := j0 + int(b); s.before[j] < place {
			s.push(i, key(j, values[b]))
		} else {
			s.push(j, key(i, values[b]))
		}
	}
}

// push replaces the farthest neighbor of i by another, or adds that where there is room.
func (s *search) push(i int, k uint64) {
	heap, at := s.keys[i*s.count:(i+1)*s.count], int(s.held[i])
	if at < len(heap) { // sift up
		for s.held[i]++; at > 0 && heap[(at-1)/2] > k; at = (at - 1) / 2 {
			heap[at] = heap[(at-1)/2]
		}
		heap[at] = k
	} else { // sift down
		if k <= heap[0] {
			return
		}
		at = 0
		for c := 1; c < len(heap); c = 2*at + 1 {
			if c+1 < len(heap) && heap[c+1] < heap[c] {
				c++
			}
			if heap[c] >= k {
				break
			}
			heap[at], at = heap[c], c
		}
		heap[at] = k
	}
	if int(s.held[i]) == len(heap) {
		s.floor[i] = math.Float32frombits(uint32(heap[0] >> 32))
	}
}

// list writes the neighbors of the point of a place to near, the nearest first.
func (s *search) list(near *NeighborLists, t *tiling, place int) {
	keys, i := s.keys[place*s.count:][:s.held[place]], t.point(place)
	slices.Sort(keys)
	index, value := near.Index[i*s.count:][:s.count], near.Value[i*s.count:][:s.count]
	for a := range index {
		if index[a] = -1; a < len(keys) {
			index[a], value[a] = ofKey(keys[len(keys)-1-a])
			index[a] = int32(t.point(int(index[a])))
		}
	}
}

// merge makes one of the lists of all ranks: each has looked at its tiles.
func (s *search) merge(ctx context.Context, m *Matrix) error {
	n, count, c := m.tiling.n, s.count, m.comm
	for i0 := 0; i0 < n; i0 += mergeRows {
		rows := min(mergeRows, n-i0)
		part := rows * count
		all := make([]float64, part*c.Size())
		own := all[c.Rank()*part:]
		for a := range rows {
			for k, key := range s.keys[(i0+a)*count:][:s.held[i0+a]] {
				own[a*count+k] = math.Float64frombits(key)
			}
		}
		if err := c.AllGather(ctx, all, slices.Repeat([]int{part}, c.Size())); err != nil {
			return err
		}
		for r := range c.Size() {
			if r == c.Rank() {
				continue
			}
			for k, v := range all[r*part : (r+1)*part] {
				if key := math.Float64bits(v); key != 0 {
					s.push(i0+k/count, key)
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

// Block sets the upper triangle of dst, in rows of stride ld, to that of K(idx, idx) in float64; some of what is below
// it is overwritten. The matrix is one that Exact returns; others panic.
func (m *Matrix) Block(dst []float64, ld int, idx []int, w *BlockWorkspace) {
	e, ok := m.ops.(*engine[float64])
	if !ok {
		panic("gram: a block of a matrix that is not in float64")
	}
	z, k := e.among(idx, w), len(idx) // the entries are formed again, also of tiles that are kept
	for a := 0; a < k; a += blockRows {
		e.fill(dst[a*ld+a:], ld, z.Slice(a, min(a+blockRows, k)), z.Slice(a, k), &w.kernel)
	}
	for a, i := range idx {
		dst[a*ld+a] = e.diag[e.place(i)]
		for b := a; b < k && m.factors != nil; b++ {
			dst[a*ld+b] *= m.factors[i] * m.factors[idx[b]]
		}
	}
}

// among is pointsOf for few points at a time, from the panels, in which those that are near each other lie together.
func (e *engine[T]) among(idx []int, w *BlockWorkspace) points.Panel {
	x := e.x
	if shifted, ok := x.(*points.Shifted); ok {
		x = shifted.X
	}
	if _, ok := x.(*points.Dense); !ok {
		return e.pointsOf(idx)
	}
	_, d := x.Dims()
	w.x = points.Dense{N: len(idx), D: d, Stride: d, Data: buffer.Grow(&w.x.Data, len(idx)*d)}
	norms := buffer.Grow(&w.norms, len(idx))
	for a, i := range idx {
		b, at := e.where(i)
		e.panels[b].X.RowTo(w.x.Row(a), at)
		norms[a] = e.panels[b].Norms[at]
	}
	return points.Panel{X: &w.x, Norms: norms}
}

// Lie returns the points in an order in which those that are near each other lie together, if the tiles have one, and
// else in their own.
func (m *Matrix) TreeOrder() []int { return m.tiling.lie() }
