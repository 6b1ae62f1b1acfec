package quality

import (
	"context"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Stage defines the stage quality.
var Stage = stage.Definition{
	Name: "quality", Options: Options{}, Result: (*Result)(nil),
	Flags: "precond tol max-iter",
	Short: "Interval of κ(M⁻¹A) that holds with a stated confidence, predicted against actual iterations",
	Long: `Quality judges a preconditioner M = ZZᵀ+λ_pI. It gives a two-sided interval of κ, the
condition number of M⁻¹(K+λI), by the Lanczos process from a random start; the interval
misses κ with at most the stated probability. For small n it also computes all eigenvalues.
It compares the iterations predicted from κ and from the Ritz values with those that PCG
takes. The interval is of K itself: it is widened by ‖K_stored−K‖₂, which is predicted from
rows of K and not covered by the probability.`,
	Example: `  krrlab quality --data mnist --n 10000 --precond 'features features=2000 lambda-p=0.1' --plot q.svg
  krrlab quality --data ijcnn1 --n 2000 --precond 'nystrom features=300' --json q.json`,
	Tables: []stage.Table{{
		Flag: "spectrum",
		Help: "write all eigenvalues of M⁻¹A, or where they are not computed the Ritz values, to this file (.csv " +
			"or .npy)",
		Build: func(r stage.Stage) *plots.Table { return r.(*Result).spectrumTable() },
	}},
}

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Confidence float64 `flag:"confidence" default:"0.95" check:"(0,1)" help:"of κ's interval, between 0 and 1"`
	Width      float64 `flag:"width" default:"0.2" check:"positive" help:"relative width of κ's interval at which to stop"`
	Steps      int     `flag:"steps" default:"300" check:">=1" help:"maximum number of Lanczos steps, a product with K each"`
	MaxExactN  int     `flag:"exact-below" default:"2000" check:">=-1" zero:"-1" help:"largest n for which all eigenvalues are computed; -1 for never"`
	// NoSolve skips PCG, unless M cannot sample N(0, M): then the Ritz values of PCG are all that is known of κ.
	NoSolve bool `flag:"no-solve" help:"do not run PCG"`
}

// Run forms K, unless it is formed already, and M. A step of Lanczos takes one product with each, until κ is known to
// the requested width. If ctx ends after the first step, Run returns the current interval together with ctx's error.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start := time.Now()
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	p := b.Problem()
	q := &Result{Header: p.Header, Precond: p.Precond, Unplanned: p.FixedRulePrecond, Row: pencil.NewRow(p.Precond)}
	b.Notify(ctx, stage.Event{Stage: stage.Factor})
	preconditioner, err := pencil.MakePreconditioner(ctx, b, p.Entry, &q.Row)
	if err != nil {
		return nil, err
	}
	q.Features, q.Seconds.Factor = preconditioner.Text, preconditioner.Seconds
	if v, ok := preconditioner.M.(stage.SparseInverse); ok {
		q.Neighbors, q.Damping = v.Neighbors(), v.Damping()
	}
	extraBytes := 16 * int64(p.N) * int64(min(o.Steps, p.N)) // Lanczos vectors
	if q.S > 0 {
		extraBytes += p.LowRankBytes(q.S)
	}
	k, err := b.K(ctx, extraBytes)
	if err != nil {
		return nil, err
	}
	q.Seconds.Kernel, q.KError = k.Seconds, k.Error
	preconditioners := pencil.NewPreconditioners(p.N, p.Comm, preconditioner.M)
	_, weights := points.SplitWeights(p.X)
	set := &pencil.Set{A: k, M: preconditioners, Rows: []*pencil.Row{&q.Row}, StorageError: k.Error / p.Lambda,
		Weights: weights, Notify: b.Notify}
	// timed runs a step unless an earlier one failed, and adds its time to *seconds.
	timed := func(seconds *float64, step func() error) {
		if err == nil {
			if err = stage.Timed(seconds, step); err == nil && preconditioners.Errs[0] != nil {
				err = fmt.Errorf("krrlab: the preconditioner %s: %w", q.Precond, preconditioners.Errs[0])
			}
		}
	}
	timed(&q.Seconds.Lanczos, func() error {
		return set.Lanczos(ctx, lanczos.Options{Steps: o.Steps, Tol: o.Width, Confidence: o.Confidence,
			Start: rng.New(p.Seed).Sub("quality"), Monitor: func(r *lanczos.Result) error {
				q.Trace = append(q.Trace, Step{Step: r.Steps, Min: r.Min, Max: r.Max})
				return nil
			}}, p.Tol)
	})
	if !o.NoSolve || q.Steps == 0 {
		timed(&q.Seconds.Solve, func() error {
			return set.Solve(ctx, p.Y, pcg.Options{Tol: p.Tol, TolFraction: stage.TolFraction, MaxIter: p.MaxIter})
		})
	}
	if p.N <= o.MaxExactN {
		timed(&q.Seconds.Exact, func() error { return set.Exact(ctx, b) })
	}
	q.Seconds.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || q.Steps == 0) {
		return nil, err
	}
	return q, err
}
