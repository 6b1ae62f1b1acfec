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
	// NoSolve skips PCG, unless M has no method to sample N(0, M), which the Lanczos process needs. In that case the
	// Ritz values of PCG give the only estimate of κ.
	NoSolve bool `flag:"no-solve" help:"do not run PCG"`
}

// Run forms M and, if needed, K. Each step of the Lanczos process takes one product with K and one with M⁻¹; the
// process ends if κ is known to the requested width. If ctx ends after the first step, Run returns the current interval
// together with ctx's error.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	start := time.Now()
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	problem := bench.Problem()
	r := &Result{Header: problem.Header, Precond: problem.Precond, Unplanned: problem.FixedRulePrecond,
		Row: pencil.NewRow(problem.Precond)}
	bench.Notify(ctx, stage.Event{Stage: stage.Factor})
	preconditioner, err := pencil.MakePreconditioner(ctx, bench, problem.Entry, &r.Row)
	if err != nil {
		return nil, err
	}
	r.Features, r.Seconds.Factor = preconditioner.Text, preconditioner.Seconds
	if v, ok := preconditioner.M.(stage.SparseInverse); ok {
		r.Neighbors, r.Damping = v.Neighbors(), v.Damping()
	}
	extraBytes := 16 * int64(problem.N) * int64(min(o.Steps, problem.N)) // Lanczos vectors
	if r.S > 0 {
		extraBytes += problem.LowRankBytes(r.S)
	}
	k, err := bench.K(ctx, extraBytes)
	if err != nil {
		return nil, err
	}
	r.Seconds.Kernel, r.KError = k.Seconds, k.Error
	preconditioners := pencil.NewPreconditioners(problem.N, problem.Comm, preconditioner.M)
	_, weights := points.SplitWeights(problem.X)
	set := &pencil.Set{A: k, M: preconditioners, Rows: []*pencil.Row{&r.Row}, StorageError: k.Error / problem.Lambda,
		Weights: weights, Notify: bench.Notify}
	// timed runs a step unless an earlier one failed, and adds its time to *seconds.
	timed := func(seconds *float64, step func() error) {
		if err == nil {
			if err = stage.Timed(seconds, step); err == nil && preconditioners.Errs[0] != nil {
				err = fmt.Errorf("krrlab: the preconditioner %s: %w", r.Precond, preconditioners.Errs[0])
			}
		}
	}
	timed(&r.Seconds.Lanczos, func() error {
		return set.Lanczos(ctx, lanczos.Options{Steps: o.Steps, Tol: o.Width, Confidence: o.Confidence,
			Start: rng.New(problem.Seed).Sub("quality"), Monitor: func(state *lanczos.Result) error {
				r.Trace = append(r.Trace, Step{Step: state.Steps, Min: state.Min, Max: state.Max})
				return nil
			}}, problem.Tol)
	})
	if !o.NoSolve || r.Steps == 0 {
		timed(&r.Seconds.Solve, func() error {
			return set.Solve(ctx, problem.Y, pcg.Options{Tol: problem.Tol, TolFraction: stage.TolFraction,
				MaxIter: problem.MaxIter})
		})
	}
	if problem.N <= o.MaxExactN {
		timed(&r.Seconds.Exact, func() error { return set.Exact(ctx, bench) })
	}
	r.Seconds.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || r.Steps == 0) {
		return nil, err
	}
	return r, err
}
