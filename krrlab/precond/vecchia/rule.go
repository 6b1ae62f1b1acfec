package vecchia

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// MostNeighbors is the largest k that is chosen.
const MostNeighbors = firstK << doublings

// RuleRows is how many points the rule for k and ω looks at: the last ones of the order, which have all others before
// them.
const RuleRows = 128

// How the rule looks at them.
const (
	ruleBlock  = 16   // of them at a time: 128n bytes
	firstK     = 15   // the least k
	doublings  = 3    // of it at most
	worthwhile = 0.05 // fall of the mean logarithm of pivots for which k is doubled
	leastOmega = 0.05
)

// ruleSums are sums over the points that the rule looks at.
type ruleSums struct {
	logs   [doublings + 2]float64 // log (1/G_ii²) with k = 0, and with firstK·2^a
	energy [doublings + 1]float64 // Σ_{j∈N_i} c_ij², c_ij = R_ij/√((R_ii+λ)(R_jj+λ))
	all    float64                // the same of all j before i
}

// settle chooses what is left open of k and ω by the last points of π, which are a sample of all and have all points
// before them. k is doubled as long as the conditional variance 1/G_ii² of a point falls by 5 % on the geometric mean.
// ω = max(ρ³, 0.05), ρ being the share that the neighbors have of the squared correlations that R leaves: where it is
// near 1, R is local and M right as it is; where most lies elsewhere, as in R of many small eigenvalues, no neighbors
// explain it and V is to be near λI. The power is fitted, to sixteen problems (docs/stages/vecchia.md).
func (b *build) settle(ctx context.Context) error {
	asked := min(max(b.o.Neighbors, 0), b.n-1)
	if b.o.Neighbors != 0 && b.o.Damping > 0 {
		b.Inverse.k, b.damping = asked, b.o.Damping
		return nil
	}
	b.damping = 1
	b.weigh()
	rows := min(RuleRows, (b.n+3)/4)
	at := 0
	for at < doublings && (b.o.Neighbors == 0 || firstK<<(at+1) <= asked) {
		at++
	}
	most := min(firstK<<at, b.n-rows) // neighbors that it looks at
	sums := make([]ruleSums, rows)
	workers := make([]worker, accel.Threads())
	for lo := 0; lo < rows; lo += ruleBlock {
		idx := make([]int, 0, ruleBlock)
		for _, i := range b.order[b.n-rows+lo : min(b.n-rows+lo+ruleBlock, b.n)] {
			idx = append(idx, b.lie[i])
		}
		columns := mat.NewDense(b.n, len(idx), nil)
		if err := b.exact.Columns(ctx, idx, columns); err != nil {
			return err
		}
		err := accel.ForEach(ctx, len(idx), func(who, c int) {
			b.look(&workers[who], &sums[lo+c], columns, c, idx[c], b.n-rows, most)
		})
		if err != nil {
			return err
		}
	}
	var s ruleSums
	for _, v := range sums {
		for a := range v.logs {
			s.logs[a] += v.logs[a] / float64(rows)
		}
		for a := range v.energy {
			s.energy[a] += v.energy[a]
		}
		s.all += v.all
	}
	if b.Inverse.k = asked; b.o.Neighbors == 0 {
		for at = 0; at < doublings && s.logs[at+1]-s.logs[at+2] > worthwhile; {
			at++
		}
		b.Inverse.k = min(firstK<<at, b.n-1)
	}
	if b.damping = b.o.Damping; b.damping == 0 {
		b.damping = 1
		if s.all > 0 {
			b.damping = min(1, max(leastOmega, math.Pow(s.energy[at]/s.all, 3)))
		}
	}
	return nil
}

// look adds what the rule wants of point i, column c of the columns; the first points of the order are its candidates,
// of which most are taken.
func (b *build) look(w *worker, s *ruleSums, columns *mat.Dense, c, i, first, most int) {
	by := buffer.Grow(&w.by, b.n)
	raw := columns.RawMatrix()
	for j, inner := range b.inner(w, i, b.n, b.f) {
		r := raw.Data[j*raw.Stride+c] - inner
		by[j] = r * r / (b.left[i] * b.left[j])
	}
	var near []int // the nearest so far, in order
	before := func(x, y int) int { return cmp.Or(cmp.Compare(by[y], by[x]), x-y) }
	floor := 0.0 // of the last of them, once they are all
	for _, at := range b.order[:first] {
		j := b.lie[at]
		s.all += by[j]
		if by[j] < floor {
			continue
		}
		at, _ := slices.BinarySearchFunc(near, j, before)
		if at == most {
			continue
		}
		near = slices.Insert(near, at, j)[:min(len(near)+1, most)]
		if len(near) == most {
			floor = by[near[most-1]]
		}
	}
	for at, j := range near {
		for a := range s.energy {
			if at < firstK<<a {
				s.energy[a] += by[j]
			}
		}
	}
	idx := append(near, i)
	k := len(idx)
	a, ld := b.among(w, idx)
	if !w.cholesky(k) { // told when G is made
		return
	}
	last := a[k-1:]                      // column of U
	pivot := math.Pow(last[(k-1)*ld], 2) // 1/G_ii² with all of them, and more with fewer
	at := most
	for step := len(s.logs) - 1; step >= 0; step-- {
		fewer := 0
		if step > 0 {
			fewer = min(firstK<<(step-1), most)
		}
		for ; at > fewer; at-- {
			pivot += math.Pow(last[(at-1)*ld], 2)
		}
		s.logs[step] = math.Log(pivot)
	}
}
