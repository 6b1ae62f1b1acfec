package cost

import (
	"cmp"
	"math"
	"slices"

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
	// Decay estimates how that mean decreases with the number r of pivots: in proportion to r^−Decay. It is 0 if it is
	// not known, or if the mean does not decrease.
	Decay float64
	// LowRank is the number r of random pivots with which tr(K−FFᵀ) is expected to be at most rλ, according to the
	// pilot sample; 0 if it is not known to be below n.
	LowRank       int
	MeanRowSum    float64 // estimated mean over the rows i of Σ_{j≠i}|k(x_i, x_j)|
	LargestRowSum float64 // estimated maximum over the rows i of Σ_j|k(x_i, x_j)|
	MaxDiagonal   float64 // largest k(x, x)
	// TrainingSeconds predicts the seconds of a fit with a preconditioner, +Inf if the fit needs too much memory. It is
	// nil if the costs of the problem are not known.
	TrainingSeconds func(stage.Preconditioner) float64
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

// rankFactors are the ranks that RankCandidates returns, in units of DefaultRank, which comes first.
var rankFactors = [...]float64{1, 0.5, math.Sqrt2 / 2, math.Sqrt2, 2}

// DefaultRank returns n/20, but at most 12,000.
func (m *IterationModel) DefaultRank() int {
	return min(max(1, int(defaultRankShare*float64(m.N))), maxRank)
}

// Rank returns the requested rank, but at most 12,000, or else DefaultRank.
func (m *IterationModel) Rank() int { return min(cmp.Or(m.S, m.DefaultRank()), maxRank) }

// RankCandidates returns the ranks to choose among: the requested one, or else DefaultRank and four others from half to
// twice that. None of them exceeds LowRank, because more pivots would save few iterations.
func (m *IterationModel) RankCandidates() (ranks []int) {
	if m.S > 0 {
		return []int{m.Rank()}
	}
	largest := min(m.N, maxRank, cmp.Or(m.LowRank, maxRank))
	for _, factor := range rankFactors {
		rank := min(max(1, int(factor*float64(m.DefaultRank()))), largest)
		if !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Fastest returns the preconditioner with the least TrainingSeconds, and the first one of several with equal seconds.
// If TrainingSeconds is nil, it returns the first preconditioner.
func (m *IterationModel) Fastest(preconditioners ...stage.Preconditioner) stage.Preconditioner {
	if m.TrainingSeconds == nil {
		return preconditioners[0]
	}
	return slices.MinFunc(preconditioners, func(a, b stage.Preconditioner) int {
		return cmp.Compare(m.TrainingSeconds(a), m.TrainingSeconds(b))
	})
}

// PivotRidge returns λ_p of M = FFᵀ+λ_pI for a factor F with the given number of random pivots: the requested λ_p, or
// else λ if γ is small, and 10λ otherwise (sameRidge).
func (m *IterationModel) PivotRidge(rank int) float64 {
	if m.LambdaP == 0 && m.gamma(rank) > sameRidge*m.Lambda {
		return 10 * m.Lambda
	}
	return cmp.Or(m.LambdaP, m.Lambda)
}

// gamma returns γ, an estimate of tr(K−FFᵀ)/r for a factor F with the given number r of pivots, and at most
// LargestRowSum. For r = DefaultRank it is (n−r)·PilotResidual/r, or with r replaced by SampleSize if SampleSize is
// larger. If DefaultRank is more than SampleSize, the estimate is too large, because the residual of a point decreases
// with r.
//
// For another r, γ is multiplied by (DefaultRank/r)^q with q = min(12·Decay, 2+2·Decay, 4), so that the predicted
// iterations are in proportion to r^(−q/4) if λ is small. The numbers in q were fitted to the stored results of the
// testbed for the ranks n/40 and n/10 (experiments/testbed, TestRefit). There iterations decrease about as
// r^−((1+Decay)/2), at most as r^−1, and hardly at all if Decay is close to 0, as for COVTYPE.
func (m *IterationModel) gamma(rank int) float64 {
	r := float64(max(m.SampleSize, m.DefaultRank()))
	exponent := min(12*m.Decay, 2+2*m.Decay, 4)
	change := math.Pow(float64(m.DefaultRank())/float64(max(1, rank)), exponent)
	return min((float64(m.N)-r)*m.PilotResidual/r*change, m.LargestRowSum)
}

// PivotIterations returns the predicted iterations to τ = 10⁻³ with M = FFᵀ+λ_pI, where F has the given number of
// random pivots and λ_p is PivotRidge: 12·(1+γ/λ)^¼. With n/20 pivots and the ridge γ (see gamma), K has about n/20
// effective degrees of freedom.
func (m *IterationModel) PivotIterations(rank int) float64 {
	return pivotFactor * math.Pow(1+m.gamma(rank)/m.Lambda, 0.25)
}
