package multilevel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage multilevel.
var Stage = stage.Definition{
	Name: "multilevel", Options: Options{}, Result: (*Result)(nil), Flags: "lambda-p tol max-iter",
	Short: "Measure each level of Algorithm 2: wide features, then sketches of them",
	Long: `Multilevel measures each level of the chain Z₁ = features, Z₂ = Z₁S₂ᵀ, Z₃ = Z₂S₃ᵀ of
Algorithm 2 of the paper. For each level it gives ‖Z_kZ_kᵀ−K‖₂ and κ(M_k⁻¹A) of the preconditioner
M_k = Z_kZ_kᵀ+λ_pI as intervals, the iterations of the solve, and the seconds to form
Z_k, to factor M_k and to solve, beside features alone of the same widths.`,
	Example: `  krrlab multilevel --data mnist --n 10000 --levels features:8000,srht:2000,gaussian:1000
  krrlab multilevel --data ijcnn1 --n 10000 --kernel polynomial --levels features:16000,countsketch:4000,gaussian:2000`,
}

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Levels     feature.Levels `flag:"levels" help:"chain of features, then srht, countsketch or gaussian, each with its width (default: features:8s,srht:2s,gaussian:s for s = n/10, at least 500)"`
	Confidence float64        `flag:"confidence" default:"0.95" check:"(0,1)" help:"probability that the two intervals of a level cover, in (0, 1)"`
	Work       float64        `flag:"work" default:"5e12" check:"positive" help:"flops that setting up one preconditioner may take; of wider levels only the error is measured"`

	// width is the relative width at which the Lanczos processes end, of ‖ZZᵀ−K‖₂ and of each end of the spectrum of
	// M⁻¹A; default: 0.2.
	width   float64
	steps   int          // maximum number of steps of a Lanczos process; default: 200
	tol     float64      // tolerance τ of the solve
	maxIter int          // maximum number of iterations of the solve
	memory  accel.Budget // memory budget for Z and the preconditioner, the same on all ranks
	// progress is called in the steps "features", "error", "factor", "kappa" and "solve". completed counts mapped
	// points, Lanczos steps or iterations; a total of 0 means that the total is not known. measureChain sets the level.
	progress func(level, step string, completed, total int)
}

// Hint returns a hint for a chain of features without a sketch, or "".
func (o Options) Hint() string { return o.Levels.Hint() }

// setDefaults replaces zeros by the defaults, and returns an error for invalid options.
func (o *Options) setDefaults() error {
	o.width, o.steps = cmp.Or(o.width, 0.2), cmp.Or(o.steps, 200)
	return schema.Complete(o)
}

// Run measures each level of a chain, and features alone of each width after the first, the narrowest first. The chain
// is the same as that of a solve whose features have Map from feature.ChainFor, and the features alone are the same as
// those of a solve without it. If ctx ends, Run returns the completed levels together with ctx's error.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	stageProblem := bench.Problem()
	r, chain, err := o.newResult(stageProblem)
	if err != nil {
		return nil, err
	}
	k, err := bench.K(ctx, 0)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	problem := &problem{Comm: stageProblem.Comm, A: k, X: stageProblem.X, Y: stageProblem.Y, LambdaP: r.LambdaP,
		Error: k.Error}
	r.KError, o.tol, o.maxIter = stage.Number(problem.Error), stageProblem.Tol, stageProblem.MaxIter
	o.progress = func(level, step string, completed, total int) {
		event := stage.Event{Stage: stage.Name(step), Detail: level, Done: completed, Total: total, Remaining: -1}
		if total == 0 && completed > 0 {
			event.Detail += fmt.Sprintf(", step %d", completed)
		}
		bench.Notify(ctx, event)
	}
	if o.memory, err = stageProblem.MemoryWith(ctx, k); err != nil {
		return nil, err
	}
	mapBytes := feature.MapBytes(chain, r.D, r.Levels[len(r.Levels)-1].Width)
	for i, level := range r.Levels {
		needed := problem.featureBytes(level.Width) + mapBytes
		if i > 0 { // the map of features alone of the same width
			needed += feature.MapBytes(chain.Features, r.D, level.Width)
		}
		if err := o.memory.Check(needed, fmt.Sprintf("Z of n = %d points and s = %d features, with the maps", r.N,
			level.Width), "choose narrower levels, or allow more by --memory"); err != nil {
			return nil, err
		}
	}
	r.Chain, r.FeaturesAlone, err = measureChain(ctx, problem, chain, r.Levels, rng.New(stageProblem.Seed), &o)
	if len(r.Chain)+len(r.FeaturesAlone) == 0 {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, err
}

// newResult checks the options, and returns the result with the fields that do not depend on measurements, and the
// chain.
func (o *Options) newResult(problem *stage.Problem) (*Result, feature.Chain, error) {
	var chain feature.Chain
	if err := o.setDefaults(); err != nil {
		return nil, chain, err
	}
	approximation := stage.Approximation{S: problem.S, LambdaP: problem.Lambda}
	if problem.Z != nil {
		approximation = *problem.Z
	}
	r := &Result{Header: problem.Header, LambdaP: approximation.LambdaP, Levels: slices.Clone(o.Levels),
		Confidence: o.Confidence}
	if len(r.Levels) == 0 {
		r.Levels = feature.Levels{{Sketch: "features", Width: 8 * approximation.S}, {Sketch: "srht",
			Width: 2 * approximation.S}, {Sketch: "gaussian", Width: approximation.S}}
	}
	chain, err := feature.ChainFor(problem.Kernel, r.Levels)
	if err != nil {
		return nil, chain, err
	}
	if s := r.Levels[len(r.Levels)-1].Width; s > r.N {
		return nil, chain, fmt.Errorf("the last level has s = %d for n = %d points: want 1 ≤ s ≤ n", s, r.N)
	}
	r.Features = chain.Features.String()
	return r, chain, nil
}
