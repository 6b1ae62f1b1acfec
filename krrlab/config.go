package krrlab

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
)

// Config says which problem to solve and how. The zero value of every field but
// Kernel and Lambda means its default.
type Config struct {
	Kernel kernel.Kernel // k(x, z)
	Lambda float64       // ridge λ > 0

	Solver  Solver         // default: AutoSolver
	Precond Preconditioner // default: Features{}, RPCholesky{} for a kernel without random features, None{} for CG and Direct
	Repeat  int            // independent preconditioners, the answers' A-norm median kept; default: 1
	Tol     float64        // τ in (0, 1); default: 1e-3
	MaxIter int            // default: 1000
	Storage gram.Storage   // of K; default: gram.Auto
	Memory  int64          // bytes the solve may take in all; default: no limit
	Seed    uint64         // all random numbers are a function of it
	Monitor func(Event)    // called as the work goes on; nil is silent
	Exact   ResidualPolicy // how the true residual is recomputed; default: AutoResidual

	// Comm is the group of ranks that share the work: all of them call New and the stages
	// together, with the same data and configuration, and get the same answer. Memory is
	// then each rank's. Default: nil, no ranks.
	Comm comm.Comm

	// Backend runs the stages elsewhere, as a remote.Backend on ranks which it starts. Default: nil,
	// they run here.
	Backend Backend

	// Checkpoint keeps the state of the solve, and resumes it. Default: nil, nothing is kept.
	Checkpoint *Checkpoint
}

// Event reports the progress of a stage.
type Event struct {
	Stage       string        // "features", "factor", "kernel", "solve", "residual" or "predict"
	Done, Total int           // parts of the stage's work; Total 0 means unknown
	Iteration   int           // of the solve
	Residual    float64       // of the solve: worst ‖y_j−Ac_j‖₂/‖y_j‖₂, by recurrence
	Remaining   time.Duration // estimate; negative means unknown
}

// Solver names a way to solve (K+λI)C = Y.
type Solver int

const (
	// AutoSolver takes PCG where the preconditioner or the storage was set. Otherwise it
	// takes Direct where n ≤ DirectBelow and there are no ranks and no checkpoints, and else
	// BlockPCG or PCG by predicted cost.
	AutoSolver Solver = iota
	// PCG is Algorithm 1 of the paper.
	PCG
	// CG is conjugate gradients without a preconditioner.
	CG
	// Direct is a dense Cholesky factorization of K+λI.
	Direct
	// BlockPCG is block conjugate gradients, preconditioned or not: all right-hand sides
	// search one space together, in fewer iterations.
	BlockPCG
)

// DirectBelow is the largest n at which AutoSolver prefers a dense Cholesky
// factorization: its n³/3 flops are few there.
const DirectBelow = 4000

var solverNames = []string{"auto", "pcg", "cg", "direct", "block-pcg"}

func (s Solver) String() string { return enumName(solverNames, int(s)) }

// ParseSolver returns the solver of that name.
func ParseSolver(name string) (Solver, error) {
	i, err := parseEnum("solver", solverNames, name)
	return Solver(i), err
}

// MarshalText implements encoding.TextMarshaler.
func (s Solver) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Solver) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSolver(string(b))
	return err
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

func (r ResidualPolicy) String() string { return enumName(residualNames, int(r)) }

// ParseResidualPolicy returns the policy of that name.
func ParseResidualPolicy(name string) (ResidualPolicy, error) {
	i, err := parseEnum("residual", residualNames, name)
	return ResidualPolicy(i), err
}

func enumName(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("unknown (%d)", i)
	}
	return names[i]
}

func parseEnum(what string, names []string, name string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %q", what, name, names)
}

// DefaultFeatures returns the number of features s used when none is asked for:
// n/10, but at least 500 and at most 10,000, and never more than n. The paper's
// own choices lie between n/12 and n/4 on data of this size.
func DefaultFeatures(n int) int { return min(n, max(500, min(n/10, 10000))) }

// withDefaults returns the configuration with its zero values replaced for n points and
// t right-hand sides.
func (c Config) withDefaults(n, t int) (Config, error) {
	if c.Kernel == nil {
		return c, fmt.Errorf("krrlab: no kernel")
	}
	if err := kernel.Validate(c.Kernel); err != nil {
		return c, err
	}
	if err := checkPositive("λ", c.Lambda); err != nil {
		return c, err
	}
	if c.Solver == AutoSolver {
		preset := c.Precond != nil || c.Storage != gram.Auto || c.Repeat > 1
		switch {
		case preset:
			c.Solver = PCG
		case n <= DirectBelow && !c.onRanks() && c.Checkpoint == nil:
			c.Solver = Direct
		case blockPays(n, DefaultFeatures(n), t):
			c.Solver = BlockPCG
		default:
			c.Solver = PCG
		}
	}
	switch {
	case c.Solver == CG || c.Solver == Direct:
		c.Precond = None{}
	case c.Precond == nil:
		c.Precond = Features{}
		if noFeatures(c.Kernel) {
			c.Precond = RPCholesky{}
		}
	case c.Solver == PCG && c.Precond == Preconditioner(None{}):
		c.Solver = CG
	}
	if p, ok := c.Precond.(approximation); ok {
		var err error
		if c.Precond, err = p.settled(c.Kernel, n, c.Lambda); err != nil {
			return c, err
		}
	}
	c.Tol = cmp.Or(c.Tol, 1e-3)
	c.MaxIter = cmp.Or(c.MaxIter, 1000)
	c.Repeat = cmp.Or(c.Repeat, 1)
	if c.Monitor == nil {
		c.Monitor = func(Event) {}
	}
	return c, c.validate()
}

// onRanks reports whether ranks do the work.
func (c Config) onRanks() bool { return c.Comm != nil || c.Backend != nil }

// blockPays predicts whether t ≥ 2 right-hand sides take less time together. A product
// with K and M⁻¹ takes 2n²t + 4nst flops; block PCG adds pcg.BlockFlops, on one thread,
// at about an eighth of the rate, and needs some 1 − ⅒·log₂t of the iterations: 0.84 for
// t = 3, 0.67 for t = 10, the least gain measured (package pcg).
func blockPays(n, s, t int) bool {
	if t < 2 {
		return false
	}
	products := 2*float64(n)*float64(n)*float64(t) + 4*float64(n)*float64(s)*float64(t)
	share := max(0.3, 1-0.1*math.Log2(float64(t)))
	return (products+8*pcg.BlockFlops(n, t, true))*share < products
}

// validate checks a configuration with its defaults in place.
func (c Config) validate() error {
	switch {
	case !(c.Tol > 0) || c.Tol >= 1:
		return fmt.Errorf("τ = %g: want a tolerance in (0, 1)", c.Tol)
	case c.MaxIter < 1:
		return fmt.Errorf("maximum of %d iterations: want at least 1", c.MaxIter)
	case c.Repeat < 1:
		return fmt.Errorf("%d repetitions: want at least 1", c.Repeat)
	case c.Solver == Direct && (c.Storage == gram.Recompute || c.Storage == gram.Fixed16):
		return fmt.Errorf("the direct solver holds a dense K; storage %v goes with pcg, block-pcg or cg", c.Storage)
	case c.Comm != nil && c.Backend != nil:
		return fmt.Errorf("krrlab: Comm and Backend are both set: want at most one of them")
	case c.Solver == Direct && c.onRanks():
		return fmt.Errorf("the direct solver holds a dense K in one process; on ranks take pcg, block-pcg or cg")
	case c.Solver == Direct && c.Checkpoint != nil:
		return fmt.Errorf("the direct solver has no iterations to keep checkpoints of; take pcg, block-pcg or cg")
	case c.Checkpoint != nil && c.Checkpoint.Dir == "":
		return fmt.Errorf("krrlab: no folder for checkpoints")
	case c.Checkpoint != nil && (c.Checkpoint.Every < 0 || c.Checkpoint.EveryIter < 0):
		return fmt.Errorf("checkpoints every %v or %d iterations: want none negative", c.Checkpoint.Every, c.Checkpoint.EveryIter)
	case c.Repeat > 1 && c.Precond == Preconditioner(None{}):
		return fmt.Errorf("%d repetitions without a preconditioner give the same answer each time: want one", c.Repeat)
	case c.Memory < 0:
		return fmt.Errorf("memory limit %d: want a positive number of bytes", c.Memory)
	}
	return nil
}
