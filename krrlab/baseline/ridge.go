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
	order   int       // its own
	began   time.Time

	w, g, v []float64 // t×s: W, G = ZᵀE − λW, and scratch
	e       []float64 // t×n: E = Y − ZW
	a, r    []float64 // t×n, Dual: A, W = ZᵀA, and scratch
	solved  bool
	res     *FeatureResult
}

// newRidge checks the arguments and settles whether Z is kept and, by that, the form: Dual above n, where Z is.
func newRidge(m feature.Map, x points.Points, lambda float64, y *mat.Dense, o *FeatureOptions) (*ridge, error) {
	p := &ridge{lambda: lambda, began: time.Now()}
	if o != nil {
		p.opt = *o
	}
	opt := &p.opt
	if !(opt.Tol >= 0) || opt.Memory < 0 || opt.Form < AutoFeatureForm || opt.Form > Dual {
		panic(fmt.Sprintf("baseline: tolerance %v, memory %d, form %v", opt.Tol, opt.Memory, opt.Form))
	}
	opt.Tol, opt.MaxRefine = cmp.Or(opt.Tol, 1e-10), max(0, cmp.Or(opt.MaxRefine, 30))
	n, d := x.Dims()
	dm, s := m.Dims()
	if dm != d {
		panic(fmt.Sprintf("baseline: points of dimension %d, features of R^%d", d, dm))
	}
	if err := checkTargets(n, y); err != nil {
		return nil, err
	}
	if err := checkLambda(lambda); err != nil {
		return nil, err
	}
	if opt.Form == Dual && opt.Stream {
		return nil, fmt.Errorf("baseline: the dual form keeps Z: take the primal form to stream it")
	}
	_, t := y.Dims()
	form := func(keep bool) FeatureForm {
		switch {
		case opt.Form != AutoFeatureForm:
			return opt.Form
		case s > n && keep:
			return Dual
		}
		return Primal
	}
	keep := opt.Form == Dual || !opt.Stream
	if opt.Memory > 0 {
		keep = opt.Form == Dual || keep && FeatureNeed(form(true), n, s, t, true) <= opt.Memory
	} else if opt.Form != Dual {
		free := accel.MemoryAvailable()
		keep = keep && (free == 0 || 4*int64(n)*int64(s) <= free/2)
	}
	p.form, p.n, p.s, p.t, p.y, p.src = form(keep), n, s, t, byCols(y), newRows(m, x, opt.Progress)
	if p.order = s; p.form == Dual {
		p.order = n
	}
	p.res = &FeatureResult{
		Map: m, N: n, S: s, T: t, Lambda: lambda, Tol: opt.Tol, Form: p.form, Kept: keep, Bytes: FeatureNeed(p.form, n, s, t, keep),
	}
	return p, fits("random features", fmt.Sprintf("n = %d, s = %d", n, s), p.res.Bytes, opt.Memory, "take fewer features")
}

// factorize forms Z, if it is kept, ZᵀY and the matrix of the form, and factors that.
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
	gram := p.primal
	if p.form == Dual {
		gram = p.dual
	}
	g, err := gram(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	p.factor = g.Take(p.lambda)
	var trace float64
	for j := range p.order {
		trace += p.factor[j*p.order+j]
	}
	if pivot := cholesky(p.factor, p.order); pivot > 0 {
		return p.notDefinite(pivot, trace)
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

// primal returns ZᵀZ, of one pass over Z with ZᵀY. Products are in float32 if their error is predicted to be at most
// λ/10.
func (p *ridge) primal(ctx context.Context) (*precond.Gram, error) {
	start := time.Now()
	p.b = make([]float64, p.t*p.s)
	g := precond.ZeroGram(p.s)
	err := p.src.each(ctx, "gram", func(i0 int, z *points.Dense32) error {
		if i0 == 0 {
			p.fast(floats.Sum(points.SqNorms(z))*float64(p.n)/float64(z.N), p.n, p.s) // ‖Z‖_F², nearly
		}
		if err := p.src.addTransposed(ctx, z, p.b, p.y[i0:], p.n, p.t); err != nil {
			return err
		}
		return g.AddRows(ctx, z, p.res.Fast)
	})
	p.res.Seconds.Features += p.src.forming
	p.res.Seconds.Gram = time.Since(start).Seconds() - p.src.forming
	return g, err
}

// fast settles whether products are in float32.
func (p *ridge) fast(normSq float64, rows, cols int) {
	p.res.Fast = !p.opt.Exact && precond.FastError(normSq, rows, cols) <= p.lambda/10
}

// dual returns ZZᵀ, and sets ZᵀY.
func (p *ridge) dual(ctx context.Context) (*precond.Gram, error) {
	start, z := time.Now(), p.src.kept
	g := precond.ZeroGram(p.n)
	p.fast(floats.Sum(points.SqNorms(z)), p.s, p.n)
	progress := p.progress("gram")
	err := g.AddColumns(ctx, z, p.res.Fast, func(c int) {
		if progress != nil {
			progress(c, z.D)
		}
	})
	if err != nil {
		return nil, err
	}
	p.res.Seconds.Gram = time.Since(start).Seconds()
	start = time.Now()
	p.b, err = p.transposed(ctx, p.y) // ZᵀY
	p.res.Seconds.Residual = time.Since(start).Seconds()
	return g, err
}

// solve solves and refines until the residual is at most Tol or does not halve any more.
func (p *ridge) solve(ctx context.Context) error {
	p.w, p.v, p.g, p.e = make([]float64, p.t*p.s), make([]float64, p.t*p.s), p.b, slices.Clone(p.y)
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
			p.res.W = fromCols(p.w, p.s, p.t)
			return nil
		}
		p.res.Rounds++
	}
}

// canceled sets the result when ctx ended after the first solve: a W whose residual was not measured.
func (p *ridge) canceled(err error) error {
	p.res.Status, p.res.W = pcg.Canceled, fromCols(p.w, p.s, p.t)
	p.res.Objective, p.res.Excess, p.res.RelRes = math.NaN(), math.NaN(), make([]float64, p.t)
	for j := range p.res.RelRes {
		p.res.RelRes[j] = math.NaN()
	}
	return err
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
	v, err := p.transposed(ctx, p.a)
	if err == nil {
		copy(p.w, v) // W = ZᵀA
	}
	return err
}

// transposed returns ZᵀE as t×s, E being t×n.
func (p *ridge) transposed(ctx context.Context, e []float64) ([]float64, error) {
	g := make([]float64, p.t*p.s)
	err := p.src.each(ctx, "residual", func(i0 int, z *points.Dense32) error {
		return p.src.addTransposed(ctx, z, g, e[i0:], p.n, p.t)
	})
	return g, err
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
	case last <= res.Tol:
		res.Status = pcg.Converged
	case len(h) > 1 && !(last <= h[len(h)-2]/2) || math.IsNaN(last):
		res.Status = pcg.Stagnated
	case res.Rounds >= p.opt.MaxRefine:
		res.Status = pcg.MaxIterations
	default:
		return false
	}
	return true
}

// notDefinite says why the factorization failed and what to try.
func (p *ridge) notDefinite(pivot int, trace float64) error {
	what, least := "ZᵀZ", "s"
	if p.form == Dual {
		what, least = "ZZᵀ", "n"
	}
	try := fmt.Sprintf("λ above %s·2⁻⁵²·tr %s = %.2g", least, what, float64(p.order)*0x1p-52*trace)
	if p.res.Fast {
		try = "float64 products (Exact), or a larger λ"
	}
	return fmt.Errorf("baseline: %s+λI of %d points and %d features is not positive definite at λ = %g (pivot %d of %d): take %s",
		what, p.n, p.s, p.lambda, pivot, p.order, try)
}
