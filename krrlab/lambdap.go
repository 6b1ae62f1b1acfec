package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/tune"
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

// LambdaP is a sweep of the preconditioner's ridge λ_p, or a map over (s, λ_p).
type LambdaP struct {
	Dataset  string      `json:"dataset"`
	Kernel   kernel.Spec `json:"kernel"`
	N        int         `json:"n"`
	Columns  int         `json:"t"`
	Lambda   float64     `json:"lambda"`
	Features string      `json:"features"` // what made Z
	Tol      float64     `json:"tol"`      // τ of the iterations
	// Sweeps holds one for each s, ascending.
	Sweeps []*tune.Result `json:"sweeps"`
	// BestS and BestLambdaP are those of least predicted time; 0 if nothing can be said.
	BestS       int     `json:"best_s"`
	BestLambdaP float64 `json:"best_lambda_p"`
	KError      float64 `json:"kernel_error"` // predicted bound of ‖K_stored−K‖₂
	Seconds     float64 `json:"seconds"`      // in all, K and Z included
}

// LambdaP sweeps λ_p for the features of the configuration. Cost: K, Z, one eigendecomposition of ZᵀZ
// (9s³ flops) for each s, and a product with K of as many columns as there are λ_p for a step of
// Lanczos or an iteration; see package tune. If ctx ends it returns the points it has beside
// ctx's error.
func (l *Lab) LambdaP(ctx context.Context, o LambdaPOptions) (*LambdaP, error) {
	if l.cfg.Backend != nil {
		return send[LambdaP](ctx, l, "lambda-p", o)
	}
	start := time.Now()
	n, _, t := l.Dims()
	opt, sizes, err := l.lambdaPOptions(&o)
	if err != nil {
		return nil, err
	}
	spec, err := kernel.ToSpec(l.cfg.Kernel)
	if err != nil {
		spec = kernel.Spec{Name: l.cfg.Kernel.String()}
	}
	s := &LambdaP{Dataset: l.train.Name, Kernel: spec, N: n, Columns: t, Lambda: l.cfg.Lambda, Features: l.cfg.Precond.String(), Tol: l.cfg.Tol}
	if l.cfg.Precond == RandomFeatures {
		s.Features = l.cfg.Map.String()
	}
	grid := len(opt.LambdaP)
	if grid == 0 {
		grid = cmp.Or(opt.Points, 13) + 3 // and the marks
	}
	lanczos := 16 * int64(n) * int64(min(cmp.Or(opt.Steps, 150), n)) * int64(grid)
	a, err := l.kBeside(ctx, l.featureBytes(slices.Max(sizes))+lanczos)
	if err != nil {
		return nil, err
	}
	s.KError = a.Choice().Error
	opt.KError, opt.Comm = s.KError, l.comm
	for _, size := range sizes {
		var r *tune.Result
		if r, err = l.sweep(ctx, a, size, opt); r != nil {
			s.add(r)
			if opt.LambdaP == nil && len(sizes) > 1 { // one grid for all
				opt.LambdaP = tune.Grid(s.Lambda, r.Eta.Value, opt.Points)
			}
		}
		if err != nil {
			break
		}
	}
	s.Seconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(s.Sweeps) == 0) {
		return nil, err
	}
	return s, err
}

// lambdaPOptions checks the options and translates them.
func (l *Lab) lambdaPOptions(o *LambdaPOptions) (*tune.Options, []int, error) {
	n, _, t := l.Dims()
	if o.Columns > t {
		return nil, nil, fmt.Errorf("iterations counted with %d right-hand sides: there are %d; take at most as many (Columns, --columns)", o.Columns, t)
	}
	if l.cfg.Precond == NoPrecond {
		return nil, nil, fmt.Errorf("no preconditioner, and so no λ_p: take features, nystrom or rpcholesky, with the solver pcg")
	}
	if o.Grid != nil && len(o.Grid) == 0 {
		return nil, nil, fmt.Errorf("an empty grid of λ_p: want at least one value")
	}
	if o.Sizes != nil && len(o.Sizes) == 0 {
		return nil, nil, fmt.Errorf("an empty list of numbers of features: want at least one")
	}
	sizes := slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	for _, s := range sizes {
		if s < 1 || s > n {
			return nil, nil, fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", s, n)
		}
	}
	if o.Columns == 0 && len(sizes) > 1 {
		o.Columns = -1
	}
	if len(sizes) == 0 {
		sizes = []int{l.cfg.Features}
	}
	opt := &tune.Options{
		LambdaP: slices.Compact(slices.Sorted(slices.Values(o.Grid))), Points: cmpOr(o.Points, 13), Confidence: o.Confidence, Width: o.Width,
		Steps: o.Steps, Columns: o.Columns, Tol: l.cfg.Tol, MaxIter: o.MaxIter,
		Stream: rng.New(l.cfg.Seed).Sub("lambda-p"),
		Progress: func(part string, done, total int) {
			l.cfg.Monitor(Event{Stage: part, Done: done, Total: total, Remaining: -1})
		},
	}
	return opt, sizes, opt.Check()
}

func cmpOr(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// sweep draws size features, or takes as many landmarks, and sweeps λ_p for them.
func (l *Lab) sweep(ctx context.Context, a *gram.Matrix, size int, o *tune.Options) (*tune.Result, error) {
	bench := l.withFeatures(size)
	var z *points.Dense32
	var formed float64
	err := timed(&formed, func() error {
		if l.cfg.Precond == RandomFeatures {
			var err error
			z, err = bench.Features(ctx, 0)
			return err
		}
		f, err := bench.LowRank(ctx, a, 0)
		if err == nil {
			z = l.ownRows(f.F)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	l.cfg.Monitor(Event{Stage: "eigen"})
	return tune.Sweep(ctx, a, z, l.y, formed, o)
}

// add adds a sweep, and chooses the least time of all.
func (s *LambdaP) add(r *tune.Result) {
	s.Sweeps = append(s.Sweeps, r)
	least := math.Inf(1)
	for _, r := range s.Sweeps {
		if r.Best >= 0 && r.Points[r.Best].Seconds < least {
			least = r.Points[r.Best].Seconds
			s.BestS, s.BestLambdaP = r.S, r.Points[r.Best].LambdaP
		}
	}
}
