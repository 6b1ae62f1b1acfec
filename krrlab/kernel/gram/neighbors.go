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

// NeighborLists holds for each of n points the points of largest kernel values, the largest first.
type NeighborLists struct {
	Count int       // length of the list of a point
	Index []int32   // n·Count indices; unused places at the end of a list are −1
	Value []float32 // K_ij/√(K_ii·K_jj) for point i and each neighbor j in Index
}

// Of returns the neighbors of point i and their values.
func (n *NeighborLists) Of(i int) (index []int32, value []float32) {
	index = n.Index[i*n.Count:][:n.Count]
	if end := slices.Index(index, -1); end >= 0 {
		index = index[:end]
	}
	return index, n.Value[i*n.Count:][:len(index)]
}

// Neighbors returns, for every point i, the count points j with position[j] < position[i] and the largest
// |K_ij|/√(K_ii·K_jj), or all of them if there are fewer. Among equal values the smaller j wins; with sparse tiles, the
// j that comes first in the order of the tiles. position holds the position of each point in some order. The entries
// are those of the stored K, rounded to float32; zero entries are ignored. K is read once. The result does not depend
// on the number of threads or ranks.
//
// Neighbors takes 8·n·count bytes, and the same again while it runs, on every rank. It panics if position does not have
// n entries or count is not positive.
func (m *Matrix) Neighbors(ctx context.Context, position []int32, count int) (*NeighborLists, error) {
	return m.NeighborsFrom(ctx, position, count, 0)
}

// NeighborsFrom is Neighbors for the points from the given first one on; the lists of the other points are undefined.
// NeighborsFrom skips the rows of dense tiles that contain none of these points.
func (m *Matrix) NeighborsFrom(ctx context.Context, position []int32, count, firstPoint int) (*NeighborLists, error) {
	n := m.tiling.n
	if len(position) != n || count < 1 {
		panic(fmt.Sprintf("gram: %d neighbors in an order of %d of %d points", count, len(position), n))
	}
	s := &search{
		position: inTileOrder(m.tiling, position), threshold: make([]float32, n), count: make([]int32, n),
		locks:    make([]sync.Mutex, m.tiling.blocks),
		capacity: count, keys: make([]uint64, n*count),
	}
	for i := range s.threshold {
		s.threshold[i] = 0x1p-126
	}
	if !kernel.Bounded01(m.k) {
		s.scale = make([]float32, n)
		for i, v := range inTileOrder(m.tiling, m.diag) {
			if v > 0 {
				s.scale[i] = float32(1 / math.Sqrt(v))
			}
		}
	}
	if m.pointTree == nil {
		s.firstBlock = m.tiling.blockOf(firstPoint)
	}
	if err := m.ops.scanTiles(ctx, s); err != nil {
		return nil, err
	}
	if m.comm.Size() > 1 {
		if err := s.mergeRanks(ctx, m); err != nil {
			return nil, err
		}
	}
	lists := &NeighborLists{Count: count, Index: make([]int32, n*count), Value: make([]float32, n*count)}
	return lists, accel.ForEach(ctx, (n+searchRows-1)/searchRows, func(_, b int) {
		for i := b * searchRows; i < min((b+1)*searchRows, n); i++ {
			s.writeList(lists, m.tiling, i)
		}
	})
}

// searchRows is the number of points whose lists a worker sorts at once.
const searchRows = 256

// search is the state of a running Neighbors. The keys of the neighbors of a point form a heap with the smallest key on
// top. Points are numbered by position.
type search struct {
	position  []int32      // position of each point in the caller's order
	scale     []float32    // 1/√K_ii; nil if the scales are 1 and no entry is negative
	capacity  int          // number of neighbors per point
	keys      []uint64     // n·capacity keys, one heap per point
	count     []int32      // number of neighbors found for each point
	threshold []float32    // smallest value in a full heap; the smallest normal number if the heap is not full
	locks     []sync.Mutex // locks[b] guards the heaps of the points of block b

	firstBlock int // tiles in block rows before this one are skipped
}

// encodeKey returns a key for neighbor j with the given value. Keys are ordered by |value|, and for equal |value| in
// favor of the smaller j. The lowest bit holds the sign of value.
func encodeKey(j int, value float32) uint64 {
	bits := math.Float32bits(value)
	return uint64(bits&^(1<<31))<<32 | uint64(math.MaxInt32-j)<<1 | uint64(bits>>31)
}

// decodeKey is the inverse of encodeKey.
func decodeKey(key uint64) (j int32, value float32) {
	return math.MaxInt32 - int32(uint32(key)>>1), math.Float32frombits(uint32(key>>32) | uint32(key)<<31)
}

// rowsPerLock is the number of rows of a tile that a worker reads while it holds a lock. With more rows, workers wait
// longer for each other; with fewer, they lock more often.
const rowsPerLock = 16

// scanTiles adds the entries of the tiles of this rank to the search.
func (e *engine[T]) scanTiles(ctx context.Context, s *search) error {
	return e.forEachTile(ctx, func(w *worker[T], p, i, j int) {
		if i < s.firstBlock {
			return
		}
		tile := e.tile(w, p)
		i0, i1 := e.block(i)
		j0, j1 := e.block(j)
		scanRows := func(lo int) {
			s.locks[j].Lock() // always lock j ≤ i first, to avoid a deadlock
			defer s.locks[j].Unlock()
			if i != j {
				s.locks[i].Lock()
				defer s.locks[i].Unlock()
			}
			for a := lo; a < min(lo+rowsPerLock, i1); a++ {
				// A diagonal tile contributes only the entries left of the diagonal.
				w.offerRow(s, a, j0, tile[(a-i0)*(j1-j0):][:min(j1, max(a, j0))-j0], e.shift)
			}
		}
		for lo := i0; lo < i1; lo += rowsPerLock {
			scanRows(lo)
		}
	})
}

// offerRow offers the entries (i, j0), (i, j0+1), … of K, which are row + shift. Each entry is offered to the point of
// the pair that is later in the caller's order.
func (w *worker[T]) offerRow(s *search, i, j0 int, row []T, shift float64) {
	values, isFloat32 := any(row).([]float32)
	if !isFloat32 || shift != 0 || s.scale != nil {
		values = buffer.Grow(&w.candidateRow, len(row))
		for b, v := range row {
			values[b] = float32(float64(v) + shift)
		}
		if s.scale != nil {
			for b, v := range s.scale[j0 : j0+len(row)] {
				values[b] *= s.scale[i] * v
			}
		}
	}
	candidates, position := buffer.Grow(&w.candidates, len(row)), s.position[i]
	j1 := j0 + len(row)
	count := simd.SelectMagnitudes(candidates, values, s.threshold[j0:j1], s.position[j0:j1], s.threshold[i], position)
	for _, b := range candidates[:count] {
		if j := j0 + int(b); s.position[j] < position {
			s.addNeighbor(i, encodeKey(j, values[b]))
		} else {
			s.addNeighbor(j, encodeKey(i, values[b]))
		}
	}
}

// addNeighbor adds a key to the heap of point i. If the heap is full, the key replaces the smallest one, or is
// discarded if it is smaller. The caller holds the lock of the block of i.
func (s *search) addNeighbor(i int, key uint64) {
	heap, hole := s.keys[i*s.capacity:(i+1)*s.capacity], int(s.count[i])
	if hole < len(heap) { // sift up
		for s.count[i]++; hole > 0 && heap[(hole-1)/2] > key; hole = (hole - 1) / 2 {
			heap[hole] = heap[(hole-1)/2]
		}
		heap[hole] = key
	} else { // sift down
		if key <= heap[0] {
			return
		}
		hole = 0
		for child := 1; child < len(heap); child = 2*hole + 1 {
			if child+1 < len(heap) && heap[child+1] < heap[child] {
				child++
			}
			if heap[child] >= key {
				break
			}
			heap[hole], hole = heap[child], child
		}
		heap[hole] = key
	}
	if int(s.count[i]) == len(heap) {
		s.threshold[i] = math.Float32frombits(uint32(heap[0] >> 32))
	}
}

// writeList writes the neighbors of the point at a position to lists, the largest value first. It sorts the heap of the
// point.
func (s *search) writeList(lists *NeighborLists, t *tiling, position int) {
	keys, i := s.keys[position*s.capacity:][:s.count[position]], t.point(position)
	slices.Sort(keys)
	index, value := lists.Index[i*s.capacity:][:s.capacity], lists.Value[i*s.capacity:][:s.capacity]
	for a := range index {
		if index[a] = -1; a < len(keys) {
			index[a], value[a] = decodeKey(keys[len(keys)-1-a])
			index[a] = int32(t.point(int(index[a])))
		}
	}
}

// mergeRanks combines the heaps of all ranks, each of which has searched its own tiles.
func (s *search) mergeRanks(ctx context.Context, m *Matrix) error {
	n, capacity, ranks := m.tiling.n, s.capacity, m.comm
	for i0 := 0; i0 < n; i0 += mergeRows {
		rows := min(mergeRows, n-i0)
		length := rows * capacity
		gathered := make([]float64, length*ranks.Size())
		ownKeys := gathered[ranks.Rank()*length:]
		for a := range rows {
			for k, key := range s.keys[(i0+a)*capacity:][:s.count[i0+a]] {
				ownKeys[a*capacity+k] = math.Float64frombits(key)
			}
		}
		if err := ranks.AllGather(ctx, gathered, slices.Repeat([]int{length}, ranks.Size())); err != nil {
			return err
		}
		for rank := range ranks.Size() {
			if rank == ranks.Rank() {
				continue
			}
			for k, v := range gathered[rank*length : (rank+1)*length] {
				if key := math.Float64bits(v); key != 0 {
					s.addNeighbor(i0+k/capacity, key)
				}
			}
		}
	}
	return nil
}

// mergeRows is the number of points whose neighbors the ranks exchange at once. It bounds the size of the messages.
const mergeRows = 1 << 14

// blockRows is the number of rows of a block that are formed at once.
const blockRows = 32

// SubmatrixWorkspace is the scratch memory of PrincipalSubmatrix. The zero value is ready to use. Goroutines must not
// share one.
type SubmatrixWorkspace struct {
	kernel kernel.Workspace
	x      points.Dense
	norms  []float64
}

// PrincipalSubmatrix sets the upper triangle of dst, in rows of stride ld, to the upper triangle of K(idx, idx) in
// float64. Some entries below the diagonal are overwritten. PrincipalSubmatrix panics unless the matrix computes in
// float64, as one from Exact or NewExact does.
func (m *Matrix) PrincipalSubmatrix(dst []float64, ld int, idx []int, w *SubmatrixWorkspace) {
	e, ok := m.ops.(*engine[float64])
	if !ok {
		panic("gram: a block of a matrix that is not in float64")
	}
	z, size := e.gatherPanel(idx, w), len(idx) // stored tiles are not used
	for a := 0; a < size; a += blockRows {
		e.fillTile(dst[a*ld+a:], ld, z.Slice(a, min(a+blockRows, size)), z.Slice(a, size), &w.kernel)
	}
	for a, i := range idx {
		dst[a*ld+a] = e.diag[e.position(i)]
		for b := a; b < size && m.factors != nil; b++ {
			dst[a*ld+b] *= m.factors[i] * m.factors[idx[b]]
		}
	}
}

// gatherPanel is panelOf for a small number of points, in the memory of w. It copies the points from the panels of the
// blocks, in which nearby points are close together in memory.
func (e *engine[T]) gatherPanel(idx []int, w *SubmatrixWorkspace) points.Panel {
	x := e.x
	if shifted, ok := x.(*points.Shifted); ok {
		x = shifted.X
	}
	if _, ok := x.(*points.Dense); !ok {
		return e.panelOf(idx)
	}
	_, d := x.Dims()
	w.x = points.Dense{N: len(idx), D: d, Stride: d, Data: buffer.Grow(&w.x.Data, len(idx)*d)}
	norms := buffer.Grow(&w.norms, len(idx))
	for a, i := range idx {
		b, offset := e.locate(i)
		e.panels[b].X.RowTo(w.x.Row(a), offset)
		norms[a] = e.panels[b].Norms[offset]
	}
	return points.Panel{X: &w.x, Norms: norms}
}

// TreeOrder returns the points in an order in which nearby points come close together, if the tiles are ordered by a
// tree, and in their own order otherwise.
func (m *Matrix) TreeOrder() []int { return m.tiling.pointOrder() }
