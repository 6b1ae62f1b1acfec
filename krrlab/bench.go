package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// bench is the lab as stages see it.
type bench struct {
	*Lab
	problem *stage.Problem
}

var _ stage.Bench = (*bench)(nil)

func (b *bench) Problem() *stage.Problem {
	if b.problem == nil {
		l := b.Lab
		b.problem = &stage.Problem{
			Header: l.header(), Kernel: l.cfg.Kernel, X: l.train.X, Y: l.y, Coding: l.coding, Train: l.given,
			Comm: l.comm, Memory: l.cfg.Memory, HeldBytes: l.vectors(), MaxIter: l.cfg.MaxIter,
			Precond: stage.NameOf(l.cfg.Precond),
			Entry:   stage.Entry{Value: l.cfg.Precond}, Planned: l.Planning(), S: DefaultFeatures(l.train.Len()),
			Z: l.approximation(), ProcessTimeout: l.cfg.ProcessTimeout,
		}
	}
	return b.problem
}

func (b *bench) K(ctx context.Context, beside int64) (*stage.Gram, error) {
	k, err := b.matrix(ctx, beside, nil, false)
	if err != nil {
		return nil, err
	}
	return &stage.Gram{Matrix: k.a, Seconds: k.seconds, Error: b.kError(k.a)}, nil
}

func (b *bench) Dense(ctx context.Context, bytes int64) (*mat.Dense, float64, error) {
	n := b.train.Len()
	most, err := comm.Least(ctx, b.comm, b.cfg.Memory)
	if err != nil {
		return nil, 0, err
	}
	need := bytes*int64(n)*int64(n) + kernel.AsPrecomputed(b.cfg.Kernel).Bytes()
	if bytes > 0 && most > 0 && need > most {
		return nil, 0, &stage.TooLarge{Need: need, Limit: most}
	}
	a, err := gram.NewExact(b.cfg.Kernel, b.train.X, b.cfg.Lambda, b.system().RecomputedErrorBound(), b.comm)
	if err != nil {
		return nil, 0, err
	}
	b.Tell(ctx, Event{Stage: stage.Kernel, Remaining: -1})
	k := mat.NewDense(n, n, nil)
	return k, b.kError(a), a.DenseTo(ctx, k)
}

func (b *bench) Z(ctx context.Context, a stage.Approximation) (*stage.Drawn, error) {
	if n := b.train.Len(); a.S < 1 || a.S > n {
		return nil, fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", a.S, n)
	}
	f, err := b.factor(ctx, b, &a)
	if err != nil {
		return nil, err
	}
	z := *f.a
	z.Seconds = f.seconds
	return &z, nil
}

// Cached implements stage.Bench.
func (b *bench) Cached(key any, made func() (pcg.Preconditioner, error)) (pcg.Preconditioner, error) {
	b.makingM.Lock()
	defer b.makingM.Unlock()
	m := &b.Lab.m
	_, fromK := key.(stage.FromK)
	h, err := m.keep(&b.mu, []any{key, b.cfg.Seed}, made)
	if err == nil {
		b.mu.Lock()
		m.fromK = fromK
		b.mu.Unlock()
	}
	return h.a, err
}

// keepPlan keeps a plan for Solve.
func (l *Lab) keepPlan(p *plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.planned = p
}

// Z returns Z, n×s, of the configured preconditioner ZZᵀ+λ_pI: for Features its rows are φ(x_i)ᵀ, so that E[ZZᵀ] = K.
// On ranks it has the rows of this one. It is held for the stages to come (Free), and must not be changed.
func (l *Lab) Z(ctx context.Context) (*points.Dense32, error) {
	of := l.approximation()
	if of == nil {
		return nil, fmt.Errorf("krrlab: the preconditioner %v has no Z", l.cfg.Precond)
	}
	f, err := l.factor(ctx, &bench{Lab: l}, of)
	if err != nil {
		return nil, err
	}
	return f.a.Z, nil
}

// M returns the configured preconditioner, nil for M = I. Of an approximation ZZᵀ+λ_pI it is a *precond.Woodbury, held
// for the stages to come (Free).
func (l *Lab) M(ctx context.Context) (pcg.Preconditioner, error) {
	m, err := l.cfg.Precond.Make(ctx, &bench{Lab: l})
	if n := l.train.Len(); err == nil && m != nil && m.Dim() != n {
		err = fmt.Errorf("krrlab: the preconditioner %v is of order %d, for n = %d points", l.cfg.Precond, m.Dim(), n)
	}
	return m, comm.Agree(ctx, l.comm, err)
}

// Entry implements stage.Bench: rank and λ_p that a text leaves out are those of the configuration.
func (b *bench) Entry(e stage.Entry) (stage.Entry, error) {
	if e.Value != nil {
		return e, nil
	}
	_, text := e.Split()
	p, err := stage.ParsePreconditioner(text)
	if err != nil {
		return e, fmt.Errorf("krrlab: the preconditioner %q: %w", e.Text, err)
	}
	e.Value = p
	low, ok := p.(stage.LowRank)
	if r := b.approximation(); ok && r != nil {
		d := b.Problem().Defaults()
		d.S, d.LambdaP = r.S, r.LambdaP
		if settled, err := low.Settled(d); err == nil { // else Make says what is wrong
			e.Value = settled
		}
	}
	return e, nil
}

// Make implements stage.Bench.
func (b *bench) Make(ctx context.Context, e stage.Entry, draw int) (*stage.Made, error) {
	l := b.drawn(draw)
	low, ok := e.Value.(stage.LowRank)
	if ok {
		return l.makeLowRank(ctx, low)
	}
	start := time.Now()
	m, err := e.Value.Make(ctx, &bench{Lab: l})
	made := &stage.Made{M: m, Seconds: time.Since(start).Seconds()}
	if h := l.heldM(e.Value); h.key != nil {
		made.Seconds = h.seconds
	}
	if m, ok := m.(interface{ Rank() int }); ok {
		made.S = m.Rank()
	}
	if m, ok := m.(interface{ What() string }); ok {
		made.Text = m.What()
	}
	if m, ok := m.(interface{ Flops() (build, apply float64) }); ok {
		made.BuildFlops, made.ApplyFlops = m.Flops()
	}
	if m, ok := m.(interface{ Bytes() int64 }); ok {
		made.Bytes = m.Bytes()
	}
	return made, err
}

// makeLowRank makes M = ZZᵀ+λ_pI for the caller alone, in a form that can draw N(0, M), with what is certain of it.
func (l *Lab) makeLowRank(ctx context.Context, p stage.LowRank) (*stage.Made, error) {
	settled, err := p.Settled((&bench{Lab: l}).Problem().Defaults())
	if err != nil {
		return nil, err
	}
	r := settled.(stage.LowRank).Approximation(l.cfg.Kernel)
	f, err := l.factor(ctx, &bench{Lab: l}, r)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	lambdaP, form := r.LambdaP+f.a.ExtraLambdaP, cmp.Or(r.Form, precond.FormLInv)
	w, err := precond.New(ctx, f.a.Z, lambdaP, &precond.Options{Form: form, Comm: l.comm})
	if err != nil {
		return nil, err
	}
	n, d, s := float64(l.train.Len()), float64(l.train.Dim()), float64(r.S)
	made := &stage.Made{M: w, BuildFlops: n*s*s + 2*s*s*s/3, ApplyFlops: 4*n*s + 2*s*s, S: r.S, LambdaP: lambdaP,
		Bytes: w.Bytes(), Text: f.a.Text, Seconds: f.seconds + time.Since(start).Seconds()}
	low := f.a.Factor
	if low == nil {
		made.BuildFlops += 2 * n * s * d
		return made, nil
	}
	made.BuildFlops += n * s * (2*d + s) // its columns of K, and the factor
	made.CondBound = low.CondBound(l.cfg.Lambda, lambdaP)
	if l.k.a != nil {
		made.LambdaMin = bound.LambdaMin(low, l.cfg.Lambda, lambdaP, 2*l.kError(l.k.a))
	}
	return made, nil
}

// drawn returns a lab of the same problem and the same K, but for the seed: the configured one and draw more.
func (l *Lab) drawn(draw int) *Lab {
	if draw == 0 {
		return l
	}
	other := *l
	other.cfg.Seed += uint64(draw)
	p := l.problem
	other.problem = &problem{given: p.given, train: p.train, coding: p.coding, y: p.y, comm: p.comm,
		busy: p.busy, k: p.k, under: p.under, note: p.note}
	return &other
}
