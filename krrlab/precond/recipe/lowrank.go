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

// What M = ZZᵀ+λ_pI takes in units of the rates, as measured on two cores (docs/benchmarks.md): how many times its flops
// at the rate of a product of matrices, or exponentials for each entry of Z (…Values).
const (
	gramSlow    = 1.7 // ZᵀZ in float32
	gramValues  = 4   // and an entry of Z
	inverseSlow = 3.4 // the inverse of the factor of ZᵀZ
)

// settle sets the defaults of rank and ridge, and checks them.
func settle(s *int, lambdaP *float64, d stage.Defaults) error {
	*s, *lambdaP = cmp.Or(*s, d.S), cmp.Or(*lambdaP, d.LambdaP)
	if *s < 1 || *s > d.N {
		return fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", *s, d.N)
	}
	if !(*lambdaP >= 1e-100 && *lambdaP <= 1e100) {
		return fmt.Errorf("λ_p = %g: want a positive number from 1e-100 to 1e100", *lambdaP)
	}
	return nil
}

// inverse makes M of a preconditioner that may not be settled.
func inverse(ctx context.Context, b stage.Bench, p stage.LowRank) (*precond.Woodbury, error) {
	settled, err := p.Settled(b.Problem().Defaults())
	if err != nil {
		return nil, err
	}
	return settled.(stage.LowRank).Approximation(b.Problem().Kernel).Inverse(ctx, b)
}

// lowRankCost predicts what M = ZZᵀ+λ_pI takes, but for Z. True residuals of landmarks are bounded by two applications
// of M⁻¹ more.
func lowRankCost(m *cost.Model, s int, lambdaP float64, form precond.Form, landmarks bool) cost.Parts {
	t, order := float64(max(1, m.T)), float64(s)
	ranks := max(m.Ranks, 1)
	shared := precond.Sharers(form, m.N, s, max(m.T, 1), ranks)
	p := cost.Parts{S: s, LambdaP: lambdaP, Apply: m.ApplyLowRankSeconds(s, shared)}
	p.Factor = m.OwnRows()*order*(gramValues/m.Exp+gramSlow*order/m.Gemm32) + m.CholeskySeconds(order, m.Gemm64,
		shared) +
		inverseSlow*order*order*order/3/m.Gemm64/cost.FactorRanks(order, shared)
	p.Bytes.Factor, p.Bytes.Forming = precond.FactorBytes(s, shared)
	p.Bytes.Features = 4 * int64(s) * mostRows(m)
	if ranks == 1 || s == 0 {
		return p
	}
	r := m.Group()
	apply := &p.Traffic.Iteration
	apply.Add(r.Reduce(order*t), 1)
	apply.Add(r.Gather(t), 1)
	if shared > 1 {
		apply.Add(r.Reduce(order*t), 2)
	}
	if landmarks && m.ResidualRounds > 0 {
		p.Traffic.Residual.Add(*apply, 2)
	}
	factorTraffic(r, s, shared > 1, &p.Traffic.Factor)
	return p
}

// mostRows returns how many of n rows are the own of the rank that has the most.
func mostRows(m *cost.Model) (most int64) {
	for _, rows := range comm.Counts(m.N, precond.RankRows, max(m.Ranks, 1), 1) {
		most = max(most, int64(rows))
	}
	return most
}

// factorTraffic adds what forms and factors ZᵀZ+λ_pI: peaks of columns, ZᵀZ, what measures its error, and where it is
// shared block columns of L, twice, and rows of L⁻¹.
func factorTraffic(r cost.Group, order int, shared bool, to *cost.Traffic) {
	s := float64(order)
	to.Add(r.Reduce(r.P*s), 1)
	to.Add(r.Reduce(s*(s+1)/2), 1)
	to.Add(r.Reduce(precond.Measured*s), 1)
	if !shared {
		return
	}
	to.Add(r.Reduce(precond.Measured*s), 1)
	to.Add(cost.Traffic{Steps: r.Reduce(1).Steps}, 1) // ln det
	for j := 0; j*accel.TileOrder < order; j++ {
		at := float64(j * accel.TileOrder)
		width := min(accel.TileOrder, s-at)
		own := 0.
		if math.Mod(float64(j), r.P) == 0 {
			own = 8 * width
		}
		to.Add(r.Broadcast(8*width*(s-at), own*(s-at)), 2)
		to.Add(r.Broadcast(8*width*(at+width), own*(at+width)), 1)
	}
}
