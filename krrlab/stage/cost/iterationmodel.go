package cost

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// IterationModel has the properties of a problem from which iterations are predicted before it is solved. They were
// estimated from a pilot sample of M points.
type IterationModel struct {
	Kernel kernel.Kernel
	N, M   int // numbers n of points and M of sampled ones
	Lambda float64
	// S and LambdaP are the values that the user requested for any preconditioner; 0: not requested.
	S       int     // rank s
	LambdaP float64 // ridge λ_p of M = FFᵀ+λ_pI
	// PilotResidual is the mean residual of a point after projection on M others.
	PilotResidual float64
	// LowRank is the number r of random pivots with which tr(K−FFᵀ) is expected to be at most rλ, according to the
	// pilot sample; 0 if it is not known to be below n.
	LowRank int
	// MeanRowSum estimates the mean over rows i of Σ_{j≠i}|k(x_i, x_j)|, LargestRowSum the largest such sum with k(x_i,
	// x_i) added.
	MeanRowSum, LargestRowSum float64
	MaxDiagonal               float64 // largest k(x, x)
}

// IterationPredictor is a Preconditioner whose iterations can be predicted by a rule of thumb.
type IterationPredictor interface {
	Preconditioner
	// Iterations returns the predicted iterations to τ = 10⁻³. For another τ they are in proportion to ln(2/τ).
	Iterations(o *IterationModel) float64
}

// Proposer is a Preconditioner that proposes configurations for a problem. Solver auto chooses among the proposals of
// the Zero of every Kind.
type Proposer interface {
	IterationPredictor
	// Propose returns the configurations worth trying, or nil if there is none. The receiver is the Zero of a Kind. If
	// o has an S or a LambdaP, plans ignore configurations that do not set it.
	Propose(o *IterationModel) []stage.Preconditioner
}

const (
	defaultRankShare = 1. / 20 // default rank, as a share of n
	maxRank          = 12000   // largest rank

	// pivotFactor is the number of iterations with random pivots, in units of (1+γ/λ)^¼. It was fitted to the problems
	// of make bench-plan; the predicted iterations are proportional to it.
	pivotFactor = 12

	// sameRidge is the largest γ/λ for which λ_p = λ takes fewer iterations than λ_p = 10λ, as fitted by TestRefit of
	// package experiments/testbed. A larger value chooses λ_p = λ for more problems.
	sameRidge = 100
)

// Rank returns the requested rank, or else n/20, and at most 12,000.
func (o *IterationModel) Rank() int {
	if o.S > 0 {
		return min(o.S, maxRank)
	}
	return min(max(1, int(defaultRankShare*float64(o.N))), maxRank)
}

// Pivots returns the rank and λ_p of M = FFᵀ+λ_pI with random pivots. The rank is the requested one, or else Rank, or
// LowRank if that is less, as more pivots would save few iterations. λ_p is the requested one, or else λ if γ is small,
// and 10λ otherwise (sameRidge).
func (o *IterationModel) Pivots() (rank int, lambdaP float64) {
	rank, lambdaP = o.Rank(), o.Lambda
	if o.S == 0 && o.LowRank > 0 {
		rank = min(rank, o.LowRank)
	}
	if o.gamma() > sameRidge*o.Lambda {
		lambdaP *= 10
	}
	return rank, cmp.Or(o.LambdaP, lambdaP)
}

// gamma returns γ = (n−r)·PilotResidual/r, where r is the rank, but at least M, and γ at most the largest row sum: the
// mean eigenvalue, per pivot, of what r pivots leave of K. For r > M it is an upper bound, as the residual decreases.
func (o *IterationModel) gamma() float64 {
	r := float64(max(o.M, o.Rank()))
	return min((float64(o.N)-r)*o.PilotResidual/r, o.LargestRowSum)
}

// PivotIterations returns the predicted iterations to τ = 10⁻³ with M = FFᵀ+λ_pI, where F has n/20 random pivots and
// λ_p = 10λ: 12·(1+γ/λ)^¼. The ridge γ (gamma) is the one at which K has about n/20 degrees of freedom.
func (o *IterationModel) PivotIterations() float64 {
	return pivotFactor * math.Pow(1+o.gamma()/o.Lambda, 0.25)
}
