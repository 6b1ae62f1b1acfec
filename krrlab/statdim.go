package krrlab

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/statdim"
)

// StatDimMethod names a way to find the statistical dimension; see package statdim.
type StatDimMethod int

const (
	// AutoStatDim takes ExactStatDim up to n = ExactStatDimBelow, if it fits the memory, and else SLQ, with
	// Hutchinson after it where the preconditioner is needed to reach the width at λ.
	AutoStatDim StatDimMethod = iota
	// ExactStatDim takes all eigenvalues of K, in 8n² bytes and 4n³/3 flops.
	ExactStatDim
	// Hutchinson lets probes ride as right-hand sides of a preconditioned block solve, M⁻¹
	// being their control variate.
	Hutchinson
	// SLQ is stochastic Lanczos quadrature, with the same control variate, at all λ.
	SLQ
	// FreeStatDim is s_λ(ZZᵀ), at λ = λ_p the ‖U‖_F² that the preconditioner has anyway.
	FreeStatDim
)

var statDimNames = []string{"auto", "exact", "hutchinson", "slq", "free"}

func (m StatDimMethod) String() string { return enum.Name(statDimNames, m) }

// ParseStatDimMethod returns the method of that name.
func ParseStatDimMethod(name string) (StatDimMethod, error) {
	return enum.Parse[StatDimMethod]("method", statDimNames, name)
}

const (
	// ExactStatDimBelow is the largest n at which AutoStatDim takes all eigenvalues.
	ExactStatDimBelow = 3000
	// controlFeatures is the most features that the control variate takes, for 9s³ flops.
	controlFeatures = 2000
)

// StatDimOptions are the options of StatDim. Zero values mean the defaults.
type StatDimOptions struct {
	Method     StatDimMethod // default: AutoStatDim
	Confidence float64       // of the interval, in (0, 1); default: 0.95
	Width      float64       // (Hi−Lo)/Value aimed at; default: 0.1
	MaxProbes  int           // at least 16; default: 256
	// Lambdas is the grid of the curve. Default: λ/10 to 10⁴λ, four to a factor of ten.
	Lambdas []float64
	// Measure lets FreeStatDim bound ‖K−ZZᵀ‖₂ by some 20 Lanczos steps, each a product with
	// K, for an interval narrower than what tr K alone says. Landmarks do without.
	Measure bool
}

// StatDim finds the statistical dimension. Cost: see package statdim. If ctx ends while a
// randomized method adds probes, it returns what the batches before gave beside ctx's error.
func (l *Lab) StatDim(ctx context.Context, o StatDimOptions) (*StatDim, error) {
	return run(ctx, l, stage.StatDim, o, func(ctx context.Context) (*StatDim, error) { return l.statDim(ctx, o) })
}

func (l *Lab) statDim(ctx context.Context, o StatDimOptions) (*StatDim, error) {
	start := time.Now()
	s, opt, err := l.newStatDim(&o)
	if err != nil {
		return nil, err
	}
	much := ""
	if o.Method == ExactStatDim || o.Method == AutoStatDim && s.N <= ExactStatDimBelow {
		if much, err = l.tooMuch(ctx, 8); err != nil {
			return nil, err
		}
	}
	switch o.Method {
	case AutoStatDim:
		err = l.autoStatDim(ctx, s, opt, much)
	case ExactStatDim:
		if much != "" {
			return nil, fmt.Errorf("krrlab: all eigenvalues of K of n = %d need %s: take another method", s.N, much)
		}
		err = l.exactStatDim(ctx, s, opt)
	case FreeStatDim:
		err = l.freeStatDim(ctx, s, opt, o.Measure)
	default:
		err = l.randomStatDim(ctx, s, opt, o.Method)
	}
	s.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || s.Probes == 0) {
		return nil, err
	}
	return s, err
}

// newStatDim checks the options and translates them, with the grid of the curve.
func (l *Lab) newStatDim(o *StatDimOptions) (*StatDim, *statdim.Options, error) {
	grid := o.Lambdas
	if grid == nil {
		for i := -4; i <= 16; i++ {
			grid = append(grid, l.cfg.Lambda*math.Pow(10, float64(i)/4))
		}
	}
	opt, err := (&statdim.Options{Confidence: o.Confidence, Width: o.Width, MaxProbes: o.MaxProbes, Lambdas: grid}).Settled()
	switch {
	case err != nil:
	case o.Method < AutoStatDim || o.Method > FreeStatDim:
		err = fmt.Errorf("unknown method of the statistical dimension: %v", o.Method)
	case len(grid) == 0:
		err = fmt.Errorf("the grid of λ is empty: want at least one value")
	case o.Method == FreeStatDim && l.approximation() == nil:
		err = fmt.Errorf("method free needs features or landmarks; the configuration has the preconditioner %v", l.cfg.Precond)
	}
	opt.Lambdas = statdim.Grid(l.cfg.Lambda, grid)
	return &StatDim{Header: l.header(), Width: opt.Width}, &opt, err
}

// autoStatDim chooses the method; much says what all eigenvalues take, where that is too much.
func (l *Lab) autoStatDim(ctx context.Context, s *StatDim, o *statdim.Options, much string) error {
	large := fmt.Sprintf("n > %d", ExactStatDimBelow)
	switch {
	case much != "":
		large = "all eigenvalues need " + much
	case s.N <= ExactStatDimBelow:
		s.Why = fmt.Sprintf("n ≤ %d", ExactStatDimBelow)
		return l.exactStatDim(ctx, s, o)
	}
	if err := l.randomStatDim(ctx, s, o, SLQ); err != nil {
		return err
	}
	if s.Reached || l.approximation() == nil || 2*s.Truncation < 0.5*s.Estimate.Width()*s.Estimate.Value {
		s.Why = large
		return nil
	}
	curve := s.Curve
	err := l.randomStatDim(ctx, s, o, Hutchinson)
	s.Curve = curve
	s.Why = "quadrature without a preconditioner did not reach the width at λ; the curve is from it"
	return err
}

func (l *Lab) exactStatDim(ctx context.Context, s *StatDim, o *statdim.Options) error {
	k, off, err := l.dense(ctx)
	if err != nil {
		return err
	}
	l.Tell(ctx, Event{Stage: stage.Eigenvalues, Remaining: -1})
	s.KError = off
	r, err := statdim.Exact(k, s.KError, s.Lambda, o.Lambdas)
	if err != nil {
		return err
	}
	s.Result, s.Method = *r, ExactStatDim.String()
	return nil
}

func (l *Lab) randomStatDim(ctx context.Context, s *StatDim, o *statdim.Options, m StatDimMethod) error {
	recipe := l.approximation()
	var held int64
	if recipe != nil {
		recipe = recipe.at(min(recipe.s, controlFeatures))
		held = l.featureBytes(recipe.s)
	}
	formed, err := l.matrix(ctx, held, nil)
	if err != nil {
		return err
	}
	k := formed.it
	s.KError = k.Choice().Error + l.kError(k) // of K as stored, and of the products with it
	p := &statdim.Problem{K: k, Lambda: s.Lambda, Error: s.KError, Unit: k.Unit()}
	if recipe != nil {
		if p.Control, _, err = l.inEigenForm(ctx, s, recipe, o.Lambdas); err != nil {
			return err
		}
	}
	run := map[StatDimMethod]func(context.Context, *statdim.Problem, *statdim.Options) (*statdim.Result, error){
		Hutchinson: statdim.Hutchinson, SLQ: statdim.SLQ,
	}[m]
	opt := *o
	opt.Stream = rng.New(l.cfg.Seed).Sub("statdim", map[StatDimMethod]uint64{Hutchinson: 2, SLQ: 4}[m])
	opt.Progress = func(done, total int, e estimate.Interval) {
		l.Tell(ctx, Event{Stage: stage.Probes, Detail: soFar(e), Done: done, Total: total, Remaining: -1})
	}
	r, err := run(ctx, p, &opt)
	if r != nil {
		s.Result, s.Method = *r, m.String()
		if s.Curve == nil {
			s.Curve = statdim.Extend(s.N, k.Trace(), statdim.Point{Lambda: s.Lambda, Estimate: s.Estimate}, o.Lambdas)
		}
	}
	return err
}

// soFar says what is estimated so far.
func soFar(e estimate.Interval) string {
	if e.Value == 0 {
		return ""
	}
	return "s_λ in " + outward.Span(e.Lo, e.Hi, 4)
}

// inEigenForm returns ZZᵀ+λ_pI of the recipe in the eigen form, and fills in what the stage says of it.
func (l *Lab) inEigenForm(ctx context.Context, s *StatDim, recipe *recipe, lambdas []float64) (*precond.Woodbury, statdim.Distance, error) {
	d := statdim.Unknown
	z, err := l.factor(ctx, recipe, 0)
	if err != nil {
		return nil, d, err
	}
	f := z.it
	s.Precond = recipe.String()
	if f.low != nil {
		s.Precond, d = f.low.Method, statdim.FactorDistance(f.low)
	}
	l.Tell(ctx, Event{Stage: stage.Eigenvalues, Remaining: -1})
	w, err := precond.New(ctx, f.z, recipe.lambdaP, &precond.Options{Form: precond.FormEigen, Comm: l.comm})
	if err != nil {
		return nil, d, err
	}
	s.S, s.LambdaP, s.USquared = w.Features(), w.LambdaP(), w.StatDim()
	s.ZLambdas, s.ZCurve = lambdas, statdim.Degrees(w.Eigenvalues(), lambdas)
	return w, d, nil
}

// freeStatDim takes s_λ(ZZᵀ).
func (l *Lab) freeStatDim(ctx context.Context, s *StatDim, o *statdim.Options, measure bool) error {
	start := time.Now()
	recipe := l.approximation()
	w, d, err := l.inEigenForm(ctx, s, recipe, o.Lambdas)
	if err != nil {
		return err
	}
	if _, random := recipe.Preconditioner.(Features); measure && random {
		k, err := l.K(ctx)
		if err != nil {
			return err
		}
		s.KError, s.Eta = 2*k.Choice().Error, new(estimate.Interval)
		d, *s.Eta, err = statdim.MeasureDistance(ctx, w.Outer().From(k), s.KError, o.Confidence, rng.New(l.cfg.Seed).Sub("statdim eta"), func(done, total int) {
			l.Tell(ctx, Event{Stage: stage.Lanczos, Detail: "‖K−ZZᵀ‖", Done: done, Total: total, Remaining: -1})
		})
		if err != nil {
			return err
		}
	}
	trace := floats.Sum(kernel.Diag(l.cfg.Kernel, l.train.X))
	curve, err := statdim.Free(s.N, trace, w.Eigenvalues(), d, s.ZLambdas)
	if err != nil {
		return err
	}
	s.Method, s.Curve = FreeStatDim.String(), curve
	for i := range curve {
		curve[i].Estimate.Seconds = time.Since(start).Seconds()
		if curve[i].Lambda == s.Lambda {
			s.Estimate = curve[i].Estimate
		}
	}
	s.Reached = s.Estimate.Width() <= o.Width
	return nil
}
