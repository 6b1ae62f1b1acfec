package cli

import (
	"cmp"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// loadWarm reads the model of --warm, and lets it say how to read the training data where no flag does.
func (f *fitFlags) loadWarm() (err error) {
	if f.Warm == "" {
		return nil
	}
	if f.model, err = model.Load(f.Warm); err != nil {
		return err
	}
	m, given := f.model, f.flags.Given
	switch {
	case kernel.Given(m.Kernel) != nil:
		return usagef("--warm %s: the model is of a precomputed K, which it does not hold", f.Warm)
	case m.Weighted:
		return usagef("--warm %s: its fit had weights, which it does not hold", f.Warm)
	case f.Train != "" && f.Impute != "none" && !given("scale") && !m.Scaling.Fills():
		return usagef("--impute %s: the model of --warm fills no missing values, as its rows had none: remove the "+
			"rows that have some, or fit without --warm", f.Impute)
	}
	if f.Train != "" {
		if !given("target") {
			f.Target = cmp.Or(datasets.JoinNames(m.Targets), m.Origin.Target, f.Target)
		}
		if !given("drop") {
			f.Drop = m.Origin.Drop
		}
		if !given("task") {
			f.Task = m.Task().String()
		}
		if !given("categorical") {
			f.Categorical = m.Origin.Categorical
		}
		if m.Scaling.Fills() && !given("scale") {
			f.KeepMissing, f.Impute = true, "none" // by the model's numbers
		}
	}
	if !given("scale") {
		if f.Scale = "none"; m.Scaling != nil && m.Scaling.Kind == "pixel" { // its points stay bytes
			f.Scale = m.Scaling.Kind
		}
	}
	return nil
}

// scaleWarm scales data that were read without a scaling as the model's points are, and lets it say kernel and λ.
func (f *fitFlags) scaleWarm(d *loaded) (err error) {
	if f.model == nil {
		return nil
	}
	d.lambda = f.model.Lambda
	if !f.flags.Given("kernel", "sigma", "gamma", "coef0", "degree") {
		d.kernel = f.model.Kernel
	}
	if f.flags.Given("scale") || f.Scale != "none" {
		return nil
	}
	if f.KeepMissing && f.flags.Given("impute") {
		d.hint("--impute is not used: missing values are filled by the numbers of --warm %s", f.Warm)
	}
	if d.train, err = f.model.Scaling.Apply(d.train); err == nil && d.test != nil {
		d.test, err = f.model.Scaling.Apply(d.test)
	}
	return f.warmError(err)
}

// startWarm puts the model's answer into a configuration.
func (f *fitFlags) startWarm(d *loaded, cfg *krrlab.Config) (err error) {
	if f.model == nil {
		return nil
	}
	cfg.Start, err = f.model.Start(d.train, cfg.Kernel, cfg.Lambda)
	return f.warmError(err)
}

func (f *fitFlags) warmError(err error) error {
	if err != nil {
		err = fmt.Errorf("--warm %s: %w", f.Warm, err)
	}
	return err
}

// warmText says what the model was good for.
func (f *fitFlags) warmText(s *krrlab.Solution) string {
	if s.Solver == krrlab.Direct || len(s.History) == 0 {
		return fmt.Sprintf("%s was not used: the direct solver does not iterate (--solver pcg does)", f.Warm)
	}
	n, _, _ := f.model.Dims()
	return fmt.Sprintf("%s has %d of the %d rows, λ = %g: the residual began at %.2e, and took %s to %.2e", f.Warm, n,
		s.N,
		f.model.Lambda, s.History[0].Residual, plural.Count(s.Iterations, "iteration"), s.TrueResidual)
}
