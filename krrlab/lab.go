package krrlab

import (
	"context"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// What stages report and return.
type (
	Event  = stage.Event
	Stage  = stage.Stage
	Header = stage.Header
	Number = stage.Number
)

// Of package solve: what Solve takes and returns.
type (
	Solution       = solve.Solution
	Solver         = solve.Solver
	ResidualPolicy = solve.ResidualPolicy
	Checkpoint     = solve.Checkpoint
	Ranks          = solve.Ranks
	Seconds        = solve.Seconds
	HistRow        = solve.HistRow
)

// Solvers, and how true residuals are recomputed.
const (
	AutoSolver = solve.AutoSolver
	PCG        = solve.PCG
	CG         = solve.CG
	Direct     = solve.Direct
	BlockPCG   = solve.BlockPCG

	AutoResidual   = solve.AutoResidual
	ExactResidual  = solve.ExactResidual
	StoredResidual = solve.StoredResidual
)

// Config says which problem to solve and how. The zero value of every field but
// Kernel and Lambda means its default.
type Config struct {
	Kernel kernel.Kernel `json:"-"` // k(x, z)
	Lambda float64       `json:"lambda" flag:"lambda" check:"positive" help:"ridge λ > 0"`

	// Precond is by default Auto{} with AutoSolver, None{} with CG and Direct, else Features{}, RPCholesky{} for a
	// kernel without random features.
	Precond Preconditioner `json:"-"`
	Solver  Solver         `json:"solver,omitzero" flag:"solver" default:"auto"`
	Tol     float64        `json:"tol,omitempty" flag:"tol" check:"(0,1)"`                        // τ
	MaxIter int            `json:"max_iter,omitempty" flag:"max-iter" default:"1000" check:">=1"` // iterations at most
	Storage gram.Storage   `json:"storage,omitzero" flag:"storage" default:"auto"`                // of K
	Tiles   gram.Tiles     `json:"tiles,omitzero" flag:"tiles" default:"auto"`                    // of K
	Memory  int64          `json:"memory,omitempty" flag:"memory" check:">=0" unit:"bytes"`       // default: no limit
	Seed    uint64         `json:"seed" flag:"seed" help:"seed of all random numbers"`
	// ProcessTimeout is how long a Process may take to be ready, and to answer.
	ProcessTimeout time.Duration `json:"process_timeout,omitempty" flag:"process-timeout" default:"5m" check:"positive"`
	// Exact says how the true residual is recomputed.
	Exact ResidualPolicy `json:"residual,omitzero" flag:"residual" default:"auto"`

	// Stop is what PCG, BlockPCG and CG end by. Default: the residual. By bound.ANorm they end where the bound of
	// ‖c_j−c_j*‖_A/‖c_j*‖_A is at most Tol, by bound.Labels where at most a share of the labels of StopRows (nil: the
	// training points) may still change, or at Tol. Status is then pcg.Stopped, and Solution.Criterion says what was
	// met.
	Stop     bound.Stop        `json:"stop,omitzero" flag:"stop" default:"residual" not:"solver=direct"`
	StopRows *datasets.Dataset `json:"-"`

	// Monitor, if not nil, is called as the work proceeds. If it returns an error, the stage ends, and
	// returns what it has beside that error: without it if that is pcg.ErrStop and there is something.
	// What it does not end are K, Z and M called alone, and predictions.
	Monitor func(Event) error `json:"-"`

	// Comm is the group of ranks that share the work: all of them call New and the stages
	// together, with the same data and configuration, and get the same answer. Memory is
	// then each rank's. Default: nil, no ranks.
	Comm comm.Comm `json:"-"`

	// Backend runs the stages elsewhere, as a remote.Backend on ranks which it starts. Default: nil,
	// they run here.
	Backend Backend `json:"-"`

	// Checkpoint keeps the state of the solve, and resumes it. Default: nil, nothing is kept.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// Help has the texts of its flags.
func (Config) Help() map[string]string {
	return map[string]string{
		"tol": "tolerance τ of ‖y−Ac‖/‖y‖ (default: 1e-3 for classification, 1e-5 for regression)",
		"storage": "storage of K: auto, float64, float32, fixed16 or recompute; auto decides by ‖K_stored−K‖₂, " +
			"predicted from rows of K, and by --memory",
		"tiles": "tiles of K: dense, sparse (none where a kernel that decreases is next to nothing; what is left out " +
			"is bounded), or auto, which takes what is smaller",
		"max-iter":        "maximum number of iterations",
		"process-timeout": "how long a preconditioner process:COMMAND may take to be ready, and to answer",
		"memory": "memory limit of this process, such as 20GB, of which the program itself takes 0.1 GB, and of a file " +
			"while it is read (default: what the machine allows)",
		"solver": "auto, pcg, block-pcg, cg or direct; auto is direct up to 3,000 points (on ranks, or with --storage, " +
			"--tiles sparse, --features, --lambda-p or --stop, pcg or block-pcg), and for more points what krrlab plan " +
			"chooses (on ranks never direct)",
		"residual": "K of the true residual: exact (recomputed in float64, with a certain bound of rounding), stored " +
			"(as stored, checked by 288 rows in float64), or auto (exact up to n²d = 2e10, else stored, refined if " +
			"the rows miss the tolerance)",
		"stop": "what ends the iteration: residual (at τ), anorm (the bound of ‖c−c*‖_A/‖c*‖_A at τ) or labels=P (at " +
			"most the share P, such as 1%, of the test labels, or else the training labels, may still change)",
	}
}

// Preconditioner is a recipe for M ≈ K+λI, with which conjugate gradients solve M⁻¹(K+λI)C = M⁻¹Y.
// Features, Nystrom, RPCholesky, Vecchia and None are the built-in ones; a user-defined one is any type with these
// methods.
type Preconditioner interface {
	// String describes M in a few words, for reports.
	String() string
	// Make makes M for the problem of l, with all its randomness from the seed. On ranks all of them call it together.
	// A pcg.Preconditioner that is a lanczos.Metric too, as a *precond.Woodbury is, gives Quality both ends of the
	// spectrum of M⁻¹(K+λI); of others it gives a lower bound of κ.
	Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error)
}

// Backend runs the stages of a Lab elsewhere. Package remote has the one that sends them to ranks.
type Backend interface {
	// Check returns an error where the configuration cannot be sent. New calls it.
	Check(cfg *Config) error
	// Run runs the stage of that name (Lab.Run) with the options, passes on its events (Lab.Tell), and
	// decodes its value, as encoding/json does: into a *Solution with the coefficients as Model.C. The
	// value may be a part, beside an error; some reports whether there is one.
	Run(ctx context.Context, l *Lab, name stage.Name, options, value any) (some bool, err error)
}

// Lab is a problem and a method, and their stages. It holds the training data, the configuration and
// the matrices that stages have formed, and is safe for concurrent use: stages of one problem wait for
// each other.
type Lab struct {
	*problem
	cfg Config // with defaults in place
	// what was asked for, before they were
	asked struct {
		solver  Solver
		precond Preconditioner
	}
	policy solve.Policy

	open    *open        // what is left to the plan; nil if nothing is
	planned *plan.Plan   // by Plan, for Solve
	plan    *plan.Report // that the lab was made for; nil for none
	retry   bool         // a direct solve in float32, as planned, that comes short is one in float64
}

// open is what of a method is left to the plan, and what is held.
type open struct {
	fixed   bool // there are so few points that the fixed rule is taken
	solver  bool // it was set
	s       int  // 0 where it was not
	lambdaP float64
	race    []Preconditioner
}

// Planning reports whether Solve does what Plan chooses.
func (l *Lab) Planning() bool { return l.open != nil && !l.open.fixed }

// problem is what the labs of one problem have in common: the data, and the matrices that their
// stages form, each of them once. It holds at most one K, one Z, and one M; a stage that
// needs another frees the one before first.
type problem struct {
	given  *datasets.Dataset
	train  *datasets.Dataset // given, with points.Weighted if it has weights
	coding datasets.Coding
	y      *mat.Dense // n×t, coded targets
	comm   comm.Comm

	busy chan struct{} // full while a stage runs

	mu sync.Mutex
	k  struct {
		held[*gram.Matrix]
		accuracy float64 // asked of ‖E‖₂
	}
	z held[*stage.Drawn]
	m held[*precond.Woodbury] // of z
	v held[*vecchia.Inverse]  // of k, and with pivots of z

	// where K is given, of a Lab.semidefinite that succeeded:
	under float64 // K+under·I is positive semi-definite
	note  string
}

// settler is a Preconditioner that has defaults: settled sets them, and checks what is set.
type settler interface {
	settled(k kernel.Kernel, n int, lambda float64) (Preconditioner, error)
}

// approximation is a Preconditioner M = ZZᵀ+λ_pI, of which stages take Z; parts returns what it comes down to.
type approximation interface {
	Preconditioner
	settler
	parts() *stage.Approximation
}

// approximation returns the configured preconditioner if it is M = ZZᵀ+λ_pI, nil otherwise.
func (l *Lab) approximation() *stage.Approximation {
	if p, ok := l.cfg.Precond.(approximation); ok {
		return p.parts()
	}
	return nil
}

// Config returns the configuration with its defaults in place.
func (l *Lab) Config() Config { return l.cfg }

// Dims returns the number n of training points, their dimension d and the number t
// of right-hand sides.
func (l *Lab) Dims() (n, d, t int) {
	_, t = l.y.Dims()
	return l.given.Len(), l.given.Dim(), t
}

// Train returns the training data. They must not be changed.
func (l *Lab) Train() *datasets.Dataset { return l.given }

// Targets returns the coded targets Y, n×t, with weights W^½Y. It must not be changed.
func (l *Lab) Targets() *mat.Dense { return l.y }

// Tell calls the Monitor with an event of a stage: what a Backend that runs it elsewhere does. An error
// of the Monitor ends ctx.
func (l *Lab) Tell(ctx context.Context, e Event) { stage.Tell(ctx, l.cfg.Monitor, e) }

// watch returns a progress function that reports a stage's share and the time left.
func (l *Lab) watch(ctx context.Context, part stage.Name) func(done, total int) {
	return stage.Progress(ctx, l.Tell, part)
}

// as returns the value of a stage by its type, nil for none.
func as[T Stage](s Stage, err error) (T, error) {
	v, _ := s.(T)
	return v, err
}

// columns returns the number t of right-hand sides.
func (l *Lab) columns() int {
	_, t := l.y.Dims()
	return t
}

// DirectBelow is the largest n at which AutoSolver prefers a dense Cholesky
// factorization without a plan: its n³/3 flops take less than a plan is worth.
const DirectBelow = 3000

// DefaultFeatures returns the number of features s used when none is asked for:
// n/10, but at least 500 and at most 10,000, and never more than n. The paper's
// own choices lie between n/12 and n/4 on data of this size.
func DefaultFeatures(n int) int { return min(n, max(500, min(n/10, 10000))) }
