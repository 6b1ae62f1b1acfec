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
	"github.com/krrlab/lab/krrlab/stage/solve"
	"github.com/krrlab/lab/krrlab/stage/statdim"
	"github.com/krrlab/lab/krrlab/stage/tune"
	"github.com/krrlab/lab/krrlab/stage/verify"
)

// stages are the built-in stages, each of which has its own package.
var stages = []stage.Definition{
	quality.Stage, statdim.Stage, sketchsize.Stage, lambdap.Stage, multilevel.Stage, loo.Stage, compare.Stage,
	plan.Stage, tune.Stage,
}

// Stages returns the names, options and results of the built-in stages.
func Stages() []stage.Definition { return slices.Clone(stages) }

// definitionOf returns the definition of a built-in stage. For any other stage, it returns a definition without a name.
func definitionOf(runner stage.Runner) *stage.Definition {
	runnerType := reflect.TypeOf(runner)
	return cmp.Or(findStage(func(definition *stage.Definition) bool {
		options := reflect.TypeOf(definition.Options)
		return runnerType == options || runnerType == reflect.PointerTo(options)
	}), &stage.Definition{})
}

// findStage returns the first built-in stage, including Solve, for which matches is true, or nil if there is none.
func findStage(matches func(*stage.Definition) bool) *stage.Definition {
	for _, definition := range append(Stages(), solveStage) {
		if matches(&definition) {
			return &definition
		}
	}
	return nil
}

// Run runs a built-in or user-defined stage with the problem and the matrices of the lab. It may return a partial
// result together with an error.
func (l *Lab) Run(ctx context.Context, runner stage.Runner) (Stage, error) {
	ctx, finish := stage.Watch(ctx)
	result, err := func() (Stage, error) {
		definition := definitionOf(runner)
		if l.cfg.Backend != nil {
			return l.send(ctx, runner, definition)
		}
		end, err := l.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		if !definition.Indefinite {
			if err := l.checkSemidefinite(ctx); err != nil {
				return nil, err
			}
		}
		return runner.Run(ctx, &bench{Lab: l})
	}()
	return result, finish(result != nil, err)
}

// send runs a built-in stage on the Backend. It returns an error for a stage that the Backend cannot run.
func (l *Lab) send(ctx context.Context, runner stage.Runner, definition *stage.Definition) (Stage, error) {
	switch {
	case definition.Name == "":
		return nil, fmt.Errorf("krrlab: a user-defined stage (%T) cannot be sent to ranks: run it without a Backend",
			runner)
	case definition.NoBackend != "":
		return nil, fmt.Errorf("krrlab: no %s with a Backend: %s", definition.Name, definition.NoBackend)
	}
	result := definition.NewResult()
	hasValue, err := l.cfg.Backend.Run(ctx, l, definition.Name, runner, result)
	if !hasValue {
		return nil, err
	}
	if sol, ok := result.(*Solution); ok {
		if completeErr := l.completeRemote(ctx, sol); completeErr != nil {
			return nil, completeErr
		}
	}
	return result, err
}

// Solve computes the coefficients C of (K+λI)C = Y with the configured solver, or with the choice of Plan if the
// configuration leaves the solver to it (AutoSolver).
//
// If ctx or the Monitor ends the iteration, Solve returns the partial Solution together with the error of ctx or of the
// Monitor (nil for pcg.ErrStop), with Status Canceled or Stopped. Its coefficients are the last iterate, which has the
// smallest error in the A-norm so far. If the Monitor stopped the iteration, true residuals are computed as usual. If
// ctx ended, they are unknown, and History has the recursive ones. Checkpoints are kept, so that the solve can be
// resumed.
//
// Before the first iteration, and for the direct solver, there is no partial result, and the Solution is nil. With
// several ranks, all of them stop at the same iteration if the Monitor of one of them returns an error; if the context
// of one rank ends, the others return an error. A Backend makes its ranks end, and returns the results that they write
// before.
func (l *Lab) Solve(ctx context.Context) (*Solution, error) {
	return resultAs[*Solution](l.Run(ctx, solveRunner{}))
}

// Types of package statdim that StatDim uses.
type (
	StatDimOptions = statdim.Options
	StatDimMethod  = statdim.Method
	StatDim        = statdim.Result
)

// The methods of StatDim. Names without StatDim are those of the literature.
const (
	AutoStatDim    = statdim.Auto       // the cheapest method that reaches the requested width
	ExactStatDim   = statdim.Exact      // all eigenvalues of K
	Hutchinson     = statdim.Hutchinson // random probes and preconditioned solves
	SLQ            = statdim.SLQ        // stochastic Lanczos quadrature
	FreeStatDim    = statdim.Free       // eigenvalues of ZᵀZ, without products with K
	FourierStatDim = statdim.Fourier    // a Fourier series of K
)

// StatDim estimates the statistical dimension s_λ(K) = tr(K(K+λI)⁻¹), the degrees of freedom of the regression.
func (l *Lab) StatDim(ctx context.Context, o StatDimOptions) (*StatDim, error) {
	return resultAs[*StatDim](l.Run(ctx, o))
}

// Types of package lambdap that LambdaP uses.
type (
	LambdaPOptions = lambdap.Options
	LambdaP        = lambdap.Result
)

// LambdaP measures κ(M⁻¹(K+λI)) and the iterations for several ridges λ_p of the preconditioner M = ZZᵀ+λ_pI, where Z
// are the features or landmarks of the configuration.
func (l *Lab) LambdaP(ctx context.Context, o LambdaPOptions) (*LambdaP, error) {
	return resultAs[*LambdaP](l.Run(ctx, o))
}

// Types of package quality that Quality uses.
type (
	QualityOptions = quality.Options
	Quality        = quality.Result
)

// Quality measures the preconditioner M of the configuration, by an interval for the condition number κ(M⁻¹(K+λI)).
func (l *Lab) Quality(ctx context.Context, o QualityOptions) (*Quality, error) {
	return resultAs[*Quality](l.Run(ctx, o))
}

// Types of package sketchsize that SketchSize uses.
type (
	SketchSizeOptions = sketchsize.Options
	SketchSize        = sketchsize.Result
)

// SketchSize doubles the number of random features s until a test accepts them as a preconditioner.
func (l *Lab) SketchSize(ctx context.Context, o SketchSizeOptions) (*SketchSize, error) {
	return resultAs[*SketchSize](l.Run(ctx, o))
}

// Types of package multilevel that MultiLevel uses.
type (
	MultiLevelOptions = multilevel.Options
	MultiLevel        = multilevel.Result
)

// MultiLevel measures κ(M⁻¹(K+λI)) and the iterations for each level of Algorithm 2 of Avron, Clarkson and Woodruff,
// random features that are sketched to fewer and fewer columns, and for features alone. A nil pointer means the default
// options.
func (l *Lab) MultiLevel(ctx context.Context, o *MultiLevelOptions) (*MultiLevel, error) {
	if o == nil {
		o = new(MultiLevelOptions)
	}
	return resultAs[*MultiLevel](l.Run(ctx, *o))
}

// Types of package loo that LeaveOneOut uses.
type (
	LeaveOneOutOptions = loo.Options
	LeaveOneOut        = loo.Result
)

// LeaveOneOut computes the leave-one-out error and generalized cross-validation (GCV) for each λ of a grid.
func (l *Lab) LeaveOneOut(ctx context.Context, o LeaveOneOutOptions) (*LeaveOneOut, error) {
	return resultAs[*LeaveOneOut](l.Run(ctx, o))
}

// PlanOptions are the options of Plan.
type PlanOptions = plan.Options

// Plan predicts the seconds and bytes of the methods for solving the problem, from operation counts, the rates of this
// machine and the iterations of a rule of thumb. It chooses the one with the least training time; Solve uses the same
// choice with AutoSolver. Settings of the configuration are fixed. Package plan describes the method.
//
// The seconds, and therefore the choice, depend on the machine and on its load. With several ranks, all of them measure
// the rates together, the first rank plans, and the others get its plan. Plan returns an error with a Backend, and if
// o.Nodes is set, for which Run returns a *plan.Scaling.
func (l *Lab) Plan(ctx context.Context, o PlanOptions) (*plan.Plan, error) {
	p, err := resultAs[*plan.Plan](l.Run(ctx, o))
	if p != nil {
		l.savePlan(p)
	}
	return p, err
}

// Types of package compare that Compare uses.
type (
	CompareOptions = compare.Options
	Compare        = compare.Result
)

// Compare measures preconditioners side by side: the given ones, those of the options, and M = I.
func (l *Lab) Compare(ctx context.Context, o CompareOptions, preconds ...Preconditioner) (*Compare, error) {
	o.With = slices.Clone(o.With)
	for _, p := range preconds {
		o.With = append(o.With, stage.Entry{Value: p})
	}
	return resultAs[*Compare](l.Run(ctx, o))
}

// Types of package tune that Tune uses.
type (
	TuneOptions = tune.Options
	Tune        = tune.Result
)

// Tune chooses kernel, length scale and λ for the lab's data by the error on rows outside the fit. It ignores the
// kernel and λ of the configuration.
func (l *Lab) Tune(ctx context.Context, o TuneOptions) (*Tune, error) {
	return resultAs[*Tune](l.Run(ctx, o))
}

// RunNamed runs the built-in stage with that name and its options as JSON. Ranks run the stages of a Backend with it.
func (l *Lab) RunNamed(ctx context.Context, name stage.Name, options []byte) (Stage, error) {
	definition := findStage(func(definition *stage.Definition) bool { return definition.Name == name })
	if definition == nil {
		return nil, fmt.Errorf("krrlab: unknown stage %q", name)
	}
	runner, err := definition.Decode(options)
	if err != nil {
		return nil, err
	}
	return l.Run(ctx, runner)
}

// Types of package verify that Verify uses.
type (
	VerifyOptions = verify.Options
	Verification  = verify.Verification
)

// Verify checks by independent code which properties of a model can be proved (verify.Model).
func Verify(ctx context.Context, m *model.Model, o VerifyOptions) (*Verification, error) {
	return verify.Model(ctx, m, o)
}

// DecisionValues implements stage.Refitter. It fits a model by the lab's method to train, with kernel k and ridge
// lambda, and returns its decision values for the rows of test, m×t. The tolerance is that of the lab, but at least
// 1e-4 if it was configured, because decision values of this accuracy suffice. It returns an error if the fit does not
// converge; a residual that meets the tolerance, although rounding errors may exceed it (pcg.Undecided), is accepted.
func (b *bench) DecisionValues(ctx context.Context, train *datasets.Dataset, k kernel.Kernel, lambda float64,
	test *datasets.Dataset) (*mat.Dense, error) {
	cfg := b.cfg
	cfg.Kernel, cfg.Lambda, cfg.Checkpoint, cfg.StopRows, cfg.Stop = k, lambda, nil, nil, bound.Stop{}
	if cfg.Memory > 0 { // subtract the lab's points, and as much for copies of train and test
		cfg.Memory = max(1, b.pointMemory().Reserve(b.pointBytes()).Free())
	}
	cfg.Monitor = func(Event) error { return ctx.Err() }
	if !cfg.openTol {
		cfg.Tol = max(cfg.Tol, 1e-4)
	}
	if cfg.Solver, cfg.Precond = b.requested.solver, b.requested.precond; b.planChoices != nil {
		cfg.Solver, cfg.Precond = AutoSolver, nil
	}
	lab, err := New(train, cfg)
	if err != nil {
		return nil, err
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		return nil, err
	}
	if sol.Status != pcg.Converged && sol.Status != pcg.Undecided {
		return nil, fmt.Errorf("krrlab: the fit to %d rows did not converge: %v", train.Len(), sol.Status)
	}
	prediction, err := sol.Model.Predict(ctx, test, sol.PredictOptions())
	if err != nil {
		return nil, err
	}
	return prediction.Decision, nil
}

// CrossValidate estimates the error of the lab's kernel, λ and method by k folds of the training rows
// (solve.CrossValidate). For two classes, a decision value above threshold means the second class.
func (l *Lab) CrossValidate(ctx context.Context, k int, threshold float64) (*solve.Folds, error) {
	end, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return solve.CrossValidate(ctx, &bench{Lab: l}, k, threshold)
}

// BestThreshold returns the threshold of a classifier of two classes that optimizes a metric on rows outside the fit
// (solve.BestThreshold).
func (l *Lab) BestThreshold(ctx context.Context, m model.Metric) (*solve.Threshold, error) {
	end, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return solve.BestThreshold(ctx, &bench{Lab: l}, m)
}
