package krrlab

import (
	"time"

	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/results"
)

// Solver names a way to solve (K+λI)C = Y.
type Solver = results.Solver

const (
	// AutoSolver, with the preconditioner Auto{} or nil, takes what Plan chooses where n > DirectBelow. Where
	// there is no plan (fewer points, Repeat, a Backend) it is a fixed rule: PCG where the preconditioner or the
	// storage was set, otherwise Direct, in the precision of direct.Faster, where n ≤ DirectBelow and there are no ranks, no checkpoints and no Stop by bounds, and else
	// BlockPCG or PCG by plan.BlockPays.
	AutoSolver = results.AutoSolver
	// PCG is Algorithm 1 of the paper.
	PCG = results.PCG
	// CG is conjugate gradients without a preconditioner.
	CG = results.CG
	// Direct is a dense Cholesky factorization of K+λI.
	Direct = results.Direct
	// BlockPCG is block conjugate gradients, preconditioned or not: all right-hand sides
	// search one space together, in fewer iterations.
	BlockPCG = results.BlockPCG
)

// DirectBelow is the largest n at which AutoSolver prefers a dense Cholesky
// factorization: its n³/3 flops are few there.
const DirectBelow = 4000

// ParseSolver returns the solver of that name.
func ParseSolver(name string) (s Solver, err error) {
	err = s.UnmarshalText([]byte(name))
	return s, err
}

// ResidualPolicy says how the true residual Y−(K+λI)C of the answer is recomputed.
type ResidualPolicy int

const (
	// AutoResidual is ExactResidual where that is cheap (n²d ≤ 2e10), and otherwise
	// StoredResidual; up to n²d = 5e11, some seconds, ExactResidual follows where the
	// rows checked leave less than half of the tolerance.
	AutoResidual ResidualPolicy = iota
	// ExactResidual forms K again, in float64, tile by tile: n²d/2 multiply-adds, with a certain
	// bound of rounding (Solution.Rounding). If K as stored was too coarse for the tolerance, the
	// answer is refined by it.
	ExactResidual
	// StoredResidual takes one product with K as it is stored, and estimates by how much that is off
	// from rows of K in float64, 256 drawn at random and the 32 farthest from the mean
	// (Solution.StorageResidual).
	StoredResidual
)

var residualNames = []string{"auto", "exact", "stored"}

func (r ResidualPolicy) String() string { return enum.Name(residualNames, r) }

// ParseResidualPolicy returns the policy of that name.
func ParseResidualPolicy(name string) (ResidualPolicy, error) {
	return enum.Parse[ResidualPolicy]("residual", residualNames, name)
}

// DefaultFeatures returns the number of features s used when none is asked for:
// n/10, but at least 500 and at most 10,000, and never more than n. The paper's
// own choices lie between n/12 and n/4 on data of this size.
func DefaultFeatures(n int) int { return min(n, max(500, min(n/10, 10000))) }

// Checkpoint says where and how often a solve by conjugate gradients keeps its state, and
// whether it goes on from one. The state is that of the iteration, 24 to 40nt bytes; features and
// K are a function of the data and the configuration and are formed again, K as it was stored and
// computed before, whatever the memory allows now: where that does not fit, it is an error. A
// solve that is resumed gives the coefficients of an unbroken one, bit for bit with the same
// BLAS, and on any number of ranks. The direct solver keeps no state.
type Checkpoint struct {
	Dir       string        // a folder of its own, made if it is not there; the host of the first rank must see it, in this run and when it is resumed
	Every     time.Duration // at most this between two; default, if EveryIter is 0 too: a minute
	EveryIter int           // or as many iterations
	// Resume goes on from the newest checkpoint in Dir that is whole and of the same data and
	// configuration (MaxIter, Memory, Monitor and the ranks may differ), and begins if there is
	// none at all. Without it Dir must have none.
	Resume bool
	Note   func(string) // told what is resumed, and which files are refused; nil is silent
}
