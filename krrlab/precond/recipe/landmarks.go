package recipe

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// factorFunc computes a factor F of K from the columns of K. The stream g is for the landmarks.
type factorFunc func(k lowrank.Source, g rng.Stream, o *lowrank.Options) (*lowrank.Factor, error)

// factorFromColumns computes a factor F of rank s from columns of K. The columns are recomputed in float64 for any
// storage of K, so the bounds that the factor certifies refer to the exact K. The accuracy of K is λ/1000, or the
// rounding error of a factorization of this rank if that is larger. Distances are computed from differences of points
// if inner products cancel more digits than that.
func factorFromColumns(ctx context.Context, bench stage.Bench, s int, compute factorFunc) (*stage.FeatureMatrix,
	error) {
	problem := bench.Problem()
	trace := floats.Sum(kernel.Diag(problem.Kernel, problem.X))
	k, err := gram.NewExact(problem.Kernel, problem.X, problem.Lambda,
		max(problem.Lambda/1000, 0x1p-52*float64(s)*trace), problem.Comm)
	if err != nil {
		return nil, err
	}
	f, err := compute(k, rng.New(problem.Seed).Sub("landmarks", 0),
		&lowrank.Options{Progress: stage.Progress(ctx, bench.Notify, stage.Features), Comm: problem.Comm})
	if err != nil {
		return nil, err
	}
	return &stage.FeatureMatrix{Z: f.F, Factor: f}, nil
}

// extension provides the method Extend for sources of landmark factors.
type extension struct{}

// Extend implements stage.ExtensibleSource.
func (extension) Extend(ctx context.Context, bench stage.Bench,
	previous *stage.FeatureMatrix) (*stage.FeatureMatrix, error) {
	extend := func(k lowrank.Source, _ rng.Stream, o *lowrank.Options) (*lowrank.Factor, error) {
		o.Comm = nil
		return previous.Factor.Extend(ctx, k, o)
	}
	return factorFromColumns(ctx, bench, previous.Z.D, extend)
}

// pivotSource computes factors by randomly pivoted Cholesky, which stopResidual may end (lowrank.Options.StopResidual).
type pivotSource struct {
	stopResidual float64
	extension
}

// String names the method.
func (pivotSource) String() string { return "randomly pivoted Cholesky" }

// Draw computes F of rank s.
func (p pivotSource) Draw(ctx context.Context, bench stage.Bench, s int) (*stage.FeatureMatrix, error) {
	return factorFromColumns(ctx, bench, s, func(k lowrank.Source, g rng.Stream,
		o *lowrank.Options) (*lowrank.Factor, error) {
		o.StopResidual = p.stopResidual
		return lowrank.RPCholesky(ctx, k, s, g, o)
	})
}

// Costs of landmarks in units of the rates of cost.Model. Larger values predict more seconds.
const (
	pivotSlowdown   = 1.6  // pivots: n·s² operations, in units of one flop at the rate of a matrix product
	pivotEntryExps  = 66   // pivots: additional seconds per entry of F, in exponentials
	factorEntryExps = 31.6 // Nyström landmarks: additional seconds per entry of F, in exponentials
	pivotOverhead   = 1.1  // columns of K that RPCholesky forms per column that it accepts
)

// addPivotCost predicts the cost of a factor of s random pivots: ns(1.1·ε_exact + 66/E + 4/T + 1.6s/G₆₄) seconds.
// ε_exact is the time of an entry of the exact K (cost.Model.ExactEntrySeconds). E, T and G₆₄ are the rates of
// exponentials, of the first write to memory, and of matrix products in float64 (cost.Model).
func addPivotCost(m *cost.Model, s int, predicted *cost.PrecondCost) {
	if s == 0 {
		return
	}
	pivots, rows, maxRows := float64(s), m.OwnRows(), maxOwnRows(m)
	predicted.Features = rows*pivots*(pivotOverhead*m.ExactEntrySeconds+pivotEntryExps/m.Exp+
		pivotSlowdown*pivots/m.Gemm64) + m.WriteSeconds(4*rows*pivots)
	// The terms are the low-order part of F, a block of columns of K, rows of F at the proposals, and conversions to
	// float64 on each thread.
	proposals := int64(pivotBlock(s))
	predicted.Bytes.Columns = (4*int64(s)+8*proposals+32)*maxRows + 8*proposals*(3*int64(s)+2*proposals) +
		9*int64(m.N) + 2048*min(int64(s), 512)*int64(accel.Threads())
	if m.Ranks < 2 {
		predicted.Bytes.Features += 8 * int64(s) * int64(s) // the Cholesky factor at the pivots, for Extend
		return
	}
	group := m.Group()
	block := float64(pivotBlock(s)) // each block exchanges the proposals, their rows of F, and sums of the residuals
	blocks := math.Ceil(pivotOverhead * pivots / block)
	traffic := &predicted.Traffic.Features
	traffic.Add(cost.Group{P: group.P, OwnRows: block / group.P, Rows: block}.Gather(pivots/2+1), blocks)
	traffic.Add(group.Reduce(block), blocks)
	traffic.Add(group.Gather(1./precond.RankRows), blocks)
}

// pivotBlock returns the number of pivots that RPCholesky proposes together, the default of lowrank.Options.Block.
func pivotBlock(s int) int { return min(max(10, s/10), 200, s) }
