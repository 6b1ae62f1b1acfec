package krrlab

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/krrlab/stage/solve"
	"github.com/krrlab/lab/plots"
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

// Backend runs the stages of a Lab elsewhere. Package remote has the one that sends them to ranks.
type Backend interface {
	// Check returns an error where the configuration cannot be sent. New calls it.
	Check(cfg *Config) error
	// Run runs the stage of that name (Lab.Run) with the options, passes on its events (Lab.Tell), and
	// decodes its value, as encoding/json does: into a *Solution with the coefficients as Model.C. The
	// value may be a part, beside an error; some reports whether there is one.
	Run(ctx context.Context, l *Lab, name stage.Name, options, value any) (hasValue bool, err error)
}

// Lab is a problem and a method, and their stages. It holds the training data, the configuration and
// the matrices that stages have formed, and is safe for concurrent use: stages of one problem wait for
// each other.
type Lab struct {
	*problem
	cfg Config // with defaults in place
	// what was asked for, before they were
	requested struct {
		solver  Solver
		precond Preconditioner
	}
	policy solve.Policy

	open         *openChoices // what is left to the plan; nil if nothing is
	savedPlan    *plan.Plan   // by Plan, for Solve
	plan         *plan.Report // that the lab was made for; nil for none
	retryFloat64 bool         // a direct solve in float32, as planned, that comes short is one in float64
}

// open is what of a method is left to the plan, and what is held.
type openChoices struct {
	fixedRule bool // there are so few points that the fixed rule is taken
	solverSet bool // it was set
	s         int  // 0 where it was not
	lambdaP   float64
	race      []Preconditioner
}

// Planning reports whether Solve does what Plan chooses.
func (l *Lab) Planning() bool { return l.open != nil && !l.open.fixedRule }

// Config returns the configuration with its defaults in place.
func (l *Lab) Config() Config { return l.cfg }

// Dims returns the number n of training points, their dimension d and the number t
// of right-hand sides.
func (l *Lab) Dims() (n, d, t int) {
	_, t = l.y.Dims()
	return l.data.Len(), l.data.Dim(), t
}

// Train returns the training data. They must not be changed.
func (l *Lab) Train() *datasets.Dataset { return l.data }

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
func resultAs[T Stage](s Stage, err error) (T, error) {
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

// String describes the problem and the way to solve it, as configured; nothing is computed.
func (l *Lab) String() string {
	var b stage.Lines
	if l.problem == nil {
		return "a laboratory without data; New makes one with them\n"
	}
	c := l.cfg
	_, _, t := l.Dims()
	b.Add("data", "%v", l.data)
	saveNote := ""
	if _, err := kernel.ToSpec(l.cfg.Kernel); err != nil {
		saveNote = "; its models cannot be saved, as the kernel is not registered (kernel.Register)"
	}
	b.Add("problem", "kernel %v, λ = %g, t = %d%s", c.Kernel, c.Lambda, t, saveNote)
	b.Add("solver", "%v, τ = %g, at most %s", c.Solver, c.Tol, plural.Count(c.MaxIter, "iteration"))
	switch {
	case l.isIdentity():
	case l.approximation() != nil:
		r := l.approximation()
		b.Add("preconditioner", "%v, s = %d, λ_p = %g", r, r.S, r.LambdaP)
	default:
		b.Add("preconditioner", "%v", c.Precond)
	}
	memory := "no memory limit"
	if c.Memory > 0 {
		memory = "memory " + accel.Bytes(c.Memory)
	}
	b.Add("K", "storage %v, %s", c.Storage, memory)
	b.Add("seed", "%d", c.Seed)
	if c.Comm != nil {
		b.Add("ranks", "%d", c.Comm.Size())
	}
	return b.String()
}

// HTML shows String in a notebook.
func (l *Lab) HTML() string { return plots.PreHTML(l.String()) }

func (l *Lab) header() Header {
	n, d, t := l.Dims()
	k := l.cfg.Kernel
	spec, err := kernel.ToSpec(k)
	if err != nil { // a user-defined kernel
		spec = kernel.Spec{Name: k.String()}
	}
	h := Header{
		Note: cmp.Or(l.note, l.data.Note), Dataset: l.data.Name, Source: l.data.Source, Task: l.data.Task.String(),
		Scaling: l.data.Scaling.String(), Mean: l.coding.Mean, Weighted: l.weighted(), N: n, D: d, T: t,
		Kernel: spec, Lambda: l.cfg.Lambda, Tol: l.cfg.Tol, Seed: l.cfg.Seed,
	}
	if l.data.Read != nil {
		h.Read = []*datasets.Reading{l.data.Read}
	}
	return h
}

// plain reports whether M = I.
func (l *Lab) isIdentity() bool { return l.cfg.Precond == Preconditioner(None{}) }

// approximation returns the configured preconditioner if it is M = ZZᵀ+λ_pI, nil otherwise.
func (l *Lab) approximation() *stage.Approximation {
	if p, ok := l.cfg.Precond.(stage.LowRank); ok {
		return p.Approximation(l.cfg.Kernel)
	}
	return nil
}

// problem is what the labs of one problem have in common: the data, and the matrices that their
// stages form, each of them once. It holds at most one K, one Z, and one M; a stage that
// needs another frees the one before first.
type problem struct {
	data   *datasets.Dataset
	train  *datasets.Dataset // given, with points.Weighted if it has weights
	coding datasets.Coding
	y      *mat.Dense // n×t, coded targets
	comm   comm.Comm

	running chan struct{} // full while a stage runs

	mu sync.Mutex
	k  struct {
		cached[*gram.Matrix]
		accuracy float64 // asked of ‖E‖₂
	}
	z cached[*stage.Drawn]
	m cached[pcg.Preconditioner] // of z, or of k

	// makingM and makingZ are locked while one is made, in this order, without mu.
	makingM, makingZ sync.Mutex

	// where K is given, of a Lab.semidefinite that succeeded:
	shift float64 // K+under·I is positive semi-definite
	note  string
}

// held is a matrix that the stages of a problem share: formed by the first that needs it.
type cached[T any] struct {
	value      T
	key        []any   // what it was formed of; nil: there is none
	seconds    float64 // that took
	shared     bool    // it was there before
	dependsOnK bool    // it was formed of K, and goes with it
}

func (h *cached[T]) free() { *h = cached[T]{} }

// take returns the matrix of a key, which form forms in place of another.
func (h *cached[T]) get(key []any, form func() (T, error)) (cached[T], error) {
	return h.getGuarded(new(sync.Mutex), key, form)
}

// keep is take while others may free the matrix: mu guards it, and is not locked while it is formed.
func (h *cached[T]) getGuarded(mu *sync.Mutex, key []any, form func() (T, error)) (cached[T], error) {
	mu.Lock()
	if h.shared = reflect.DeepEqual(h.key, key); h.shared {
		defer mu.Unlock()
		return *h, nil
	}
	h.free()
	mu.Unlock()
	start := time.Now()
	a, err := form()
	if err != nil {
		return cached[T]{}, err
	}
	mu.Lock()
	defer mu.Unlock()
	*h = cached[T]{value: a, key: key, seconds: time.Since(start).Seconds()}
	return *h, nil
}

// weighted reports whether rows have weights in the fit.
func (p *problem) weighted() bool { return p.train != p.data }
