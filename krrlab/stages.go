package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/compare"
	"github.com/krrlab/lab/krrlab/stage/lambdap"
	"github.com/krrlab/lab/krrlab/stage/loo"
	"github.com/krrlab/lab/krrlab/stage/multilevel"
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/krrlab/stage/quality"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
	"github.com/krrlab/lab/krrlab/stage/statdim"
	"github.com/krrlab/lab/krrlab/stage/tune"
	"github.com/krrlab/lab/krrlab/stage/verify"
)

// stages are the built-in ones, each in its own package.
var stages = []stage.Definition{
	quality.Stage, statdim.Stage, sketchsize.Stage, lambdap.Stage, multilevel.Stage, loo.Stage, compare.Stage,
	plan.Stage, tune.Stage,
}

// Stages returns what the built-in stages are called, take and return.
func Stages() []stage.Definition { return slices.Clone(stages) }

// definition returns that of a built-in stage, one without a name for others.
func definitionOf(s stage.Runner) *stage.Definition {
	t := reflect.TypeOf(s)
	return cmp.Or(findStage(func(d *stage.Definition) bool {
		options := reflect.TypeOf(d.Options)
		return t == options || t == reflect.PointerTo(options)
	}), &stage.Definition{})
}

// find returns the first built-in stage, Solve among them, that is; nil for none.
func findStage(matches func(*stage.Definition) bool) *stage.Definition {
	for _, d := range append(Stages(), solveStage) {
		if matches(&d) {
			return &d
		}
	}
	return nil
}

// Run runs a stage, built-in or user-defined, with the problem and the matrices of the lab. It may return part of the
// value beside an error.
func (l *Lab) Run(ctx context.Context, s stage.Runner) (Stage, error) {
	ctx, ended := stage.Watch(ctx)
	v, err := func() (Stage, error) {
		d := definitionOf(s)
		if l.cfg.Backend != nil {
			return l.send(ctx, s, d)
		}
		end, err := l.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		if !d.Indefinite {
			if err := l.checkSemidefinite(ctx); err != nil {
				return nil, err
			}
		}
		return s.Run(ctx, &bench{Lab: l})
	}()
	return v, ended(v != nil, err)
}

// send runs a stage by the Backend, which knows those of Stages.
func (l *Lab) send(ctx context.Context, s stage.Runner, d *stage.Definition) (Stage, error) {
	switch {
	case d.Name == "":
		return nil, fmt.Errorf("krrlab: a user-defined stage (%T) cannot be sent to ranks: run it without a Backend", s)
	case d.NoBackend != "":
		return nil, fmt.Errorf("krrlab: no %s with a Backend: %s", d.Name, d.NoBackend)
	}
	v := d.New()
	hasValue, err := l.cfg.Backend.Run(ctx, l, d.Name, s, v)
	if !hasValue {
		return nil, err
	}
	if sol, ok := v.(*Solution); ok {
		if e := l.completeRemote(ctx, sol); e != nil {
			return nil, e
		}
	}
	return v, err
}

// Solve computes the coefficients with the configured solver, or with what Plan chooses where that is left to it.
// Where ctx or the Monitor ends the iteration it returns the Solution as far as it came, beside the error of ctx or
// of the Monitor (nil for pcg.ErrStop), with Status Canceled or Stopped. Its coefficients are the last iterate, of
// least A-norm error so far. After a stop by the Monitor in an iteration the residuals are recomputed as ever. After
// the end of ctx they are unknown: History has those by recurrence. Checkpoints stay as they are, to resume from.
//
// There is nothing, and Solve returns nil beside the error, before the first iteration and of the direct
// solver. On ranks all stop at the iteration at which the Monitor of one says so; where the context of one
// ends, the others fail. A Backend tells its ranks to end, and returns what they write before they do.
func (l *Lab) Solve(ctx context.Context) (*Solution, error) {
	return resultAs[*Solution](l.Run(ctx, solveRunner{}))
}

// What StatDim takes and returns: see package statdim.
type (
	StatDimOptions = statdim.Options
	StatDimMethod  = statdim.Method
	StatDim        = statdim.Result
)

// The methods of StatDim.
const (
	AutoStatDim  = statdim.Auto
	ExactStatDim = statdim.Exact
	Hutchinson   = statdim.Hutchinson
	SLQ          = statdim.SLQ
	FreeStatDim  = statdim.Free
)

// StatDim finds the statistical dimension s_λ(K).
func (l *Lab) StatDim(ctx context.Context, o StatDimOptions) (*StatDim, error) {
	return resultAs[*StatDim](l.Run(ctx, o))
}

// What LambdaP takes and returns: see package lambdap.
type (
	LambdaPOptions = lambdap.Options
	LambdaP        = lambdap.Result
)

// LambdaP sweeps λ_p for the features of the configuration.
func (l *Lab) LambdaP(ctx context.Context, o LambdaPOptions) (*LambdaP, error) {
	return resultAs[*LambdaP](l.Run(ctx, o))
}

// What Quality takes and returns: see package quality.
type (
	QualityOptions = quality.Options
	Quality        = quality.Result
)

// Quality judges the preconditioner of the configuration: an interval of κ(M⁻¹A).
func (l *Lab) Quality(ctx context.Context, o QualityOptions) (*Quality, error) {
	return resultAs[*Quality](l.Run(ctx, o))
}

// What SketchSize takes and returns: see package sketchsize.
type (
	SketchSizeOptions = sketchsize.Options
	SketchSize        = sketchsize.Result
)

// SketchSize doubles the number of features s until a test of them accepts.
func (l *Lab) SketchSize(ctx context.Context, o SketchSizeOptions) (*SketchSize, error) {
	return resultAs[*SketchSize](l.Run(ctx, o))
}

// What MultiLevel takes and returns: see package multilevel.
type (
	MultiLevelOptions = multilevel.Options
	MultiLevel        = multilevel.Result
	MeasuredLevel     = multilevel.Level
)

// MultiLevel measures each level of Algorithm 2, and features alone; nil means the default options.
func (l *Lab) MultiLevel(ctx context.Context, o *MultiLevelOptions) (*MultiLevel, error) {
	if o == nil {
		o = new(MultiLevelOptions)
	}
	return resultAs[*MultiLevel](l.Run(ctx, *o))
}

// What LeaveOneOut takes and returns: see package loo.
type (
	LeaveOneOutOptions = loo.Options
	LeaveOneOut        = loo.Result
)

// LeaveOneOut finds the leave-one-out error and GCV for each λ of a grid.
func (l *Lab) LeaveOneOut(ctx context.Context, o LeaveOneOutOptions) (*LeaveOneOut, error) {
	return resultAs[*LeaveOneOut](l.Run(ctx, o))
}

// PlanOptions are the options of Plan.
type PlanOptions = plan.Options

// Plan predicts the seconds and bytes of the ways to solve the problem, from counts and the rates of this machine and
// the iterations that a rule expects, and chooses the one of least training time: what Solve does with AutoSolver.
// What the configuration sets is held. Seconds depend on the machine and on what else it does, and so may the choice.
// Package plan has the method. On ranks the first plans, at rates that all measure together, and the others do the
// same. With a Backend it fails.
func (l *Lab) Plan(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	p, err := resultAs[*plan.Plan](l.Run(ctx, o))
	if p != nil {
		l.savePlan(p)
	}
	return p, err
}

// What Compare takes and returns: see package compare.
type (
	CompareOptions = compare.Options
	Compare        = compare.Result
)

// Compare judges preconditioners side by side: those given, beside those of the options, and M = I.
func (l *Lab) Compare(ctx context.Context, o CompareOptions, with ...Preconditioner) (*Compare, error) {
	o.With = slices.Clone(o.With)
	for _, p := range with {
		o.With = append(o.With, stage.Entry{Value: p})
	}
	return resultAs[*Compare](l.Run(ctx, o))
}

// What Tune takes and returns: see package tune.
type (
	TuneOptions = tune.Options
	Tune        = tune.Result
)

// Tune chooses kernel, scale and λ for the lab's data by the error on rows that a fit has not seen, whatever kernel and
// λ the configuration has.
func (l *Lab) Tune(ctx context.Context, o TuneOptions) (*Tune, error) {
	return resultAs[*Tune](l.Run(ctx, o))
}

// RunNamed runs the built-in stage of that name with its options as JSON, as a rank does.
func (l *Lab) RunNamed(ctx context.Context, name stage.Name, options []byte) (Stage, error) {
	d := findStage(func(d *stage.Definition) bool { return d.Name == name })
	if d == nil {
		return nil, fmt.Errorf("krrlab: unknown stage %q", name)
	}
	o, err := d.Decode(options)
	if err != nil {
		return nil, err
	}
	return l.Run(ctx, o)
}

// VerifyOptions are the options of Verify, Verification is what it returns.
type (
	VerifyOptions = verify.Options
	Verification  = verify.Verification
)

// Verify is verify.Model: what can be proved of a model, recomputed by independent code.
func Verify(ctx context.Context, m *model.Model, o VerifyOptions) (*Verification, error) {
	return verify.Model(ctx, m, o)
}

// Decide fits by the lab's method, and returns the decision values of the points at.
func (b *bench) Decide(ctx context.Context, train *datasets.Dataset, k kernel.Kernel, lambda float64,
	points *datasets.Dataset) (*mat.Dense, error) {
	cfg := b.cfg
	cfg.Kernel, cfg.Lambda, cfg.Checkpoint, cfg.StopRows, cfg.Stop = k, lambda, nil, nil, bound.Stop{}
	if cfg.Memory > 0 { // beside the points of the lab, those to predict, and both as they were before length scales
		cfg.Memory = max(1, cfg.Memory-2*b.pointBytes())
	}
	cfg.Monitor = func(Event) error { return ctx.Err() }
	cfg.Tol = max(cfg.Tol, 1e-4)
	if cfg.Solver, cfg.Precond = b.requested.solver, b.requested.precond; b.open != nil {
		cfg.Solver, cfg.Precond = AutoSolver, nil
	}
	l, err := New(train, cfg)
	if err != nil {
		return nil, err
	}
	sol, err := l.Solve(ctx)
	if err != nil {
		return nil, err
	}
	if sol.Status != pcg.Converged && sol.Status != pcg.Undecided {
		return nil, fmt.Errorf("krrlab: the fit to %d rows did not converge: %v", train.Len(), sol.Status)
	}
	f, err := sol.Model.Predict(ctx, points, sol.PredictOptions())
	if err != nil {
		return nil, err
	}
	return f.Decision, nil
}
