package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
)

// qualityFlags are the flags of krrlab quality.
type qualityFlags struct {
	approximationFlags
	iterationFlags
	krrlab.QualityOptions
}

func (a *app) qualityCommand() *cobra.Command {
	f := &qualityFlags{}
	return a.stageCommand(stageCommand{
		use:   "quality (--data NAME | --train FILE)",
		short: "Interval of κ(M⁻¹A) that holds with a stated confidence, predicted against actual iterations",
		long: `Quality judges a preconditioner M = ZZᵀ+λ_pI: a two-sided interval of the condition
number of M⁻¹(K+λI) by the Lanczos process from a random start, which misses the truth
with at most the probability stated; for small n all eigenvalues beside it; and the
iterations predicted from κ and from the Ritz values beside those that PCG takes. The
interval is of K itself: it is widened by ‖K_stored−K‖₂, which is predicted from rows of
K and not part of the probability.`,
		example: `  krrlab quality --data mnist --n 10000 --features 2000 --lambda-p 0.1 --plot q.svg
  krrlab quality --data ijcnn1 --n 2000 --precond nystrom --features 300 --json q.json`,
		add: f.add,
		check: func(set *pflag.FlagSet) error {
			if err := f.approximationFlags.check(set); err != nil {
				return err
			}
			return f.check()
		},
		cfg: func(set *pflag.FlagSet, c *krrlab.Config) error {
			f.iterationFlags.config(c)
			return f.approximationFlags.config(set, c)
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.Quality(ctx, f.QualityOptions)
		},
	})
}

func (f *qualityFlags) add(p *pflag.FlagSet) {
	addConfidence(p, &f.Confidence, "of κ's interval, between 0 and 1")
	p.Float64Var(&f.Width, "width", 0.2, "relative width of κ's interval at which to stop")
	p.IntVar(&f.Steps, "steps", 300, "maximum number of Lanczos steps, a product with K each")
	p.IntVar(&f.ExactBelow, "exact-below", 2000, "largest n for which all eigenvalues are computed; -1 for never")
	p.BoolVar(&f.NoSolve, "no-solve", false, "do without the actual iterations")
	wantPositive(p, "width")
	wantAtLeast(p, 1, "steps")
	f.approximationFlags.add(p)
	f.iterationFlags.add(p)
}

func (f *qualityFlags) check() error {
	if f.ExactBelow < -1 {
		return usagef("--exact-below %d: want a number of points, or -1", f.ExactBelow)
	}
	f.ExactBelow = cmp.Or(f.ExactBelow, -1)
	return nil
}

// iterationFlags say how far PCG goes.
type iterationFlags struct {
	tol     float64
	maxIter int
}

func (f *iterationFlags) add(p *pflag.FlagSet) {
	p.Float64Var(&f.tol, "tol", 1e-3, "tolerance τ of ‖y−Ac‖/‖y‖ that iterations are counted to")
	p.IntVar(&f.maxIter, "max-iter", 1000, "maximum number of iterations")
	wantShare(p, "tol")
	wantAtLeast(p, 1, "max-iter")
}

func (f *iterationFlags) config(c *krrlab.Config) { c.Tol, c.MaxIter = f.tol, f.maxIter }
