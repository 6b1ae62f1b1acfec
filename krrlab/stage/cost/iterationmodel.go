package cost

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// IterationModel has the properties of a problem from which iterations are predicted before it is solved. They were
// estimated from a pilot sample, a random sample of the points. F denotes the factor of a rank-r approximation FFᵀ of K
// from random pivots (landmarks).
type IterationModel struct {
	Kernel     kernel.Kernel
	N          int // number n of points
	SampleSize int // number of points of the pilot sample
	Lambda     float64
	// S and LambdaP are the values that the user requested for any preconditioner; 0: not requested.
	S       int     // rank s
	LambdaP float64 // ridge λ_p of M = FFᵀ+λ_pI
	// PilotResidual is the mean over the points of the diagonal entry of K−FFᵀ if F has SampleSize pivots.
	PilotResidual float64
	// LowRank is the number r of random pivots with which tr(K−FFᵀ) is expected to be at most rλ, according to the
	// pilot sample; 0 if it is not known to be below n.
	LowRank       int
	MeanRowSum    float64 // estimated mean over the rows i of Σ_{j≠i}|k(x_i, x_j)|
	LargestRowSum float64 // estimated maximum over the rows i of Σ_j|k(x_i, x_j)|
	MaxDiagonal   float64 // largest k(x, x)
}

// IterationPredictor is a Preconditioner whose iterations can be predicted by a rule of thumb.
type IterationPredictor interface {
	Preconditioner
	// Iterations returns the predicted iterations to the tolerance τ = 10⁻³. For another τ they are in proportion to
	// ln(2/τ).
	Iterations(m *IterationModel) float64
}

// Proposer is a Preconditioner that proposes configurations for a problem. The solver auto chooses among the proposals
// of all registered kinds of preconditioners.
type Proposer interface {
	IterationPredictor
	// Propose returns the configurations worth trying, or nil if there is none. The receiver is the Zero of a
	// stage.Kind. If m has an S or a LambdaP, plans ignore configurations that do not set it.
	Propose(m *IterationModel) []stage.Preconditioner
}

const (
	defaultRankShare = 1. / 20 // default rank, as a share of n
	maxRank          = 12000   // largest rank

	// pivotFactor is the number of iterations with random pivots, in units of (1+γ/λ)^¼ with γ from gamma. It was
	// fitted to the problems of make bench-plan; the predicted iterations are proportional to it.
	pivotFactor = 12

	// sameRidge is the largest γ/λ for which λ_p = λ takes fewer iterations than λ_p = 10λ, as fitted by TestRefit of
	// package experiments/testbed. A larger value chooses λ_p = λ for more problems.
	sameRidge = 100
)

// Rank returns the requested rank, or else n/20, but at most 12,000.
func (m *IterationModel) Rank() int {
	if m.S > 0 {
		return min(m.S, maxRank)
	}
	return min(max(1, int(defaultRankShare*float64(m.N))), maxRank)
}

// Pivots returns the rank and λ_p of M = FFᵀ+λ_pI with random pivots. The rank is the requested one, or else Rank, or
// LowRank if that is less, as more pivots would save few iterations. λ_p is the requested one, or else λ if γ is small,
// and 10λ otherwise (sameRidge).
func (m *IterationModel) Pivots() (rank int, lambdaP float64) {
	rank, lambdaP = m.Rank(), m.Lambda
	if m.S == 0 && m.LowRank > 0 {
		rank = min(rank, m.LowRank)
	}
	if m.gamma() > sameRidge*m.Lambda {
		lambdaP *= 10
	}
	return rank, cmp.Or(m.LambdaP, lambdaP)
}

// gamma returns γ = min((n−r)·PilotResidual/r, LargestRowSum) with r = max(Rank, SampleSize), an estimate of
// tr(K−FFᵀ)/r for a factor F with r pivots. For r > SampleSize the estimate is too large, because the residual of a
// point decreases with r.
func (m *IterationModel) gamma() float64 {
	r := float64(max(m.SampleSize, m.Rank()))
	return min((float64(m.N)-r)*m.PilotResidual/r, m.LargestRowSum)
}

// PivotIterations returns the predicted iterations to τ = 10⁻³ with M = FFᵀ+λ_pI, where F has n/20 random pivots and
// λ_p = 10λ: 12·(1+γ/λ)^¼. With the ridge γ (see gamma), K has about n/20 effective degrees of freedom.
func (m *IterationModel) PivotIterations() float64 {
	return pivotFactor * math.Pow(1+m.gamma()/m.Lambda, 0.25)
}
