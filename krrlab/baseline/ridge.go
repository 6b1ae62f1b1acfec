package baseline

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
)

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
		norms[j] = math.Sqrt(sumSquares(p.b[j*p.s : (j+1)*p.s]))
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
			rel[j] = math.Sqrt(sumSquares(g[j*p.s:(j+1)*p.s])) / norms[j]
		}
	}
	res := p.res
	res.RelRes = rel
	res.Objective = sumSquares(p.e) + p.lambda*sumSquares(p.w)
	res.Excess = sumSquares(g) / p.lambda // tr Gᵀ(ZᵀZ+λI)⁻¹G ≤ ‖G‖_F²/λ
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
