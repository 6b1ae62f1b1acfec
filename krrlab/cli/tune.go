package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/tune"
)

const ardUsage = "length scales for each feature: auto, where they are seen to be worth it, or no"

// tuneFlags are the options of krrlab tune.
type tuneFlags struct {
	tune.Options
	Lengths   string `flag:"ard" default:"auto" check:"one of auto no"`
	ValidFile string `flag:"valid" file:"read" help:"file of rows to judge by, of the same form as --train"`
}

func (tuneFlags) Help() map[string]string { return map[string]string{"ard": ardUsage} }

func (a *app) tuneCommand() *cobra.Command {
	f := &tuneFlags{}
	var of *labFlags
	cmd := a.stageCommand(stageCommand{
		use:   "tune (--data NAME | --train FILE)",
		short: "Choose the kernel, σ and λ by the error on rows that a fit has not seen",
		long: `Tune tries kernels, bandwidths and ridges by leave-one-out on a subsample of the rows, continues with
more rows where the error is least, and decides among the best by fits to four fifths of the rows. A model of the
error chooses the next point to try, and predicts what is left to gain. Each feature gets its own length scale if
that reduces the error on rows that took no part in fitting them (--ard). What --kernel, --sigma, --gamma, --degree
or --lambda sets is not searched. Tune prints the krrlab fit command for the choice; krrlab fit --tune does both.`,
		example: `  krrlab tune --train train.csv --target price --json tune.json --plot tune.svg
  krrlab tune --train train.csv --target price --kernel gaussian --criterion kfold`,
		options: f,
		help: map[string]string{
			"kernel": "the kernel, if it is not to be searched: gaussian, polynomial, laplacian, matern32 or matern52",
			"sigma":  "bandwidth σ, if it is not to be searched",
			"lambda": "ridge λ > 0, if it is not to be searched",
		},
		check: func(l *labFlags) error { of = l; return f.check(l) },
		cfg: func(_ *labFlags, c *krrlab.Config) error {
			c.Solver = krrlab.AutoSolver
			return nil
		},
		test: &f.ValidFile, tested: func(d *datasets.Dataset) { f.Valid = d },
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			r, err := l.Tune(ctx, f.Options)
			if r != nil {
				r.Command = of.fitCommandLine() + of.bestFlags(&r.Best)
			}
			return r, err
		},
	})
	cmd.Flags().Lookup("kernel").DefValue = ""
	return cmd
}

func (f *tuneFlags) check(l *labFlags) error {
	for i, name := range f.Kernels {
		if name == "rbf" {
			f.Kernels[i] = "gaussian"
		}
	}
	if f.ValidFile != "" && !l.flags.Given("criterion") {
		f.Criterion = tune.Validation
	}
	switch {
	case l.Matrix != "":
		return usagef("--kernel precomputed leaves only λ to choose: krrlab loo --kernel precomputed gives the error " +
			"for a grid of λ")
	case (f.ValidFile != "") != (f.Criterion == tune.Validation):
		return usagef("--criterion validation goes with --valid FILE")
	}
	l.hold(&f.Options)
	if f.ARD = f.Lengths == "auto"; f.ValidFile == "" {
		return usage(f.Check())
	}
	return nil
}

// hold sets what the flags of a kernel and λ hold.
func (f *labFlags) hold(o *tune.Options) {
	given := f.flags.Given
	if o.Sigma, o.Lambda = f.Sigma.value, f.Lambda; given("gamma") {
		o.Gamma = f.Gamma
	}
	if given("kernel") {
		o.Kernels = []string{string(f.KernelName)}
	}
	if given("degree") {
		o.Degree = f.Degree
	}
	if given("coef0") {
		o.Coef0 = &f.Coef0
	}
}

// fitCommandLine returns the krrlab fit command with the data that the flags name.
func (f *labFlags) fitCommandLine() string {
	var data schema.Schema
	for _, o := range schema.Of(&dataFlags{}).Fields {
		if given := f.flags.Lookup(o.Name); given != nil {
			data.Fields = append(data.Fields, given)
		}
	}
	return "krrlab fit" + commandLine(&data)
}

// bestFlags returns the flags of a point; where --sigma has a length for each feature, which σ = 1 stands for then,
// these.
func (f *labFlags) bestFlags(best *tune.Point) string {
	point := *best
	if f.Sigma.lengths != nil && point.Sigma > 0 {
		point.Lengths = f.Sigma.lengths
	}
	return point.Flags()
}

// tuned chooses kernel and λ of a configuration for krrlab fit, and divides the features by the length scales that were
// chosen.
func (a *app) tuned(ctx context.Context, f *fitFlags, data *loaded, cfg *krrlab.Config) (*tune.Result, error) {
	o := tune.Options{ARD: f.ARD == "auto"}
	f.hold(&o)
	lab, err := krrlab.New(data.train, *cfg)
	if err != nil {
		return nil, err
	}
	r, err := lab.Tune(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Note, r.Command = data.note, f.fitCommandLine()+f.bestFlags(&r.Best)
	if data.train, data.test, err = datasets.Stretch(r.Best.Lengths, data.train, data.test); err != nil {
		return nil, err
	}
	cfg.Lambda = r.Best.Lambda
	cfg.Kernel, err = kernel.FromSpec(r.Best.Spec())
	return r, err
}
