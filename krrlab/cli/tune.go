package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// fitCommandLine returns a krrlab fit command with the data flags that were set for this command.
func (f *labFlags) fitCommandLine() string {
	var data schema.Schema
	for _, option := range schema.Of(&dataFlags{}).Fields {
		if field := f.flags.Lookup(option.Name); field != nil {
			data.Fields = append(data.Fields, field)
		}
	}
	return "krrlab fit" + commandLine(&data)
}

// searchesKernel reports whether fit chooses kernel, σ and λ by a search: with --tune, or, if neither flags nor the
// registry set σ or λ, by the quick search of a first fit.
func (f *fitFlags) searchesKernel(data *problemData) bool {
	return f.Tune || data.kernel == nil && data.sigma == 0 && data.lambda == 0 &&
		!f.flags.IsSet("sigma", "lambda") && !strings.Contains(string(f.KernelName), " ")
}

// minFirstFitRows is the smallest number of rows with which fit chooses kernel, σ and λ without --tune. With fewer rows
// the leave-one-out errors are too noisy to compare kernels. The value was chosen by judgment.
const minFirstFitRows = 20

// tune runs the stage tune for krrlab fit, or its quick search without --tune. It sets the kernel and λ of cfg to the
// chosen ones and transforms the features of the data, so that the kernel has the chosen distance. If the quick search
// is not possible, it keeps the defaults, prints the reason and returns nil without an error.
func (a *app) tune(ctx context.Context, f *fitFlags, data *problemData, cfg *krrlab.Config) (stage.Choice, error) {
	values := map[string]string{"metric": f.Metric}
	if f.Tune {
		values["distance"] = f.Distance
	} else {
		values["quick"] = "true"
		if cfg.Solver == krrlab.Fourier {
			values["kernels"] = defaultKernel // not every kernel has a series
		}
	}
	choice, err := a.search(ctx, f, data, cfg, values)
	if err != nil {
		if f.Tune || ctx.Err() != nil {
			return nil, err
		}
		a.printf("note: σ and λ are defaults, since the quick search for them failed: %v\n", err)
		return nil, nil
	}
	spec, lambda, distance := choice.Chosen()
	memory := accel.AvailableMemory(f.Memory, a.processesHere())
	data.train, data.test, err = datasets.ChangeDistanceWithin(memory, distance, data.train, data.test)
	if err != nil {
		return nil, err
	}
	cfg.Lambda = lambda
	if cfg.StopRows != nil { // these were the test rows before their features were transformed
		cfg.StopRows = data.test
	}
	cfg.Kernel, err = kernel.FromSpec(spec)
	return choice, err
}

// search runs the stage tune with the given values of its options, by name, and with those that the flags fix. Without
// --tune it returns an error if there are fewer than minFirstFitRows rows.
func (a *app) search(ctx context.Context, f *fitFlags, data *problemData, cfg *krrlab.Config,
	values map[string]string) (stage.Choice, error) {
	if n := data.train.Len(); n < minFirstFitRows && !f.Tune {
		return nil, fmt.Errorf("%s: want at least %d", plural.Count(n, "row"), minFirstFitRows)
	}
	stages := krrlab.Stages()
	index := slices.IndexFunc(stages, func(definition stage.Definition) bool { return definition.Name == stage.Tune })
	options := stages[index].NewOptions()
	for name, value := range values {
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
	result, err := lab.Run(ctx, options)
	if err != nil {
		return nil, err
	}
	return result.(stage.Choice), nil
}
