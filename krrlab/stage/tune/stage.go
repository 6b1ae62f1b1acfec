package tune

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage is the definition of the stage.
var Stage = stage.Definition{
	Name: stage.Tune, Options: Options{}, Result: (*Result)(nil), Flags: "solver=auto", Indefinite: true,
	NoBackend: "tune in this process, and fit with the result by the Backend",
	Short:     "Choose the kernel, σ and λ by the error on rows that a fit has not seen",
	Long: `Tune tries kernels, bandwidths and ridges by leave-one-out on a subsample of the rows, continues with
more rows where the error is least, and decides among the best by fits to four fifths of the rows. A model of the
error chooses the next point to try, and predicts what is left to gain. Each feature gets its own length scale if
that reduces the error on rows that took no part in fitting them (--ard). What --kernel, --sigma, --gamma, --degree
or --lambda sets is not searched. Tune prints the krrlab fit command for the choice; krrlab fit --tune does both.`,
	Example: `  krrlab tune --train train.csv --target price --json tune.json --plot tune.svg
  krrlab tune --train train.csv --target price --kernel gaussian --valid later.csv`,
}

// Prepare holds what flags of the kernel and λ set, and asks for the rows to judge by.
func (o *Options) Prepare(c *stage.Command) error {
	for i, name := range o.Kernels {
		if name == "rbf" {
			o.Kernels[i] = "gaussian"
		}
	}
	if c.Given("matrix") {
		return errors.New("--kernel precomputed leaves only λ to choose: krrlab loo --kernel precomputed gives the " +
			"error for a grid of λ")
	}
	if o.Sigma, o.Lambda = c.Kernel.Sigma, c.Lambda; c.Given("gamma") {
		o.Gamma = c.Kernel.Gamma
	}
	if c.Given("kernel") {
		o.Kernels = []string{c.Kernel.Name}
	}
	if c.Given("degree") {
		o.Degree = c.Kernel.Degree
	}
	if c.Given("coef0") {
		o.Coef0 = &c.Kernel.Coef0
	}
	o.lengths, o.fit, o.ARD = c.Lengths, c.Fit, o.Lengths == "auto"
	if c.TestFile = o.ValidFile; c.TestFile != "" {
		c.Tested = func(d *datasets.Dataset) { o.Valid = d }
	}
	return o.check()
}

// Bench is a stage.Bench that can fit other rows.
type Bench interface {
	stage.Bench
	// Decide returns the decision values of some points, m×t, of a fit to train with k and λ by the method of the
	// bench. It fails where the fit does not converge.
	Decide(ctx context.Context, train *datasets.Dataset, k kernel.Kernel, lambda float64,
		at *datasets.Dataset) (*mat.Dense, error)
}

// Run chooses kernel, scale and λ by the error on rows that a fit has not seen, whatever kernel and λ the problem has.
// Where there are more rows than a subsample has, the last level solves the problem by the bench's method for four rows
// of five, or all where Valid judges. If ctx ends, it returns what is known beside the error. On ranks the first
// searches the subsample; all fit the points of the last level together.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	p := b.Problem()
	if kernel.Given(p.Kernel) != nil {
		return nil, errors.New("no tuning of a given K, which leaves only λ to choose: LeaveOneOut gives the error " +
			"for a grid of λ")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.settled()
	train := p.Train.Decided()
	classes := p.Train.Class != nil
	metric, err := model.MetricOf(o.Metric, classes)
	if err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	y, err := p.Coding.Encode(p.Train)
	if err != nil {
		return nil, err
	}
	d := &problem{train: train, y: inUnits(mat.DenseCopyOf(y), y, classes), mean: p.Coding.Mean != nil, seed: p.Seed,
		judged: judgment{metric: metric}}
	if p.T == 1 && classes {
		d.judged.positive = p.Train.Rarer()
	}
	if o.Valid != nil {
		if o.Valid, err = p.Train.Scaling.Apply(o.Valid); err != nil {
			return nil, err
		}
		if d := o.Valid.Dim(); d != p.D {
			return nil, fmt.Errorf("tune: rows to judge by have %s, those of the fit %d", plural.Count(d, "feature"),
				p.D)
		}
		v, err := p.Coding.Code(o.Valid)
		if err != nil {
			return nil, err
		}
		d.valid, d.validY = o.Valid, inUnits(v, y, classes)
	}
	if err := o.limit(ctx, p); err != nil {
		return nil, err
	}
	all := &whole{} // of no use where a subsample takes all
	if !o.takesAll(p.N) {
		bench, ok := b.(Bench)
		if !ok {
			return nil, fmt.Errorf("tune: a %T does not fit other rows: tune by krrlab.Lab, or with Rows of n/2", b)
		}
		if all, err = o.holdout(bench, p, y, d.judged); err != nil {
			return nil, err
		}
	}
	r, err := runOnRanks(ctx, p.Comm, d, o, all, func(e stage.Event) { b.Tell(ctx, e) })
	if r == nil {
		return nil, err
	}
	if r.Header, r.Limited = p.Header, o.limited; metric == model.F1 && p.T == 1 {
		r.Of = p.Coding.Labels[d.judged.positive]
	}
	r.Kernel, r.Lambda = r.Best.Spec(), r.Best.Lambda
	best := r.Best
	if o.lengths != nil && best.Sigma > 0 { // σ = 1 stands for these
		best.Lengths = o.lengths
	}
	if o.fit != "" {
		if r.Command = o.fit + best.flags(); o.Metric != "auto" {
			r.Command += " --metric " + o.Metric
		}
	}
	return r, err
}

// whole evaluates a kernel and a λ for all rows, which is what the last level of a large problem does. Losses have
// the same rows in the same order each time. Where shape is not nil the kernel is of features divided by it.
type whole struct {
	name string // such as "hold-out of 3,000 rows, fits of 13,000"
	loss func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error)
}

// holdout returns how all rows are fitted and judged: by the rows given, or by some that are held out.
func (o *Options) holdout(b Bench, p *stage.Problem, of *mat.Dense, j judgment) (*whole, error) {
	all, judged, name, err := p.Train.Decided(), o.Valid, "validation rows", error(nil)
	train := all
	if judged == nil {
		for try := range uint64(50) { // until the rows that are fitted have two classes
			in, out, e := all.HoldoutRows(min(0.2, 5000/float64(p.N)), p.Seed+try<<32)
			if e != nil {
				return nil, e
			}
			train, judged = all.Subset(in), all.Subset(out)
			if _, err = p.Coding.Encode(train); err == nil {
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
	y, err := datasets.Coding{Labels: p.Coding.Labels}.Code(judged) // as predicted
	if err != nil {
		return nil, err
	}
	j.weights = judged.Weights
	return &whole{name: fmt.Sprintf("%d %s, fits of %d", judged.Len(), name, train.Len()),
		loss: func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
			train, judged, err := datasets.Stretch(shape, train, judged)
			if err != nil {
				return nil, err
			}
			f, err := b.Decide(ctx, train, k, lambda, judged)
			if err != nil {
				return nil, err
			}
			f.Sub(y, f)
			return j.loss(y, inUnits(f, of, j.classes())), nil
		}}, nil
}
