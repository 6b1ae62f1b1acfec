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
