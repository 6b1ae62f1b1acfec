package plan

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
)

// The rule: what races, with the iterations that are expected before any is observed.
const (
	pivotShare   = 1. / 20 // of n, the rank of landmarks and features
	pivotRidge   = 10      // λ_p/λ of these
	fewShare     = 1. / 40 // of n, the pivots beside a sparse inverse
	mostRank     = 12000
	featuresSlow = 2.3 // times the iterations of landmarks that random features take, as measured on six data sets
	cheap        = 0.5 // of the seconds of pivots, up to which those of features let them race
)

// candidates lists what fits what is held.
func (m *model) candidates() (list []*Candidate) {
	storage := m.storage()
	add := func(c Candidate) {
		c.Storage = cmp.Or(c.Storage, storage)
		named := m.Solver != "" && m.Solver != c.Solver || m.Precond != "" && m.Precond != c.Precond
		if m.Iterative && c.Solver == Direct || named {
			return
		}
		c.Stored = c.Storage.String()
		list = append(list, &c)
	}
	solvers := []string{PCG, BlockPCG}[:min(m.t, 2)]
	if m.S == 0 && m.LambdaP == 0 {
		for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
			if m.Storage == gram.Auto || m.Storage == s {
				add(Candidate{Solver: Direct, Precond: None, Storage: s})
			}
		}
		for _, solver := range []string{CG, BlockPCG}[:min(m.t, 2)] {
			add(Candidate{Solver: solver, Precond: None})
		}
	}
	rank := func(share float64) int { return min(cmp.Or(m.S, max(1, int(share*float64(m.n)))), mostRank) }
	for _, solver := range solvers {
		for _, method := range m.lowRank() {
			add(Candidate{Solver: solver, Precond: method, S: rank(pivotShare), LambdaP: cmp.Or(m.LambdaP, pivotRidge*m.Lambda)})
		}
		if m.LambdaP == 0 && kernel.Given(m.Kernel) == nil {
			if m.S == 0 {
				add(Candidate{Solver: solver, Precond: Vecchia, Neighbors: m.pilot.neighbors, Damping: m.pilot.damping})
			}
			add(Candidate{Solver: solver, Precond: Vecchia, S: rank(fewShare), Neighbors: m.pilot.neighbors})
		}
	}
	return list
}

// lowRank lists the preconditioners of low rank that are candidates: the one that is asked for, or random pivots, and random
// features where they are cheap beside these.
func (m *model) lowRank() []string {
	if m.Precond != "" {
		return []string{Nystrom, RPCholesky, Features} // of which one is named
	}
	pivots := &Candidate{Precond: RPCholesky, S: int(pivotShare * float64(m.n))}
	features := &Candidate{Precond: Features, S: pivots.S}
	cost := m.cost
	for _, c := range []*Candidate{pivots, features} {
		cost.build(c)
	}
	if m.NoFeatures || features.Seconds.Features > cheap*pivots.Seconds.Features {
		return []string{RPCholesky}
	}
	return []string{RPCholesky, Features}
}

// gamma returns γ(s) = (n−s)·e(s)/s, the ridge at which K has about s degrees of freedom: what is left of K without s of its
// points is γ(s) in s directions, on the mean.
func (m *model) gamma(s float64) float64 {
	return (float64(m.n) - s) * m.pilot.residual(s) / s
}

// expected returns the iterations that a rule expects. Of landmarks of rank r, none of which is r = 0, that conjugate gradients
// spend an iteration on each of k large eigenvalues that they leave (a block of t columns on t of them), and on the others
// what the condition number allows,
//
//	min over k of k/t + ½√κ(k)·ln(2/τ),  κ(k) = max(λ_p/λ, 1+γ(r+k)/λ),  r+k ≥ 1.
//
// A sparse inverse has twice the root of what is expected without, and more where its damping says that neighbors do not
// explain K, and beside pivots half of what they take alone.
func (m *model) expected(c *Candidate) float64 {
	block := 1.0
	if c.Solver == BlockPCG {
		block = float64(m.t)
	}
	if c.Precond == Vecchia {
		if c.S > 0 {
			return m.steps(c.S, 1, block) / 2
		}
		return 2 * math.Sqrt(m.steps(0, 1, block)*min(16, 0.5/cmp.Or(c.Damping, 0.5)))
	}
	ridge := 1.0
	if c.Precond != None {
		ridge = c.LambdaP / m.Lambda
	}
	its := m.steps(c.S, ridge, block)
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
	return math.Ceil(min(least, float64(m.n)))
}
