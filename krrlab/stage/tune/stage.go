package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/leaveout"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage tune. It takes a problem whose K is not positive semi-definite, because it ignores the kernel
// of the problem.
var Stage = stage.Definition{
	Name: stage.Tune, Options: Options{}, Result: (*Result)(nil), Flags: "solver=auto", Indefinite: true,
	NoBackend: "tune in this process, and fit with the result by the Backend",
	Short:     "Choose the kernel, σ and λ by the error on rows that a fit has not seen",
	Long: `Tune tries kernels, bandwidths and ridges by leave-one-out on a subsample of the rows, continues with
more rows where the error is least, and decides among the best by fits to four fifths of the rows, or from 100,000
points in one to three dimensions on by leave-one-out of all rows, by a Fourier series, among the kernels that have
one. A model of the error chooses the next point to try, and predicts what is left to gain. Each feature gets its own
length scale, and the rows a distance ‖L(x−z)‖ with a matrix L, if that reduces the error on rows that took no part in fitting them
(--distance). What --kernel, --sigma or --lambda sets is not searched. Tune prints the krrlab fit
command for the choice; krrlab fit --tune does both.`,
	Example: `  krrlab tune --train train.csv --target price --json tune.json --plot tune.svg
  krrlab tune --train train.csv --target price --kernel gaussian --valid later.csv`,
}

// Prepare completes the options from the flags of the command: kernel parameters and λ that were set by flags are not
// searched, and the file of validation rows is read. It returns an error for flags that exclude each other.
func (o *Options) Prepare(command *stage.Command) error {
	for i, name := range o.Kernels {
		if name == "rbf" {
			o.Kernels[i] = "gaussian"
		}
	}
	if command.IsSet("matrix") {
		return errors.New("--kernel precomputed leaves only λ to choose: krrlab loo --kernel precomputed gives the " +
			"error for a grid of λ")
	}
	if o.Quick && command.IsSet("rows", "points", "gain", "distance") {
		return errors.New("--quick sets --rows, --points, --gain and --distance: leave them out")
	}
	if o.Sigma, o.Lambda = command.Kernel.Sigma, command.Lambda; command.IsSet("kernel") {
		o.Kernels = []string{command.Kernel.Name}
	}
	o.givenDistance, o.fitCommand, o.Distance = command.Distance, command.FitCommand, o.DistanceFlag
	if command.TestFile = o.ValidFile; command.TestFile != "" {
		command.OnTestRows = func(rows *datasets.Dataset) { o.Valid = rows }
	}
	return o.check()
}

// Run chooses the kernel, its scale and λ by the error on rows that the fit has not seen. It ignores the kernel and λ
// of the problem, and returns a *Result.
//
// If the problem has more rows than a subsample, the last level of the search fits four fifths of the rows by the
// method of the bench, or all rows if Valid is set. From seriesRows rows on, it uses a Fourier series of the kernel if
// possible. If ctx ends, Run returns the result found so far together with the error. With several ranks, rank 0
// searches the subsample, and all ranks together fit the points of the last level.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	problem := bench.Problem()
	if kernel.AsPrecomputed(problem.Kernel) != nil {
		return nil, errors.New("no tuning of a given K, which leaves only λ to choose: LeaveOneOut gives the error " +
			"for a grid of λ")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	o.setQuick()
	data, y, err := o.newProblem(problem)
	if err != nil {
		return nil, err
	}
	if err := o.limitMemory(ctx, problem); err != nil {
		return nil, err
	}
	full, err := o.lastLevelEvaluator(bench, problem, y, data.judgment)
	if err != nil {
		return nil, err
	}
	result, err := searchOnRanks(ctx, problem.Comm, data, o, full, func(event stage.Event) { bench.Notify(ctx, event) })
	if result == nil {
		return nil, err
	}
	result.classWeights = problem.Train.ClassWeights != nil
	result.Header, result.MemoryNote = problem.Header, o.memoryNote
	if data.judgment.metric == model.F1 && problem.T == 1 {
		result.PositiveClass = problem.Coding.Labels[data.judgment.positiveClass]
	}
	result.Kernel, result.Lambda = result.Best.Spec(), result.Best.Lambda
	best := result.Best
	if o.givenDistance != nil && best.Sigma > 0 { // the points were stretched by the given distance, and σ = 1
		best.Lengths = o.givenDistance
	}
	if o.fitCommand != "" {
		if result.Command = o.fitCommand + best.flags(); o.Metric != "auto" {
			result.Command += " --metric " + o.Metric
		}
	}
	return result, err
}

// newProblem returns the data to tune for, and the coded targets y of all training rows. Unlike data.y, the targets y
// are not in the units of scoring.inTargetUnits. newProblem scales o.Valid like the training rows.
func (o *Options) newProblem(stageProblem *stage.Problem) (data *problem, y *mat.Dense, err error) {
	metric, err := model.MetricOf(o.Metric, stageProblem.Train.Class != nil)
	if err != nil {
		return nil, nil, fmt.Errorf("tune: %w", err)
	}
	if y, err = stageProblem.Coding.EncodeForFit(stageProblem.Train); err != nil {
		return nil, nil, err
	}
	data = &problem{train: stageProblem.Train.WithGroups(nil), centersTargets: stageProblem.Coding.Mean != nil,
		seed: stageProblem.Seed, judgment: scoring{metric: metric}}
	data.y = data.judgment.inTargetUnits(mat.DenseCopyOf(y), y)
	if stageProblem.T == 1 && stageProblem.Train.Class != nil {
		data.judgment.positiveClass = stageProblem.Train.MinorityClass()
	}
	if o.Valid == nil {
		return data, y, nil
	}
	if o.Valid, err = stageProblem.Train.Scaling.Apply(o.Valid); err != nil {
		return nil, nil, err
	}
	if dim := o.Valid.Dim(); dim != stageProblem.D {
		return nil, nil, fmt.Errorf("tune: rows to judge by have %s, those of the fit %d", plural.Count(dim, "feature"),
			stageProblem.D)
	}
	validY, err := stageProblem.Coding.Encode(o.Valid)
	if err != nil {
		return nil, nil, err
	}
	data.validation, data.validationY = o.Valid, data.judgment.inTargetUnits(validY, y)
	return data, y, nil
}

// lastLevelEvaluator returns the evaluator of the last level, which has all rows. If the subsample has all rows or
// decides alone, there is no such level, and the evaluator is empty. lastLevelEvaluator returns an error if the bench
// cannot fit other rows than those of its problem.
func (o *Options) lastLevelEvaluator(bench stage.Bench, problem *stage.Problem, y *mat.Dense,
	judgment scoring) (*evaluator, error) {
	if o.usesAllRows(problem.N) || o.Quick {
		return &evaluator{}, nil
	}
	refitter, ok := bench.(stage.Refitter)
	if !ok {
		return nil, fmt.Errorf("tune: a %T does not fit other rows: tune by krrlab.Lab, or with Rows of n/2", bench)
	}
	holdout := func() (*evaluator, error) { return o.holdoutEvaluator(refitter, problem, y, judgment) }
	series := o.seriesEvaluator(problem, y, judgment)
	if series == nil {
		return holdout()
	}
	series.alternative = holdout
	return series, nil
}

// seriesRows is the number of rows from which on the last level is leave-one-out by a Fourier series. For fewer, fits
// of every kernel take minutes at most.
const seriesRows = 100_000

// seriesEvaluator returns the evaluator of a last level whose loss is the leave-one-out error of all rows by a Fourier
// series (leaveout.Fourier). It returns nil for fewer than seriesRows rows, with several ranks, with validation rows,
// with groups of rows that are not equal, or if no kernel of the options has a series.
func (o *Options) seriesEvaluator(problem *stage.Problem, y *mat.Dense, judgment scoring) *evaluator {
	point := points.NewDense(1, problem.D, nil)
	hasSeries := func(f *family) bool {
		_, err := problem.SeriesOf(f.base, point)
		return err == nil
	}
	families, _ := o.families() // Options.check has excluded an error
	if problem.N < seriesRows || problem.Comm.Size() > 1 || o.Valid != nil ||
		!slices.ContainsFunc(families, hasSeries) {
		return nil
	}
	train := problem.Train.WithGroups(nil)
	options := &leaveout.Problem{Classification: judgment.hasClasses(), Weights: train.FitWeights(),
		SubtractsMean:    problem.Coding.Mean != nil,
		ComputeResiduals: true}
	groups := train.Grouping(nil)
	if options.FirstEqual, options.Groups = groups.SplitByKind(groups.FirstRow); options.Groups != nil {
		return nil
	}
	judgment.weights, judgment.groups = train.Weights, groups.FirstRow
	return &evaluator{canEvaluate: hasSeries, name: fmt.Sprintf("loo, all %d rows, of kernels with a Fourier series",
		problem.N),
		loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
			stretched, _, err := datasets.ChangeDistanceWithin(problem.Memory, shape, train, nil)
			if err != nil {
				return nil, err
			}
			series, err := problem.SeriesOf(k, stretched.X)
			if err != nil {
				return nil, err
			}
			scores, err := leaveout.Fourier(ctx, series, stretched.X, problem.Y, []float64{lambda}, options)
			if err != nil {
				return nil, err
			}
			return judgment.loss(y, judgment.inTargetUnits(scores[0].Residuals, y)), nil
		}}
}

// evaluator computes the loss of a kernel and a λ on the rows of one level.
type evaluator struct {
	name string // description of the rows, such as "3000 rows held out, fits of 13000"
	// canEvaluate reports whether the level can evaluate a family; nil: it evaluates all families. Only an evaluator
	// by Fourier series restricts its families.
	canEvaluate func(f *family) bool
	// alternative makes another evaluator for the level. The search uses it if the previous level prefers families that
	// this evaluator cannot evaluate; nil: there are none.
	alternative func() (*evaluator, error)

	// loss returns the loss of k and λ, for points stretched by shape unless shape is nil. Every call returns the
	// losses of the same rows in the same order.
	loss func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error)
}

// holdoutEvaluator returns the evaluator of the last level of a large problem, for which Fourier series do not serve.
// The evaluator fits all rows and judges by o.Valid. If o.Valid is nil, it holds out a fifth of the rows, but at most
// 5,000, as judging rows, and fits the others.
func (o *Options) holdoutEvaluator(refitter stage.Refitter, problem *stage.Problem, trainY *mat.Dense,
	judgment scoring) (*evaluator, error) {
	allRows, judgedRows, name, err := problem.Train.WithGroups(nil), o.Valid, "validation rows", error(nil)
	train := allRows
	if judgedRows == nil {
		for attempt := range uint64(50) { // draw rows again until the fitted ones have two classes
			trainIndex, heldOutIndex, splitErr := allRows.HoldoutRows(min(0.2, 5000/float64(problem.N)),
				problem.Seed+attempt<<32)
			if splitErr != nil {
				return nil, splitErr
			}
			train, judgedRows = allRows.Subset(trainIndex), allRows.Subset(heldOutIndex)
			if _, err = problem.Coding.EncodeForFit(train); err == nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		name = "rows held out"
		if problem.Coding.Mean != nil {
			train = train.Center()
		}
	}
	y, err := datasets.Coding{Labels: problem.Coding.Labels}.Encode(judgedRows) // coded as the predictions
	if err != nil {
		return nil, err
	}
	judgment = judgment.onRows(judgedRows)
	return &evaluator{name: fmt.Sprintf("%d %s, fits of %d", judgedRows.Len(), name, train.Len()),
		loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
			train, judgedRows, err := datasets.ChangeDistanceWithin(problem.Memory, shape, train, judgedRows)
			if err != nil {
				return nil, err
			}
			predicted, err := refitter.DecisionValues(ctx, train, k, lambda, judgedRows)
			if err != nil {
				return nil, err
			}
			predicted.Sub(y, predicted)
			return judgment.loss(y, judgment.inTargetUnits(predicted, trainY)), nil
		}}, nil
}
