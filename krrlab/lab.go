package krrlab

import (
	"cmp"
	"context"
	"fmt"
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

// Types that stages use to report progress and results.
type (
	Event  = stage.Event
	Stage  = stage.Stage
	Header = stage.Header
	Number = stage.Number
)

// Types of package solve that Solve uses.
type (
	Solution       = solve.Solution
	Solver         = solve.Solver
	ResidualPolicy = solve.ResidualPolicy
	Checkpoint     = solve.Checkpoint
	Ranks          = solve.Ranks
	Seconds        = solve.Seconds
	HistoryRow     = solve.HistoryRow
)

// Solvers, and methods for computing true residuals.
const (
	AutoSolver = solve.AutoSolver
	PCG        = solve.PCG
	CG         = solve.CG
	Direct     = solve.Direct
	BlockPCG   = solve.BlockPCG
	Fourier    = solve.Fourier

	AutoResidual   = solve.AutoResidual
	ExactResidual  = solve.ExactResidual
	StoredResidual = solve.StoredResidual
)

// Config specifies a problem and a method. The zero value of every field except Kernel and Lambda means its default.
type Config struct {
	Kernel kernel.Kernel `json:"-"` // k(x, z)
	Lambda float64       `json:"lambda" flag:"lambda" check:"positive" help:"ridge λ > 0"`

	// Precond defaults to Auto{} with AutoSolver, None{} with CG and Direct, and otherwise Features{}, or RPCholesky{}
	// for a kernel without random features.
	Precond Preconditioner `json:"-"`
	Solver  Solver         `json:"solver,omitzero" flag:"solver" default:"auto"`
	Tol     float64        `json:"tol,omitempty" flag:"tol" check:"(0,1)"` // tolerance τ
	openTol bool           // whether Tol was not configured
	// MaxIter is the largest number of iterations.
	MaxIter int          `json:"max_iter,omitempty" flag:"max-iter" default:"1000" check:">=1"`
	Storage gram.Storage `json:"storage,omitzero" flag:"storage" default:"auto"`          // storage of K
	Tiles   gram.Tiles   `json:"tiles,omitzero" flag:"tiles" in:"storage" default:"auto"` // tiles of K
	// Memory is the memory budget in bytes. Default: no limit.
	Memory int64  `json:"memory,omitempty" flag:"memory" check:">=0" unit:"bytes"`
	Seed   uint64 `json:"seed" flag:"seed" help:"seed of all random numbers"`
	// ProcessTimeout is the largest time that a Process may take to start, and to answer.
	ProcessTimeout time.Duration `json:"process_timeout,omitempty" flag:"process-timeout" in:"precond" default:"5m" check:"positive"`
	// Exact selects how the true residual is computed.
	Exact ResidualPolicy `json:"residual,omitzero" flag:"residual" default:"auto"`

	// Stop is the stopping rule of PCG, BlockPCG and CG. Default: bound.ByPredictions, or bound.ByResidual if Tol is
	// set or K is precomputed. With bound.ByPredictions, the iterations end once ‖y_j−Ac_j‖₂/√n is at most 0.03 of the
	// noise of the data, which then replaces Tol (Solution.Noise). With bound.ByANorm, they end once the bound of
	// ‖c_j−c_j*‖_A/‖c_j*‖_A is at most Tol. With bound.ByLabels, they end once at most a given share of the labels of
	// StopRows (nil: the training points) may still change. In all cases they end at the residual Tol at the latest.
	// After a stop by bound.ByANorm or bound.ByLabels, Status is pcg.Stopped. Solution.Criterion names the criterion
	// that was met.
	Stop     bound.Stop        `json:"stop,omitzero" flag:"stop" not:"solver=direct|solver=fourier"`
	StopRows *datasets.Dataset `json:"-"`

	// Monitor, if not nil, is called while a stage runs. If it returns an error, the stage ends and returns its partial
	// result together with the error; for pcg.ErrStop the error is nil if there is a result. Monitor cannot end calls
	// of K, Z and M outside a stage, nor predictions.
	Monitor func(Event) error `json:"-"`

	// Comm is the group of ranks that share the work. All ranks call New and the stages together, with the same data
	// and configuration, and get the same results. Memory is then the budget of each rank. Default: nil, no ranks.
	Comm comm.Comm `json:"-"`

	// Backend runs the stages elsewhere; for example, a remote.Backend runs them on ranks that it starts. Default: nil,
	// the stages run in this process.
	Backend Backend `json:"-"`

	// Checkpoint saves the state of the solve, and resumes it. Default: nil, no checkpoints.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// Help returns the help texts of the flags.
func (Config) Help() map[string]string {
	return map[string]string{
		"tol": "tolerance τ of ‖y−Ac‖/‖y‖ (default: 1e-3 for classification, 1e-5 for regression, or more by --stop " +
			"predictions)",
		"storage": "storage of K: float64, float32, fixed16, recompute, or auto, by the error of storing it and by " +
			"--memory; tiles=dense or tiles=sparse (no negligible entries) after it (default: the smaller)",
		"max-iter":        "maximum number of iterations",
		"process-timeout": "how long a preconditioner process:COMMAND may take to be ready, and to answer",
		"memory":          "memory limit of this process, such as 20GB (default: what the machine allows)",
		"solver": "pcg, block-pcg, cg, direct, fourier (a Gaussian or matern52 kernel, at most 3 features), or auto: " +
			"direct up to 3,000 points, else chosen by a plan (krrlab plan)",
		"residual": "matrix of the true residual: exact (K in float64), stored (K as stored, checked by 288 " +
			"rows), or auto: exact up to n²d = 2e10, else stored",
		"stop": "what ends the iteration: predictions (‖y−Ac‖ at 0.03 of the noise of the data, or at τ), residual (at " +
			"τ), anorm (the error bound at τ), or labels=1% (that share of the labels may still change) (default: " +
			"predictions; residual with --tol or a precomputed K)",
	}
}

// Backend runs the stages of a Lab elsewhere. Package remote has one that sends them to ranks.
type Backend interface {
	// Check returns an error if the configuration cannot be sent. New calls it.
	Check(cfg *Config) error
	// Run runs the stage with the given name and options (Lab.Run) and passes its events to Lab.Notify. It decodes the
	// result into value, as encoding/json does; for a *Solution, Model.C has the coefficients. There may be a partial
	// result together with an error: hasValue reports whether there is a result.
	Run(ctx context.Context, l *Lab, name stage.Name, options, value any) (hasValue bool, err error)
}

// Lab is a problem and a method for solving it, on which stages (measurements and solves) run. It holds the training
// data, the configuration and the matrices that stages have formed. It is safe for concurrent use: a stage waits until
// other stages of the same problem have finished.
type Lab struct {
	*problem
	cfg Config // configuration with its defaults set
	// requested has the method of the configuration before defaults were set.
	requested struct {
		solver  Solver
		precond Preconditioner
		stop    bound.Stop
	}
	policy solve.Policy

	planChoices  *planChoices // choices left to the plan; nil if there are none
	savedPlan    *plan.Plan   // plan that Plan made for Solve
	plan         *plan.Report // plan whose choice this lab runs; nil: none
	retryFloat64 bool         // whether a planned direct solve in float32 is repeated in float64 if it misses Tol
}

// planChoices describes the choices of a method that are left to the plan, and the values that the user has fixed.
type planChoices struct {
	fixedRule bool // whether the number of points is so small that the fixed rule of AutoSolver applies
	solverSet bool // whether the user has chosen the solver
	auto      Auto // rank and ridge λ_p, which are open if they are 0, and the preconditioners that race
}

// Planning reports whether Solve uses the choice of Plan.
func (l *Lab) Planning() bool { return l.planChoices != nil && !l.planChoices.fixedRule }

// Config returns the configuration with its defaults set.
func (l *Lab) Config() Config { return l.cfg }

// Dims returns the number n of training points, their dimension d and the number t of right-hand sides.
func (l *Lab) Dims() (n, d, t int) {
	_, t = l.y.Dims()
	return l.data.Len(), l.data.Dim(), t
}

// Train returns the training data. They must not be changed.
func (l *Lab) Train() *datasets.Dataset { return l.data }

// Targets returns the coded targets Y, n×t, or W^½Y with weights. They must not be changed.
func (l *Lab) Targets() *mat.Dense { return l.y }

// Notify calls the Monitor with an event. A Backend that runs a stage elsewhere uses it to pass on events. An error of
// the Monitor ends ctx.
func (l *Lab) Notify(ctx context.Context, e Event) { stage.Notify(ctx, l.cfg.Monitor, e) }

// watch returns a function that reports the progress of a part of a stage and the time left.
func (l *Lab) watch(ctx context.Context, name stage.Name) func(completed, total int) {
	return stage.Progress(ctx, l.Notify, name)
}

// resultAs returns the result of a stage as a value of its type, or zero if there is none. A result of another type is
// an error.
func resultAs[T Stage](s Stage, err error) (T, error) {
	result, ok := s.(T)
	if !ok && s != nil && err == nil {
		err = fmt.Errorf("krrlab: with these options the result is a %T, which Run returns", s)
	}
	return result, err
}

// columns returns the number t of right-hand sides.
func (l *Lab) columns() int {
	_, t := l.y.Dims()
	return t
}

// DirectBelow is the largest n for which AutoSolver uses a dense Cholesky factorization without a plan. For fewer
// points, its n³/3 flops take less time than planning could save.
const DirectBelow = 3000

// DefaultFeatures returns the default number of features s: n/10, but at least 500 and at most 10,000, and never more
// than n. The paper's choices are between n/12 and n/4 for data of this size.
func DefaultFeatures(n int) int { return min(n, max(500, min(n/10, 10000))) }

// String describes the problem and the configured method. It computes nothing.
func (l *Lab) String() string {
	var lines stage.Lines
	if l.problem == nil {
		return "a laboratory without data; New makes one with them\n"
	}
	cfg := l.cfg
	_, _, t := l.Dims()
	lines.Add("data", "%v", l.data)
	saveNote := ""
	if _, err := kernel.ToSpec(l.cfg.Kernel); err != nil {
		saveNote = "; its models cannot be saved, as the kernel is not registered (kernel.Register)"
	}
	lines.Add("problem", "kernel %v, λ = %g, t = %d%s", cfg.Kernel, cfg.Lambda, t, saveNote)
	lines.Add("solver", "%v, τ = %g, at most %s", cfg.Solver, cfg.Tol, plural.Count(cfg.MaxIter, "iteration"))
	switch {
	case l.isIdentity():
	case l.approximation() != nil:
		approx := l.approximation()
		lines.Add("preconditioner", "%v, s = %d, λ_p = %g", approx, approx.S, approx.LambdaP)
	default:
		lines.Add("preconditioner", "%v", cfg.Precond)
	}
	memory := "no memory limit"
	if cfg.Memory > 0 {
		memory = "memory " + accel.FormatBytes(cfg.Memory)
	}
	lines.Add("K", "storage %v, %s", cfg.Storage, memory)
	lines.Add("seed", "%d", cfg.Seed)
	if cfg.Comm != nil {
		lines.Add("ranks", "%d", cfg.Comm.Size())
	}
	return lines.String()
}

// HTML returns String for a notebook.
func (l *Lab) HTML() string { return plots.PreformattedHTML(l.String()) }

// header returns the header of the results of l.
func (l *Lab) header() Header {
	n, d, t := l.Dims()
	k := l.cfg.Kernel
	spec, err := kernel.ToSpec(k)
	if err != nil { // a user-defined kernel
		spec = kernel.Spec{Name: k.String()}
	}
	header := Header{
		Note: cmp.Or(l.note, l.data.Note), Dataset: l.data.Name, Source: l.data.Source, Task: l.data.Task.String(),
		Scaling: l.data.Scaling.String(), Mean: l.coding.Mean, Weighted: l.weighted(), N: n, D: d, T: t,
		Kernel: spec, Lambda: l.cfg.Lambda, Tol: l.cfg.Tol, Seed: l.cfg.Seed,
	}
	if l.data.ReadReport != nil {
		header.Read = []*datasets.ReadReport{l.data.ReadReport}
	}
	return header
}

// isIdentity reports whether M = I.
func (l *Lab) isIdentity() bool { return l.cfg.Precond == Preconditioner(None{}) }

// approximation returns the Z and λ_p of the configured preconditioner if it is M = ZZᵀ+λ_pI, and nil otherwise.
func (l *Lab) approximation() *stage.Approximation {
	if p, ok := l.cfg.Precond.(stage.LowRank); ok {
		return p.Approximation(l.cfg.Kernel)
	}
	return nil
}

// problem is the part that labs of one problem share: the data, and the matrices that their stages have formed. It
// holds at most one K, one Z and one M. A stage that needs a different one frees the previous one before forming its
// own.
type problem struct {
	data   *datasets.Dataset // data as given to New
	train  *datasets.Dataset // the same data, with points.Weighted if there are weights
	coding datasets.Coding
	y      *mat.Dense // coded targets, n×t
	comm   comm.Comm

	running chan struct{} // holds one value while a stage runs

	mu sync.Mutex
	k  struct {
		cached[*gram.Matrix]
		accuracy float64 // bound of ‖E‖₂ for which K was formed
	}
	z cached[*stage.FeatureMatrix]
	m cached[pcg.Preconditioner] // built from z or from k

	// makingM and makingZ are locked while M or Z is made. They are locked in this order and without mu.
	makingM, makingZ sync.Mutex

	// start, startTrace and appended are set by Append and StartFrom: see solve.System and solve.Solution.
	start      *mat.Dense
	startTrace float64
	appended   *solve.Appended

	// shift and note are set by Lab.checkSemidefinite for a precomputed K.
	shift float64 // K+shift·I is positive semi-definite
	note  string  // remark for reports
}

// weighted reports whether the rows have weights in the fit.
func (p *problem) weighted() bool { return p.train != p.data }

// cached is a matrix that the stages of a problem share. The first stage that needs it forms it.
type cached[T any] struct {
	value      T
	key        []any   // parameters that it was formed with; nil: there is no matrix
	seconds    float64 // time for forming it
	shared     bool    // whether the last get returned an existing matrix
	dependsOnK bool    // whether it was built from K, and must be freed with K
}

// free forgets the matrix, so that its memory can be reused.
func (c *cached[T]) free() { *c = cached[T]{} }

// get returns the matrix for a key. If the cached matrix has a different key, get replaces it by the result of form. mu
// guards the cached matrix, which other goroutines may free, and is unlocked while form runs.
func (c *cached[T]) get(mu sync.Locker, key []any, form func() (T, error)) (cached[T], error) {
	mu.Lock()
	if c.shared = reflect.DeepEqual(c.key, key); c.shared {
		defer mu.Unlock()
		return *c, nil
	}
	c.free()
	mu.Unlock()
	start := time.Now()
	value, err := form()
	if err != nil {
		return cached[T]{}, err
	}
	mu.Lock()
	defer mu.Unlock()
	*c = cached[T]{value: value, key: key, seconds: time.Since(start).Seconds()}
	return *c, nil
}
