package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// loadWarm reads the model of --warm, and lets it say how to read the training data where no flag does.
func (f *fitFlags) loadWarm(set *pflag.FlagSet) (err error) {
	if f.warm == "" {
		return nil
	}
	if f.start, err = model.Load(f.warm); err != nil {
		return err
	}
	m := f.start
	if kernel.Given(m.Kernel) != nil {
		return usagef("--warm %s: the model is of a precomputed K, which it does not hold", f.warm)
	}
	if m.Weighted || f.weights != "" || f.classes == "balanced" {
		return usagef("--warm %s does not go with weights", f.warm)
	}
	if f.train != "" {
		if !set.Changed("target") {
			f.target = cmp.Or(datasets.JoinNames(m.Targets), m.Origin.Target, f.target)
		}
		if !set.Changed("drop") {
			f.drop = m.Origin.Drop
		}
		if !set.Changed("task") {
			f.task = m.Task().String()
		}
		if !set.Changed("categorical") {
			f.values = m.Origin.Categorical
		}
		if f.missing = m.Scaling.Fills() && !set.Changed("scale"); f.missing {
			f.impute = "none" // by the model's numbers
		} else if f.impute != "none" && !set.Changed("scale") {
			return usagef("--impute %s: the model of --warm fills no missing values, as its rows had none: remove the rows that have some, or fit without --warm", f.impute)
		}
	}
	if !set.Changed("scale") {
		if f.scale = "none"; m.Scaling != nil && m.Scaling.Kind == "pixel" { // its points stay bytes
			f.scale = m.Scaling.Kind
		}
	}
	return nil
}

// scaleWarm scales data that were read without a scaling as the model's points are.
func (f *fitFlags) scaleWarm(set *pflag.FlagSet, d *loaded) (err error) {
	if f.start != nil && f.missing && set.Changed("impute") {
		d.hint("--impute is not used: missing values are filled by the numbers of --warm %s", f.warm)
	}
	if f.start == nil || set.Changed("scale") || f.scale != "none" {
		return nil
	}
	if d.train, err = f.start.Scaling.Apply(d.train); err == nil && d.test != nil {
		d.test, err = f.start.Scaling.Apply(d.test)
	}
	if err != nil {
		err = fmt.Errorf("--warm %s: %w", f.warm, err)
	}
	return err
}

// begin puts the model's answer into a configuration.
func (f *fitFlags) begin(d *loaded, cfg *krrlab.Config) (err error) {
	if f.start == nil {
		return nil
	}
	if cfg.Start, err = f.start.Start(d.train, cfg.Kernel, cfg.Lambda); err != nil {
		err = fmt.Errorf("--warm %s: %w", f.warm, err)
	}
	return err
}

// warmText says what the model was good for.
func (f *fitFlags) warmText(s *krrlab.Solution) string {
	if s.Solver == krrlab.Direct || len(s.History) == 0 {
		return fmt.Sprintf("%s was not used: the direct solver does not iterate (--solver pcg does)", f.warm)
	}
	n, _, _ := f.start.Dims()
	return fmt.Sprintf("%s has %d of the %d rows, λ = %g: the residual began at %.2e, and took %s to %.2e", f.warm, n, s.N, f.start.Lambda, s.History[0].Residual, plural.Count(s.Iterations, "iteration"), s.TrueResidual)
}
