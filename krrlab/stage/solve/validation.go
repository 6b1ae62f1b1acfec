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

// CrossValidate divides the training rows into foldCount folds (datasets.Dataset.Folds). For each fold it fits the
// other rows, with the kernel, λ and method of the refitter, and predicts the fold. For two classes, a decision value
// above threshold means the second class. CrossValidate returns the errors of the folds. It returns an error if a fit
// fails, for example because a class has no rows.
func CrossValidate(ctx context.Context, refitter stage.Refitter, foldCount int, threshold float64) (*Folds, error) {
	problem := refitter.Problem()
	folds, err := problem.Train.Folds(foldCount, problem.Seed)
	if err != nil {
		return nil, err
	}
	foldOf := make([]int, problem.N) // the fold of each row
	for fold, rows := range folds {
		for _, i := range rows {
			foldOf[i] = fold
		}
	}
	result := &Folds{}
	for fold, rows := range folds {
		var trainRows []int
		for i, rowFold := range foldOf {
			if rowFold != fold {
				trainRows = append(trainRows, i)
			}
		}
		train, test := problem.Train.Subset(trainRows), problem.Train.Subset(rows)
		if train.Mean != nil { // subtract the mean of the fitted rows instead of the mean of all rows
			train = train.Center()
		}
		values, err := refitter.DecisionValues(ctx, train, problem.Kernel, problem.Lambda, test)
		if err != nil {
			return nil, fmt.Errorf("fold %d of %d: %w", fold+1, foldCount, err)
		}
		result.Errors = append(result.Errors, foldError(values, test, threshold))
	}
	mean, deviation := stat.MeanStdDev(result.Errors, nil)
	result.Mean, result.StandardError = mean, deviation/math.Sqrt(float64(foldCount))
	return result, nil
}

// foldError returns the error of decision values for the test rows: the share of wrong labels for classes, and the RMSE
// for a regression. For two classes it subtracts the threshold from values.
func foldError(values *mat.Dense, test *datasets.Dataset, threshold float64) float64 {
	prediction := &model.Prediction{Decision: values, Value: mat.Col(nil, 0, values), Targets: test.TargetNames}
	if test.Class == nil {
		return prediction.Score(test).RMSE
	}
	if len(test.Labels) == 2 {
		values.Apply(func(_, _ int, v float64) float64 { return v - threshold }, values)
	}
	prediction.Labels, prediction.Class = test.Labels, datasets.Coding{Labels: test.Labels}.Decode(values)
	return prediction.Score(test).ErrorRate
}

// maxLeaveOneOutRows is the largest number of rows for which thresholds are chosen by leave-one-out, which takes 2n³/3
// multiply-adds. For more rows, a part of them is held out.
const maxLeaveOneOutRows = 8000

// BestThreshold returns the threshold of a classifier of two classes that optimizes a metric
// (model.Metric.BestThreshold) on rows outside the fit. Up to 8,000 rows, and if memory suffices, the decision value of
// each row is that of a fit without it. Otherwise a fifth of the rows, but at most 5,000, is held out of a fit by the
// method of the refitter. Rows are weighted by their Weights, and the metric F1 refers to the class of the smaller
// total weight. BestThreshold returns an error unless there are two classes, and for a metric without a best threshold.
func BestThreshold(ctx context.Context, refitter stage.Refitter, metric model.Metric) (*Threshold, error) {
	problem := refitter.Problem()
	labels := problem.Coding.Labels
	if len(labels) != 2 {
		return nil, fmt.Errorf("krrlab: a threshold is for two classes")
	}
	if metric != model.ErrorRate && !metric.DependsOnThreshold() {
		return nil, fmt.Errorf("krrlab: no threshold is best for %s: want error, balanced-error or f1", metric.Name())
	}
	unseen, decisions, description, err := unseenDecisions(ctx, refitter)
	if err != nil {
		return nil, err
	}
	threshold := &Threshold{Metric: metric, Rows: description}
	positive, sign := 1, 1.0 // the positive class, and −1 if decision values must be negated to be large for it
	if metric == model.F1 {
		if positive = problem.Train.MinorityClass(); positive == 0 {
			sign = -1
		}
		threshold.Class = labels[positive]
	}
	classIndex, isPositive := unseen.ClassIn(labels), make([]bool, len(decisions))
	for i := range decisions {
		decisions[i] *= sign
		isPositive[i] = classIndex[unseen.Class[i]] == positive
	}
	threshold.Value, threshold.Loss = metric.BestThreshold(decisions, isPositive, unseen.Weights)
	threshold.Value *= sign
	return threshold, nil
}

// unseenDecisions returns rows, the decision value that a fit without the row gives to each, and a description of the
// rows.
func unseenDecisions(ctx context.Context, refitter stage.Refitter) (rows *datasets.Dataset, decisions []float64,
	description string, err error) {
	problem := refitter.Problem()
	if problem.N <= maxLeaveOneOutRows {
		decisions, err := looDecisions(ctx, refitter)
		if _, tooLarge := errors.AsType[*accel.MemoryError](err); !tooLarge {
			return problem.Train, decisions, fmt.Sprintf("%d rows, each left out", problem.N), err
		}
	}
	for attempt := range uint64(50) { // draw rows again until the fitted ones have two classes
		var fitted, heldOut *datasets.Dataset
		if fitted, heldOut, err = problem.Train.Holdout(min(0.2, 5000/float64(problem.N)),
			problem.Seed+attempt<<32); err != nil {
			return nil, nil, "", err
		}
		if _, err = problem.Coding.EncodeForFit(fitted); err != nil { // a class has no fitted rows
			continue
		}
		values, err := refitter.DecisionValues(ctx, fitted, problem.Kernel, problem.Lambda, heldOut)
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
func looDecisions(ctx context.Context, refitter stage.Refitter) ([]float64, error) {
	problem := refitter.Problem()
	const bytesPerEntry = 16 // for K and for its factor, in float64
	kernelMatrix, errorBound, err := refitter.Dense(ctx, bytesPerEntry)
	if err != nil {
		return nil, err
	}
	groups := problem.Train.Grouping(kernel.FirstEqual(problem.Kernel, problem.Train.X))
	looProblem := &leaveout.Problem{Classification: true, ComputeResiduals: true, KError: errorBound,
		Weights: problem.Train.FitWeights()}
	looProblem.FirstEqual, looProblem.Groups = groups.SplitByKind(groups.FirstRow)
	solutions, err := leaveout.Dense(ctx, kernelMatrix, problem.Y, []float64{problem.Lambda}, looProblem)
	if err = comm.Agree(ctx, problem.Comm, err); err != nil {
		return nil, err
	}
	decisions, err := problem.Coding.EncodeForFit(problem.Train)
	if err != nil {
		return nil, err
	}
	decisions.Sub(decisions, solutions[0].Residuals) // f_{−i}(x_i) = y_i − the leave-one-out residual
	return mat.Col(nil, 0, decisions), nil
}
