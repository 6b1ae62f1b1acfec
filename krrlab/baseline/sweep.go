package baseline

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// SweepResult is the answer of RandomFeaturesSweep.
type SweepResult struct {
	Sizes   []int            // asked for
	Results []*FeatureResult // those that are done, ascending; Status and residual are each one's own
	Stacked bool             // φ stacks independent draws of Sizes[0], Sizes[1]−Sizes[0], … features
	Status  pcg.Status       // the worst of the results', or Canceled
	Bytes   int64            // taken at most
	// Seconds of the whole. Those of a result are its own: the factor, the solves, the residuals
	// with the features they formed; not its share of what all have in common, Z and its Gram matrix.
	Seconds FeatureSeconds
}

// String has a line for each size.
func (r *SweepResult) String() string {
	var b strings.Builder
	how := "prefixes of one map"
	if r.Stacked {
		how = "stacked draws"
	}
	fmt.Fprintf(&b, "random features for %d of %d sizes, %s: %v in %.3g s (features %.3g s, gram %.3g s)",
		len(r.Results), len(r.Sizes), how, r.Status, r.Seconds.Total, r.Seconds.Features, r.Seconds.Gram)
	for _, q := range r.Results {
		fmt.Fprintf(&b, "\n  s = %d, %v: %v, residual %.3g, objective %.6g", q.S, q.Form, q.Status, q.MaxRelRes(), q.Objective)
	}
	return b.String()
}

// RandomFeaturesSweep is RandomFeatures for several numbers of features, ascending, with the
// features of each among those of the next, so that one Gram matrix serves all: with S the
// largest size,
//
//	Z_s = √(S/s)·Z_S[:, :s],  Z_sᵀZ_s + λI = (S/s)·(Z_SᵀZ_S)[:s, :s] + λI.
//
// Sizes above n take the dual form if Z can be kept, ZZᵀ being summed over the features as
// the sizes grow.
//
// A Fourier map has this property: its first features are those of a smaller one. For any
// other dist (TensorSketch, Chain) φ stacks independent draws of Sizes[0],
// Sizes[1]−Sizes[0], … features (feature.Stack), which has the same mean, and the variance of one
// draw where that is proportional to 1/s; Stacked says so. Draw 0 belongs to g, draw j > 0 to
// g.Sub("sweep", j).
//
// Work: nS² flops for all, s³/3 and the passes of RandomFeatures for each size. Memory: that of the
// largest size, and a second factor. It returns the errors of RandomFeatures and of dist; when
// ctx ends the results so far come with the error. It panics if there are no sizes
// or they are not positive and ascending.
func RandomFeaturesSweep(ctx context.Context, dist feature.Dist, x points.Points, lambda float64, y *mat.Dense, sizes []int, g rng.Stream, o *FeatureOptions) (*SweepResult, error) {
	var opt FeatureOptions
	if o != nil {
		opt = *o
	}
	_, d := x.Dims()
	maps, stacked, err := nested(dist, d, sizes, g)
	if err != nil {
		return nil, err
	}
	w, err := newSweeper(x, lambda, y, maps, sizes, opt)
	if err != nil {
		return nil, err
	}
	res := &SweepResult{Sizes: append([]int(nil), sizes...), Stacked: stacked, Bytes: w.bytes}
	err = w.run(ctx, func(r *FeatureResult) error {
		res.Results = append(res.Results, r)
		res.Status = max(res.Status, r.Status)
		return nil
	})
	res.Seconds = w.seconds
	for _, r := range res.Results {
		res.Seconds.Features += r.Seconds.Features
		res.Seconds.Factor += r.Seconds.Factor
		res.Seconds.Solve += r.Seconds.Solve
		res.Seconds.Residual += r.Seconds.Residual
	}
	res.Seconds.Total = w.elapsed()
	if err == nil {
		return res, nil
	}
	if len(res.Results) == 0 {
		return nil, err
	}
	if ctx.Err() != nil {
		res.Status = pcg.Canceled
	}
	return res, err
}

// nested returns a map for each size, the first features of each being those of the one
// before, but for the scale.
func nested(dist feature.Dist, d int, sizes []int, g rng.Stream) (maps []feature.Map, stacked bool, err error) {
	last := 0
	for _, s := range sizes {
		if s <= last {
			panic(fmt.Sprintf("baseline: sizes %v, want positive and ascending ones", sizes))
		}
		last = s
	}
	if len(sizes) == 0 {
		panic("baseline: no sizes to sweep over")
	}
	_, prefixes := dist.(feature.Fourier)
	var parts []feature.Map
	last = 0
	for j, s := range sizes {
		stream, size := g, s
		if !prefixes {
			size = s - last
			if j > 0 {
				stream = g.Sub("sweep", uint64(j))
			}
		}
		m, err := dist.Sample(d, size, stream)
		if err != nil {
			return nil, false, err
		}
		if !prefixes {
			parts = append(parts, m)
			m = feature.Stack(parts...)
		}
		maps, last = append(maps, m), s
	}
	return maps, !prefixes && len(sizes) > 1, nil
}

// Predict returns the predictions of every result, p×t each, with one pass over the features of the
// largest.
func (r *SweepResult) Predict(ctx context.Context, x points.Points) ([]*mat.Dense, error) {
	if len(r.Results) == 0 {
		return nil, fmt.Errorf("baseline: no size was solved")
	}
	ws := make([]*mat.Dense, len(r.Results))
	for i, q := range r.Results {
		ws[i] = q.W
	}
	return predictAll(ctx, r.Results[len(ws)-1].Map, ws, x)
}

// ridge is min_W ‖ZW−Y‖_F²+λ‖W‖_F² with the factor of one of its systems. Blocks of t
// columns are held by columns, t×s and t×n.
type ridge struct {
	src     *rows
	form    FeatureForm
	n, s, t int
	lambda  float64
	opt     FeatureOptions
	y       []float64 // t×n
	b       []float64 // t×s: ZᵀY
	factor  []float64 // L, s×s or n×n
	began   time.Time

	w, g, v []float64 // t×s: W, G = ZᵀE − λW, and scratch
	e       []float64 // t×n: E = Y − ZW
	a, r    []float64 // t×n, Dual: A, W = ZᵀA, and scratch
	solved  bool
	res     *FeatureResult
}

// solve solves and refines until the residual is at most Tol or does not halve any more. An
// error after the first solve, ctx's, comes with the result.
func (p *ridge) solve(ctx context.Context) (*FeatureResult, error) {
	p.w, p.v, p.g, p.e = make([]float64, p.t*p.s), make([]float64, p.t*p.s), p.b, append([]float64(nil), p.y...)
	if p.form == Dual {
		p.a, p.r = make([]float64, p.t*p.n), make([]float64, p.t*p.n)
	}
	norms := make([]float64, p.t) // ‖Zᵀy_j‖₂
	for j := range norms {
		norms[j] = floats.Norm(p.b[j*p.s:(j+1)*p.s], 2)
	}
	for {
		if err := p.correct(ctx); err != nil {
			return p.canceled(err)
		}
		p.solved = true
		if err := p.measure(ctx, norms); err != nil {
			return p.canceled(err)
		}
		if p.done() {
			break
		}
		p.res.Rounds++
	}
	p.res.W = fromCols(p.w, p.s, p.t)
	return p.res, nil
}

// canceled returns what there is when ctx ended: nothing before the first solve, and then a W
// whose residual was not measured.
func (p *ridge) canceled(err error) (*FeatureResult, error) {
	if !p.solved {
		return nil, err
	}
	p.res.Status, p.res.W = pcg.Canceled, fromCols(p.w, p.s, p.t)
	p.res.Objective, p.res.Excess, p.res.RelRes = math.NaN(), math.NaN(), make([]float64, p.t)
	for j := range p.res.RelRes {
		p.res.RelRes[j] = math.NaN()
	}
	return p.res, err
}

// correct is a round: W ← W + (ZᵀZ+λI)⁻¹G, or A ← A + (ZZᵀ+λI)⁻¹(E−λA) and W = ZᵀA.
func (p *ridge) correct(ctx context.Context) error {
	start := time.Now()
	defer func() { p.res.Seconds.Solve += time.Since(start).Seconds() }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.form == Primal {
		copy(p.v, p.g)
		solveRows(p.factor, p.s, p.v, p.t)
		for k, d := range p.v {
			p.w[k] += d
		}
		return nil
	}
	for k, e := range p.e {
		p.r[k] = e - p.lambda*p.a[k] // R = Y − (ZZᵀ+λI)A
	}
	solveRows(p.factor, p.n, p.r, p.t)
	for k, d := range p.r {
		p.a[k] += d
	}
	v, err := transposed(ctx, p.src, p.a, p.t)
	if err == nil {
		copy(p.w, v) // W = ZᵀA
	}
	return err
}

// transposed returns ZᵀE as t×s, E being t×n.
func transposed(ctx context.Context, src *rows, e []float64, t int) ([]float64, error) {
	g := make([]float64, t*src.s)
	err := src.each(ctx, "residual", func(i0 int, z *points.Dense32) error {
		return src.addTransposed(ctx, z, g, e[i0:], src.n, t)
	})
	for k := range g {
		g[k] *= src.scale
	}
	return g, err
}

// measure sets E = Y − ZW and G = ZᵀE − λW in one pass over Z, and what follows from them.
func (p *ridge) measure(ctx context.Context, norms []float64) error {
	start, forming := time.Now(), p.src.forming
	copy(p.e, p.y)
	for k, w := range p.w {
		p.v[k] = -p.src.scale * w
	}
	g := make([]float64, len(p.w))
	err := p.src.each(ctx, "residual", func(i0 int, z *points.Dense32) error {
		if err := addProduct(ctx, z, p.v, p.e[i0:], p.n, p.t); err != nil { // E = Y − ZW
			return err
		}
		return p.src.addTransposed(ctx, z, g, p.e[i0:], p.n, p.t) // ZᵀE
	})
	formed := p.src.forming - forming
	p.res.Seconds.Features += formed
	p.res.Seconds.Residual += time.Since(start).Seconds() - formed
	if err != nil {
		return err
	}
	for k, w := range p.w {
		g[k] = p.src.scale*g[k] - p.lambda*w
	}
	p.g = g
	rel := make([]float64, p.t)
	for j := range rel {
		if norms[j] > 0 {
			rel[j] = floats.Norm(g[j*p.s:(j+1)*p.s], 2) / norms[j]
		}
	}
	res := p.res
	res.RelRes = rel
	res.Objective = floats.Dot(p.e, p.e) + p.lambda*floats.Dot(p.w, p.w)
	res.Excess = floats.Dot(g, g) / p.lambda // tr Gᵀ(ZᵀZ+λI)⁻¹G ≤ ‖G‖_F²/λ
	res.History = append(res.History, FeatureStep{res.Rounds, time.Since(p.began).Seconds(), res.Objective, worst(rel)})
	return nil
}

// done judges the last residual: met, not worth another round, or out of rounds.
func (p *ridge) done() bool {
	h, res := p.res.History, p.res
	last := h[len(h)-1].RelRes
	switch {
	case last <= res.Tol:
		res.Status = pcg.Converged
	case len(h) > 1 && !(last <= h[len(h)-2].RelRes/2) || math.IsNaN(last):
		res.Status = pcg.Stagnated
	case res.Rounds >= p.opt.MaxRefine:
		res.Status = pcg.MaxIterations
	default:
		return false
	}
	return true
}

// notDefinite says why the factorisation failed and what to try.
func (p *ridge) notDefinite(order, pivot int, trace float64) error {
	what, try := "ZᵀZ+λI", fmt.Sprintf("λ above s·2⁻⁵²·tr ZᵀZ = %.2g", float64(order)*0x1p-52*trace)
	if p.form == Dual {
		what, try = "ZZᵀ+λI", fmt.Sprintf("λ above n·2⁻⁵²·tr ZZᵀ = %.2g", float64(order)*0x1p-52*trace)
	}
	if p.res.Fast {
		try = "float64 products (Exact), or a larger λ"
	}
	return fmt.Errorf("baseline: %s of %d points and %d features is not positive definite at λ = %g (pivot %d of %d): take %s",
		what, p.n, p.s, p.lambda, pivot, order, try)
}
