package solve

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/leaveout"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// CrossValidate divides the training rows into k folds (datasets.Dataset.Folds). For each fold it fits the other rows,
// with the kernel, λ and method of the bench, and predicts the fold. For two classes, a decision value above threshold
// means the second class. CrossValidate returns the errors of the folds. It returns an error if a fit fails, such as
// one without rows of a class.
func CrossValidate(ctx context.Context, b stage.Refitter, k int, threshold float64) (*Folds, error) {
	p := b.Problem()
	folds, err := p.Train.Folds(k, p.Seed)
	if err != nil {
		return nil, err
	}
	foldOf := make([]int, p.N) // the fold of each row
	for f, rows := range folds {
		for _, i := range rows {
			foldOf[i] = f
		}
	}
	out := &Folds{}
	for f, rows := range folds {
		var trainRows []int
		for i, g := range foldOf {
			if g != f {
				trainRows = append(trainRows, i)
			}
		}
		train, test := p.Train.Subset(trainRows), p.Train.Subset(rows)
		if train.Mean != nil { // subtract the mean of the fitted rows, not that of all rows
			train = train.Center()
		}
		values, err := b.DecisionValues(ctx, train, p.Kernel, p.Lambda, test)
		if err != nil {
			return nil, fmt.Errorf("fold %d of %d: %w", f+1, k, err)
		}
		out.Errors = append(out.Errors, foldError(values, test, threshold))
	}
	mean, deviation := stat.MeanStdDev(out.Errors, nil)
	out.Mean, out.StandardError = mean, deviation/math.Sqrt(float64(k))
	return out, nil
}

// foldError returns the error of decision values for the rows of d: the share of wrong labels for classes, and the RMSE
// for a regression. For two classes it subtracts the threshold from values.
func foldError(values *mat.Dense, d *datasets.Dataset, threshold float64) float64 {
	p := &model.Prediction{Decision: values, Value: mat.Col(nil, 0, values), Targets: d.TargetNames}
	if d.Class == nil {
		return p.Score(d).RMSE
	}
	if len(d.Labels) == 2 {
		values.Apply(func(_, _ int, v float64) float64 { return v - threshold }, values)
	}
	p.Labels, p.Class = d.Labels, datasets.Coding{Labels: d.Labels}.Decode(values)
	return p.Score(d).ErrorRate
}

// maxLeaveOneOutRows is the largest number of rows for which thresholds are chosen by leave-one-out, which takes 2n³/3
// multiply-adds. For more rows, a part of them is held out.
const maxLeaveOneOutRows = 8000

// BestThreshold returns the threshold of a classifier of two classes that optimizes a metric
// (model.Metric.BestThreshold) on rows outside the fit. Up to 8,000 rows, and if memory suffices, the decision value of
// each row is that of a fit without it. Otherwise a fifth of the rows, but at most 5,000, is held out of a fit by the
// method of the bench. Rows are weighted by their Weights, and the metric F1 refers to the rarer class by these
// weights. It returns an error unless there are two classes, and for an unsuitable metric.
func BestThreshold(ctx context.Context, b stage.Refitter, m model.Metric) (*Threshold, error) {
	p := b.Problem()
	labels := p.Coding.Labels
	if len(labels) != 2 {
		return nil, fmt.Errorf("krrlab: a threshold is for two classes")
	}
	if m != model.ErrorRate && !m.DependsOnThreshold() {
		return nil, fmt.Errorf("krrlab: no threshold is best for %s: want error, balanced-error or f1", m.Name())
	}
	unseen, f, description, err := unseenDecisions(ctx, b)
	if err != nil {
		return nil, err
	}
	t := &Threshold{Metric: m, Rows: description}
	positive, sign := 1, 1.0
	if m == model.F1 {
		if positive = p.Train.MinorityClass(); positive == 0 {
			sign = -1
		}
		t.Class = labels[positive]
	}
	classIndex, isPositive := unseen.ClassIn(labels), make([]bool, len(f))
	for i := range f {
		f[i] *= sign
		isPositive[i] = classIndex[unseen.Class[i]] == positive
	}
	t.Value, t.Loss = m.BestThreshold(f, isPositive, unseen.Weights)
	t.Value *= sign
	return t, nil
}

// unseenDecisions returns rows with their decision values by fits without them, and a description of the rows.
func unseenDecisions(ctx context.Context, b stage.Refitter) (d *datasets.Dataset, f []float64, description string,
	err error) {
	p := b.Problem()
	if p.N <= maxLeaveOneOutRows {
		f, err := looDecisions(ctx, b)
		if _, tooLarge := errors.AsType[*accel.MemoryError](err); !tooLarge {
			return p.Train, f, fmt.Sprintf("%d rows, each left out", p.N), err
		}
	}
	for attempt := range uint64(50) { // until the fitted rows have two classes
		var fitted, heldOut *datasets.Dataset
		if fitted, heldOut, err = p.Train.Holdout(min(0.2, 5000/float64(p.N)), p.Seed+attempt<<32); err != nil {
			return nil, nil, "", err
		}
		if _, err = p.Coding.EncodeForFit(fitted); err != nil {
			continue
		}
		values, err := b.DecisionValues(ctx, fitted, p.Kernel, p.Lambda, heldOut)
		if err != nil {
			return nil, nil, "", err
		}
		return heldOut, mat.Col(nil, 0, values), fmt.Sprintf("%d rows held out of a fit to %d", heldOut.Len(),
			fitted.Len()), nil
	}
	return nil, nil, "", err
}

// looDecisions returns the leave-one-out decision value of each row, for two classes. The error wraps an
// *accel.MemoryError if dense factors do not fit into memory.
func looDecisions(ctx context.Context, b stage.Refitter) ([]float64, error) {
	p := b.Problem()
	k, errorBound, err := b.Dense(ctx, 16) // bytes per entry: of K and of its factor
	if err != nil {
		return nil, err
	}
	groups := p.Train.Grouping(kernel.FirstEqual(p.Kernel, p.Train.X))
	q := &leaveout.Problem{Classification: true, ComputeResiduals: true, KError: errorBound,
		Weights: p.Train.FitWeights()}
	q.FirstEqual, q.Groups = groups.SplitByKind(groups.FirstRow)
	s, err := leaveout.Dense(ctx, k, p.Y, []float64{p.Lambda}, q)
	if err = comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	y, err := p.Coding.EncodeForFit(p.Train)
	if err != nil {
		return nil, err
	}
	y.Sub(y, s[0].Residuals) // f_{−i}(x_i) = y_i − the leave-one-out residual
	return mat.Col(nil, 0, y), nil
}
