package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
)

// raceFlags are the options of krrlab race.
type raceFlags struct {
	Names  []string `flag:"runners" check:"one of features nystrom rpcholesky vecchia"`
	Finish bool     `flag:"finish" help:"continue until one has reached τ"`
}

func (raceFlags) Help() map[string]string {
	return map[string]string{
		"runners": "preconditioners beside none, separated by commas: features, nystrom, rpcholesky, vecchia " +
			"(default: all " +
			"that the kernel has, vecchia with r = 0)",
	}
}

func (a *app) raceCommand() *cobra.Command {
	var (
		f raceFlags
		o krrlab.RaceOptions
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
		options: &f, flags: "features lambda-p tol max-iter",
		cfg: func(f2 *labFlags, c *krrlab.Config) error {
			c.Precond, o.Finish = nil, f.Finish
			o.Runners = krrlab.Runners(c.Kernel, f2.PrecondSpec, f.Names...)
			return nil
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) { return l.Race(ctx, o) },
	})
}
