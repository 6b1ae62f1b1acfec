package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/adapt"
)

// sketchSizeFlags are the flags of krrlab sketch-size.
type sketchSizeFlags struct {
	Test       string    `flag:"test" default:"kappa" check:"one of kappa theorem7" help:"kappa or theorem7"`
	Target     float64   `flag:"kappa-target" default:"30" check:">1" help:"largest κ(M⁻¹A) that kappa accepts, above 1"`
	Preset     string    `flag:"preset" default:"kappa5" check:"one of paper kappa5 kappa10" help:"constants of theorem7: paper, kappa5 or kappa10"`
	Constants  []float64 `flag:"constants" not:"preset" help:"θ,α,γ of theorem7, in place of a preset: P takes eigenvalues of ZZᵀ above θλ, ‖(I−P)K(I−P)‖ ≤ αλ, ratios within 1±γ"`
	Sketched   bool      `flag:"product-free" help:"test condition 2 with independent features first, and with K only if they pass"`
	Check      int       `flag:"check-factor" default:"4" check:">=1" help:"number of independent features of --product-free, as a multiple of s"`
	First      int       `flag:"first" check:">=1" help:"first s (default: 128, or n/8 if that is less)"`
	Max        int       `flag:"max" check:">=1" help:"largest s, below n (default: n−1)"`
	Eigen      int       `flag:"conditions-up-to" default:"2048" check:">=-1" zero:"-1" help:"largest s at which theorem7 measures conditions that κ refutes already (9s³ flops); -1 for never"`
	Confidence float64   `flag:"confidence" default:"0.95" check:"(0,1)" help:"probability that no s is accepted wrongly"`
}

func (a *app) sketchSizeCommand() *cobra.Command {
	f := &sketchSizeFlags{}
	var constants adapt.Test
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
		options: f, flags: "lambda-p",
		check: func(*labFlags) (err error) {
			if f.Constants == nil {
				constants, err = adapt.ParseTest(f.Preset)
				return usage(err)
			}
			if len(f.Constants) != 3 {
				return usagef("--constants of %d numbers: want θ,α,γ, such as 0.26,0.36,0.30", len(f.Constants))
			}
			constants = adapt.Test{Name: "own constants", Theta: f.Constants[0], Alpha: f.Constants[1], Gamma: f.Constants[2]}
			return usage(constants.Validate())
		},
		cfg: func(l *labFlags, c *krrlab.Config) error {
			if c.Precond = nil; l.LambdaP > 0 {
				c.Precond = krrlab.Features{LambdaP: l.LambdaP}
			}
			return nil
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.SketchSize(ctx, krrlab.SketchSizeOptions{
				Test: adapt.Kind(f.Test), Target: f.Target, Constants: constants, Sketched: f.Sketched, Check: f.Check,
				First: f.First, Max: f.Max, Eigen: f.Eigen, Confidence: f.Confidence,
			})
		},
	})
}
