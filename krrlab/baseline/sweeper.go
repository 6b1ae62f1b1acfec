package baseline

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// sweeper solves min ‖ZW−Y‖_F²+λ‖W‖_F² for nested features of one or more sizes.
type sweeper struct {
	x       points.Points
	y       []float64 // t×n
	n, t    int
	lambda  float64
	maps    []feature.Map
	sizes   []int // ascending
	forms   []FeatureForm
	opt     FeatureOptions
	keep    bool
	bytes   int64
	z       *points.Dense32 // features of the largest size, if kept
	began   time.Time
	seconds FeatureSeconds // what all sizes have in common
}

// newSweeper checks the arguments and settles the forms and what is kept.
func newSweeper(x points.Points, lambda float64, y *mat.Dense, maps []feature.Map, sizes []int, opt FeatureOptions) (*sweeper, error) {
	checkFeatureOptions(&opt)
	n, d := x.Dims()
	if dm, _ := maps[0].Dims(); dm != d {
		panic(fmt.Sprintf("baseline: points of dimension %d, features of R^%d", d, dm))
	}
	if err := checkTargets(n, y); err != nil {
		return nil, err
	}
	if err := checkLambda(lambda); err != nil {
		return nil, err
	}
	_, t := y.Dims()
	w := &sweeper{x: x, y: byCols(y), n: n, t: t, lambda: lambda, maps: maps, sizes: sizes, opt: opt, began: time.Now()}
	return w, w.settle()
}

// settle chooses whether Z is kept and, by that, the form of each size: Dual above n, where
// Z is.
func (w *sweeper) settle() error {
	top := w.sizes[len(w.sizes)-1]
	forms := func(keep bool) (f []FeatureForm) {
		for _, s := range w.sizes {
			switch {
			case w.opt.Form != AutoFeatureForm:
				f = append(f, w.opt.Form)
			case s > w.n && keep:
				f = append(f, Dual)
			default:
				f = append(f, Primal)
			}
		}
		return f
	}
	need := func(keep bool) int64 { return sweepNeed(forms(keep), w.n, w.sizes, w.t, keep) }
	w.keep = !w.opt.Stream
	if w.opt.Memory > 0 {
		w.keep = w.keep && need(true) <= w.opt.Memory
	} else {
		w.keep = w.keep && (keepable(4*int64(w.n)*int64(top)) || w.opt.Form == Dual)
	}
	if w.opt.Form == Dual && w.opt.Stream {
		return fmt.Errorf("baseline: the dual form keeps Z: take the primal form to stream it")
	}
	if w.opt.Form == Dual {
		w.keep = true
	}
	w.forms, w.bytes = forms(w.keep), need(w.keep)
	return fits("random features", fmt.Sprintf("n = %d, s = %d", w.n, top), w.bytes, w.opt.Memory, "take fewer features")
}

// sweepNeed returns the bytes that the sizes take in the forms.
func sweepNeed(forms []FeatureForm, n int, sizes []int, t int, keep bool) int64 {
	top := int64(sizes[len(sizes)-1])
	var primal, second, dual, order int64 // matrices; and the largest of them
	for i, s := range sizes {
		switch forms[i] {
		case Primal:
			primal, second, order = int64(s), primal, max(order, int64(s))
		case Dual:
			dual, order = dual+1, max(order, int64(n))
		default:
			panic("baseline: the bytes of " + forms[i].String())
		}
	}
	nn, tt := int64(n), int64(t)
	matrices := max(8*(primal*primal+second*second), 8*nn*nn*min(dual, 2))
	z := 4 * nn * top
	if !keep {
		z = 4 * top * min(nn, int64(panelRows(int(top))))
	}
	if dual > 0 {
		z += 4 * nn * min(top, precond.ColumnStrip)
	}
	panel := 8 * 1024 * order // of precond.Gram
	return matrices + z + panel + 8*tt*(4*top+4*nn)
}

// run solves each size, ascending, and hands its result to each.
func (w *sweeper) run(ctx context.Context, each func(*FeatureResult) error) error {
	if w.keep {
		if err := w.form(ctx); err != nil {
			return err
		}
	}
	if err := w.primal(ctx, each); err != nil {
		return err
	}
	return w.dual(ctx, each)
}

func (w *sweeper) elapsed() float64 { return time.Since(w.began).Seconds() }

// form forms Z of the largest size, to be kept.
func (w *sweeper) form(ctx context.Context) error {
	start := time.Now()
	var progress func(done, total int)
	if w.opt.Progress != nil {
		progress = func(done, total int) { w.opt.Progress("features", done, total) }
	}
	z, err := feature.Matrix(ctx, w.maps[len(w.maps)-1], w.x, progress)
	w.z = z
	w.seconds.Features += time.Since(start).Seconds()
	return err
}

// source returns the features of size number i: columns of what is kept, or its own map.
func (w *sweeper) source(i int) *rows {
	src := newRows(w.maps[i], w.x, w.opt.Progress)
	if w.z != nil {
		src.kept = firstColumns(w.z, src.s)
		src.scale = scaleOf(w.z.D, src.s)
	}
	return src
}

// scaleOf returns √(S/s): Z_s = √(S/s)·Z_S[:, :s].
func scaleOf(top, s int) float64 { return math.Sqrt(float64(top) / float64(s)) }

// result returns the result of size number i, to be filled.
func (w *sweeper) result(i int, fast bool) *FeatureResult {
	return &FeatureResult{
		Map: w.maps[i], N: w.n, S: w.sizes[i], T: w.t, Lambda: w.lambda, Tol: w.opt.Tol,
		Form: w.forms[i], Fast: fast, Kept: w.keep, Bytes: sweepNeed(w.forms[i:i+1], w.n, w.sizes[i:i+1], w.t, w.keep),
	}
}

// primal solves the sizes of the primal form: one Gram matrix of the largest of them, and for
// each the factor of its leading block.
func (w *sweeper) primal(ctx context.Context, each func(*FeatureResult) error) error {
	top := -1
	for i, f := range w.forms {
		if f == Primal {
			top = i
		}
	}
	if top < 0 {
		return nil
	}
	src := w.source(top)
	g, b, fast, err := w.gram(ctx, src)
	if err != nil {
		return err
	}
	for i, f := range w.forms {
		if f != Primal {
			continue
		}
		s := w.sizes[i]
		c := src.scale * scaleOf(src.s, s)
		own := make([]float64, w.t*s) // Z_sᵀY = c·(zᵀY)[:s], z as it is kept
		for j := range w.t {
			for k := range s {
				own[j*s+k] = c * b[j*src.s+k]
			}
		}
		var factor []float64 // Z_sᵀZ_s + λI
		if i == top {
			factor = g.Take(c*c, w.lambda)
		} else {
			factor = make([]float64, s*s)
			g.LeadingTo(factor, s, s, c*c, w.lambda)
		}
		p := &ridge{src: w.source(i), form: Primal, s: s, b: own, factor: factor, res: w.result(i, fast)}
		if err := w.solve(ctx, p, each); err != nil {
			return err
		}
	}
	return nil
}

// gram returns zᵀz and zᵀY of the features z of src as they are kept, without their scale, and
// whether products were in float32: if their error is predicted to be at most λ/10 for the
// least size, whose own it is largest for.
func (w *sweeper) gram(ctx context.Context, src *rows) (g *precond.Gram, b []float64, fast bool, err error) {
	start := time.Now()
	g, b = precond.ZeroGram(src.s), make([]float64, w.t*src.s)
	err = src.each(ctx, "gram", func(i0 int, z *points.Dense32) error {
		if i0 == 0 {
			norm := src.scale * src.scale * floats.Sum(points.SqNorms(z)) * float64(w.n) / float64(z.N) // ‖Z‖_F², nearly
			fast = !w.opt.Exact && precond.FastError(norm, w.n, w.sizes[0]) <= w.lambda/10
		}
		if err := src.addTransposed(ctx, z, b, w.y[i0:], w.n, w.t); err != nil {
			return err
		}
		return g.AddRows(ctx, z, fast)
	})
	w.seconds.Features += src.forming
	w.seconds.Gram += time.Since(start).Seconds() - src.forming
	return g, b, fast, err
}

// dual solves the sizes of the dual form: zzᵀ is summed over the columns of z, and factored when
// those of a size are in it.
func (w *sweeper) dual(ctx context.Context, each func(*FeatureResult) error) error {
	var k *precond.Gram
	done, fast := 0, false
	for i, f := range w.forms {
		if f != Dual {
			continue
		}
		src := w.source(i)
		start := time.Now()
		if k == nil {
			k = precond.ZeroGram(w.n)
			fast = !w.opt.Exact && precond.FastError(src.scale*src.scale*floats.Sum(points.SqNorms(src.kept)), src.s, w.n) <= w.lambda/10
		}
		columns := &points.Dense32{N: w.n, D: src.s - done, Stride: w.z.Stride, Data: w.z.Data[done:]}
		err := k.AddColumns(ctx, columns, fast, func(c int) {
			if w.opt.Progress != nil {
				w.opt.Progress("gram", done+c, w.z.D)
			}
		})
		if err != nil {
			return err
		}
		done = src.s
		w.seconds.Gram += time.Since(start).Seconds()
		start = time.Now()
		b, err := transposed(ctx, src, w.y, w.t) // ZᵀY
		if err != nil {
			return err
		}
		w.seconds.Residual += time.Since(start).Seconds()
		var factor []float64 // ZZᵀ + λI
		if i == len(w.forms)-1 {
			factor = k.Take(src.scale*src.scale, w.lambda)
		} else {
			factor = make([]float64, w.n*w.n)
			k.LeadingTo(factor, w.n, w.n, src.scale*src.scale, w.lambda)
		}
		p := &ridge{src: src, form: Dual, s: src.s, b: b, factor: factor, res: w.result(i, fast)}
		if err := w.solve(ctx, p, each); err != nil {
			return err
		}
	}
	return nil
}

// solve factors and solves one size, and hands the result to each.
func (w *sweeper) solve(ctx context.Context, p *ridge, each func(*FeatureResult) error) error {
	p.n, p.t, p.lambda, p.opt, p.y, p.began = w.n, w.t, w.lambda, w.opt, w.y, w.began
	if err := ctx.Err(); err != nil {
		return err
	}
	start, order := time.Now(), p.s
	if p.form == Dual {
		order = p.n
	}
	var trace float64
	for j := range order {
		trace += p.factor[j*order+j]
	}
	if pivot := cholesky(p.factor, order); pivot > 0 {
		return p.notDefinite(order, pivot, trace)
	}
	p.res.Seconds.Factor = time.Since(start).Seconds()
	r, err := p.solve(ctx)
	if r == nil {
		return err
	}
	r.Seconds.Total = r.Seconds.Features + r.Seconds.Factor + r.Seconds.Solve + r.Seconds.Residual
	if e := each(r); err == nil {
		err = e
	}
	return err
}
