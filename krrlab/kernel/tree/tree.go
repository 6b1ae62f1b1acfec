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

// sampled is the number of points of a node that say where it is cut.
const sampled = 512

// Tree is a partition of n points into leaves. It is a function of the points and the size of a leaf alone.
type Tree struct {
	// Order holds the points by their places: those of a leaf lie side by side.
	Order []int
	// Start holds the first place of each leaf, and n.
	Start []int

	d      int
	nodes  []node    // the root first
	lo, hi []float64 // boxes, d numbers a node
	center []float64 // of balls
}

// node is a part of the points: places from, …, to−1.
type node struct {
	from, to    int
	left, right int // children; 0 of a leaf
	leaf        int // number of the first leaf within
	radius      float64
}

// New returns the tree of x with leaves of at most size points. It panics if size is not positive, and returns ctx's
// error when that is done.
func New(ctx context.Context, x points.Points, size int) (*Tree, error) {
	n, d := x.Dims()
	if size < 1 {
		panic(fmt.Sprintf("tree: leaves of %d points", size))
	}
	t := &Tree{Order: make([]int, n), d: d, nodes: []node{{to: n}}}
	for i := range t.Order {
		t.Order[i] = i
	}
	workers := make([]cutter, accel.Threads())
	for level := []int{0}; len(level) > 0; {
		at := make([]int, len(level)) // where each is cut; −1 of leaves
		err := accel.ForEach(ctx, len(level), func(who, q int) {
			v := t.nodes[level[q]]
			if at[q] = -1; v.to-v.from > size {
				at[q] = v.from + workers[who].cut(x, t.Order[v.from:v.to])
			}
		})
		if err != nil {
			return nil, err
		}
		var next []int
		for q, k := range level {
			if at[q] < 0 {
				continue
			}
			v := &t.nodes[k]
			v.left, v.right = len(t.nodes), len(t.nodes)+1
			next = append(next, v.left, v.right)
			t.nodes = append(t.nodes, node{from: v.from, to: at[q]}, node{from: at[q], to: v.to})
		}
		level = next
	}
	t.number(0)
	t.Start = append(t.Start, n)
	return t, t.bound(ctx, x)
}

// number gives the leaves within node k their numbers.
func (t *Tree) number(k int) {
	v := &t.nodes[k]
	v.leaf = len(t.Start)
	if v.left == 0 {
		t.Start = append(t.Start, v.from)
		return
	}
	t.number(v.left)
	t.number(v.right)
}

// Leaves returns the number of leaves.
func (t *Tree) Leaves() int { return len(t.Start) - 1 }

// bound sets the boxes and balls: of leaves those of their points, of other nodes what holds those of their children.
func (t *Tree) bound(ctx context.Context, x points.Points) error {
	all := len(t.nodes) * t.d
	t.lo, t.hi, t.center = make([]float64, all), make([]float64, all), make([]float64, all)
	rows := make([][]float64, accel.Threads())
	err := accel.ForEach(ctx, len(t.nodes), func(who, k int) {
		if t.nodes[k].left == 0 {
			t.boundLeaf(x, k, buffer.Grow(&rows[who], t.d))
		}
	})
	for k := len(t.nodes) - 1; k >= 0; k-- { // children come after their parents
		v := &t.nodes[k]
		if v.left == 0 {
			continue
		}
		lo, hi, center := t.box(k)
		lo1, hi1, center1 := t.box(v.left)
		lo2, hi2, center2 := t.box(v.right)
		for c := range lo {
			lo[c], hi[c], center[c] = min(lo1[c], lo2[c]), max(hi1[c], hi2[c]), (center1[c]+center2[c])/2
		}
		v.radius = max(distance(center, center1)+t.nodes[v.left].radius,
			distance(center, center2)+t.nodes[v.right].radius)
		v.radius *= 1 + float64(t.d+16)*0x1p-52
	}
	return err
}

func (t *Tree) boundLeaf(x points.Points, k int, row []float64) {
	v := &t.nodes[k]
	lo, hi, center := t.box(k)
	for c := range lo {
		lo[c], hi[c] = math.Inf(1), math.Inf(-1)
	}
	for _, i := range t.Order[v.from:v.to] {
		x.RowTo(row, i)
		for c, u := range row {
			lo[c], hi[c] = min(lo[c], u), max(hi[c], u)
			center[c] += u / float64(v.to-v.from)
		}
	}
	for _, i := range t.Order[v.from:v.to] {
		x.RowTo(row, i)
		v.radius = max(v.radius, distance(row, center))
	}
}

func (t *Tree) box(k int) (lo, hi, center []float64) {
	from, to := k*t.d, (k+1)*t.d
	return t.lo[from:to], t.hi[from:to], t.center[from:to]
}

func distance(x, z []float64) float64 {
	var sum float64
	for c, v := range x {
		sum += (v - z[c]) * (v - z[c])
	}
	return math.Sqrt(sum)
}

// cutter is the scratch of one worker.
type cutter struct {
	row, rows, values []float64
	above             []int
}

// cut orders the points so that the first ones lie on one side of the place where they are cut, and returns how many.
func (w *cutter) cut(x points.Points, idx []int) int {
	f, at, ok := w.where(x, idx, min(len(idx), sampled))
	if !ok { // the points sampled are all the same
		f, at, ok = w.where(x, idx, len(idx))
	}
	if !ok {
		return len(idx) / 2
	}
	below := idx[:0]
	w.above = w.above[:0]
	for _, i := range idx {
		if x.RowTo(w.row, i); w.row[f] <= at {
			below = append(below, i)
		} else {
			w.above = append(w.above, i)
		}
	}
	copy(idx[len(below):], w.above)
	return len(below)
}

// where returns the feature and the number that count of the points are cut at, the lower ones inclusive; !ok if they
// are all the same.
func (w *cutter) where(x points.Points, idx []int, count int) (f int, at float64, ok bool) {
	_, d := x.Dims()
	sum, squares := make([]float64, d), make([]float64, d)
	buffer.Grow(&w.row, d)
	buffer.Grow(&w.rows, count*d)
	buffer.Grow(&w.values, count)
	for k := range count {
		row := w.rows[k*d : (k+1)*d]
		x.RowTo(row, idx[k*len(idx)/count])
		for c, v := range row {
			v -= w.rows[c]
			sum[c] += v
			squares[c] += v * v
		}
	}
	most := 0.0
	for c, v := range squares {
		if v -= sum[c] * sum[c] / float64(count); v > most {
			f, most = c, v
		}
	}
	for k := range w.values {
		w.values[k] = w.rows[k*d+f]
	}
	slices.Sort(w.values)
	at, ok = split(w.values)
	return f, at, ok
}

// split returns the number below the place where sorted numbers are cut; !ok if they are all the same.
func split(v []float64) (at float64, ok bool) {
	m := len(v)
	middle, widest := -1, -1
	for k := range m - 1 {
		gap := v[k+1] - v[k]
		if !(gap > 0) {
			continue
		}
		if middle < 0 || abs(2*k+2-m) < abs(2*middle+2-m) {
			middle = k
		}
		if 4*(k+1) >= m && 4*(k+1) <= 3*m && (widest < 0 || gap > v[widest+1]-v[widest]) {
			widest = k
		}
	}
	if middle < 0 {
		return 0, false
	}
	if widest >= 0 && v[widest+1]-v[widest] >= (v[m-1]-v[0])/8 {
		middle = widest
	}
	return v[middle], true
}

func abs(v int) int { return max(v, -v) }

// Metric is a distance of two points.
type Metric int

const (
	SquaredEuclidean Metric = iota // ‖x−z‖₂²
	Manhattan                      // ‖x−z‖₁
)

// gap returns what the distance of points of node a of t and node b of u is at least.
func (t *Tree) gap(a int, u *Tree, b int, by Metric) float64 {
	lo, hi, m := t.box(a)
	lo2, hi2, m2 := u.box(b)
	rounding := 1 - float64(t.d+16)*0x1p-52
	var sum float64
	if by == Manhattan {
		for c, v := range lo {
			sum += max(0, v-hi2[c], lo2[c]-hi[c])
		}
		return sum * rounding
	}
	var between float64
	for c, v := range lo {
		w := max(0, v-hi2[c], lo2[c]-hi[c])
		sum += w * w
		between += (m[c] - m2[c]) * (m[c] - m2[c])
	}
	ball := max(0, math.Sqrt(between)*rounding-(t.nodes[a].radius+u.nodes[b].radius)/rounding)
	return max(sum, ball*ball) * rounding
}

// Pair is a pair of leaves with what Pairs is told of the distance between them.
type Pair struct {
	A, B  int // leaves of the two trees, A ≥ B of one tree
	Bound float64
}

// Pairs returns the pairs of a leaf of t and a leaf of u for which bound of their least distance is at least least,
// ordered by A and B, and, for each leaf of both, the sum over the points of the leaves left out of that bound: what a
// row of the matrix of numbers of at most bound(distance) lacks. bound must not rise. If u is t, pairs are taken once,
// A ≥ B.
func (t *Tree) Pairs(ctx context.Context, u *Tree, by Metric, bound func(float64) float64, least float64) (near []Pair,
	a, b []float64, err error) {
	w := walk{t, u, by, bound, least}
	tasks := []Pair{{}}
	for len(tasks) < 256 { // the nodes of pairs that are walked at once
		var next []Pair
		for _, p := range tasks {
			next = w.open(next, p.A, p.B)
		}
		if len(next) <= len(tasks) {
			break
		}
		tasks = next
	}
	type found struct{ near, far []Pair }
	out := make([]found, len(tasks))
	if err = accel.ForEach(ctx, len(tasks), func(_, q int) {
		w.visit(tasks[q].A, tasks[q].B, &out[q].near, &out[q].far)
	}); err != nil {
		return nil, nil, nil, err
	}
	a, b = make([]float64, t.Leaves()), make([]float64, u.Leaves())
	if t == u {
		b = a
	}
	for _, v := range out {
		near = append(near, v.near...)
		for _, p := range v.far {
			x, z := &t.nodes[p.A], &u.nodes[p.B]
			t.spread(a, x, p.Bound*float64(z.to-z.from))
			if t != u || p.A != p.B {
				u.spread(b, z, p.Bound*float64(x.to-x.from))
			}
		}
	}
	slices.SortFunc(near, func(x, z Pair) int { return cmp.Or(x.A-z.A, x.B-z.B) })
	return near, a, b, nil
}

// spread adds v to the sums of the leaves within a node.
func (t *Tree) spread(sums []float64, x *node, v float64) {
	for l := x.leaf; l < len(sums) && t.Start[l] < x.to; l++ {
		sums[l] += v
	}
}

// walk goes through the pairs of nodes of two trees.
type walk struct {
	t, u  *Tree
	by    Metric
	bound func(float64) float64
	least float64
}

// open appends the pairs of children of nodes a and b, or the two where both are leaves.
func (w *walk) open(list []Pair, a, b int) []Pair {
	x, z := &w.t.nodes[a], &w.u.nodes[b]
	switch {
	case x.left == 0 && z.left == 0:
		return append(list, Pair{A: a, B: b})
	case w.t == w.u && a == b:
		return append(list, Pair{A: x.left, B: x.left}, Pair{A: x.right, B: x.left}, Pair{A: x.right, B: x.right})
	case z.left == 0 || x.left != 0 && x.to-x.from >= z.to-z.from:
		return append(list, Pair{A: x.left, B: b}, Pair{A: x.right, B: b})
	}
	return append(list, Pair{A: a, B: z.left}, Pair{A: a, B: z.right})
}

// visit appends the pairs of leaves within nodes a and b that are near, as leaves, and the pairs of nodes that are not.
func (w *walk) visit(a, b int, near, far *[]Pair) {
	x, z := &w.t.nodes[a], &w.u.nodes[b]
	v := w.bound(w.t.gap(a, w.u, b, w.by))
	switch {
	case v < w.least:
		*far = append(*far, Pair{a, b, v})
	case x.left == 0 && z.left == 0:
		*near = append(*near, Pair{x.leaf, z.leaf, v})
	default:
		var list [3]Pair
		for _, p := range w.open(list[:0], a, b) {
			w.visit(p.A, p.B, near, far)
		}
	}
}
