package lowrank

import (
	"context"
	"math"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// RPCholesky returns the randomly pivoted partial Cholesky factor of K: landmarks are
// drawn one after the other with probabilities
//
//	P(s = i) = d_i / Σ_l d_l,  d_i = k(x_i, x_i) − ‖F_i‖²,
//
// F_i being row i of the columns so far, and each makes a column of F. For efficiency
// a block of landmarks is proposed from the same d, and thinned: with H the residual
// matrix K−FFᵀ of the proposals, proposal j is accepted with probability
//
//	(H_jj − H_jA H_AA⁻¹ H_Aj) / d_j,
//
// A being those accepted before it. The law of the landmarks is that of one at a
// time, whatever the block (Epperly, Tropp, Webber). Points whose d_i is at most
// 2⁻²⁰k(x_i, x_i) are not drawn; if no others are left, or they hold at most 2⁻²⁴ of the
// trace, K̂ is K to rounding and F has fewer columns than asked.
//
// Work: n·rank² flops and the columns of K of all proposals; memory: see the package
// doc. The landmarks and F are functions of g and Options.Block, with the same bits
// for any number of threads and of ranks. Errors are those of Nystrom.
func RPCholesky(ctx context.Context, src Source, rank int, g rng.Stream, o *Options) (*Factor, error) {
	opt := o.settled(rank)
	b, err := newBuild(src, rank, &opt)
	if err != nil {
		return nil, err
	}
	p := newPartial(b)
	draws, coins := g.Sub("proposals"), g.Sub("acceptance")
	var drawn, tossed uint64
	accept := func(left, pivot float64) bool {
		tossed++
		return coins.Float64(tossed-1)*left < pivot
	}
	var at []float64
	for len(p.marks) < rank {
		total, err := p.weigh(ctx)
		if err != nil {
			return nil, err
		}
		if total == 0 {
			break
		}
		at = at[:0]
		for range min(opt.Block, rank-len(p.marks)) {
			at = append(at, min(draws.Float64(drawn)*total, math.Nextafter(total, 0)))
			drawn++
		}
		proposals, err := p.draw(ctx, at)
		if err == nil {
			err = p.extend(ctx, proposals, accept)
		}
		if err != nil {
			return nil, err
		}
		opt.Progress(len(p.marks), rank)
	}
	if len(p.marks) < rank {
		opt.Progress(rank, rank)
	}
	return p.finish(ctx, "RPCholesky", p.marks, p.nu)
}
