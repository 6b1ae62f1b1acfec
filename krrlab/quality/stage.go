package quality

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/vecchia"
	"github.com/krrlab/lab/plots"
)

// Stage is the definition of the stage.
var Stage = stage.Definition{
	Name: "quality", Options: Options{}, Result: (*Result)(nil),
	Flags: "precond features neighbors damping spectral landmarks lambda-p tol max-iter",
	Short: "Interval of κ(M⁻¹A) that holds with a stated confidence, predicted against actual iterations",
	Long: `Quality judges a preconditioner M = ZZᵀ+λ_pI. It gives a two-sided interval of κ, the
condition number of M⁻¹(K+λI), by the Lanczos process from a random start; the interval
misses κ with at most the stated probability. For small n it also computes all eigenvalues.
It compares the iterations predicted from κ and from the Ritz values with those that PCG
takes. The interval is of K itself: it is widened by ‖K_stored−K‖₂, which is predicted from
rows of K and not covered by the probability.`,
	Example: `  krrlab quality --data mnist --n 10000 --features 2000 --lambda-p 0.1 --plot q.svg
  krrlab quality --data ijcnn1 --n 2000 --precond nystrom --features 300 --json q.json`,
	Tables: []stage.Table{{
		Flag: "spectrum",
		Help: "write all eigenvalues of M⁻¹A, or where they are not computed the Ritz values, to this file (.csv " +
			"or .npy)",
		Of: func(r stage.Stage) *plots.Table { return r.(*Result).spectrumTable() },
	}},
}

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Confidence float64 `flag:"confidence" default:"0.95" check:"(0,1)" help:"of κ's interval, between 0 and 1"`
	Width      float64 `flag:"width" default:"0.2" check:"positive" help:"relative width of κ's interval at which to stop"`
	Steps      int     `flag:"steps" default:"300" check:">=1" help:"maximum number of Lanczos steps, a product with K each"`
	ExactBelow int     `flag:"exact-below" default:"2000" check:">=-1" zero:"-1" help:"largest n for which all eigenvalues are computed; -1 for never"`
	NoSolve    bool    `flag:"no-solve" help:"do not run PCG"`
}

// Run forms K, if it is not there, and M, and takes one product with each for a step of Lanczos, until κ is known to
// the width asked. If ctx ends after the first step it returns the interval it has beside ctx's error.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start := time.Now()
	if err := schema.Settle(&o); err != nil {
		return nil, err
	}
	p := b.Problem()
	q := &run{Result: &Result{Header: p.Header, Precond: p.Precond, APriori: stage.Unknown}, o: &o, b: b, p: p}
	err := q.judge(ctx)
	if err != nil {
		return nil, err
	}
	held := 16 * int64(p.N) * int64(min(o.Steps, p.N)) // Lanczos vectors
	if q.S > 0 {
		held += p.Bytes(q.S)
	}
	if q.a, err = b.K(ctx, held); err != nil {
		return nil, err
	}
	q.Seconds.Kernel, q.KError = q.a.Seconds, q.a.Error
	err = q.bracket(ctx)
	if err == nil && !o.NoSolve {
		err = q.count(ctx)
	}
	if err == nil && p.N <= o.ExactBelow {
		err = q.spectrum(ctx)
	}
	q.Seconds.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || q.Steps == 0) {
		return nil, err
	}
	return q.Result, err
}

// run is the stage under way.
type run struct {
	*Result
	o *Options
	b stage.Bench
	p *stage.Problem
	a *stage.Gram
	m pcg.Preconditioner // nil for none
}

// judge makes the preconditioner to be judged: of an approximation ZZᵀ+λ_pI exactly that, with ZᵀZ in float64, in a
// form that can be multiplied by.
func (q *run) judge(ctx context.Context) (err error) {
	a, start := q.p.Z, time.Now()
	defer func() { q.Seconds.Factor = time.Since(start).Seconds() }()
	if a == nil {
		q.m, err = q.b.M(ctx)
		if v, ok := q.m.(*vecchia.Inverse); ok {
			q.S, q.Neighbors, q.Damping, q.Features = v.Rank(), v.Neighbors(), v.Damping(), v.What()
		}
		return err
	}
	z, err := q.b.Z(ctx, *a)
	if err != nil {
		return err
	}
	q.Seconds.Features = z.Seconds
	if a.Features != nil {
		q.Features = a.Text
	}
	q.S, q.LambdaP = z.Z.D, a.LambdaP+z.More
	if z.Low != nil {
		if k := z.Low.CondBound(q.Lambda, q.LambdaP); !math.IsInf(k, 0) {
			q.Certain = k
		}
	}
	form := a.Form
	if form == precond.AutoForm || form == precond.FormU {
		form = precond.FormLInv
	}
	q.b.Tell(ctx, stage.Event{Stage: stage.Factor})
	start = time.Now()
	q.m, err = precond.New(ctx, z.Z, q.LambdaP, &precond.Options{Form: form, Comm: q.p.Comm})
	return err
}

// bracket finds the interval of κ.
func (q *run) bracket(ctx context.Context) error {
	opt := &lanczos.Options{
		Steps: q.o.Steps, Tol: q.o.Width, Confidence: q.o.Confidence, Cond: true, Definite: true,
		Start: rng.New(q.Seed).Sub("quality"),
		Monitor: func(r *lanczos.Result) error {
			q.Trace = append(q.Trace, Step{Step: r.Steps, Min: r.Min, Max: r.Max})
			q.b.Tell(ctx, stage.Event{Stage: stage.Lanczos, Done: r.Steps, Total: q.o.Steps, Remaining: -1})
			return nil
		},
	}
	var r *lanczos.Result
	var err error
	switch metric, ok := q.m.(lanczos.Metric); {
	case q.m == nil:
		r, err = lanczos.Run(ctx, q.a, opt)
	case !ok:
		return q.below(ctx)
	default:
		if r, err = lanczos.RunPencil(ctx, q.a, metric, opt); errors.Is(err, errors.ErrUnsupported) {
			return q.below(ctx)
		}
	}
	if r == nil {
		return err
	}
	q.Reached, q.Slack, q.Alpha, q.Beta, q.Indefinite = r.Converged, r.Slack, r.Alpha, r.Beta, r.Indefinite()
	q.take(r)
	q.APriori = stage.Number(lanczos.APriori(q.N, r.Steps, (1-q.o.Confidence)/2))
	if !math.IsInf(q.Kappa.Hi, 1) {
		q.Bound = pcg.IterationBound(q.Kappa.Hi, q.Tol)
	}
	if k := lanczos.RitzIterations(r.Alpha, r.Beta, q.Tol, q.Kappa.Value); k < math.MaxInt32 {
		q.Predicted = int(k)
	}
	return err
}

// take takes the ends of the spectrum, allowing for K as stored.
func (q *run) take(r *lanczos.Result) {
	q.Steps, q.Ritz, q.Seconds.Lanczos = r.Steps, r.Ritz, r.Seconds
	q.Kappa, q.Min, q.Max = r.Allowing(q.KError / q.Lambda)
}

// below bounds κ from below for an M of which no more than the inverse is known.
func (q *run) below(ctx context.Context) error {
	r, err := below(ctx, q.a, q.m, rng.New(q.Seed).Sub("quality"), q.o.Steps, func(it *pcg.Iteration) error {
		q.b.Tell(ctx, stage.Event{Stage: stage.Lanczos, Done: it.Index, Total: q.o.Steps, Remaining: -1})
		return nil
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("krrlab: the preconditioner %s: %w", q.Precond, err)
	}
	if err == nil {
		q.take(r)
	}
	return err
}

// count takes the iterations of PCG on the targets.
func (q *run) count(ctx context.Context) error {
	start := time.Now()
	tell := func(it *pcg.Iteration) error {
		e := stage.Event{Stage: stage.Solve, Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1}
		if share := math.Log(it.MaxRelRes) / math.Log(q.Tol); share > 0.05 {
			e.Remaining = time.Duration(float64(time.Since(start)) * (1/share - 1))
		}
		q.b.Tell(ctx, e)
		return nil
	}
	o := &pcg.Options{Tol: q.Tol, Aim: stage.Aim, MaxIter: q.p.MaxIter, Monitor: tell}
	res, err := pcg.Solve(ctx, q.a, q.m, q.p.Y, o)
	if err != nil {
		return err
	}
	q.Actual, q.Status = &res.Iterations, res.Status
	q.Seconds.Solve = time.Since(start).Seconds()
	return nil
}

// spectrum computes all eigenvalues of M⁻¹A, with K in float64. M as applied need not be positive definite there.
func (q *run) spectrum(ctx context.Context) error {
	q.b.Tell(ctx, stage.Event{Stage: stage.Spectrum})
	start := time.Now()
	k, off, err := q.b.Dense(ctx, 0)
	if err != nil {
		return err
	}
	values, slack, ok, err := spectrum(ctx, k, q.Lambda, q.m)
	if q.NotDefinite = err == nil && !ok; err != nil || !ok {
		return err
	}
	const how = "dense eigenvalues"
	ends := lanczos.Known(estimate.Exact(values[0], slack, how), estimate.Exact(values[q.N-1], slack, how))
	e, _, _ := ends.Allowing(off / q.Lambda) // of K in float64
	e.Seconds = time.Since(start).Seconds()
	q.Spectrum, q.Exact, q.Seconds.Exact = values, &e, e.Seconds
	return nil
}
