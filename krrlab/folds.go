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

// CrossValidate divides the training rows into k folds (datasets.Dataset.Folds), predicts each by a fit of the lab's
// method, kernel and λ to the others, with the given threshold for two classes, and returns the errors. The kernel and
// λ are not chosen again in each fold. It returns an error if a fit fails, such as one without rows of a class.
func (l *Lab) CrossValidate(ctx context.Context, k int, threshold float64) (*solve.Folds, error) {
	folds, err := l.data.Folds(k, l.cfg.Seed)
	if err != nil {
		return nil, err
	}
	out, foldOf := &solve.Folds{}, make([]int, l.data.Len())
	for f, rows := range folds {
		for _, i := range rows {
			foldOf[i] = f
		}
	}
	for f, rows := range folds {
		var fitted []int
		for i, g := range foldOf {
			if g != f {
				fitted = append(fitted, i)
			}
		}
		train, judged := l.data.Subset(fitted), l.data.Subset(rows)
		if train.Mean != nil {
			train = train.Center()
		}
		values, err := (&bench{Lab: l}).Decide(ctx, train, l.cfg.Kernel, l.cfg.Lambda, judged)
		if err != nil {
			return nil, fmt.Errorf("fold %d of %d: %w", f+1, k, err)
		}
		out.Errors = append(out.Errors, foldError(values, judged, threshold))
	}
	sd := 0.0
	out.Mean, sd = stat.MeanStdDev(out.Errors, nil)
	out.StandardError = sd / math.Sqrt(float64(k))
	return out, nil
}

// foldError returns the share of wrong labels, or the RMSE, of decision values for the rows of d.
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
