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

// loadExtended reads the model of --extend and returns the data of a fit that extends it (appendToModel), on all ranks
// together. It returns a usage error if --stop labels is set, which counts labels at the threshold 0, and the model has
// another threshold.
func (a *app) loadExtended(ctx context.Context, f *fitFlags) (*problemData, error) {
	m, err := a.loadModel(ctx, f.Extend, f.Memory)
	if err != nil {
		return nil, err
	}
	if f.Stop.Rule == bound.ByLabels && m.Threshold != 0 {
		return nil, usagef("--stop labels counts labels at the threshold 0, and that of %s is %.6g", f.Extend,
			m.Threshold)
	}
	return f.appendToModel(ctx, m)
}

// appendToModel returns the data of a fit that extends the model m: the rows of its fit followed by those of --train,
// and the rows of --test. The hints of the data report words of --train that the model does not know, and the error of
// m on the rows of --train. They suggest --tune if the number of rows has at least doubled. appendToModel returns an
// error if m was saved without its training targets, or if the columns, labels or weights of --train do not match those
// of m.
func (f *fitFlags) appendToModel(ctx context.Context, m *model.Model) (*problemData, error) {
	oldRows, err := m.TrainingData()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Extend, err)
	}
	options := f.ReadOptions
	options.Memory = f.Memory
	if !f.flags.IsSet("target") {
		options.Target = "" // the target column of the model
	}
	newRows, err := readForModel(ctx, m, f.Train, options)
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
	data := &problemData{target: m.Origin.Target, drop: m.Origin.Drop, groups: m.Origin.Groups, extended: m,
		kernel: m.Kernel, lambda: m.Lambda}
	if data.train, err = oldRows.Append(newRows); err != nil { // Append scales the new rows
		return nil, err
	}
	data.train.ReadReport = newRows.ReadReport // the report describes the file that this command has read
	data.addHint("%s", unknownWordsWarning(newRows))

	score, err := m.Evaluate(ctx, newRows, nil)
	if err != nil {
		return nil, err
	}
	data.addHint("%s before it was extended: %v of %s", f.Extend, score, f.Train)
	if data.train.Len() >= 2*oldRows.Len() {
		data.addHint("the rows have at least doubled, and kernel and λ are those of before: --tune on all rows may " +
			"do better")
	}

	if f.Test == "" {
		return data, nil
	}
	if data.test, err = readForModel(ctx, m, f.Test, options); err == nil {
		data.test, err = m.Scaled(data.test)
	}
	return data, err
}
