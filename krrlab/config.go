package krrlab

import (
	"cmp"
	"fmt"
	"math"
	"reflect"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// New returns a Lab for the training data and a configuration, after checking both. It codes the targets: ±1 in one
// column for two classes, one column per class for more classes, and the values themselves, without train.Mean, for a
// regression. New does not scale the points; scale them first (package datasets).
//
// With weights w = train.FitWeights and W = diag(w), the problem is (W^½KW^½+λI)ĉ = W^½y (points.Weighted). Residuals
// and bounds then refer to W^½KW^½, and the coefficients of the model are W^½ĉ.
func New(train *datasets.Dataset, cfg Config) (*Lab, error) {
	if err := train.Check(); err != nil {
		return nil, err
	}
	n := train.Len()
	if n < 2 {
		return nil, fmt.Errorf("krrlab: %d training point: want at least 2", n)
	}
	if train.Dim() < 1 {
		return nil, fmt.Errorf("krrlab: the training points have dimension 0: want at least 1 feature")
	}
	p := &problem{data: train, train: train, running: make(chan struct{}, 1)}
	p.coding.Mean = train.Mean
	if train.Task == datasets.Classification {
		p.coding = datasets.Coding{Labels: train.Labels}
	}
	var err error
	if p.y, err = p.coding.EncodeForFit(train); err != nil {
		return nil, err
	}
	if weights := train.FitWeights(); weights != nil {
		scaled := *train
		if scaled.X, err = points.NewWeighted(train.X, weights); err != nil {
			return nil, fmt.Errorf("%s: %w", train.Name, err)
		}
		p.train = &scaled
		p.scaleRows(p.y)
	}
	return p.newLab(cfg)
}

// scaleRows multiplies row i of y by √w_i, in place. It converts targets to those of the weighted problem, and the
// coefficients ĉ of that problem to c.
func (p *problem) scaleRows(y *mat.Dense) {
	_, factors := points.SplitFactors(p.train.X)
	for i, factor := range factors {
		floats.Scale(factor, y.RawRowView(i))
	}
}

// defaultTol returns the default tolerance of the relative residual, as in the paper.
func (p *problem) defaultTol() float64 {
	if p.coding.Labels != nil { // classification
		return 1e-3
	}
	return 1e-5
}

// With returns a lab of the same problem (data, kernel, λ and ranks) with a different method. The function change
// modifies a copy of the configuration, in which all defaults but those of Tol and Stop are set. Defaults that New
// chose adapt to the change: the solver to a new preconditioner, and the preconditioner to a new solver. The labs share
// K, and also Z and M if these are the same. With returns an error if kernel, λ or ranks change.
func (l *Lab) With(change func(*Config)) (*Lab, error) {
	cfg := l.cfg
	if cfg.Stop = l.requested.stop; cfg.openTol {
		cfg.Tol, cfg.openTol = 0, false
	}
	change(&cfg)
	sameSolver, samePrecond := cfg.Solver == l.cfg.Solver, reflect.DeepEqual(cfg.Precond, l.cfg.Precond)
	switch {
	case sameSolver && !samePrecond && unpreconditioned(cfg.Solver):
		cfg.Solver = l.requested.solver
	case !sameSolver && samePrecond:
		cfg.Precond = l.requested.precond
	}
	if cfg.Lambda != l.cfg.Lambda || !sameKernel(cfg.Kernel, l.cfg.Kernel) || cfg.Comm != l.cfg.Comm {
		return nil, fmt.Errorf("krrlab: another kernel, λ or ranks is another problem: make a Lab of it by New")
	}
	cfg.Kernel = l.cfg.Kernel
	derived, err := l.problem.newLab(cfg)
	if err == nil && sameSolver && samePrecond && cfg.Storage == l.cfg.Storage && cfg.Tiles == l.cfg.Tiles {
		derived.planChoices = l.planChoices
	}
	return derived, err
}

// sameKernel reports whether two kernels are equal. Go cannot compare functions, so kernels that hold functions are
// compared by type and name.
func sameKernel(a, b kernel.Kernel) bool {
	if !reflect.DeepEqual(b, b) {
		return reflect.TypeOf(a) == reflect.TypeOf(b) && a.String() == b.String()
	}
	return reflect.DeepEqual(a, b)
}

// newLab returns a lab of the problem with the configuration, or an error if they do not fit together.
func (p *problem) newLab(cfg Config) (*Lab, error) {
	l := &Lab{problem: p, policy: solve.DefaultPolicy}
	if cfg.Backend != nil && cfg.Kernel != nil { // before the defaults, which a user-defined kernel may lack
		if err := cfg.Backend.Check(&cfg); err != nil {
			return nil, err
		}
	}
	l.requested.solver, l.requested.precond, l.requested.stop = cfg.Solver, cfg.Precond, cfg.Stop
	n, _, t := l.Dims()
	l.planChoices = cfg.planChoices(n)
	var err error
	if l.cfg, err = cfg.withDefaults(n, t, p.defaultTol()); err != nil {
		return nil, err
	}
	if p.comm == nil { // for the first lab of the problem; With cannot change ranks
		p.comm = comm.OrAlone(l.cfg.Comm)
	}
	if l.planChoices != nil && l.planChoices.fixedRule &&
		l.cfg.Solver != Direct { // the fixed rule already chose a method
		l.planChoices = nil
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	return l, nil
}

// planChoices returns the choices that a configuration leaves to the plan, for n points, or nil if there are none.
func (c Config) planChoices(n int) *planChoices {
	auto, isAuto := c.Precond.(Auto)
	fixedRule := n <= DirectBelow && len(auto.Race) == 0
	isPlanned := c.Solver == AutoSolver && (isAuto || c.Precond == nil) ||
		isAuto && (c.Solver == PCG || c.Solver == BlockPCG)
	if !isPlanned || c.Backend != nil || c.Comm != nil && (fixedRule || c.Checkpoint != nil) {
		return nil
	}
	return &planChoices{fixedRule, c.Solver != AutoSolver, auto}
}

// withDefaults returns the configuration with zero values replaced by the defaults for n points and t right-hand sides;
// tol is the default of Tol. It returns an error if a value is invalid in itself; Lab.check compares the values with
// each other and with the data.
func (c Config) withDefaults(n, t int, tol float64) (Config, error) {
	if c.Kernel == nil {
		return c, fmt.Errorf("krrlab: no kernel")
	}
	if err := kernel.Validate(c.Kernel); err != nil {
		return c, err
	}
	if err := stage.CheckSize("λ", c.Lambda); err != nil {
		return c, err
	}
	defaultPrecond := stage.DefaultKind(c.Kernel).Zero
	if err := stage.CheckOptions(c.Precond); err != nil {
		return c, fmt.Errorf("krrlab: %w", err)
	}
	auto, isAuto := c.Precond.(Auto)
	if isAuto {
		if c.Precond = nil; auto.S > 0 || auto.LambdaP > 0 {
			c.Precond = defaultPrecond
		}
	}
	if c.openTol = c.openTol || c.Tol == 0; c.openTol {
		c.Tol = tol
	}
	if err := schema.Complete(&c); err != nil {
		return c, fmt.Errorf("krrlab: %w", err)
	}
	if c.Solver == AutoSolver {
		c.Solver = PCG
		switch {
		case c.Precond != nil || c.Storage != gram.Auto || c.Tiles == gram.SparseTiles:
		case n <= DirectBelow && !c.onRanks() && c.Checkpoint == nil && c.Stop.Rule <= bound.ByResidual:
			c.Solver = Direct
		case cost.BlockIsFaster(n, DefaultFeatures(n), t):
			c.Solver = BlockPCG
		}
	}
	switch {
	case unpreconditioned(c.Solver) && (c.Precond == nil || c.Precond == Preconditioner(None{})):
		c.Precond = None{}
	case unpreconditioned(c.Solver):
		return c, fmt.Errorf("krrlab: solver %v has no preconditioner, and Precond is %v: leave Precond out, or "+
			"take pcg", c.Solver, c.Precond)
	case c.Precond == nil:
		c.Precond = defaultPrecond
	case c.Solver == PCG && c.Precond == Preconditioner(None{}):
		c.Solver = CG
	}
	if c.Stop.Rule == bound.DefaultRule {
		c.Stop.Rule = bound.ByResidual
		if c.openTol && c.Solver != Direct && c.Solver != Fourier && kernel.IsSemidefinite(c.Kernel) {
			c.Stop.Rule = bound.ByPredictions
		}
	}
	if defaulter, ok := c.Precond.(stage.Defaulter); ok {
		var err error
		defaults := stage.Defaults{Kernel: c.Kernel, N: n, Lambda: c.Lambda, S: cmp.Or(auto.S, DefaultFeatures(n)),
			LambdaP: cmp.Or(auto.LambdaP, c.Lambda)}
		if c.Precond, err = defaulter.WithDefaults(defaults); err != nil {
			return c, err
		}
	}
	if c.Monitor == nil {
		c.Monitor = func(Event) error { return nil }
	}
	return c, nil
}

// unpreconditioned reports whether a solver uses no preconditioner.
func unpreconditioned(s Solver) bool { return s == CG || s == Direct || s == Fourier }

// onRanks reports whether the work is shared by ranks, of this process or of a Backend.
func (c Config) onRanks() bool { return c.Comm != nil || c.Backend != nil }

// check returns an error if settings of the configuration contradict each other or the data.
func (l *Lab) check() error {
	c := l.cfg
	auto, isAuto := l.requested.precond.(Auto)
	switch {
	case isAuto && len(auto.Race) > 0 && (c.Backend != nil || c.Checkpoint != nil):
		return fmt.Errorf("krrlab: preconditioners race in one process, without checkpoints: name one")
	case c.Stop.Rule == bound.ByLabels && l.coding.Labels == nil:
		return fmt.Errorf("krrlab: stop %v is for classification, and the data are for regression: take residual or "+
			"anorm", c.Stop)
	case kernel.AsPrecomputed(c.Kernel) != nil && (c.Stop.Rule > bound.ByResidual || c.onRanks()):
		return fmt.Errorf("krrlab: a precomputed K takes only stop residual, as it is not known to be positive " +
			"semi-definite, and neither Comm nor Backend")
	case c.Solver == Direct && (c.Storage == gram.Recompute || c.Storage == gram.Fixed16):
		return fmt.Errorf("the direct solver holds a dense K; storage %v goes with pcg, block-pcg or cg", c.Storage)
	case c.Solver == Direct && c.Tiles == gram.SparseTiles:
		return fmt.Errorf("the direct solver holds a dense K; sparse tiles go with pcg, block-pcg or cg")
	case c.Solver == Fourier && (c.Storage != gram.Auto || c.Tiles != gram.AutoTiles):
		return fmt.Errorf("the solver fourier stores no kernel matrix: leave Storage and Tiles out (--storage)")
	case c.Comm != nil && c.Backend != nil:
		return fmt.Errorf("krrlab: Comm and Backend are both set: want at most one of them")
	case c.Solver == Direct && c.onRanks():
		return fmt.Errorf("the direct solver holds a dense K in one process; on ranks take pcg, block-pcg or cg")
	case c.Solver == Direct && c.Checkpoint != nil:
		return fmt.Errorf("the direct solver has no iterations to keep checkpoints of; take pcg, block-pcg or cg")
	case c.Checkpoint != nil && c.Checkpoint.Dir == "":
		return fmt.Errorf("krrlab: no folder for checkpoints")
	case c.Checkpoint != nil && (c.Checkpoint.Every < 0 || c.Checkpoint.EveryIter < 0):
		return fmt.Errorf("checkpoints every %v or %d iterations: want numbers ≥ 0", c.Checkpoint.Every,
			c.Checkpoint.EveryIter)
	}
	for j := range l.y.RawMatrix().Cols {
		if size := mat.Norm(l.y.ColView(j), math.Inf(1)); size > 0 &&
			cmp.Or(stage.CheckSize("y", size), stage.CheckSize("y/λ", size/c.Lambda)) != nil {
			return fmt.Errorf("krrlab: targets of size %.2g, λ = %g: want both and y/λ from 1e-100 to 1e100; give the "+
				"targets in another unit", size, c.Lambda)
		}
	}
	return nil
}
