package cli

import (
	"context"
	"slices"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// fitCommandLine returns a krrlab fit command for the same data as this command.
func (f *labFlags) fitCommandLine() string {
	var data schema.Schema
	for _, o := range schema.Of(&dataFlags{}).Fields {
		if field := f.flags.Lookup(o.Name); field != nil {
			data.Fields = append(data.Fields, field)
		}
	}
	return "krrlab fit" + commandLine(&data)
}

// tune runs the stage tune for krrlab fit. It sets the kernel and λ of cfg to the chosen ones and divides the features
// of the data by the chosen length scales.
func (a *app) tune(ctx context.Context, f *fitFlags, data *problemData, cfg *krrlab.Config) (stage.Choice, error) {
	stages := krrlab.Stages()
	d := stages[slices.IndexFunc(stages, func(d stage.Definition) bool { return d.Name == stage.Tune })]
	options := d.Zero()
	for name, value := range map[string]string{"ard": f.ARD, "metric": f.Metric} {
		if err := schema.Of(options).Lookup(name).Set(value); err != nil {
			return nil, err
		}
	}
	if err := options.(stage.Preparer).Prepare(f.command()); err != nil {
		return nil, errUsage{err}
	}
	lab, err := krrlab.New(data.train, *cfg)
	if err != nil {
		return nil, err
	}
	s, err := lab.Run(ctx, options)
	if err != nil {
		return nil, err
	}
	r := s.(stage.Choice)
	k, lambda, lengths := r.Chosen()
	if data.train, data.test, err = datasets.Stretch(lengths, data.train, data.test); err != nil {
		return nil, err
	}
	if cfg.Lambda = lambda; cfg.StopRows != nil {
		cfg.StopRows = data.test
	}
	cfg.Kernel, err = kernel.FromSpec(k)
	return r, err
}
