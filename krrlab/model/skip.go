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

// These constants control when tiles of distant points are skipped.
const (
	leafSize     = 256     // points in a leaf of a tree
	minPairs     = 1 << 24 // with fewer pairs of points, building trees takes longer than it saves
	probePoints  = 128     // number of training points, and of points to predict, that estimate the share of near pairs
	maxNearShare = 0.4     // above this share of near pairs, no tile is skipped
)

// skipFarTiles decides whether tiles of points that are far apart are skipped. If so, it orders x and z by the leaves
// of trees, and returns the parts of this rank, one leaf each, and the order of z. Otherwise the order is nil. For the
// cutoff ε that it chooses, the error
//
//	|Σ_{i skipped} C_ij k(x_i, z)| ≤ ε Σ_i |C_ij|,   k(x_i, z) < ε,
//
// is at most a hundredth of the accuracy, relative to |F_j|. Predictions in float64 skip nothing, because Bounds must
// be certain for them.
func (p *predictor) skipFarTiles(ctx context.Context, o *Options, c comm.Comm) (parts []part, order []int, err error) {
	tailBound, metric := kernel.TailBound(p.m.Kernel)
	rows := p.z.Len()
	if tailBound == nil || o.Float64 || float64(rows)*float64(p.n) < minPairs {
		return nil, nil, nil
	}
	var sum float64
	for i := range p.n {
		var c float64
		for j, v := range p.m.C.RawRowView(i) {
			if v != 0 {
				c = max(c, math.Abs(v)/p.scale[j])
			}
		}
		sum += c
	}
	cutoff := cmp.Or(o.Accuracy, defaultAccuracy) / 100 / sum
	if !(cutoff > 0) || p.nearShare(cutoff) > maxNearShare {
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
	pairs, _, _, err := z.Pairs(ctx, x, metric, tailBound, cutoff)
	if err != nil {
		return nil, nil, err
	}
	blocks := make([][]int, z.Leaves()) // for each leaf of z, the leaves of x near it
	for _, q := range pairs {
		blocks[q.A] = append(blocks[q.A], q.B)
	}
	for a := c.Rank(); a < len(blocks); a += c.Size() {
		parts = append(parts, part{z.Start[a], z.Start[a+1], blocks[a]})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return len(b.blocks) - len(a.blocks) })
	p.x, p.z = gatherPanel(p.x, x.Order), gatherPanel(p.z, z.Order)
	p.setBlocks(x)
	return parts, z.Order, nil
}

func gatherPanel(p points.Panel, order []int) points.Panel {
	norms := make([]float64, len(order))
	for pos, i := range order {
		norms[pos] = p.Norms[i]
	}
	return points.Panel{X: points.Gather(p.X, order), Norms: norms}
}

// nearShare estimates the share of pairs of points at which the kernel is at least cutoff, from a sample.
func (p *predictor) nearShare(cutoff float64) float64 {
	sample := func(panel points.Panel) points.Panel {
		var idx []int
		for k := range min(probePoints, panel.Len()) {
			idx = append(idx, k*panel.Len()/min(probePoints, panel.Len()))
		}
		return gatherPanel(panel, idx)
	}
	x, z := sample(p.x), sample(p.z)
	k := make([]float64, x.Len()*z.Len())
	kernel.Tile64(k, x.Len(), p.m.Kernel, z, x, kernel.Float64, &p.work[0].kernel)
	count := 0
	for _, v := range k {
		if v >= cutoff {
			count++
		}
	}
	return float64(count) / float64(len(k))
}
