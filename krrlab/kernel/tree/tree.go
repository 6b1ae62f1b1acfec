package tree

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// maxSampledPoints is the largest number of points of a node from which its division is computed. More points find
// better gaps and cost more time.
const maxSampledPoints = 512

// Tree is a partition of n points into leaves, by recursive division along one feature. It depends only on the points
// and the size of a leaf. The position of a point is its index in Order.
type Tree struct {
	Order []int // index of the point at each position; the points of a leaf are contiguous
	Start []int // first position of each leaf, followed by n

	dim            int       // dimension of the points
	nodes          []node    // the root is nodes[0], and children come after their parents
	boxMin, boxMax []float64 // bounding boxes, dim numbers for each node
	centers        []float64 // centers of the balls, dim numbers for each node
}

// node is the set of the points at the positions start, …, end−1. It has a bounding box, and a ball that contains its
// points.
type node struct {
	start, end            int     // range of the positions
	leftChild, rightChild int     // indices of the children; 0 for a leaf
	firstLeaf             int     // number of the first leaf in the node
	radius                float64 // radius of the ball
}

// New returns the tree of x with leaves of at most size points. It panics if size is not positive, and returns ctx's
// error if ctx is done.
func New(ctx context.Context, x points.Points, size int) (*Tree, error) {
	n, d := x.Dims()
	if size < 1 {
		panic(fmt.Sprintf("tree: leaves of %d points", size))
	}
	t := &Tree{Order: make([]int, n), dim: d, nodes: []node{{end: n}}}
	for i := range t.Order {
		t.Order[i] = i
	}
	workers := make([]splitter, accel.Threads())
	for level := []int{0}; len(level) > 0; {
		cutPositions := make([]int, len(level)) // position at which each node is divided; −1 for a leaf
		err := accel.ForEach(ctx, len(level), func(thread, k int) {
			parent := t.nodes[level[k]]
			if cutPositions[k] = -1; parent.end-parent.start > size {
				cutPositions[k] = parent.start + workers[thread].partition(x, t.Order[parent.start:parent.end])
			}
		})
		if err != nil {
			return nil, err
		}
		var nextLevel []int
		for k, nodeIndex := range level {
			if cutPositions[k] < 0 {
				continue
			}
			parent := &t.nodes[nodeIndex]
			parent.leftChild, parent.rightChild = len(t.nodes), len(t.nodes)+1
			nextLevel = append(nextLevel, parent.leftChild, parent.rightChild)
			cut := cutPositions[k]
			t.nodes = append(t.nodes, node{start: parent.start, end: cut}, node{start: cut, end: parent.end})
		}
		level = nextLevel
	}
	t.numberLeaves(0)
	t.Start = append(t.Start, n)
	return t, t.setBounds(ctx, x)
}

// numberLeaves numbers the leaves of node k and appends their first positions to t.Start.
func (t *Tree) numberLeaves(k int) {
	current := &t.nodes[k]
	current.firstLeaf = len(t.Start)
	if current.leftChild == 0 {
		t.Start = append(t.Start, current.start)
		return
	}
	t.numberLeaves(current.leftChild)
	t.numberLeaves(current.rightChild)
}

// LeafCount returns the number of leaves.
func (t *Tree) LeafCount() int { return len(t.Start) - 1 }

// setBounds computes the boxes and balls of all nodes: those of a leaf contain its points, and those of other nodes
// contain the boxes and balls of their children.
func (t *Tree) setBounds(ctx context.Context, x points.Points) error {
	size := len(t.nodes) * t.dim
	t.boxMin, t.boxMax, t.centers = make([]float64, size), make([]float64, size), make([]float64, size)
	rows := make([][]float64, accel.Threads())
	err := accel.ForEach(ctx, len(t.nodes), func(thread, k int) {
		if t.nodes[k].leftChild == 0 {
			t.setLeafBounds(x, k, buffer.Grow(&rows[thread], t.dim))
		}
	})
	for k := len(t.nodes) - 1; k >= 0; k-- { // children come after their parents
		parent := &t.nodes[k]
		if parent.leftChild == 0 {
			continue
		}
		lo, hi, center := t.box(k)
		lo1, hi1, center1 := t.box(parent.leftChild)
		lo2, hi2, center2 := t.box(parent.rightChild)
		for c := range lo {
			lo[c], hi[c], center[c] = min(lo1[c], lo2[c]), max(hi1[c], hi2[c]), (center1[c]+center2[c])/2
		}
		parent.radius = max(distance(center, center1)+t.nodes[parent.leftChild].radius,
			distance(center, center2)+t.nodes[parent.rightChild].radius)
		parent.radius *= 1 + t.roundingBound()
	}
	return err
}

// roundingBound bounds the relative rounding error of a computed distance: that of a sum of dim squares, and of some
// further operations.
func (t *Tree) roundingBound() float64 { return float64(t.dim+16) * 0x1p-52 }

// setLeafBounds computes the box of leaf k, and its ball about the mean of its points; row is scratch memory.
func (t *Tree) setLeafBounds(x points.Points, k int, row []float64) {
	leaf := &t.nodes[k]
	lo, hi, center := t.box(k)
	for c := range lo {
		lo[c], hi[c] = math.Inf(1), math.Inf(-1)
	}
	for _, i := range t.Order[leaf.start:leaf.end] {
		x.RowTo(row, i)
		for c, v := range row {
			lo[c], hi[c] = min(lo[c], v), max(hi[c], v)
			center[c] += v / float64(leaf.end-leaf.start)
		}
	}
	for _, i := range t.Order[leaf.start:leaf.end] {
		x.RowTo(row, i)
		leaf.radius = max(leaf.radius, distance(row, center))
	}
}

// box returns the bounding box and the center of the ball of node k.
func (t *Tree) box(k int) (lo, hi, center []float64) {
	start, end := k*t.dim, (k+1)*t.dim
	return t.boxMin[start:end], t.boxMax[start:end], t.centers[start:end]
}

// distance returns ‖x−z‖₂.
func distance(x, z []float64) float64 {
	var sum float64
	for c, v := range x {
		sum += (v - z[c]) * (v - z[c])
	}
	return math.Sqrt(sum)
}

// splitter is the scratch memory of one goroutine.
type splitter struct {
	row    []float64 // one point
	rows   []float64 // the sampled points
	values []float64 // one feature of the sampled points
	above  []int     // points of the second part
}

// partition divides the points idx into two parts along one feature, or in the middle if all points are equal. It
// reorders idx and returns the size of the first part.
func (s *splitter) partition(x points.Points, idx []int) int {
	feature, threshold, ok := s.chooseSplit(x, idx, min(len(idx), maxSampledPoints))
	if !ok { // all sampled points are equal
		feature, threshold, ok = s.chooseSplit(x, idx, len(idx))
	}
	if !ok {
		return len(idx) / 2
	}
	lowPart := idx[:0]
	s.above = s.above[:0]
	for _, i := range idx {
		if x.RowTo(s.row, i); s.row[feature] <= threshold {
			lowPart = append(lowPart, i)
		} else {
			s.above = append(s.above, i)
		}
	}
	copy(idx[len(lowPart):], s.above)
	return len(lowPart)
}

// chooseSplit returns the feature of largest variance and the threshold at which the points are divided (splitValue),
// computed from count of them at equal distances in idx. Points equal to the threshold belong to the lower part. ok is
// false if these points are all equal.
func (s *splitter) chooseSplit(x points.Points, idx []int, count int) (feature int, threshold float64, ok bool) {
	_, d := x.Dims()
	sum, squares := make([]float64, d), make([]float64, d)
	buffer.Grow(&s.row, d)
	buffer.Grow(&s.rows, count*d)
	buffer.Grow(&s.values, count)
	for k := range count {
		row := s.rows[k*d : (k+1)*d]
		x.RowTo(row, idx[k*len(idx)/count])
		for c, v := range row {
			v -= s.rows[c] // relative to the first point, so that the variance does not cancel
			sum[c] += v
			squares[c] += v * v
		}
	}
	maxVariance := 0.0
	for c, v := range squares {
		if v -= sum[c] * sum[c] / float64(count); v > maxVariance {
			feature, maxVariance = c, v
		}
	}
	for k := range s.values {
		s.values[k] = s.rows[k*d+feature]
	}
	slices.Sort(s.values)
	threshold, ok = splitValue(s.values)
	return feature, threshold, ok
}

// splitValue divides the sorted values v and returns the largest value of the lower part. It divides at the widest gap
// between the quartiles if that is at least an eighth of the range of v (a judgment: then the values form groups), and
// otherwise at the gap nearest to the median. Equal values are not separated. ok is false if all values are equal.
func splitValue(v []float64) (threshold float64, ok bool) {
	m := len(v)
	median, widestGap := -1, -1 // index below the gap nearest to the median, and below the widest gap; −1 if none
	for k := range m - 1 {
		gap := v[k+1] - v[k]
		if !(gap > 0) {
			continue
		}
		if median < 0 || abs(2*k+2-m) < abs(2*median+2-m) {
			median = k
		}
		if 4*(k+1) >= m && 4*(k+1) <= 3*m && (widestGap < 0 || gap > v[widestGap+1]-v[widestGap]) {
			widestGap = k
		}
	}
	if median < 0 {
		return 0, false
	}
	if widestGap >= 0 && v[widestGap+1]-v[widestGap] >= (v[m-1]-v[0])/8 {
		return v[widestGap], true
	}
	return v[median], true
}

// abs returns |v|.
func abs(v int) int { return max(v, -v) }

// Metric is a measure of distance between two points.
type Metric int

const (
	SquaredEuclidean Metric = iota // ‖x−z‖₂²
	Manhattan                      // ‖x−z‖₁
)

// minDistance returns a lower bound of the distance between the points of node a of t and those of node b of u.
func (t *Tree) minDistance(a int, u *Tree, b int, metric Metric) float64 {
	lo, hi, center := t.box(a)
	otherLo, otherHi, otherCenter := u.box(b)
	rounding := 1 - t.roundingBound()
	var sum float64
	if metric == Manhattan {
		for c, v := range lo {
			sum += max(0, v-otherHi[c], otherLo[c]-hi[c])
		}
		return sum * rounding
	}

	// The boxes and the balls each give a lower bound, and the larger one counts.
	var centerSq float64
	for c, v := range lo {
		gap := max(0, v-otherHi[c], otherLo[c]-hi[c])
		sum += gap * gap
		centerSq += (center[c] - otherCenter[c]) * (center[c] - otherCenter[c])
	}
	ball := max(0, math.Sqrt(centerSq)*rounding-(t.nodes[a].radius+u.nodes[b].radius)/rounding)
	return max(sum, ball*ball) * rounding
}

// Pair is a pair of leaves.
type Pair struct {
	A, B  int     // numbers of the leaves in the two trees; A ≥ B if both are the same tree
	Bound float64 // bound(distance) at a lower bound of the distance of the leaves, see Pairs
}

// Pairs returns the pairs of a leaf of t and a leaf of u for which bound(distance) ≥ cutoff at a lower bound of their
// distance, ordered by A and B. The function bound must not increase with the distance. If u is t, each pair is
// returned once, with A ≥ B.
//
// For each leaf of t and of u, tSkipped and uSkipped are the sum of bound(distance) over all points of the skipped
// leaves. If the entries of a matrix are at most bound(distance) and those of skipped pairs are replaced by zero, the
// row of a point in the leaf loses at most this sum.
func (t *Tree) Pairs(ctx context.Context, u *Tree, metric Metric, bound func(float64) float64,
	cutoff float64) (pairs []Pair, tSkipped, uSkipped []float64, err error) {
	const minTasks = 256 // enough pairs of nodes to balance the work of all threads: a judgment
	walk := traversal{t, u, metric, bound, cutoff}
	tasks := []Pair{{}} // pairs of nodes; the first is the pair of the roots
	for len(tasks) < minTasks {
		var nextTasks []Pair
		for _, p := range tasks {
			nextTasks = walk.expand(nextTasks, p.A, p.B)
		}
		if len(nextTasks) <= len(tasks) { // only pairs of leaves are left
			break
		}
		tasks = nextTasks
	}

	type result struct{ pairs, skipped []Pair }
	results := make([]result, len(tasks))
	if err = accel.ForEach(ctx, len(tasks), func(_, k int) {
		walk.visit(tasks[k].A, tasks[k].B, &results[k].pairs, &results[k].skipped)
	}); err != nil {
		return nil, nil, nil, err
	}

	tSkipped, uSkipped = make([]float64, t.LeafCount()), make([]float64, u.LeafCount())
	if t == u {
		uSkipped = tSkipped
	}
	for _, part := range results {
		pairs = append(pairs, part.pairs...)
		for _, p := range part.skipped {
			nodeA, nodeB := &t.nodes[p.A], &u.nodes[p.B]
			t.addToLeaves(tSkipped, nodeA, p.Bound*float64(nodeB.end-nodeB.start))
			if t != u || p.A != p.B {
				u.addToLeaves(uSkipped, nodeB, p.Bound*float64(nodeA.end-nodeA.start))
			}
		}
	}
	slices.SortFunc(pairs, func(p, q Pair) int { return cmp.Or(p.A-q.A, p.B-q.B) })
	return pairs, tSkipped, uSkipped, nil
}

// addToLeaves adds v to the sums of all leaves in node ancestor.
func (t *Tree) addToLeaves(sums []float64, ancestor *node, v float64) {
	for leaf := ancestor.firstLeaf; leaf < len(sums) && t.Start[leaf] < ancestor.end; leaf++ {
		sums[leaf] += v
	}
}

// traversal holds the parameters of a traversal of the pairs of nodes of two trees.
type traversal struct {
	treeA, treeB *Tree
	metric       Metric                // distance between two points
	bound        func(float64) float64 // bound of the matrix entries as a function of the distance
	cutoff       float64               // pairs with a smaller bound are skipped
}

// expand appends the pairs of children of nodes a and b. It divides the node with more points; if both are leaves, it
// appends the pair itself.
func (t *traversal) expand(pairs []Pair, a, b int) []Pair {
	nodeA, nodeB := &t.treeA.nodes[a], &t.treeB.nodes[b]
	switch {
	case nodeA.leftChild == 0 && nodeB.leftChild == 0:
		return append(pairs, Pair{A: a, B: b})
	case t.treeA == t.treeB && a == b:
		return append(pairs, Pair{A: nodeA.leftChild, B: nodeA.leftChild},
			Pair{A: nodeA.rightChild, B: nodeA.leftChild}, Pair{A: nodeA.rightChild, B: nodeA.rightChild})
	case nodeB.leftChild == 0 || nodeA.leftChild != 0 && nodeA.end-nodeA.start >= nodeB.end-nodeB.start:
		return append(pairs, Pair{A: nodeA.leftChild, B: b}, Pair{A: nodeA.rightChild, B: b})
	}
	return append(pairs, Pair{A: a, B: nodeB.leftChild}, Pair{A: a, B: nodeB.rightChild})
}

// visit appends the pairs of leaves in nodes a and b that have to be formed, by leaf numbers, and the skipped pairs, by
// node indices.
func (t *traversal) visit(a, b int, pairs, skipped *[]Pair) {
	nodeA, nodeB := &t.treeA.nodes[a], &t.treeB.nodes[b]
	bound := t.bound(t.treeA.minDistance(a, t.treeB, b, t.metric))
	switch {
	case bound < t.cutoff:
		*skipped = append(*skipped, Pair{a, b, bound})
	case nodeA.leftChild == 0 && nodeB.leftChild == 0:
		*pairs = append(*pairs, Pair{nodeA.firstLeaf, nodeB.firstLeaf, bound})
	default:
		var children [3]Pair
		for _, p := range t.expand(children[:0], a, b) {
			t.visit(p.A, p.B, pairs, skipped)
		}
	}
}
