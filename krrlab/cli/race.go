package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
)

func (a *app) raceCommand() *cobra.Command {
	var (
		names   []string
		spec    krrlab.PrecondSpec
		tol     float64
		maxIter int
		o       krrlab.RaceOptions
	)
	return a.stageCommand(stageCommand{
		use:   "race (--data NAME | --train FILE)",
		short: "Race preconditioners against each other and against none",
		long: `Race runs conjugate gradients with several preconditioners side by side, and always also without
one: each product with K serves all of them. From the residuals and the building times it predicts
when each would finish. A runner that cannot win rests; an expensive preconditioner is built only if
it is predicted to save more than it costs. The race ends when the winner is known.`,
		example: `  krrlab race --data mnist --n 10000 --plot race.svg
  krrlab race --data covtype --n 20000 --sigma 0.1 --runners nystrom,rpcholesky --features 2000`,
		add: func(p *pflag.FlagSet) {
			p.StringSliceVar(&names, "runners", nil, "preconditioners beside none, separated by commas: features, nystrom, rpcholesky, vecchia (default: all that the kernel has, vecchia with r = 0)")
			p.IntVar(&spec.S, "features", 0, "random features s, or the rank of nystrom and rpcholesky, 1 ≤ s ≤ n (default: n/10, at least 500, at most 10,000)")
			p.Float64Var(&spec.LambdaP, "lambda-p", 0, "ridge λ_p > 0 of the preconditioners (default: λ)")
			p.Float64Var(&tol, "tol", 0, tolText)
			p.IntVar(&maxIter, "max-iter", 1000, "maximum number of iterations")
			p.BoolVar(&o.Finish, "finish", false, "continue until one has reached τ")
			wantPositive(p, "lambda-p")
			wantShare(p, "tol")
			wantAtLeast(p, 1, "features", "max-iter")
		},
		check: func(*pflag.FlagSet) error {
			for _, name := range names {
				if err := checkPrecond(name); err != nil || name == "none" {
					return usagef("--runners %q: want features, nystrom, rpcholesky or vecchia; none takes part in every race", name)
				}
			}
			return nil
		},
		cfg: func(_ *pflag.FlagSet, c *krrlab.Config) error {
			c.Tol, c.MaxIter = tol, maxIter
			o.Runners = krrlab.Runners(c.Kernel, spec, names...)
			return nil
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) { return l.Race(ctx, o) },
	})
}
