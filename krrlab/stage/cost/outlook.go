package cost

import (
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// Outlook is what is known of a problem before it is solved, from M of its points.
type Outlook struct {
	Kernel kernel.Kernel
	N, M   int
	Lambda float64
	// What the caller asks for of whichever preconditioner is taken; 0: nothing.
	S       int     // rank
	LambdaP float64 // λ_p
	// Left is the mean residual of a point after projection on M others.
	PilotResidual float64
	// Sum estimates Σ_j|k(x_i, x_j)|, j ≠ i, of a row of K on average, Largest the largest one with k(x_i, x_i).
	MeanRowSum, LargestRowSum float64
	MaxDiagonal               float64 // k(x, x)
}

// IterationPredictor is a Preconditioner of which a rule of thumb tells the iterations.
type IterationPredictor interface {
	Preconditioner
	// Iterations returns those to τ = 10⁻³; for another τ they are in proportion to ln(2/τ).
	Iterations(o *Outlook) float64
}

// Proposer is a Preconditioner of which the Zero of its Kind names those that may be the fastest: auto chooses among
// the proposals of all kinds.
type Proposer interface {
	IterationPredictor
	Propose(o *Outlook) []stage.Preconditioner
}

const (
	rankShare, mostRank = 1. / 20, 12000 // of n
	pivotSteps          = 12             // iterations of pivots, times (1+γ/λ)^¼, as counted on the problems of make bench-plan
)

// Rank returns the rank that is asked for, by default n/20, and 12,000 at most.
func (o *Outlook) Rank() int {
	if o.S > 0 {
		return min(o.S, mostRank)
	}
	return min(max(1, int(rankShare*float64(o.N))), mostRank)
}

// PivotIterations returns the iterations to τ = 10⁻³ with M = FFᵀ+λ_pI, F of n/20 random pivots and λ_p = 10λ:
// 12·(1+γ/λ)^¼, where γ = (n−r)·Left/r of r = M pivots, at most the largest sum of a row, is the ridge at which K has
// about r degrees of freedom.
func (o *Outlook) PivotIterations() float64 {
	r := float64(o.M)
	gamma := min((float64(o.N)-r)*o.PilotResidual/r, o.LargestRowSum)
	return pivotSteps * math.Pow(1+gamma/o.Lambda, 0.25)
}
