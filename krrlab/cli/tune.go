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

// tuned chooses kernel and λ of a configuration for krrlab fit by the stage tune, and divides the features by the
// length scales that were chosen.
func (a *app) tuned(ctx context.Context, f *fitFlags, data *loaded, cfg *krrlab.Config) (stage.Choice, error) {
	all := krrlab.Stages()
	d := all[slices.IndexFunc(all, func(d stage.Definition) bool { return d.Name == stage.Tune })]
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
