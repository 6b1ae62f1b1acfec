package krrlab

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/leaveout"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// thresholdRows is the largest number of points for which thresholds are chosen by leave-one-out, which takes 2n³/3
// multiply-adds. For more points, a part of the rows is held out instead.
const thresholdRows = 8000

// BestThreshold returns the threshold of a classifier of two classes that optimizes a metric
// (model.Metric.BestThreshold) on rows outside the fit. Up to 8,000 rows, the decision value of each row is that of a
// fit without it. For more rows, a fifth of them, but at most 5,000, is held out of a fit by the lab's method. The
// metric F1 refers to the rarer class. Rows are weighted by their Weights. It returns an error for more than two
// classes or an unsuitable metric.
func (l *Lab) BestThreshold(ctx context.Context, m model.Metric) (*solve.Threshold, error) {
	labels := l.coding.Labels
	if len(labels) != 2 {
		return nil, fmt.Errorf("krrlab: a threshold is for two classes")
	}
	if m != model.ErrorRate && !m.Thresholded() {
		return nil, fmt.Errorf("krrlab: no threshold is best for %s: want error, balanced-error or f1", m.Name())
	}
	judged, f, description, err := l.unseenDecisions(ctx)
	if err != nil {
		return nil, err
	}
	t := &solve.Threshold{Metric: m, Rows: description}
	positive, sign := 1, 1.0
	if m == model.F1 {
		if positive = l.data.RarerClass(); positive == 0 {
			sign = -1
		}
		t.Class = labels[positive]
	}
	classIndex, isPositive := judged.ClassIn(labels), make([]bool, len(f))
	for i := range f {
		f[i] *= sign
		isPositive[i] = classIndex[judged.Class[i]] == positive
	}
	t.Value, t.Loss = m.BestThreshold(f, isPositive, judged.Weights)
	t.Value *= sign
	return t, nil
}

// unseenDecisions returns rows with their decision values by fits without them, and a description of the rows.
func (l *Lab) unseenDecisions(ctx context.Context) (d *datasets.Dataset, f []float64, description string, err error) {
	n, train, b := l.data.Len(), l.data, &bench{Lab: l}
	if n <= thresholdRows {
		f, err := l.looDecisions(ctx, b)
		if _, full := errors.AsType[*stage.TooLarge](err); !full {
			return train, f, fmt.Sprintf("%d rows, each left out", n), err
		}
	}
	for try := range uint64(50) { // until the fitted rows have two classes
		var fitted, judged *datasets.Dataset
		if fitted, judged, err = train.Holdout(min(0.2, 5000/float64(n)), l.cfg.Seed+try<<32); err != nil {
			return nil, nil, "", err
		}
		if _, err = l.coding.Encode(fitted); err != nil {
			continue
		}
		values, err := b.Decide(ctx, fitted, l.cfg.Kernel, l.cfg.Lambda, judged)
		if err != nil {
			return nil, nil, "", err
		}
		return judged, mat.Col(nil, 0, values), fmt.Sprintf("%d rows held out of a fit to %d", judged.Len(),
			fitted.Len()), nil
	}
	return nil, nil, "", err
}

// looDecisions returns the leave-one-out decision value of each row.
func (l *Lab) looDecisions(ctx context.Context, b *bench) ([]float64, error) {
	end, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	k, errorBound, err := b.Dense(ctx, 16) // memory for K and its factor
	if err != nil {
		return nil, err
	}
	groups := l.data.Grouping(kernel.FirstEqual(l.cfg.Kernel, l.data.X))
	q := &leaveout.Problem{Classes: true, Residuals: true, KError: errorBound, Weights: l.data.FitWeights()}
	q.Same, q.Groups = groups.Equal(groups.First)
	s, err := leaveout.Dense(ctx, k, l.y, []float64{l.cfg.Lambda}, q)
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return nil, err
	}
	y, err := l.coding.Encode(l.data)
	if err != nil {
		return nil, err
	}
	y.Sub(y, s[0].Residuals)
	return mat.Col(nil, 0, y), nil
}
