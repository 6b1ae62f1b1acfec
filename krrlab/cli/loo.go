package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
)

// looFlags are the options of krrlab loo.
type looFlags struct {
	Grid       []float64 `flag:"grid" check:"positive" help:"values of λ, separated by commas (default: 13, from λ/1000 to 1000λ)"`
	Confidence float64   `flag:"confidence" default:"0.95" check:"(0,1)" help:"of the intervals, between 0 and 1"`
	Probes     int       `flag:"probes" default:"8" check:">=4" help:"random probes for the diagonal; more give narrower intervals"`
	ExactBelow int       `flag:"exact-below" default:"4000" check:">=-1" zero:"-1" help:"largest n for which dense factors are used, if they fit --memory; -1 for never"`
	Rank       int       `flag:"rank" check:">=1" help:"landmarks s, 1 ≤ s ≤ n (default: n/5, at least 500, at most 1000)"`
}

func (a *app) leaveOneOutCommand() *cobra.Command {
	f := &looFlags{}
	return a.stageCommand(stageCommand{
		use:   "loo (--data NAME | --train FILE)",
		short: "Leave-one-out error and GCV for a grid of λ, with intervals",
		long: `Loo computes the leave-one-out error (RMSE, or the share of wrong labels) and GCV
for each λ of a grid, without a second fit. For small n it is exact. For larger n all λ are
solved together in one subspace, and the diagonal of (K+λI)⁻¹ is estimated by random signs.
The intervals cover the error of estimate and solve at the stated rate.`,
		example: `  krrlab loo --data ijcnn1 --n 5000 --plot loo.svg
  krrlab loo --train train.csv --target price --grid 0.001,0.01,0.1,1 --json loo.json`,
		options: f, flags: "precond",
		help: map[string]string{"precond": "what approximates K: rpcholesky (the default) or nystrom"},
		check: func(l *labFlags) error {
			if l.Name != "" && l.Name != "rpcholesky" && l.Name != "nystrom" {
				return usagef("--precond %q: want one of rpcholesky, nystrom", l.Name)
			}
			return nil
		},
		cfg: func(l *labFlags, c *krrlab.Config) (err error) {
			if c.Precond = nil; f.Rank > 0 || l.Name == "nystrom" {
				c.Precond, err = krrlab.PrecondSpec{Name: cmp.Or(l.Name, "rpcholesky"),
					S: f.Rank}.Preconditioner(c.Kernel)
			}
			return err
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.LeaveOneOut(ctx, krrlab.LeaveOneOutOptions{Lambdas: f.Grid, Confidence: f.Confidence,
				Probes: f.Probes, ExactBelow: f.ExactBelow})
		},
	})
}
