package krrlab

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// CrossValidate divides the training rows into k folds (datasets.Dataset.Folds). For each fold it fits the other rows,
// with the kernel, λ and method of the lab, and predicts the fold. The kernel and λ are not chosen again. For two
// classes, a decision value above threshold means the second class. CrossValidate returns the errors of the folds. It
// returns an error if a fit fails, such as one without rows of a class.
func (l *Lab) CrossValidate(ctx context.Context, k int, threshold float64) (*solve.Folds, error) {
	folds, err := l.data.Folds(k, l.cfg.Seed)
	if err != nil {
		return nil, err
	}

	out, foldOf := &solve.Folds{}, make([]int, l.data.Len()) // foldOf is the fold of each row
	for f, rows := range folds {
		for _, i := range rows {
			foldOf[i] = f
		}
	}
	for f, rows := range folds {
		var trainRows []int
		for i, g := range foldOf {
			if g != f {
				trainRows = append(trainRows, i)
			}
		}
		train, test := l.data.Subset(trainRows), l.data.Subset(rows)
		if train.Mean != nil { // subtract the mean of the fitted rows, not that of all rows
			train = train.Center()
		}
		values, err := (&bench{Lab: l}).Decide(ctx, train, l.cfg.Kernel, l.cfg.Lambda, test)
		if err != nil {
			return nil, fmt.Errorf("fold %d of %d: %w", f+1, k, err)
		}
		out.Errors = append(out.Errors, foldError(values, test, threshold))
	}

	sd := 0.0
	out.Mean, sd = stat.MeanStdDev(out.Errors, nil)
	out.StandardError = sd / math.Sqrt(float64(k))
	return out, nil
}

// foldError returns the error of decision values for the rows of d: the share of wrong labels for classes, and the RMSE
// for a regression. For two classes it subtracts the threshold from values.
func foldError(values *mat.Dense, d *datasets.Dataset, threshold float64) float64 {
	p := &model.Prediction{Decision: values, Value: mat.Col(nil, 0, values), Targets: d.Targets}
	if d.Class == nil {
		return p.Score(d).RMSE
	}
	if len(d.Labels) == 2 {
		values.Apply(func(_, _ int, v float64) float64 { return v - threshold }, values)
	}
	p.Labels, p.Class = d.Labels, datasets.Coding{Labels: d.Labels}.Decode(values)
	return p.Score(d).ErrorRate
}
