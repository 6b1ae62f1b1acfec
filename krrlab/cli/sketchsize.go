package cli

import (
	"cmp"
	"context"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/adapt"
)

// sketchSizeFlags are the flags of krrlab sketch-size.
type sketchSizeFlags struct {
	krrlab.SketchSizeOptions
	test, preset string
	own          []float64 // θ, α, γ
	lambdaP      float64
}

func (a *app) sketchSizeCommand() *cobra.Command {
	f := &sketchSizeFlags{}
	return a.stageCommand(stageCommand{
		use:   "sketch-size (--data NAME | --train FILE)",
		short: "Double the number of features s until a test of them accepts",
		long: `Sketch-size draws features, tests them as a preconditioner and doubles s until the
test accepts (section 5 of the paper). --test kappa accepts where the upper end of the
interval of κ(M⁻¹A) is at most --kappa-target; --test theorem7 where both conditions of
the paper's Theorem 7 hold with the constants of --preset. The record of every rung is
the result. If no s below n is accepted the status is none, and the rung of least
predicted time is named.`,
		example: `  krrlab sketch-size --data mnist --n 10000
  krrlab sketch-size --data mnist --n 10000 --test theorem7 --preset kappa10 --plot ladder.svg`,
		add:   f.add,
		check: f.check,
		cfg: func(set *pflag.FlagSet, c *krrlab.Config) error {
			if set.Changed("lambda-p") {
				c.Precond = krrlab.Features{LambdaP: f.lambdaP}
			}
			return nil
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.SketchSize(ctx, f.SketchSizeOptions)
		},
	})
}

func (f *sketchSizeFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.test, "test", string(adapt.Kappa), "kappa or theorem7")
	p.Float64Var(&f.Target, "kappa-target", 30, "largest κ(M⁻¹A) that kappa accepts, above 1")
	p.StringVar(&f.preset, "preset", adapt.Kappa5.Name, "constants of theorem7: paper, kappa5 or kappa10")
	p.Float64SliceVar(&f.own, "constants", nil, "θ,α,γ of theorem7, in place of a preset: P takes eigenvalues of ZZᵀ above θλ, ‖(I−P)K(I−P)‖ ≤ αλ, ratios within 1±γ")
	p.Lookup("constants").DefValue = "" // the text has it
	p.BoolVar(&f.Sketched, "product-free", false, "test condition 2 with independent features first, and with K only if they pass")
	p.IntVar(&f.Check, "check-factor", 4, "number of independent features of --product-free, as a multiple of s")
	p.IntVar(&f.First, "first", 0, "first s (default: 128, or n/8 if that is less)")
	p.IntVar(&f.Max, "max", 0, "largest s, below n (default: n−1)")
	p.IntVar(&f.Eigen, "conditions-up-to", 2048, "largest s at which theorem7 measures conditions that κ refutes already (9s³ flops); -1 for never")
	addConfidence(p, &f.Confidence, "probability that no s is accepted wrongly")
	addLambdaP(p, &f.lambdaP)
	wantAtLeast(p, 1, "first", "max", "check-factor")
}

func (f *sketchSizeFlags) check(set *pflag.FlagSet) error {
	if f.Test = adapt.Kind(f.test); f.Test != adapt.Kappa && f.Test != adapt.Theorem7 {
		return usagef("--test %q: want kappa or theorem7", f.test)
	}
	if err := f.constants(set); err != nil {
		return err
	}
	f.Eigen = cmp.Or(f.Eigen, -1)
	switch {
	case !(f.Target > 1) || math.IsInf(f.Target, 1):
		return usagef("--kappa-target %g: want a number above 1", f.Target)
	case f.Eigen < -1:
		return usagef("--conditions-up-to %d: want a number of features, or -1", f.Eigen)
	}
	return nil
}

func (f *sketchSizeFlags) constants(set *pflag.FlagSet) (err error) {
	if !set.Changed("constants") {
		if f.Constants, err = adapt.ParseTest(f.preset); err != nil {
			return usagef("--preset: %w", err)
		}
		return nil
	}
	switch {
	case set.Changed("preset"):
		return usagef("--preset and --constants exclude each other")
	case len(f.own) != 3:
		return usagef("--constants of %d numbers: want θ,α,γ, such as 0.26,0.36,0.30", len(f.own))
	}
	f.Constants = adapt.Test{Name: "own constants", Theta: f.own[0], Alpha: f.own[1], Gamma: f.own[2]}
	if err := f.Constants.Validate(); err != nil {
		return errUsage{err}
	}
	return nil
}

// lambdaPFlags are the flags of krrlab lambda-p.
type lambdaPFlags struct {
	krrlab.LambdaPOptions
	approximationFlags
	iterationFlags
	noSolve, asMap bool
}

func (a *app) lambdaPCommand() *cobra.Command {
	f := &lambdaPFlags{}
	return a.stageCommand(stageCommand{
		use:   "lambda-p (--data NAME | --train FILE)",
		short: "Sweep the preconditioner's ridge λ_p, or map (s, λ_p)",
		long: `Lambda-p measures how good M = ZZᵀ+λ_pI is for λ_p from λ/100 to 100(λ+η),
η = ‖K−ZZᵀ‖₂: an interval of κ(M⁻¹A), the iterations PCG takes, and the predicted time.
The λ_p of least predicted time is chosen. All λ_p share one eigendecomposition of ZᵀZ and the products
with K. With --map or --sizes it does so for several numbers of features.`,
		example: `  krrlab lambda-p --data mnist --n 10000 --features 1000 --plot sweep.svg
  krrlab lambda-p --data ijcnn1 --n 10000 --map --json map.json`,
		add:   f.add,
		check: f.check,
		cfg: func(set *pflag.FlagSet, c *krrlab.Config) (err error) {
			c.Tol, f.MaxIter = f.tol, f.maxIter
			return f.approximationFlags.config(set, c)
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			o := f.LambdaPOptions
			if spec, err := krrlab.SpecOf(l.Config().Precond, l.Config().Kernel); err == nil && f.asMap && len(o.Sizes) == 0 {
				s := spec.S
				o.Sizes = []int{max(1, s/8), max(1, s/4), max(1, s/2), s}
			}
			return l.LambdaP(ctx, o)
		},
	})
}

func (f *lambdaPFlags) add(p *pflag.FlagSet) {
	p.Float64SliceVar(&f.Grid, "grid", nil, "values of λ_p, separated by commas (default: λ/100 to 100(λ+η))")
	p.Lookup("grid").DefValue = "" // the text has it
	p.IntVar(&f.Points, "points", 13, "number of values of the default grid")
	p.BoolVar(&f.asMap, "map", false, "map (s, λ_p), for s/8, s/4, s/2 and s")
	p.IntSliceVar(&f.Sizes, "sizes", nil, "map (s, λ_p) for these s, separated by commas")
	addConfidence(p, &f.Confidence, "of each interval, between 0 and 1")
	p.Float64Var(&f.Width, "width", 0.3, "relative width of κ's interval at which to stop")
	p.IntVar(&f.Steps, "steps", 150, "maximum number of Lanczos steps")
	p.IntVar(&f.Columns, "columns", 0, "number of right-hand sides with which iterations are counted (default: 1, with --map or --sizes 0)")
	p.BoolVar(&f.noSolve, "no-solve", false, "only predict iterations; do not run PCG")
	f.iterationFlags.add(p, 200)
	f.addZ(p)
	p.Lookup("precond").Usage = "what makes Z: features, nystrom or rpcholesky"
	wantPositive(p, "grid", "width")
	wantAtLeast(p, 2, "points")
	wantAtLeast(p, 1, "sizes", "steps", "columns")
	p.Lookup("sizes").DefValue = "" // the text has it
}

func (f *lambdaPFlags) check(set *pflag.FlagSet) error {
	if f.precond == "none" {
		return usagef("--precond none has no λ_p: want features, nystrom or rpcholesky")
	}
	if err := f.approximationFlags.check(set); err != nil {
		return err
	}
	switch {
	case f.asMap && len(f.Sizes) > 0:
		return usagef("--map and --sizes exclude each other")
	case f.noSolve && f.Columns > 0:
		return usagef("--no-solve and --columns exclude each other")
	}
	if f.noSolve {
		f.Columns = -1
	}
	return nil
}
