package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// fixedByModel are the flags that --extend does not take, as the model determines them.
var fixedByModel = []string{"kernel", "sigma", "gamma", "coef0", "degree", "lambda", "scale", "impute", "categorical",
	"dates", "drop", "more-targets", "center", "class-weights", "repeats", "groups", "task", "n", "space"}

// loadExtension reads the model of --extend and appends the rows of --train to those of its fit. It returns an error if
// the model lacks the answers of its rows, or if the rows do not fit it.
func (a *app) loadExtension(ctx context.Context, f *fitFlags, progress *progress) (*model.Model, *problemData, error) {
	for _, name := range fixedByModel {
		if f.flags.Lookup(name) != nil && f.flags.Given(name) {
			return nil, nil, usagef("--%s: with --extend the model determines it: leave it out", name)
		}
	}
	m, err := a.loadModel(ctx, f.Extend, &f.rankFlags, f.flags)
	if err != nil {
		return nil, nil, err
	}
	if f.Stop.Rule == bound.Labels && m.Threshold != 0 {
		return nil, nil, usagef("--stop labels counts labels at the threshold 0, and that of %s is %.6g", f.Extend, m.Threshold)
	}
	data, err := f.extension(ctx, m)
	if err = a.agree(ctx, err); err != nil {
		return nil, nil, err
	}
	if err := a.requireSameData(ctx, data.train, data.test); err != nil {
		return nil, nil, err
	}
	a.showHints(data, progress)
	return m, data, nil
}

// extension reads the new rows and the test rows for a model.
func (f *fitFlags) extension(ctx context.Context, m *model.Model) (*problemData, error) {
	rows, err := m.Training()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Extend, err)
	}
	o := f.ReadOptions
	if o.Memory = f.Memory; !f.flags.Given("target") {
		o.Target = ""
	}
	newRows, err := readForModel(ctx, m, f.Train, o)
	if err != nil {
		return nil, err
	}
	if reason := newRows.Read.Unjudged; reason != "" {
		return nil, errors.New(reason)
	}
	if m.Weights != nil && newRows.Weights == nil {
		return nil, usagef("the rows of the fit of %s have weights: name the column of %s with the weights of the new rows, "+
			"--weights COLUMN", f.Extend, f.Train)
	}
	d := &problemData{target: m.Origin.Target, drop: m.Origin.Drop, groups: m.Origin.Groups, start: m.C}
	if d.train, err = rows.Append(newRows); err != nil {
		return nil, err
	}
	d.train.Read = newRows.Read
	if m.Threshold != 0 {
		d.threshold = &solve.Threshold{Value: m.Threshold, Source: f.Extend}
	}
	d.addHint("%s", unknownWordsWarning(newRows))
	score, err := m.Evaluate(ctx, newRows, nil)
	if err != nil {
		return nil, err
	}
	d.addHint("%s before it was extended: %v of %s", f.Extend, score, f.Train)
	if d.train.Len() >= 2*rows.Len() {
		d.addHint("the rows have at least doubled, and kernel and λ are those of before: --tune on all rows may do better")
	}
	if f.Test == "" {
		return d, nil
	}
	if d.test, err = readForModel(ctx, m, f.Test, o); err == nil {
		d.test, err = m.Scaled(d.test)
	}
	return d, err
}

// extensionConfig returns the configuration of the flags with the kernel and λ of a model.
func (f *fitFlags) extensionConfig(m *model.Model) (cfg krrlab.Config, err error) {
	cfg = f.Config
	cfg.Kernel, cfg.Lambda = m.Kernel, m.Lambda
	cfg.Precond, err = f.effectivePrecond(m.Kernel).Preconditioner(m.Kernel)
	return cfg, err
}
