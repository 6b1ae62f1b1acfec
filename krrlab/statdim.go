package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lanczos"
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
	// XTrace is the exchangeable estimator of Epperly, Tropp and Webber.
	XTrace
	// SLQ is stochastic Lanczos quadrature, with the same control variate, at all λ.
	SLQ
	// FreeStatDim is s_λ(ZZᵀ), at λ = λ_p the ‖U‖_F² that the preconditioner has anyway.
	FreeStatDim
)

var statDimNames = []string{"auto", "exact", "hutchinson", "xtrace", "slq", "free"}

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
// randomised method adds probes, it returns what the batches before gave beside ctx's error.
func (l *Lab) StatDim(ctx context.Context, o StatDimOptions) (*StatDim, error) {
	return run(ctx, l, stage.StatDim, o, func(ctx context.Context) (*StatDim, error) { return l.statDim(ctx, o) })
}

func (l *Lab) statDim(ctx context.Context, o StatDimOptions) (*StatDim, error) {
	start := time.Now()
	s, err := l.newStatDim(&o)
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
		err = l.autoStatDim(ctx, s, &o, much)
	case ExactStatDim:
		if much != "" {
			return nil, fmt.Errorf("krrlab: all eigenvalues of K of n = %d need %s: take another method", s.N, much)
		}
		err = l.exactStatDim(ctx, s, &o)
	case FreeStatDim:
		err = l.freeStatDim(ctx, s, &o)
	default:
		err = l.randomStatDim(ctx, s, &o, o.Method)
	}
	s.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || s.Probes == 0) {
		return nil, err
	}
	return s, err
}

func (l *Lab) newStatDim(o *StatDimOptions) (*StatDim, error) {
	o.Confidence = cmp.Or(o.Confidence, estimate.DefaultConfidence)
	o.Width = cmp.Or(o.Width, 0.1)
	o.MaxProbes = cmp.Or(o.MaxProbes, 256)
	if o.Lambdas == nil {
		for i := -4; i <= 16; i++ {
			o.Lambdas = append(o.Lambdas, l.cfg.Lambda*math.Pow(10, float64(i)/4))
		}
	}
	if err := estimate.CheckConfidence(o.Confidence); err != nil {
		return nil, err
	}
	switch {
	case o.Method < AutoStatDim || o.Method > FreeStatDim:
		return nil, fmt.Errorf("unknown method of the statistical dimension: %v", o.Method)
	case !(o.Width > 0) || math.IsInf(o.Width, 0):
		return nil, fmt.Errorf("relative width %g: want a positive number, such as 0.1", o.Width)
	case o.MaxProbes < 16:
		return nil, fmt.Errorf("maximum of %d probes: want at least 16", o.MaxProbes)
	case len(o.Lambdas) == 0:
		return nil, fmt.Errorf("the grid of λ is empty: want at least one value")
	case o.Method == FreeStatDim && l.approximation() == nil:
		return nil, fmt.Errorf("method free needs features or landmarks; the configuration has the preconditioner %v", l.cfg.Precond)
	}
	for _, v := range o.Lambdas {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("λ = %g in the grid: want positive numbers", v)
		}
	}
	return &StatDim{Header: l.header(), Width: o.Width}, nil
}

// autoStatDim chooses the method; much says what all eigenvalues take, where that is too much.
func (l *Lab) autoStatDim(ctx context.Context, s *StatDim, o *StatDimOptions, much string) error {
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

func (l *Lab) exactStatDim(ctx context.Context, s *StatDim, o *StatDimOptions) error {
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

func (l *Lab) randomStatDim(ctx context.Context, s *StatDim, o *StatDimOptions, m StatDimMethod) error {
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
	p := &statdim.Problem{K: k, Lambda: s.Lambda, Error: s.KError}
	if recipe != nil {
		if p.Control, _, err = l.inEigenForm(ctx, s, recipe, o.Lambdas); err != nil {
			return err
		}
	}
	run := map[StatDimMethod]func(context.Context, *statdim.Problem, *statdim.Options) (*statdim.Result, error){
		Hutchinson: statdim.Hutchinson, XTrace: statdim.XTrace, SLQ: statdim.SLQ,
	}[m]
	r, err := run(ctx, p, &statdim.Options{
		Confidence: o.Confidence, Width: o.Width, MaxProbes: o.MaxProbes, Lambdas: o.Lambdas,
		Stream: rng.New(l.cfg.Seed).Sub("statdim", uint64(m)),
		Progress: func(done, total int, e estimate.Interval) {
			l.Tell(ctx, Event{Stage: stage.Probes, Detail: soFar(e), Done: done, Total: total, Remaining: -1})
		},
	})
	if r != nil {
		s.Result, s.Method = *r, m.String()
		if s.Curve == nil {
			all := slices.Compact(slices.Sorted(slices.Values(append([]float64{s.Lambda}, o.Lambdas...))))
			s.Curve = statdim.Extend(s.N, k.Trace(), statdim.Point{Lambda: s.Lambda, Estimate: s.Estimate}, all)
		}
	}
	return err
}

// soFar says what is estimated so far.
func soFar(e estimate.Interval) string {
	if e.Value == 0 {
		return ""
	}
	return fmt.Sprintf("s_λ in [%.4g, %.4g]", e.Lo, e.Hi)
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
	if low := f.low; low != nil {
		s.Precond = low.Method
		if low.Certain() { // of K itself, however it is stored; and the rounding of ZᵀZ and its eigenvalues
			e := low.Rounding + float64(s.N+10*low.Rank())*0x1p-53*low.Trace
			d = statdim.Distance{Below: e, Above: max(0, low.Residual) + 2*e, Confidence: 1}
		}
	}
	l.Tell(ctx, Event{Stage: stage.Eigenvalues, Remaining: -1})
	w, err := precond.New(ctx, f.z, recipe.lambdaP, &precond.Options{Form: precond.FormEigen, Comm: l.comm})
	if err != nil {
		return nil, d, err
	}
	s.S, s.LambdaP, s.USquared = w.Features(), w.LambdaP(), w.StatDim()
	s.ZLambdas, s.ZCurve = slices.Compact(slices.Sorted(slices.Values(append([]float64{s.Lambda}, lambdas...)))), nil
	sigma2 := w.Eigenvalues()
	for _, v := range s.ZLambdas {
		var sum float64
		for _, e := range sigma2 {
			sum += e / (e + v)
		}
		s.ZCurve = append(s.ZCurve, sum)
	}
	return w, d, nil
}

// freeStatDim takes s_λ(ZZᵀ).
func (l *Lab) freeStatDim(ctx context.Context, s *StatDim, o *StatDimOptions) error {
	start := time.Now()
	recipe := l.approximation()
	w, d, err := l.inEigenForm(ctx, s, recipe, o.Lambdas)
	if err != nil {
		return err
	}
	if _, random := recipe.Preconditioner.(Features); o.Measure && random {
		if d, err = l.measureEta(ctx, s, o, w); err != nil {
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

// measureEta bounds ‖K−ZZᵀ‖₂ by Lanczos from a random start.
func (l *Lab) measureEta(ctx context.Context, s *StatDim, o *StatDimOptions, w *precond.Woodbury) (statdim.Distance, error) {
	k, err := l.K(ctx)
	if err != nil {
		return statdim.Distance{}, err
	}
	s.KError = 2 * k.Choice().Error
	r, err := lanczos.Run(ctx, w.Outer().From(k), &lanczos.Options{
		Steps: 20, Confidence: o.Confidence, Start: rng.New(l.cfg.Seed).Sub("statdim eta"),
		Monitor: func(r *lanczos.Result) error {
			l.Tell(ctx, Event{Stage: stage.Lanczos, Detail: "‖K−ZZᵀ‖", Done: r.Steps, Total: 20, Remaining: -1})
			return nil
		},
	})
	if err != nil {
		return statdim.Distance{}, err
	}
	eta := r.Norm()
	eta.Lo, eta.Hi = max(0, eta.Lo-s.KError), eta.Hi+s.KError
	s.Eta = &eta
	below, above := max(0, -r.Min.Lo), max(0, r.Max.Hi)
	return statdim.Distance{Below: below + s.KError, Above: above + s.KError, Confidence: o.Confidence}, nil
}
