package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
)

// lambdaPFlags are the flags of krrlab lambda-p.
type lambdaPFlags struct {
	krrlab.LambdaPOptions
	precond    string
	features   int
	orthogonal bool
	tol        float64
	noSolve    bool
	asMap      bool
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
		cfg: func(_ *pflag.FlagSet, c *krrlab.Config) (err error) {
			c.Tol = f.tol
			c.Precond, err = krrlab.PrecondSpec{Name: f.precond, S: f.features, Orthogonal: f.orthogonal}.Preconditioner(c.Kernel)
			return err
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
	p.IntVar(&f.Points, "points", 13, "how many of the default grid")
	p.BoolVar(&f.asMap, "map", false, "map (s, λ_p), for s/8, s/4, s/2 and s")
	p.IntSliceVar(&f.Sizes, "sizes", nil, "map (s, λ_p) for these s, separated by commas")
	addConfidence(p, &f.Confidence, "of each interval, between 0 and 1")
	p.Float64Var(&f.Width, "width", 0.3, "relative width of κ's interval at which to stop")
	p.IntVar(&f.Steps, "steps", 150, "maximum number of Lanczos steps")
	p.IntVar(&f.Columns, "columns", 0, "number of right-hand sides with which iterations are counted (default: 1, in a map 0)")
	p.BoolVar(&f.noSolve, "no-solve", false, "predict iterations, count none")
	p.IntVar(&f.MaxIter, "max-iter", 200, "maximum number of iterations")
	p.Float64Var(&f.tol, "tol", 1e-3, "tolerance τ of ‖y−Ac‖/‖y‖ that iterations are counted to")
	p.StringVar(&f.precond, "precond", "features", "what makes Z: features, nystrom or rpcholesky")
	p.IntVar(&f.features, "features", 0, "random features s, or the rank of nystrom and rpcholesky, 1 ≤ s ≤ n (default: n/10, at least 500, at most 10,000)")
	p.BoolVar(&f.orthogonal, "orthogonal", false, "orthogonal random features")
	wantPositive(p, "grid", "width")
	wantAtLeast(p, 2, "points")
	wantAtLeast(p, 1, "sizes", "steps", "max-iter", "features", "columns")
	p.Lookup("sizes").DefValue = "" // the text has it
	wantShare(p, "tol")
}

func (f *lambdaPFlags) check(*pflag.FlagSet) error {
	if err := checkPrecond(f.precond); err != nil {
		return err
	}
	if f.precond == "none" {
		return usagef("--precond none has no λ_p: want features, nystrom or rpcholesky")
	}
	switch {
	case f.asMap && len(f.Sizes) > 0:
		return usagef("--map and --sizes exclude each other")
	case f.noSolve && f.Columns > 0:
		return usagef("--no-solve and --columns exclude each other")
	case f.orthogonal && f.precond != "features":
		return usagef("--orthogonal goes with --precond features only")
	}
	if f.noSolve {
		f.Columns = -1
	}
	return nil
}
