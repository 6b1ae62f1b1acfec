package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/safe"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/tune"
)

// ardWords are what --ard may be.
var ardWords = []string{"auto", "no"}

const ardUsage = "length scales for each feature: auto, where they are seen to be worth it, or no"

func (a *app) tuneCommand() *cobra.Command {
	var (
		o     tune.Options
		valid string
		ard   string
		args  string
		cmd   *cobra.Command
	)
	c := stageCommand{
		use:   "tune (--data NAME | --train FILE)",
		short: "Choose the kernel, σ and λ by the error on rows that a fit has not seen",
		long: `Tune tries kernels, bandwidths and ridges by leave-one-out on a subsample of the rows, continues with
more rows where the error is least, and decides among the best by fits to four fifths of the rows. A model of the
error chooses the next point to try, and predicts what is left to gain. Each feature gets its own length scale if
that reduces the error on rows that took no part in fitting them (--ard). What --kernel, --sigma, --gamma, --degree
or --lambda sets is not searched. Tune prints the krrlab fit command for the choice; krrlab fit --tune does both.`,
		example: `  krrlab tune --train train.csv --target price --json tune.json --plot tune.svg
  krrlab tune --train train.csv --target price --kernel gaussian --criterion kfold`,
		add: func(p *pflag.FlagSet) {
			p.StringSliceVar(&o.Kernels, "kernels", nil, "kernels to try, separated by commas (default: "+strings.Join(tune.Kernels, ",")+")")
			p.StringVar(&o.Criterion, "criterion", tune.LOO, "error to choose by: "+strings.Join(tune.Criteria, ", ")+" (with --valid)")
			p.IntVar(&o.Folds, "folds", 5, "number of folds of kfold")
			p.StringVar(&ard, "ard", "auto", ardUsage)
			p.StringVar(&valid, "valid", "", "file of rows to judge by, of the same form as --train")
			p.IntVar(&o.Rows, "rows", 2000, "rows of the subsample; all rows are taken if there are at most twice as many")
			p.IntVar(&o.Points, "points", 120, "maximum number of points of the first level")
			p.Float64Var(&o.Gain, "gain", 0.002, "end a level when the expected reduction of the error is less than this share of it")
			p.StringVar(&o.State, "state", "", "save the search in this file, so that an interrupted one can continue")
			wantOneOf(p, tune.Criteria, "criterion")
			wantOneOf(p, ardWords, "ard")
			wantAtLeast(p, 2, "folds")
			wantAtLeast(p, 10, "rows")
			wantAtLeast(p, 1, "points")
			wantPositive(p, "gain")
		},
		check: func(set *pflag.FlagSet) error {
			for i, name := range o.Kernels {
				if name == "rbf" {
					o.Kernels[i] = "gaussian"
				}
			}
			if len(o.Kernels) > 0 && set.Changed("kernel") {
				return usagef("--kernels and --kernel exclude each other")
			}
			if valid != "" && !set.Changed("criterion") {
				o.Criterion = tune.Validation
			}
			if (valid != "") != (o.Criterion == tune.Validation) {
				return usagef("--criterion validation goes with --valid FILE")
			}
			hold(set, &o)
			o.ARD = ard == "auto"
			args = fitCommandLine(set)
			if err := o.Check(); err != nil && valid == "" {
				return errUsage{err}
			}
			return nil
		},
		cfg: func(_ *pflag.FlagSet, c *krrlab.Config) error {
			c.Solver = krrlab.AutoSolver
			return nil
		},
		test: &valid, tested: func(d *datasets.Dataset) { o.Valid = d },
	}
	c.run = func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
		r, err := l.Tune(ctx, o)
		if r != nil {
			r.Command = args + bestFlags(cmd.Flags(), &r.Best)
		}
		return r, err
	}
	cmd = a.stageCommand(c)
	p := cmd.Flags()
	p.Lookup("kernel").Usage, p.Lookup("kernel").DefValue = "the kernel, if it is not to be searched: gaussian, polynomial, laplacian, matern32 or matern52", ""
	p.Lookup("sigma").Usage = "bandwidth σ, if it is not to be searched"
	p.Lookup("lambda").Usage = "ridge λ > 0, if it is not to be searched"
	return cmd
}

// hold sets what the flags of a kernel and λ hold.
func hold(set *pflag.FlagSet, o *tune.Options) {
	number := func(name string) (v float64) {
		if set.Changed(name) {
			v, _ = set.GetFloat64(name)
		}
		return v
	}
	o.Sigma, o.Lambda, o.Gamma = number("sigma"), number("lambda"), number("gamma")
	if set.Changed("kernel") {
		name, _ := set.GetString("kernel")
		o.Kernels = []string{name}
	}
	if set.Changed("degree") {
		o.Degree, _ = set.GetInt("degree")
	}
	if set.Changed("coef0") {
		c := number("coef0")
		o.Coef0 = &c
	}
}

// fitCommandLine returns the krrlab fit command with the data that the flags name.
func fitCommandLine(set *pflag.FlagSet) string {
	data := pflag.NewFlagSet("data", pflag.ContinueOnError)
	(&dataFlags{}).add(data)
	text := "krrlab fit"
	set.Visit(func(f *pflag.Flag) {
		if data.Lookup(f.Name) == nil {
			return
		}
		value := f.Value.String()
		if _, list := f.Value.(pflag.SliceValue); list { // the brackets are pflag's
			value = value[1 : len(value)-1]
		}
		between := " "
		if f.NoOptDefVal != "" {
			between = "="
		}
		text += " --" + f.Name + between + safe.Shell(value)
	})
	return text
}

// bestFlags returns the flags of a point; where --sigma has a length for each feature, which σ = 1 stands for then, these.
func bestFlags(set *pflag.FlagSet, best *tune.Point) string {
	point := *best
	if lengths := lengthsOf(set); lengths != nil && point.Sigma > 0 {
		point.Lengths = lengths
	}
	return point.Flags()
}

// tuned chooses kernel and λ of a configuration for krrlab fit, and divides the features by the length scales that were chosen.
func (a *app) tuned(ctx context.Context, set *pflag.FlagSet, f *fitFlags, data *loaded, cfg *krrlab.Config) (*tune.Result, error) {
	o := tune.Options{ARD: f.ard == "auto"}
	hold(set, &o)
	lab, err := krrlab.New(data.train, *cfg)
	if err != nil {
		return nil, err
	}
	r, err := lab.Tune(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Note, r.Command = data.note, fitCommandLine(set)+bestFlags(set, &r.Best)
	if data.train, data.test, err = datasets.Stretch(r.Best.Lengths, data.train, data.test); err != nil {
		return nil, err
	}
	cfg.Lambda = r.Best.Lambda
	cfg.Kernel, err = kernel.FromSpec(r.Best.Spec())
	return r, err
}
