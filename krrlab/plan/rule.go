package plan

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
)

// The rule: what is a candidate, and the iterations that are expected of it. The factors of iterations are of the
// twelve problems of make bench-plan.
const (
	fewPivots    = 1. / 40 // of n, beside a sparse inverse
	usualPivots  = 1. / 20 // of n, where the rank is to be one
	mostRank     = 12000
	ridges       = 10   // λ_p/λ where landmarks leave at least as much
	ridged       = 0.87 // of the iterations that it takes then
	featuresSlow = 2.3  // times the iterations of landmarks that random features take
	alone        = 1.35 // times those of the formula that one column takes, as outliers take more than one each
	together     = 0.8  // of the iterations of pivots or a sparse inverse alone, the fewer, that both take
)

// pivotShares are the ranks of random pivots, of n.
var pivotShares = []float64{usualPivots, fewPivots, 1. / 10}

// candidates lists what fits what is held, those that are to be preferred first.
func (m *model) candidates() (list []*Candidate) {
	storage := m.storage()
	add := func(c Candidate) {
		c.Storage = cmp.Or(c.Storage, storage)
		if m.Iterative && c.Solver == Direct || m.Precond != "" && m.Precond != c.Precond {
			return
		}
		var best *Candidate
		for _, solver := range []string{c.Solver, BlockPCG} {
			one := c
			one.Solver = solver
			if solver == BlockPCG && (m.t == 1 || c.Solver == Direct) || m.Solver != "" && m.Solver != solver {
				continue
			}
			m.predict(&one)
			if best == nil || one.Seconds.training() < best.Seconds.training() {
				best = &one
			}
		}
		if best != nil {
			list = append(list, best)
		}
	}
	if m.S == 0 && m.LambdaP == 0 {
		for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
			if m.Storage == gram.Auto || m.Storage == s {
				add(Candidate{Solver: Direct, Precond: None, Storage: s})
			}
		}
		add(Candidate{Solver: CG, Precond: None})
	}
	rank := func(share float64) int { return min(cmp.Or(m.S, max(1, int(share*float64(m.n)))), mostRank) }
	landmarks := func(method string, share float64) {
		c := Candidate{Solver: PCG, Precond: method, S: rank(share), LambdaP: cmp.Or(m.LambdaP, m.Lambda)}
		if m.LambdaP == 0 && m.gamma(float64(c.S)) >= (ridges-1)*m.Lambda {
			c.LambdaP *= ridges
		}
		add(c)
	}
	for i, share := range pivotShares {
		if i == 0 || m.S == 0 {
			landmarks(RPCholesky, share)
		}
	}
	if m.LambdaP == 0 && kernel.Given(m.Kernel) == nil {
		if m.S == 0 {
			add(Candidate{Solver: PCG, Precond: Vecchia, Neighbors: m.pilot.neighbors, Damping: m.pilot.damping})
		}
		add(Candidate{Solver: PCG, Precond: Vecchia, S: rank(fewPivots), Neighbors: m.pilot.neighbors})
	}
	if m.Precond == Nystrom {
		landmarks(Nystrom, usualPivots)
	}
	if !m.NoFeatures {
		landmarks(Features, usualPivots)
	}
	return list
}

// gamma returns γ(s) = (n−s)·e(s)/s, the ridge at which K has about s degrees of freedom: what is left of K without s
// of its points is γ(s) in s directions, on average, and at most the largest sum of a row.
func (m *model) gamma(s float64) float64 {
	return min((float64(m.n)-s)*m.pilot.residual(s)/s, m.pilot.norm)
}

// expected returns the iterations that a rule expects. Of landmarks of rank r, none of which is r = 0, that conjugate
// gradients spend an iteration on each of k large eigenvalues that they leave (a block of t columns on t of them),
// and on the others what the condition number allows,
//
//	min over k of k/t + ½√κ(k)·ln(2/τ),  κ(k) = max(λ_p/λ, 1+γ(r+k)/λ),  r+k ≥ 1.
//
// A sparse inverse has 0.6·(60/k)^0.35·ω^−0.7 times the root of what is expected without M, beside pivots 0.8 times
// what the better of both takes alone.
func (m *model) expected(c *Candidate) float64 {
	block := 1.0
	if c.Solver == BlockPCG {
		block = float64(m.t)
	}
	none := m.steps(0, 1, block)
	inverse := 0.6 * math.Pow(60/float64(max(c.Neighbors, 1)), 0.35) * math.Pow(cmp.Or(m.pilot.damping, 1), -0.7)
	inverse = min(none, inverse*math.Sqrt(none))
	switch c.Precond {
	case None:
		return none
	case Vecchia:
		if c.S > 0 {
			inverse = together * min(inverse, m.steps(c.S, 1, block))
		}
		return inverse
	}
	its := m.steps(c.S, c.LambdaP/m.Lambda, block)
	if c.LambdaP > m.Lambda && m.gamma(float64(c.S)) > c.LambdaP-m.Lambda {
		its *= ridged
	}
	if c.Precond == Features {
		its *= featuresSlow
	}
	return its
}

// steps is expected for landmarks.
func (m *model) steps(rank int, ridge, block float64) float64 {
	least := math.Inf(1)
	for k := 0.0; k < float64(m.n); k = max(k+1, 1.1*k) {
		s := min(float64(rank)+k, float64(m.n))
		if s < 1 {
			continue
		}
		kappa := max(ridge, 1/ridge, 1+m.gamma(s)/m.Lambda)
		least = min(least, k/block+math.Sqrt(kappa)*math.Log(2/m.Tol)/2)
	}
	if m.t == 1 {
		least *= alone
	}
	return math.Ceil(min(least, float64(m.n)))
}
