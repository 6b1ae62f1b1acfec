package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/lambdap"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// LambdaPOptions are the options of LambdaP. Zero values mean the defaults.
type LambdaPOptions struct {
	Grid       []float64 // values of λ_p; default: Points from λ/100 to 100(λ+η), and λ, 10λ and λ+η
	Points     int       // default: 13
	Confidence float64   // of each interval, in (0, 1); default: 0.95
	Width      float64   // relative width of κ's interval to stop at; default: 0.3
	Steps      int       // at most so many of Lanczos; default: 150
	Columns    int       // right-hand sides that iterations are counted with, at most t; negative: none; default: 1
	MaxIter    int       // where counting ends; default: 200
	// Sizes asks for the map over (s, λ_p): a sweep for each number of features s, of which
	// those of Fourier maps are nested. Iterations are then predicted, not counted, unless
	// Columns is set. Default: the configuration's s alone.
	Sizes []int
}

// LambdaP sweeps λ_p for the features of the configuration. Cost: K, Z, one eigendecomposition of ZᵀZ
// (9s³ flops) for each s, and a product with K of as many columns as there are λ_p for a step of
// Lanczos or an iteration; see package lambdap. If ctx ends it returns the points it has beside
// ctx's error.
func (l *Lab) LambdaP(ctx context.Context, o LambdaPOptions) (*LambdaP, error) {
	return run(ctx, l, stage.LambdaP, o, func(ctx context.Context) (*LambdaP, error) { return l.lambdaP(ctx, o) })
}

func (l *Lab) lambdaP(ctx context.Context, o LambdaPOptions) (*LambdaP, error) {
	start := time.Now()
	opt, sizes, err := l.lambdaPOptions(ctx, &o)
	if err != nil {
		return nil, err
	}
	s := &LambdaP{Header: l.header(), Features: l.precondName()}
	if f, ok := l.cfg.Precond.(Features); ok {
		s.Features = f.String()
	}
	grid := cmp.Or(len(opt.LambdaP), cmp.Or(opt.Points, 13)+3) // and the marks
	lanczos := 16 * int64(s.N) * int64(min(cmp.Or(opt.Steps, 150), s.N)) * int64(grid)
	k, err := l.matrix(ctx, l.featureBytes(slices.Max(sizes))+lanczos, nil)
	if err != nil {
		return nil, err
	}
	s.KError = l.kError(k.it)
	opt.KError, opt.Comm = s.KError, l.comm
	all, err := lambdap.SweepSizes(ctx, k.it, sizes, l.y, opt, func(ctx context.Context, size int) (*points.Dense32, float64, error) {
		f, err := l.factor(ctx, l.approximation().at(size), 0)
		if err != nil {
			return nil, 0, err
		}
		l.Tell(ctx, Event{Stage: stage.Eigenvalues})
		return f.it.z, f.seconds, nil
	})
	for _, r := range all {
		s.Add(r)
	}
	s.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(s.Sweeps) == 0) {
		return nil, err
	}
	return s, err
}

// lambdaPOptions checks the options and translates them.
func (l *Lab) lambdaPOptions(ctx context.Context, o *LambdaPOptions) (*lambdap.Options, []int, error) {
	n, _, t := l.Dims()
	if o.Columns > t {
		return nil, nil, fmt.Errorf("iterations counted with %d right-hand sides: there are %d; take at most as many (Columns, --columns)", o.Columns, t)
	}
	recipe := l.approximation()
	if recipe == nil {
		return nil, nil, fmt.Errorf("the preconditioner %v has no λ_p: take features, nystrom or rpcholesky, with the solver pcg", l.cfg.Precond)
	}
	if o.Sizes != nil && len(o.Sizes) == 0 {
		return nil, nil, fmt.Errorf("no numbers of features: want at least one")
	}
	sizes := slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	for _, s := range sizes {
		if err := checkRank(s, n); err != nil {
			return nil, nil, err
		}
	}
	if o.Columns == 0 && len(sizes) > 1 {
		o.Columns = -1
	}
	if len(sizes) == 0 {
		sizes = []int{recipe.s}
	}
	opt := &lambdap.Options{
		LambdaP: o.Grid, Points: o.Points, Confidence: o.Confidence, Width: o.Width,
		Steps: o.Steps, Columns: o.Columns, Tol: l.cfg.Tol, MaxIter: o.MaxIter,
		Stream: rng.New(l.cfg.Seed).Sub("lambda-p"),
		Progress: func(part string, done, total int) {
			l.Tell(ctx, Event{Stage: stage.Name(part), Done: done, Total: total, Remaining: -1})
		},
	}
	return opt, sizes, opt.Check()
}
