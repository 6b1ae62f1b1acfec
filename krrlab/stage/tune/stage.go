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

// Prepare fixes the kernel parameters and λ that were set by flags, and requests the file of validation rows.
func (o *Options) Prepare(c *stage.Command) error {
	for i, name := range o.Kernels {
		if name == "rbf" {
			o.Kernels[i] = "gaussian"
		}
	}
	if c.IsSet("matrix") {
		return errors.New("--kernel precomputed leaves only λ to choose: krrlab loo --kernel precomputed gives the " +
			"error for a grid of λ")
	}
	if o.Quick && c.IsSet("rows", "points", "gain", "distance") {
		return errors.New("--quick sets --rows, --points, --gain and --distance: leave them out")
	}
	if o.Sigma, o.Lambda = c.Kernel.Sigma, c.Lambda; c.IsSet("kernel") {
		o.Kernels = []string{c.Kernel.Name}
	}
	o.givenDistance, o.fitCommand, o.Distance = c.Distance, c.FitCommand, o.DistanceFlag
	if c.TestFile = o.ValidFile; c.TestFile != "" {
		c.OnTestRows = func(d *datasets.Dataset) { o.Valid = d }
	}
	return o.check()
}

// Run chooses the kernel, its scale and λ by the error on rows that the fit has not seen. It ignores the kernel and λ
// of the problem.
//
// If the problem has more rows than a subsample, the last level solves it by the bench's method: for four fifths of the
// rows, or for all rows if Valid is set. If ctx ends, Run returns the result found so far together with the error. With
// several ranks, rank 0 searches the subsample, and all ranks together fit the points of the last level.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	p := b.Problem()
	if kernel.AsPrecomputed(p.Kernel) != nil {
		return nil, errors.New("no tuning of a given K, which leaves only λ to choose: LeaveOneOut gives the error " +
			"for a grid of λ")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	o.setQuick()
	data, y, err := o.newProblem(p)
	if err != nil {
		return nil, err
	}
	if err := o.limitMemory(ctx, p); err != nil {
		return nil, err
	}
	full, err := o.lastLevel(b, p, y, data.judgment)
	if err != nil {
		return nil, err
	}
	r, err := searchOnRanks(ctx, p.Comm, data, o, full, func(e stage.Event) { b.Notify(ctx, e) })
	if r == nil {
		return nil, err
	}
	r.classWeights = p.Train.ClassWeights != nil
	if r.Header, r.MemoryNote = p.Header, o.memoryNote; data.judgment.metric == model.F1 && p.T == 1 {
		r.PositiveClass = p.Coding.Labels[data.judgment.positiveClass]
	}
	r.Kernel, r.Lambda = r.Best.Spec(), r.Best.Lambda
	best := r.Best
	if o.givenDistance != nil && best.Sigma > 0 { // the points were stretched by the given distance, and σ = 1
		best.Lengths = o.givenDistance
	}
	if o.fitCommand != "" {
		if r.Command = o.fitCommand + best.flags(); o.Metric != "auto" {
			r.Command += " --metric " + o.Metric
		}
	}
	return r, err
}

// newProblem returns the data to tune for, and the coded targets y of all training rows, which are not in the units of
// judgment.inTargetUnits. It scales o.Valid as the training rows.
func (o *Options) newProblem(p *stage.Problem) (data *problem, y *mat.Dense, err error) {
	metric, err := model.MetricOf(o.Metric, p.Train.Class != nil)
	if err != nil {
		return nil, nil, fmt.Errorf("tune: %w", err)
	}
	if y, err = p.Coding.EncodeForFit(p.Train); err != nil {
		return nil, nil, err
	}
	data = &problem{train: p.Train.WithGroups(nil), centersTargets: p.Coding.Mean != nil, seed: p.Seed,
		judgment: scoring{metric: metric}}
	data.y = data.judgment.inTargetUnits(mat.DenseCopyOf(y), y)
	if p.T == 1 && p.Train.Class != nil {
		data.judgment.positiveClass = p.Train.MinorityClass()
	}
	if o.Valid == nil {
		return data, y, nil
	}
	if o.Valid, err = p.Train.Scaling.Apply(o.Valid); err != nil {
		return nil, nil, err
	}
	if dim := o.Valid.Dim(); dim != p.D {
		return nil, nil, fmt.Errorf("tune: rows to judge by have %s, those of the fit %d", plural.Count(dim, "feature"),
			p.D)
	}
	validY, err := p.Coding.Encode(o.Valid)
	if err != nil {
		return nil, nil, err
	}
	data.validation, data.validationY = o.Valid, data.judgment.inTargetUnits(validY, y)
	return data, y, nil
}

// lastLevel returns the evaluator of the last level. The search does not use it if the subsample has all rows or
// decides alone. lastLevel returns an error if the bench does not fit other rows.
func (o *Options) lastLevel(b stage.Bench, p *stage.Problem, y *mat.Dense, judgment scoring) (*evaluator, error) {
	if o.usesAllRows(p.N) || o.Quick {
		return &evaluator{}, nil
	}
	bench, ok := b.(stage.Refitter)
	if !ok {
		return nil, fmt.Errorf("tune: a %T does not fit other rows: tune by krrlab.Lab, or with Rows of n/2", b)
	}
	holdout := func() (*evaluator, error) { return o.holdout(bench, p, y, judgment) }
	series := o.seriesEvaluator(p, y, judgment)
	if series == nil {
		return holdout()
	}
	series.alternative = holdout
	return series, nil
}

// seriesRows is the number of rows from which on the last level is leave-one-out by a Fourier series. For fewer, fits
// of every kernel take minutes at most.
const seriesRows = 100_000

// seriesEvaluator returns the evaluator of a last level that is the leave-one-out of all rows by a Fourier series
// (leaveout.Fourier), or nil for fewer than seriesRows rows, with several ranks, with rows to judge by, with groups of
// rows that differ, or if no kernel of the options has a series.
func (o *Options) seriesEvaluator(p *stage.Problem, y *mat.Dense, judgment scoring) *evaluator {
	point := points.NewDense(1, p.D, nil)
	hasSeries := func(f *family) bool {
		_, err := p.SeriesOf(f.base, point)
		return err == nil
	}
	families, _ := o.families() // o was checked
	if p.N < seriesRows || p.Comm.Size() > 1 || o.Valid != nil || !slices.ContainsFunc(families, hasSeries) {
		return nil
	}
	train := p.Train.WithGroups(nil)
	options := &leaveout.Problem{Classification: judgment.classes(), Weights: train.FitWeights(),
		SubtractsMean:    p.Coding.Mean != nil,
		ComputeResiduals: true}
	groups := train.Grouping(nil)
	if options.FirstEqual, options.Groups = groups.SplitByKind(groups.FirstRow); options.Groups != nil {
		return nil
	}
	judgment.weights, judgment.groups = train.Weights, groups.FirstRow
	return &evaluator{canEvaluate: hasSeries, name: fmt.Sprintf("loo, all %d rows, of kernels with a Fourier series",
		p.N),
		loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
			stretched, _, err := datasets.ChangeDistanceWithin(p.Memory, shape, train, nil)
			if err != nil {
				return nil, err
			}
			s, err := p.SeriesOf(k, stretched.X)
			if err != nil {
				return nil, err
			}
			scores, err := leaveout.Fourier(ctx, s, stretched.X, p.Y, []float64{lambda}, options)
			if err != nil {
				return nil, err
			}
			return judgment.loss(y, judgment.inTargetUnits(scores[0].Residuals, y)), nil
		}}
}

// evaluator computes the loss of a kernel and a λ on the rows of one level.
type evaluator struct {
	name string // description of the rows, such as "3000 rows held out, fits of 13000"
	// canEvaluate reports whether the level can evaluate a family; nil: it evaluates all families. Only a level of a
	// Fourier series restricts its families.
	canEvaluate func(f *family) bool
	// alternative makes another evaluator of the level, for the case that the previous level prefers families that this
	// one cannot evaluate; nil if it can evaluate all.
	alternative func() (*evaluator, error)

	// loss returns the loss of k and λ, for points stretched by shape unless shape is nil. Every call returns the
	// losses of the same rows in the same order.
	loss func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error)
}

// holdout returns the evaluator of the last level of a large problem. It fits all rows and judges by o.Valid. If
// o.Valid is nil, it holds out a fifth of the rows, but at most 5,000, to judge by, and fits the others.
func (o *Options) holdout(b stage.Refitter, p *stage.Problem, trainY *mat.Dense, judgment scoring) (*evaluator, error) {
	allRows, judgedRows, name, err := p.Train.WithGroups(nil), o.Valid, "validation rows", error(nil)
	train := allRows
	if judgedRows == nil {
		for attempt := range uint64(50) { // until the fitted rows have two classes
			trainIndex, heldOutIndex, e := allRows.HoldoutRows(min(0.2, 5000/float64(p.N)), p.Seed+attempt<<32)
			if e != nil {
				return nil, e
			}
			train, judgedRows = allRows.Subset(trainIndex), allRows.Subset(heldOutIndex)
			if _, err = p.Coding.EncodeForFit(train); err == nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		name = "rows held out"
		if p.Coding.Mean != nil {
			train = train.Center()
		}
	}
	y, err := datasets.Coding{Labels: p.Coding.Labels}.Encode(judgedRows) // coded as the predictions
	if err != nil {
		return nil, err
	}
	judgment = judgment.onRows(judgedRows)
	return &evaluator{name: fmt.Sprintf("%d %s, fits of %d", judgedRows.Len(), name, train.Len()),
		loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
			train, judgedRows, err := datasets.ChangeDistanceWithin(p.Memory, shape, train, judgedRows)
			if err != nil {
				return nil, err
			}
			predicted, err := b.DecisionValues(ctx, train, k, lambda, judgedRows)
			if err != nil {
				return nil, err
			}
			predicted.Sub(y, predicted)
			return judgment.loss(y, judgment.inTargetUnits(predicted, trainY)), nil
		}}, nil
}
