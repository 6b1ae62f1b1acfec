package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
)

const ardUsage = "length scales for each feature: auto, where they are seen to be worth it, or no"

// tuneFlags are the options of krrlab tune.
type tuneFlags struct {
	tune.Options
	lengths   []float64
	fit       string
	Lengths   string `flag:"ard" default:"auto" check:"one of auto no"`
	ValidFile string `flag:"valid" file:"read" help:"file of rows to judge by, of the same form as --train"`
}

func (tuneFlags) Help() map[string]string {
	return map[string]string{
		"ard":    ardUsage,
		"kernel": "the kernel, if it is not to be searched: gaussian, polynomial, laplacian, matern32 or matern52",
		"sigma":  "bandwidth σ, if it is not to be searched",
		"lambda": "ridge λ > 0, if it is not to be searched",
	}
}

var tuneStage = stage.Definition{
	Name: stage.Tune, Options: tuneFlags{}, Result: (*tune.Result)(nil), Flags: "solver=auto",
	Short: "Choose the kernel, σ and λ by the error on rows that a fit has not seen",
	Long: `Tune tries kernels, bandwidths and ridges by leave-one-out on a subsample of the rows, continues with
more rows where the error is least, and decides among the best by fits to four fifths of the rows. A model of the
error chooses the next point to try, and predicts what is left to gain. Each feature gets its own length scale if
that reduces the error on rows that took no part in fitting them (--ard). What --kernel, --sigma, --gamma, --degree
or --lambda sets is not searched. Tune prints the krrlab fit command for the choice; krrlab fit --tune does both.`,
	Example: `  krrlab tune --train train.csv --target price --json tune.json --plot tune.svg
  krrlab tune --train train.csv --target price --kernel gaussian --criterion kfold`,
}

func (a *app) tuneCommand() *cobra.Command {
	cmd := a.stageCommand(&tuneStage)
	cmd.Flags().Lookup("kernel").DefValue = ""
	return cmd
}

// Run is not called.
func (tuneFlags) Run(context.Context, stage.Bench) (stage.Stage, error) { return nil, nil }

func (f *tuneFlags) run(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
	r, err := l.Tune(ctx, f.Options)
	if r != nil {
		best := r.Best
		if f.lengths != nil && best.Sigma > 0 {
			best.Lengths = f.lengths
		}
		r.Command = f.fit + best.Flags()
	}
	return r, err
}

// Prepare holds what flags of the kernel and λ set, and asks for the rows to judge by.
func (f *tuneFlags) Prepare(c *stage.Command) error {
	for i, name := range f.Kernels {
		if name == "rbf" {
			f.Kernels[i] = "gaussian"
		}
	}
	if f.ValidFile != "" && !c.Given("criterion") {
		f.Criterion = tune.Validation
	}
	switch {
	case c.Given("matrix"):
		return errors.New("--kernel precomputed leaves only λ to choose: krrlab loo --kernel precomputed gives the " +
			"error for a grid of λ")
	case (f.ValidFile != "") != (f.Criterion == tune.Validation):
		return errors.New("--criterion validation goes with --valid FILE")
	}
	hold(&f.Options, c)
	f.lengths, f.fit = c.Lengths, c.Fit
	c.TestFile, c.Tested = f.ValidFile, func(d *datasets.Dataset) { f.Valid = d }
	if f.ARD = f.Lengths == "auto"; f.ValidFile == "" {
		return f.Check()
	}
	return nil
}

// hold sets what the flags of a kernel and λ hold.
func hold(o *tune.Options, c *stage.Command) {
	given := c.Given
	if o.Sigma, o.Lambda = c.Kernel.Sigma, c.Lambda; given("gamma") {
		o.Gamma = c.Kernel.Gamma
	}
	if given("kernel") {
		o.Kernels = []string{c.Kernel.Name}
	}
	if given("degree") {
		o.Degree = c.Kernel.Degree
	}
	if given("coef0") {
		o.Coef0 = &c.Kernel.Coef0
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
	hold(&o, f.command())
	lab, err := krrlab.New(data.train, *cfg)
	if err != nil {
		return nil, err
	}
	r, err := lab.Tune(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Command = f.fitCommandLine() + f.bestFlags(&r.Best)
	if data.train, data.test, err = datasets.Stretch(r.Best.Lengths, data.train, data.test); err != nil {
		return nil, err
	}
	cfg.Lambda = r.Best.Lambda
	cfg.Kernel, err = kernel.FromSpec(r.Best.Spec())
	return r, err
}
