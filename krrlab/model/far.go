package model

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// What decides whether pairs of leaves are left out.
const (
	leafSize   = 256     // points
	leastPairs = 1 << 24 // of points: fewer are not worth trees
	lookedAt   = 128     // points of either kind that say how many pairs are near
	mostNear   = 0.4     // share of them above which all are taken
)

// leave decides whether points that are far apart are left out, and orders x and z by the leaves of trees if so: it
// returns the parts of this rank, a leaf each, and the order of z, which is nil otherwise. As
//
//	|Σ_{i left out} C_ij k(x_i, z)| ≤ ε Σ_i |C_ij|,   k(x_i, z) < ε,
//
// that is at most a hundredth of the accuracy, relative to |F_j|, for the ε taken.
// Of predictions in float64 nothing is: Bounds are certain of these.
func (p *predictor) leave(ctx context.Context, o *Options, c comm.Comm) (parts []part, order []int, err error) {
	most, by := kernel.TailBound(p.m.Kernel)
	rows := p.z.Len()
	if most == nil || o.Float64 || float64(rows)*float64(p.n) < leastPairs {
		return nil, nil, nil
	}
	var sum float64
	for i := range p.n {
		var c float64
		for j, v := range p.m.C.RawRowView(i) {
			if v != 0 {
				c = max(c, math.Abs(v)/p.sizes[j])
			}
		}
		sum += c
	}
	least := cmp.Or(o.Accuracy, defaultAccuracy) / 100 / sum
	if !(least > 0) || p.share(least) > mostNear {
		return nil, nil, nil
	}
	x, err := tree.New(ctx, p.x.X, leafSize)
	if err != nil {
		return nil, nil, err
	}
	z, err := tree.New(ctx, p.z.X, leafSize)
	if err != nil {
		return nil, nil, err
	}
	pairs, _, _, err := z.Pairs(ctx, x, by, most, least)
	if err != nil {
		return nil, nil, err
	}
	blocks := make([][]int, z.Leaves()) // of x that each leaf of z is near
	for _, q := range pairs {
		blocks[q.A] = append(blocks[q.A], q.B)
	}
	for a := c.Rank(); a < len(blocks); a += c.Size() {
		parts = append(parts, part{z.Start[a], z.Start[a+1], blocks[a]})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return len(b.blocks) - len(a.blocks) })
	p.x, p.z = gathered(p.x, x.Order), gathered(p.z, z.Order)
	p.cut(x)
	return parts, z.Order, nil
}

func gathered(p points.Panel, order []int) points.Panel {
	norms := make([]float64, len(order))
	for place, i := range order {
		norms[place] = p.Norms[i]
	}
	return points.Panel{X: points.Gather(p.X, order), Norms: norms}
}

// share returns the share of some pairs of points at which the kernel is at least least.
func (p *predictor) share(least float64) float64 {
	some := func(of points.Panel) points.Panel {
		var idx []int
		for k := range min(lookedAt, of.Len()) {
			idx = append(idx, k*of.Len()/min(lookedAt, of.Len()))
		}
		return gathered(of, idx)
	}
	x, z := some(p.x), some(p.z)
	k := make([]float64, x.Len()*z.Len())
	kernel.Tile64(k, x.Len(), p.m.Kernel, z, x, kernel.Float64, &p.work[0].kernel)
	count := 0
	for _, v := range k {
		if v >= least {
			count++
		}
	}
	return float64(count) / float64(len(k))
}
