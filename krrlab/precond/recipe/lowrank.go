package recipe

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Costs of M = ZZᵀ+λ_pI in units of the rates of cost.Model, as measured on two cores (docs/benchmarks.md). Larger
// values predict more seconds.
const (
	gramSlowdown    = 1.7 // ZᵀZ in float32: ns² operations, in units of one flop at the rate of a matrix product
	gramEntryExps   = 4   // additional seconds of ZᵀZ per entry of Z, in exponentials
	inverseSlowdown = 3.4 // L⁻¹: s³/3 operations, in units of one flop at the rate of a matrix product
)

// Advice for all M = ZZᵀ+λ_pI if the iteration is slow, and if M is not positive definite in float64.
const (
	lowRankAdviceIfSlow       = "a larger features= or lambda-p= in --precond"
	lowRankAdviceIfIndefinite = "a larger lambda-p= in --precond"
)

// setDefaults replaces zeros in s and lambdaP by the defaults and checks the values.
func setDefaults(s *int, lambdaP *float64, defaults stage.Defaults) error {
	*s, *lambdaP = cmp.Or(*s, defaults.S), cmp.Or(*lambdaP, defaults.LambdaP)
	if *s < 1 || *s > defaults.N {
		return fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", *s, defaults.N)
	}
	return stage.CheckSize("λ_p", *lambdaP)
}

// newWoodbury computes the M of a recipe, after it has filled in the defaults of the recipe.
func newWoodbury(ctx context.Context, bench stage.Bench, recipe stage.LowRank) (*precond.Woodbury, error) {
	withDefaults, err := recipe.WithDefaults(bench.Problem().Defaults())
	if err != nil {
		return nil, err
	}
	return withDefaults.(stage.LowRank).Approximation(bench.Problem().Kernel).Inverse(ctx, bench)
}

// lowRankCost predicts the cost of M = ZZᵀ+λ_pI without the computation of Z. If tr K/λ_p is so large that rounding
// spoils M⁻¹R, M⁻¹ is applied twice, to R and to the residual of the first result. If lambdaP is 0, M⁻¹ is taken to be
// applied once (Vecchia has no λ_p).
func lowRankCost(m *cost.Model, features int, lambdaP float64, form precond.Form) cost.PrecondCost {
	t, s := float64(max(1, m.T)), float64(features)
	ranks := max(m.Ranks, 1)
	sharers := precond.RanksPerFactor(form, m.N, features, max(m.T, 1), ranks)
	applications := 1.
	if lambdaP > 0 && form != precond.FormU && precond.NeedsCorrection(m.Trace, lambdaP) {
		applications = 2
	}
	predicted := cost.PrecondCost{S: features, LambdaP: lambdaP,
		Apply: applications * m.ApplyLowRankSeconds(features, sharers)}
	predicted.Factor = m.OwnRows()*s*(gramEntryExps/m.Exp+gramSlowdown*s/m.Gemm32) +
		m.CholeskySeconds(s, m.Gemm64, sharers) +
		inverseSlowdown*s*s*s/3/m.Gemm64/cost.FactorRanks(s, sharers)
	predicted.Bytes.Factor, predicted.Bytes.Forming = precond.FactorBytes(features, sharers)
	predicted.Bytes.Features = 4 * int64(features) * maxOwnRows(m)
	if ranks == 1 || features == 0 {
		return predicted
	}
	group := m.Group()
	apply := &predicted.Traffic.Iteration
	apply.Add(group.Reduce(s*t), applications)
	apply.Add(group.Gather(t), applications)
	if sharers > 1 {
		apply.Add(group.Reduce(s*t), 2*applications)
	}
	addFactorTraffic(group, features, sharers, &predicted.Traffic.Factor)
	return predicted
}

// landmarkCost is lowRankCost for a factor F from landmarks. A true residual then takes two more applications of M⁻¹,
// which bound the error.
func landmarkCost(m *cost.Model, s int, lambdaP float64, form precond.Form) cost.PrecondCost {
	predicted := lowRankCost(m, s, lambdaP, form)
	if m.ResidualRounds > 0 {
		predicted.Traffic.Residual.Add(predicted.Traffic.Iteration, 2)
	}
	return predicted
}

// maxOwnRows returns the largest number of rows that a rank owns.
func maxOwnRows(m *cost.Model) (rows int64) {
	for _, count := range comm.RowCounts(m.N, precond.RankRows, max(m.Ranks, 1), 1) {
		rows = max(rows, int64(count))
	}
	return rows
}

// addFactorTraffic adds the traffic of forming and factoring ZᵀZ+λ_pI: the largest entries of the columns of Z, ZᵀZ,
// and the measurement of its error. If several ranks share the factor, they also exchange the block columns of L twice,
// and the rows of L⁻¹.
func addFactorTraffic(group cost.Group, features, sharers int, traffic *cost.Traffic) {
	s := float64(features)
	traffic.Add(group.Reduce(group.P*s), 1)
	traffic.Add(group.Reduce(s*(s+1)/2), 1)
	traffic.Add(group.Reduce(precond.ErrorSumsPerFeature*s), 1)
	if sharers == 1 {
		return
	}
	traffic.Add(group.Reduce(precond.ErrorSumsPerFeature*s), 1)
	traffic.Add(cost.Traffic{Steps: group.Reduce(1).Steps}, 1) // one number for ln det(ZᵀZ+λ_pI)
	for j := 0; j*accel.TileOrder < features; j++ {
		column := float64(j * accel.TileOrder)
		width := min(accel.TileOrder, s-column)
		sent := 0. // bytes per row that rank 0, which owns block columns 0, P, 2P, …, sends
		if math.Mod(float64(j), group.P) == 0 {
			sent = 8 * width
		}
		traffic.Add(group.Broadcast(8*width*(s-column), sent*(s-column)), 2)
		traffic.Add(group.Broadcast(8*width*(column+width), sent*(column+width)), 1)
	}
}
