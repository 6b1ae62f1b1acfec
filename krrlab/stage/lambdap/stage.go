package lambdap

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage lambda-p.
var Stage = stage.Definition{
	Name: "lambda-p", Options: Options{}, Result: (*Result)(nil),
	Flags: "precond tol",
	Short: "Sweep the preconditioner's ridge λ_p, or map (s, λ_p)",
	Long: `Lambda-p measures how good M = ZZᵀ+λ_pI is for λ_p from λ/100 to 100(λ+η),
η = ‖K−ZZᵀ‖₂: an interval of κ(M⁻¹A), the iterations PCG takes, and the predicted time.
The λ_p of least predicted time is chosen. All λ_p share one eigendecomposition of ZᵀZ and the products
with K. With --map or --sizes it does so for several numbers of features.`,
	Example: `  krrlab lambda-p --data mnist --n 10000 --precond 'features features=1000' --plot sweep.svg
  krrlab lambda-p --data ijcnn1 --n 10000 --map --json map.json`,
}

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Grid []float64 `flag:"grid" check:"positive" help:"values of λ_p, separated by commas (default: λ/100 to 100(λ+η))"`
	// Points is the number of values of the default grid, without λ, 10λ and λ+η.
	Points int  `flag:"points" default:"13" check:">=2" help:"number of values of the default grid"`
	Map    bool `flag:"map" not:"sizes" help:"map (s, λ_p), for s/8, s/4, s/2 and s"`
	// Sizes requests a map over (s, λ_p): a sweep for each number of features s. Fourier features of a smaller s are
	// the first of those of a larger s. Iterations are then predicted, not counted, unless Columns is set. Default: the
	// configuration's s alone.
	Sizes      []int   `flag:"sizes" check:">=1" help:"map (s, λ_p) for these s, separated by commas"`
	Confidence float64 `flag:"confidence" default:"0.95" check:"(0,1)" help:"of each interval, between 0 and 1"`
	Width      float64 `flag:"width" default:"0.3" check:"positive" help:"relative width of κ's interval at which to stop"`
	// Steps limits the Lanczos steps for κ, and those for η.
	Steps   int  `flag:"steps" default:"150" check:">=1" help:"maximum number of Lanczos steps"`
	Columns int  `flag:"columns" check:">=1" help:"number of right-hand sides with which iterations are counted (default: 1, with --map or --sizes 0)"`
	NoSolve bool `flag:"no-solve" not:"columns" help:"only predict iterations; do not run PCG"`
	// MaxIter is the number of iterations at which counting stops.
	MaxIter int `flag:"max-iter" default:"200" check:">=1" help:"maximum number of iterations"`

	tol    float64 // τ
	kError float64 // upper bound of ‖K_stored−K‖₂, by which the intervals are widened
	comm   comm.Comm
	stream rng.Stream
	notify func(context.Context, stage.Event) // receives progress events
}

// Prepare returns an error for a preconditioner without λ_p.
func (o *Options) Prepare(c *stage.Command) error {
	if _, ok := c.Precond.(stage.LowRank); !ok && c.Precond != nil {
		return errNoRidge(c.Precond.String())
	}
	return nil
}

// errNoRidge is the error for a preconditioner without λ_p.
func errNoRidge(precond string) error {
	var names []string
	for _, kind := range stage.Kinds() {
		if _, ok := kind.Zero.(stage.LowRank); ok {
			names = append(names, kind.Name)
		}
	}
	return fmt.Errorf("the preconditioner %s has no λ_p: take one of %s, with the solver pcg", precond,
		strings.Join(names, ", "))
}

// Run sweeps λ_p for the features of the configuration. It forms K and Z, and for each s one eigendecomposition of ZᵀZ
// (9s³ flops). Each step of the Lanczos process and each iteration of PCG takes a product of K with one column per λ_p.
// The Lanczos vectors take 16nk bytes for each of at most 256 λ_p at a time and k steps, and results 32k bytes for each
// λ_p. If ctx ends, Run returns the points measured so far together with ctx's error.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	start, problem := time.Now(), bench.Problem()
	if err := o.setDefaults(problem); err != nil {
		return nil, err
	}
	o.notify = bench.Notify
	r := &Result{Header: problem.Header, Features: problem.Precond}
	if problem.Z.Map() != nil {
		r.Features = problem.Z.String()
	}
	gridSize := cmp.Or(len(o.Grid), o.Points+3)
	lanczosBytes := 16 * int64(min(o.Steps, r.N)) * (int64(r.N)*int64(min(gridSize, maxColumns)) + 2*int64(gridSize))
	k, err := bench.K(ctx, problem.LowRankBytes(slices.Max(o.Sizes))+lanczosBytes)
	if err != nil {
		return nil, err
	}
	r.KError, o.kError = k.Error, k.Error
	for i := 0; i < len(o.Sizes) && err == nil; i++ {
		var sweep *Sweep
		if sweep, err = o.measureSize(ctx, bench, k, o.Sizes[i]); sweep == nil {
			break
		}
		r.addSweep(sweep)
		if len(o.Grid) == 0 { // All sweeps have the grid of the first one.
			o.Grid = defaultGrid(sweep.Lambda, sweep.Eta.Value, o.Points)
		}
	}
	r.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(r.Sweeps) == 0) {
		return nil, err
	}
	return r, err
}

// measureSize sweeps λ_p for a Z with s columns.
func (o *Options) measureSize(ctx context.Context, bench stage.Bench, k *stage.Gram, s int) (*Sweep, error) {
	approximation := *bench.Problem().Z
	approximation.S, approximation.Spectral = s, false
	z, err := bench.Z(ctx, approximation)
	if err != nil {
		return nil, err
	}
	bench.Notify(ctx, stage.Event{Stage: stage.Eigenvalues})
	return measure(ctx, k, z.Z, bench.Problem().Y, z.Seconds, o)
}

// setDefaults checks the options, and replaces zeros by defaults that depend on the problem.
func (o *Options) setDefaults(problem *stage.Problem) error {
	if err := schema.Complete(o); err != nil {
		return err
	}
	if o.Columns > problem.T {
		return fmt.Errorf("iterations counted with %d right-hand sides: there are %d; take at most as many "+
			"(Columns, --columns)", o.Columns, problem.T)
	}
	if problem.Z == nil {
		return errNoRidge(problem.Precond)
	}
	if s := problem.Z.S; len(o.Sizes) == 0 {
		if o.Sizes = []int{s}; o.Map {
			o.Sizes = []int{max(1, s/8), max(1, s/4), max(1, s/2), s}
		}
	}
	o.Grid = slices.Compact(slices.Sorted(slices.Values(o.Grid)))
	o.Sizes = slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	if s := slices.Max(o.Sizes); s > problem.N {
		return fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", s, problem.N)
	}
	if o.Columns == 0 && !o.NoSolve && len(o.Sizes) == 1 {
		o.Columns = 1
	}
	o.tol, o.comm, o.stream = problem.Tol, problem.Comm, rng.New(problem.Seed).Sub("lambda-p")
	return nil
}
