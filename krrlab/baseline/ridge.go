package baseline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// ridge is min_W ‖ZW−Y‖_F²+λ‖W‖_F² with the factor of its system. Blocks of t columns are held by columns, t×s and t×n.
type ridge struct {
	src     *rows
	n, s, t int
	lambda  float64
	opt     FeatureOptions
	y       []float64 // t×n
	g       []float64 // t×s: G = ZᵀE − λW, at first ZᵀY
	factor  []float64 // L, s×s
	began   time.Time

	w, v []float64 // t×s: W, and scratch
	e    []float64 // t×n: E = Y − ZW
	res  *FeatureResult
}

// newRidge checks the shapes and settles whether Z is kept.
func newRidge(m feature.Map, x points.Points, lambda float64, y *mat.Dense, o *FeatureOptions) (*ridge, error) {
	p := &ridge{lambda: lambda, began: time.Now(), opt: *cmp.Or(o, &FeatureOptions{})}
	n, d := x.Dims()
	dm, s := m.Dims()
	rows, t := y.Dims()
	if dm != d || rows != n {
		panic(fmt.Sprintf("baseline: %d points of dimension %d, features of R^%d, %d rows of targets", n, d, dm, rows))
	}
	keep := FeatureNeed(n, s, t, true) <= p.opt.Memory
	if p.opt.Memory == 0 {
		free := accel.MemoryAvailable()
		keep = free == 0 || 4*int64(n)*int64(s) <= free/2
	}
	p.n, p.s, p.t, p.y, p.src = n, s, t, byCols(y), newRows(m, x, p.opt.Progress)
	p.res = &FeatureResult{Map: m, Kept: keep, Bytes: FeatureNeed(n, s, t, keep)}
	return p, fits("random features", fmt.Sprintf("n = %d, s = %d", n, s), p.res.Bytes, p.opt.Memory,
		"take fewer features")
}

// factorize forms Z, if it is kept, ZᵀY and ZᵀZ+λI, and factors that.
func (p *ridge) factorize(ctx context.Context) error {
	sec := &p.res.Seconds
	if p.res.Kept {
		start := time.Now()
		var err error
		p.src.kept, err = feature.Matrix(ctx, p.src.m, p.src.x, p.progress("features"))
		if sec.Features = time.Since(start).Seconds(); err != nil {
			return err
		}
	}
	g, err := p.gram(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	p.factor = g.Take(p.lambda)
	var trace float64
	for j := range p.s {
		trace += p.factor[j*p.s+j]
	}
	if pivot := cholesky(p.factor, p.s); pivot > 0 {
		return fmt.Errorf("baseline: ZᵀZ+λI of %d points and %d features is not positive definite at λ = %g (pivot "+
			"%d): take λ above s·2⁻⁵²·tr ZᵀZ = %.2g",
			p.n, p.s, p.lambda, pivot, float64(p.s)*0x1p-52*trace)
	}
	sec.Factor = time.Since(start).Seconds()
	return nil
}

// progress tells Options.Progress how far a stage is; nil if there is none.
func (p *ridge) progress(stage string) func(done, total int) {
	if p.opt.Progress == nil {
		return nil
	}
	return func(done, total int) { p.opt.Progress(stage, done, total) }
}

// gram returns ZᵀZ, of one pass over Z with ZᵀY. Products are in float32 if their error is predicted to be at most
// λ/10.
func (p *ridge) gram(ctx context.Context) (*precond.Gram, error) {
	start := time.Now()
	p.g = make([]float64, p.t*p.s)
	g := precond.ZeroGram(p.s)
	err := p.src.each(ctx, "gram", func(i0 int, z *points.Dense32) error {
		if i0 == 0 {
			normSq := floats.Sum(points.SqNorms(z)) * float64(p.n) / float64(z.N) // ‖Z‖_F², nearly
			p.res.Fast = precond.FastError(normSq, p.n, p.s) <= p.lambda/10
		}
		if err := p.src.addTransposed(ctx, z, p.g, p.y[i0:], p.n, p.t); err != nil {
			return err
		}
		return g.AddRows(ctx, z, p.res.Fast)
	})
	p.res.Seconds.Features += p.src.forming
	p.res.Seconds.Gram = time.Since(start).Seconds() - p.src.forming
	return g, err
}

// solve solves and refines, W ← W + (ZᵀZ+λI)⁻¹G, until the residual is small enough or does not halve any more.
func (p *ridge) solve(ctx context.Context) error {
	p.w, p.v, p.e = make([]float64, p.t*p.s), make([]float64, p.t*p.s), make([]float64, p.t*p.n)
	norms := make([]float64, p.t) // ‖Zᵀy_j‖₂
	for j := range norms {
		norms[j] = floats.Norm(p.g[j*p.s:(j+1)*p.s], 2)
	}
	for ; ; p.res.Rounds++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		copy(p.v, p.g)
		solveRows(p.factor, p.s, p.v, p.t)
		floats.Add(p.w, p.v)
		p.res.Seconds.Solve += time.Since(start).Seconds()
		if err := p.measure(ctx, norms); err != nil {
			return err
		}
		if p.done() {
			p.res.W = fromCols(p.w, p.s, p.t)
			return nil
		}
	}
}

// measure sets E = Y − ZW and G = ZᵀE − λW in one pass over Z, and what follows from them.
func (p *ridge) measure(ctx context.Context, norms []float64) error {
	start, forming := time.Now(), p.src.forming
	copy(p.e, p.y)
	for k, w := range p.w {
		p.v[k] = -w
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
		g[k] -= p.lambda * w
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
	res.History = append(res.History, slices.Max(rel))
	return nil
}

// done judges the last residual: met, not worth another round, or out of rounds.
func (p *ridge) done() bool {
	h, res := p.res.History, p.res
	last := h[len(h)-1]
	switch {
	case last <= featureTol:
		res.Status = pcg.Converged
	case len(h) > 1 && !(last <= h[len(h)-2]/2) || math.IsNaN(last):
		res.Status = pcg.Stagnated
	case res.Rounds >= mostRefined:
		res.Status = pcg.MaxIterations
	default:
		return false
	}
	return true
}
