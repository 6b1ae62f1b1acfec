package krrlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/lambdap"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/results"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// QualityOptions are the options of Quality. Zero values mean the defaults.
type QualityOptions struct {
	Confidence float64 // of κ's interval, in (0, 1); default: 0.95
	Width      float64 // relative width (Hi−Lo)/Value of κ's interval at which Lanczos stops; default: 0.2
	Steps      int     // at most so many of Lanczos, a product with K each; default: 300
	ExactBelow int     // the largest n at which the exact spectrum is computed; negative: never; default: 2000
	NoSolve    bool    // do without the actual iterations
}

// checkQuality sets the defaults of the options and checks them.
func checkQuality(o *QualityOptions) error {
	o.Confidence = cmp.Or(o.Confidence, estimate.DefaultConfidence)
	o.Width = cmp.Or(o.Width, 0.2)
	o.Steps = cmp.Or(o.Steps, 300)
	o.ExactBelow = cmp.Or(o.ExactBelow, 2000)
	return (&lambdap.Options{Confidence: o.Confidence, Width: o.Width, Steps: o.Steps}).Check()
}

// Quality judges the preconditioner of the configuration. It forms K, if it is not there, and M,
// and takes one product with each for a step of Lanczos, until κ is known to the width
// asked. If ctx ends after the first step it returns the interval it has beside ctx's error.
func (l *Lab) Quality(ctx context.Context, o QualityOptions) (*Quality, error) {
	return run(ctx, l, stage.Quality, o, func(ctx context.Context) (*Quality, error) { return l.quality(ctx, o) })
}

func (l *Lab) quality(ctx context.Context, o QualityOptions) (*Quality, error) {
	start := time.Now()
	if err := checkQuality(&o); err != nil {
		return nil, err
	}
	n := l.train.Len()
	q := &Quality{Header: l.header(), Precond: l.precondName(), APriori: stage.Unknown}
	m, err := l.judged(ctx, q)
	if err != nil {
		return nil, err
	}
	k, err := l.matrix(ctx, l.featureBytes(q.S)+16*int64(n)*int64(min(o.Steps, n)), nil) // and Lanczos vectors
	if err != nil {
		return nil, err
	}
	a := k.it
	q.Seconds.Kernel, q.KError = k.seconds, l.kError(a)
	err = l.bracket(ctx, q, a, m, &o)
	if err == nil && !o.NoSolve {
		err = l.count(ctx, q, a, m)
	}
	if err == nil && n <= o.ExactBelow {
		err = l.spectrum(ctx, q, a, m)
	}
	q.Seconds.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || q.Steps == 0) {
		return nil, err
	}
	return q, err
}

// judged makes the preconditioner to be judged, nil for none: of an approximation ZZᵀ+λ_pI exactly that, with
// ZᵀZ in float64, in a form that can be multiplied by.
func (l *Lab) judged(ctx context.Context, q *Quality) (pcg.Preconditioner, error) {
	recipe := l.approximation()
	if recipe == nil {
		var m pcg.Preconditioner
		err := timed(&q.Seconds.Factor, func() (err error) { m, err = l.M(ctx, 0); return err })
		if v, ok := m.(*vecchia.Inverse); ok {
			q.S, q.Neighbors, q.Damping, q.Features = v.Rank(), v.Neighbors(), v.Damping(), v.What()
		}
		return m, err
	}
	z, err := l.factor(ctx, recipe, 0)
	if err != nil {
		return nil, err
	}
	f := z.it
	q.Seconds.Features = z.seconds
	if r, ok := recipe.Preconditioner.(Features); ok {
		q.Features = r.String()
	}
	q.S, q.LambdaP = f.z.D, recipe.lambdaP
	if f.low != nil {
		if k := f.low.CondBound(l.cfg.Lambda, q.LambdaP); !math.IsInf(k, 0) {
			q.Certain = k
		}
	}
	form := recipe.form
	if form == precond.AutoForm || form == precond.FormU {
		form = precond.FormLInv
	}
	l.Tell(ctx, Event{Stage: stage.Factor})
	var w *precond.Woodbury
	err = timed(&q.Seconds.Factor, func() (err error) {
		w, err = precond.New(ctx, f.z, q.LambdaP, &precond.Options{Form: form, Comm: l.comm})
		return err
	})
	return w, err
}

// bracket finds the interval of κ.
func (l *Lab) bracket(ctx context.Context, q *Quality, a *gram.Matrix, m pcg.Preconditioner, o *QualityOptions) error {
	opt := &lanczos.Options{
		Steps: o.Steps, Tol: o.Width, Confidence: o.Confidence, Cond: true, Definite: true,
		Start: rng.New(l.cfg.Seed).Sub("quality"),
		Monitor: func(r *lanczos.Result) error {
			q.Trace = append(q.Trace, results.QualityStep{Step: r.Steps, Min: r.Min, Max: r.Max})
			l.Tell(ctx, Event{Stage: stage.Lanczos, Done: r.Steps, Total: o.Steps, Remaining: -1})
			return nil
		},
	}
	var r *lanczos.Result
	var err error
	switch metric, ok := m.(lanczos.Metric); {
	case m == nil:
		r, err = lanczos.Run(ctx, a, opt)
	case !ok:
		return l.below(ctx, q, a, m, o)
	default:
		if r, err = lanczos.RunPencil(ctx, a, metric, opt); errors.Is(err, errors.ErrUnsupported) {
			return l.below(ctx, q, a, m, o)
		}
	}
	if r == nil {
		return err
	}
	q.Steps, q.Reached, q.Slack = r.Steps, r.Converged, r.Slack
	q.Alpha, q.Beta, q.Ritz = r.Alpha, r.Beta, r.Ritz
	q.Kappa, q.Min, q.Max = r.Allowing(q.KError / l.cfg.Lambda)
	q.Indefinite = r.Indefinite()
	q.APriori = Number(lanczos.APriori(q.N, r.Steps, (1-o.Confidence)/2))
	q.Seconds.Lanczos = r.Seconds
	if !math.IsInf(q.Kappa.Hi, 1) {
		q.Bound = pcg.IterationBound(q.Kappa.Hi, q.Tol)
	}
	if k := lambdap.RitzIterations(r.Alpha, r.Beta, q.Tol, q.Kappa.Value); k < math.MaxInt32 {
		q.Predicted = int(k)
	}
	return err
}

// below bounds κ from below for an M of which no more than the inverse is known.
func (l *Lab) below(ctx context.Context, q *Quality, a *gram.Matrix, m pcg.Preconditioner, o *QualityOptions) error {
	r, err := lambdap.Below(ctx, a, m, rng.New(l.cfg.Seed).Sub("quality"), o.Steps, func(it *pcg.Iteration) error {
		l.Tell(ctx, Event{Stage: stage.Lanczos, Done: it.Index, Total: o.Steps, Remaining: -1})
		return nil
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("krrlab: the preconditioner %v: %w", l.cfg.Precond, err)
	}
	if err != nil {
		return err
	}
	q.Steps, q.Ritz, q.Seconds.Lanczos = r.Steps, r.Ritz, r.Seconds
	q.Kappa, q.Min, q.Max = r.Allowing(q.KError / l.cfg.Lambda)
	return nil
}

// count takes the iterations of PCG on the targets.
func (l *Lab) count(ctx context.Context, q *Quality, a *gram.Matrix, m pcg.Preconditioner) error {
	start := time.Now()
	res, err := pcg.Solve(ctx, a, m, l.y, &pcg.Options{Tol: l.cfg.Tol, Aim: aim, MaxIter: l.cfg.MaxIter, Monitor: l.watchSolve(ctx, 0, nil)})
	if err != nil {
		return err
	}
	q.Actual, q.Status = &res.Iterations, res.Status
	q.Seconds.Solve = time.Since(start).Seconds()
	return nil
}

// spectrum computes all eigenvalues of M⁻¹A, with K in float64.
func (l *Lab) spectrum(ctx context.Context, q *Quality, a *gram.Matrix, m pcg.Preconditioner) error {
	l.Tell(ctx, Event{Stage: stage.Spectrum})
	start := time.Now()
	k := mat.NewDense(q.N, q.N, nil)
	exact := a.Exact(l.exactness())
	if err := exact.DenseTo(ctx, k); err != nil {
		return err
	}
	values, slack, ok, err := l.eigenvalues(ctx, k, q.LambdaP, m)
	if err != nil || !ok {
		return err
	}
	const how = "dense eigenvalues"
	ends := lanczos.Known(estimate.Exact(values[0], slack, how), estimate.Exact(values[q.N-1], slack, how))
	e, _, _ := ends.Allowing(exact.Choice().Error / l.cfg.Lambda) // of K in float64
	e.Seconds = time.Since(start).Seconds()
	q.Spectrum, q.Exact, q.Seconds.Exact = values, &e, e.Seconds
	return nil
}

// eigenvalues returns those of M⁻¹A, ascending, and a bound of their rounding: of an approximation ZZᵀ+λ_pI by Z, of
// another M, which need not be positive definite in float64, by its inverse.
func (l *Lab) eigenvalues(ctx context.Context, k *mat.Dense, lambdaP float64, m pcg.Preconditioner) ([]float64, float64, bool, error) {
	var z *points.Dense32
	recipe := l.approximation()
	switch {
	case recipe == nil && m != nil:
		return lambdap.SpectrumBy(ctx, k, l.cfg.Lambda, m)
	case recipe != nil:
		f, err := l.factor(ctx, recipe, 0)
		if err != nil {
			return nil, 0, false, err
		}
		if z = f.it.z; f.it.low != nil {
			z = f.it.low.F
		} else if r, ok := recipe.Preconditioner.(Features); ok && z.N < l.train.Len() { // of this rank
			if z, err = l.features(ctx, r.Map, r.S, 0, 0, l.train.Len()); err != nil {
				return nil, 0, false, err
			}
		}
	}
	values, slack, err := lambdap.Spectrum(ctx, k, l.cfg.Lambda, z, lambdaP)
	return values, slack, err == nil, err
}
