package lowrank

import (
	"context"
	"math"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// RPCholesky returns the randomly pivoted partial Cholesky factor of K. Landmarks are drawn one after the other, with
// the probabilities
//
//	P(s = i) = d_i / Σ_l d_l,  d_i = k(x_i, x_i) − ‖F_i‖²,
//
// where F_i is row i of the columns of F so far. Each landmark adds a column to F.
//
// For efficiency, a block of landmarks is proposed with the same d and then thinned. Let H be the residual matrix K−FFᵀ
// of the proposals, and A the proposals accepted so far. Proposal j is accepted with probability
//
//	(H_jj − H_jA H_AA⁻¹ H_Aj) / d_j.
//
// The landmarks have the same distribution as if they were drawn one at a time, for any block size (Epperly, Tropp,
// Webber). Points with d_i ≤ 2⁻²⁰k(x_i, x_i) are not drawn. If no other points are left, or if the sum of their d_i is
// at most 2⁻²⁴ of the trace, K̂ equals K up to rounding, and F has fewer columns than requested. Options.StopResidual
// may also end the factorization early. The points with d_i ≤ 2⁻²⁰k(x_i, x_i) have a sum of d_i of at most n·2⁻²⁰·max_i
// k(x_i, x_i).
//
// The cost is n·rank² flops and the formation of the columns of K of all proposals; for memory see the package
// documentation. The landmarks and F are functions of g and Options.Block, with the same bits for any number of threads
// and of ranks. RPCholesky returns the same errors as Nystrom.
func RPCholesky(ctx context.Context, src Source, rank int, g rng.Stream, options *Options) (*Factor, error) {
	opt := options.withDefaults(rank)
	b, err := newBuilder(src, rank, &opt)
	if err != nil {
		return nil, err
	}
	p := newPartialFactor(b)
	proposalStream, acceptanceStream := g.Sub("proposals"), g.Sub("acceptance")
	var proposalCount, trialCount uint64
	accept := func(residualWhenDrawn, pivot float64) bool {
		trialCount++
		return acceptanceStream.Float64(trialCount-1)*residualWhenDrawn < pivot
	}
	var targetSums []float64
	for len(p.landmarks) < rank {
		total, err := p.updatePrefixSums(ctx)
		if err != nil {
			return nil, err
		}
		if !(total > max(0, opt.StopResidual)*float64(len(p.landmarks))) {
			break
		}
		targetSums = targetSums[:0]
		for range min(opt.Block, rank-len(p.landmarks)) {
			target := proposalStream.Float64(proposalCount) * total
			targetSums = append(targetSums, min(target, math.Nextafter(total, 0)))
			proposalCount++
		}
		proposals, err := p.findPoints(ctx, targetSums)
		if err == nil {
			err = p.addProposals(ctx, proposals, accept)
		}
		if err != nil {
			return nil, err
		}
		opt.Progress(len(p.landmarks), rank)
	}
	if len(p.landmarks) < rank {
		opt.Progress(rank, rank)
	}
	return p.finish(ctx, "RPCholesky", p.landmarks, p.nu)
}
