package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
)

func (a *app) leaveOneOutCommand() *cobra.Command {
	var (
		o       krrlab.LeaveOneOutOptions
		precond string
		rank    int
	)
	return a.stageCommand(stageCommand{
		use:   "loo (--data NAME | --train FILE)",
		short: "Leave-one-out error and GCV for a grid of λ, with intervals",
		long: `Loo computes the leave-one-out error (RMSE, or the share of wrong labels) and GCV
for each λ of a grid, without a second fit. For small n it is exact. For larger n all λ are
solved together in one subspace, and the diagonal of (K+λI)⁻¹ is estimated by random signs.
The intervals cover the error of estimate and solve at the stated rate.`,
		example: `  krrlab loo --data ijcnn1 --n 5000 --plot loo.svg
  krrlab loo --train train.csv --target price --grid 0.001,0.01,0.1,1 --json loo.json`,
		add: func(p *pflag.FlagSet) {
			p.Float64SliceVar(&o.Lambdas, "grid", nil, "values of λ, separated by commas (default: 13, from λ/1000 to 1000λ)")
			addConfidence(p, &o.Confidence, "of the intervals, between 0 and 1")
			p.IntVar(&o.Probes, "probes", 8, "random probes for the diagonal; more give narrower intervals")
			p.IntVar(&o.ExactBelow, "exact-below", 4000, "largest n for which dense factors are used, if they fit --memory; -1 for never")
			p.StringVar(&precond, "precond", "rpcholesky", "what approximates K: rpcholesky or nystrom")
			p.IntVar(&rank, "rank", 0, "landmarks s, 1 ≤ s ≤ n (default: n/5, at least 500, at most 1000)")
			wantAtLeast(p, 4, "probes")
			wantAtLeast(p, 1, "rank")
			wantOneOf(p, []string{"rpcholesky", "nystrom"}, "precond")
			wantPositive(p, "grid")
			p.Lookup("grid").DefValue = "" // the text has it
		},
		cfg: func(_ *pflag.FlagSet, c *krrlab.Config) (err error) {
			c.Precond = nil
			if rank > 0 || precond == "nystrom" {
				c.Precond, err = krrlab.PrecondSpec{Name: precond, S: rank}.Preconditioner(c.Kernel)
			}
			return err
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) { return l.LeaveOneOut(ctx, o) },
	})
}
