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
	leafSize     = 256     // points in a leaf of a tree; smaller leaves skip more, in smaller and slower tiles
	minPairs     = 1 << 24 // with fewer pairs of points, the trees take longer to build than they save
	probePoints  = 128     // number of sampled training points, and of sampled points to predict, in nearShare
	maxNearShare = 0.4     // above this share of near pairs, no tile is skipped
)

// skipFarTiles decides whether tiles of the kernel matrix between distant training points x and points z to predict are
// skipped. If so, it orders x and z by the leaves of trees, and returns the batches of this rank and the order of z.
// Each batch consists of one leaf of z and the leaves of x that are near it. If nothing is skipped, both results are
// nil.
//
// A pair of leaves is skipped if k(x_i, z) < ε for all its points, where ε is chosen such that the error
//
//	|Σ_{i skipped} C_ij k(x_i, z)| ≤ ε Σ_i |C_ij|
//
// of column j is at most Accuracy/100 times p.scale[j], the size of the predictions of that column. Predictions in
// float64 skip nothing, because DecisionBounds promises a rigorous error bound for them.
func (p *predictor) skipFarTiles(ctx context.Context, o *Options, group comm.Comm) (batches []batch,
	order []int, err error) {
	tailBound, metric := kernel.TailBound(p.m.Kernel)
	rows := p.z.Len()
	if tailBound == nil || o.Float64 || float64(rows)*float64(p.n) < minPairs {
		return nil, nil, nil
	}
	var sum float64 // Σ_i max_j |C_ij|/scale_j
	for i := range p.n {
		var largest float64
		for j, v := range p.m.C.RawRowView(i) {
			if v != 0 {
				largest = max(largest, math.Abs(v)/p.scale[j])
			}
		}
		sum += largest
	}
	cutoff := cmp.Or(o.Accuracy, defaultAccuracy) / 100 / sum // ε
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
	nearLeaves := make([][]int, z.LeafCount()) // for each leaf of z, the leaves of x near it
	for _, pair := range pairs {
		nearLeaves[pair.A] = append(nearLeaves[pair.A], pair.B)
	}
	for a := group.Rank(); a < len(nearLeaves); a += group.Size() {
		batches = append(batches, batch{z.Start[a], z.Start[a+1], nearLeaves[a]})
	}
	// The longest batches are first, so that the threads end at about the same time.
	slices.SortStableFunc(batches, func(a, b batch) int { return len(b.blocks) - len(a.blocks) })
	p.x, p.z = gatherPanel(p.x, x.Order), gatherPanel(p.z, z.Order)
	p.setBlocks(x)
	return batches, z.Order, nil
}

// gatherPanel returns the panel of the points with the given indices, in that order.
func gatherPanel(p points.Panel, order []int) points.Panel {
	norms := make([]float64, len(order))
	for pos, i := range order {
		norms[pos] = p.Norms[i]
	}
	return points.Panel{X: points.Gather(p.X, order), Norms: norms}
}

// nearShare estimates the share of pairs of a training point and a point to predict at which the kernel is at least
// cutoff. The estimate uses up to probePoints equally spaced points of each kind.
func (p *predictor) nearShare(cutoff float64) float64 {
	sample := func(panel points.Panel) points.Panel {
		var sampled []int
		for values := range min(probePoints, panel.Len()) {
			sampled = append(sampled, values*panel.Len()/min(probePoints, panel.Len()))
		}
		return gatherPanel(panel, sampled)
	}
	x, z := sample(p.x), sample(p.z)
	values := make([]float64, x.Len()*z.Len())
	kernel.Tile64(values, x.Len(), p.m.Kernel, z, x, kernel.Float64, &p.scratch[0].kernel)
	count := 0
	for _, value := range values {
		if value >= cutoff {
			count++
		}
	}
	return float64(count) / float64(len(values))
}
