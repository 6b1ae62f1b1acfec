package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
)

// fixedByModel lists the flags that cannot be combined with --extend, because the model determines their values.
var fixedByModel = []string{"kernel", "sigma", "lambda", "scale", "impute", "categorical",
	"dates", "drop", "more-targets", "center", "class-weights", "repeats", "groups", "task", "n", "space"}

// loadExtension reads the model of --extend and appends the rows of --train to those of its fit, on all ranks together.
// It returns an error if the model was saved without its training targets, or if the columns, labels or weights of
// --train do not match those of the model.
func (a *app) loadExtension(ctx context.Context, f *fitFlags) (*problemData, error) {
	m, err := a.loadModel(ctx, f.Extend, f.Memory)
	if err != nil {
		return nil, err
	}
	if f.Stop.Rule == bound.ByLabels && m.Threshold != 0 {
		return nil, usagef("--stop labels counts labels at the threshold 0, and that of %s is %.6g", f.Extend,
			m.Threshold)
	}
	return f.extension(ctx, m)
}

// extension returns the data of a fit that extends m: the rows of its fit followed by those of --train, and the rows of
// --test. It adds hints with unknown words and with the error of m on the new rows, and suggests --tune if the number
// of rows has at least doubled.
func (f *fitFlags) extension(ctx context.Context, m *model.Model) (*problemData, error) {
	oldRows, err := m.TrainingData()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Extend, err)
	}
	o := f.ReadOptions
	o.Memory = f.Memory
	if !f.flags.IsSet("target") {
		o.Target = "" // the target column of the model
	}
	newRows, err := readForModel(ctx, m, f.Train, o)
	if err != nil {
		return nil, err
	}
	if reason := newRows.ReadReport.NoAnswersReason; reason != "" { // the targets are missing or invalid
		return nil, errors.New(reason)
	}
	if m.Weights != nil && newRows.Weights == nil {
		return nil, usagef("the rows of the fit of %s have weights: name the column of %s with the weights of the "+
			"new rows, --weights COLUMN", f.Extend, f.Train)
	}
	d := &problemData{target: m.Origin.Target, drop: m.Origin.Drop, groups: m.Origin.Groups, extended: m,
		kernel: m.Kernel, lambda: m.Lambda}
	if d.train, err = oldRows.Append(newRows); err != nil { // Append scales the new rows
		return nil, err
	}
	d.train.ReadReport = newRows.ReadReport // the report describes the file that this command has read
	d.addHint("%s", unknownWordsWarning(newRows))

	score, err := m.Evaluate(ctx, newRows, nil)
	if err != nil {
		return nil, err
	}
	d.addHint("%s before it was extended: %v of %s", f.Extend, score, f.Train)
	if d.train.Len() >= 2*oldRows.Len() {
		d.addHint("the rows have at least doubled, and kernel and λ are those of before: --tune on all rows may do " +
			"better")
	}

	if f.Test == "" {
		return d, nil
	}
	if d.test, err = readForModel(ctx, m, f.Test, o); err == nil {
		d.test, err = m.Scaled(d.test)
	}
	return d, err
}
