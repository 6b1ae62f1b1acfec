package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// bench implements stage.Bench for a lab, and the Bench interfaces of packages plan and tune.
type bench struct {
	*Lab
	problem *stage.Problem
}

var _ stage.Bench = (*bench)(nil)

func (b *bench) Problem() *stage.Problem {
	if b.problem == nil {
		l := b.Lab
		b.problem = &stage.Problem{
			Header: l.header(), Kernel: l.cfg.Kernel, X: l.train.X, Y: l.y, Coding: l.coding, Train: l.data,
			Comm: l.comm, Memory: l.memory(), MaxIter: l.cfg.MaxIter,
			Precond: stage.NameOf(l.cfg.Precond),
			Entry:   stage.Entry{Value: l.cfg.Precond}, Planned: l.Planning(), S: DefaultFeatures(l.train.Len()),
			Z: l.approximation(), ProcessTimeout: l.cfg.ProcessTimeout,
		}
	}
	return b.problem
}

func (b *bench) K(ctx context.Context, extraBytes int64) (*stage.Gram, error) {
	k, err := b.matrix(ctx, kernelRequest{extraBytes: extraBytes})
	if err != nil {
		return nil, err
	}
	return &stage.Gram{Matrix: k.value, Seconds: k.seconds, Error: b.kernelErrorBound(k.value)}, nil
}

func (b *bench) Dense(ctx context.Context, bytesPerEntry int64) (*mat.Dense, float64, error) {
	n := b.train.Len()
	if bytesPerEntry > 0 {
		memory, err := comm.Smallest(ctx, b.comm, b.memory())
		if err == nil {
			err = memory.Check(bytesPerEntry*int64(n)*int64(n), fmt.Sprintf("dense work on K of n = %d points", n),
				"take another method, or allow more by --memory")
		}
		if err != nil {
			return nil, 0, err
		}
	}
	a, err := gram.NewExact(b.cfg.Kernel, b.train.X, b.cfg.Lambda, b.system().RecomputedErrorBound(), b.comm)
	if err != nil {
		return nil, 0, err
	}
	b.Tell(ctx, Event{Stage: stage.Kernel, Remaining: -1})
	k := mat.NewDense(n, n, nil)
	return k, b.kernelErrorBound(a), a.DenseTo(ctx, k)
}

func (b *bench) Z(ctx context.Context, a stage.Approximation) (*stage.Drawn, error) {
	if n := b.train.Len(); a.S < 1 || a.S > n {
		return nil, fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", a.S, n)
	}
	f, err := b.lowRankFactor(ctx, b, &a)
	if err != nil {
		return nil, err
	}
	z := *f.value
	z.Seconds = f.seconds
	return &z, nil
}

// Cached implements stage.Bench.
func (b *bench) Cached(key any, build func() (pcg.Preconditioner, error)) (pcg.Preconditioner, error) {
	b.makingM.Lock()
	defer b.makingM.Unlock()
	m := &b.Lab.m
	_, fromK := key.(stage.FromK)
	h, err := m.getGuarded(&b.mu, []any{key, b.cfg.Seed}, build)
	if err == nil {
		b.mu.Lock()
		m.dependsOnK = fromK
		b.mu.Unlock()
	}
	return h.value, err
}

// savePlan stores a plan for the next Solve.
func (l *Lab) savePlan(p *plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.savedPlan = p
}

// Z returns Z, n×s, of the configured preconditioner ZZᵀ+λ_pI. For Features its rows are φ(x_i)ᵀ, so that E[ZZᵀ] = K.
// On ranks, the result has the rows of this rank. Later stages use the same Z (see Free), so it must not be changed. It
// returns an error if the preconditioner has no Z.
func (l *Lab) Z(ctx context.Context) (*points.Dense32, error) {
	approx := l.approximation()
	if approx == nil {
		return nil, fmt.Errorf("krrlab: the preconditioner %v has no Z", l.cfg.Precond)
	}
	f, err := l.lowRankFactor(ctx, &bench{Lab: l}, approx)
	if err != nil {
		return nil, err
	}
	return f.value.Z, nil
}

// M returns the configured preconditioner, or nil for M = I. For an approximation ZZᵀ+λ_pI it is a *precond.Woodbury,
// which later stages use again (see Free).
func (l *Lab) M(ctx context.Context) (pcg.Preconditioner, error) {
	m, err := l.cfg.Precond.Make(ctx, &bench{Lab: l})
	if n := l.train.Len(); err == nil && m != nil && m.Dim() != n {
		err = fmt.Errorf("krrlab: the preconditioner %v is of order %d, for n = %d points", l.cfg.Precond, m.Dim(), n)
	}
	return m, comm.Agree(ctx, l.comm, err)
}

// Entry implements stage.Bench. A rank and a λ_p that the text does not set are those of the configuration.
func (b *bench) Entry(e stage.Entry) (stage.Entry, error) {
	if e.Value != nil {
		return e, stage.CheckOptions(e.Value)
	}
	_, text := e.Split()
	p, err := stage.ParsePreconditioner(text)
	if err != nil {
		return e, fmt.Errorf("krrlab: the preconditioner %q: %w", e.Text, err)
	}
	e.Value = p
	lowRank, ok := p.(stage.LowRank)
	if approx := b.approximation(); ok && approx != nil {
		d := b.Problem().Defaults()
		d.S, d.LambdaP = approx.S, approx.LambdaP
		if settled, err := lowRank.Settled(d); err == nil { // otherwise Make returns the error
			e.Value = settled
		}
	}
	return e, nil
}

// Make implements stage.Bench.
func (b *bench) Make(ctx context.Context, e stage.Entry, draw int) (*stage.Made, error) {
	l := b.withDraw(draw)
	lowRank, ok := e.Value.(stage.LowRank)
	if ok {
		return l.makeLowRank(ctx, lowRank)
	}
	start := time.Now()
	m, err := e.Value.Make(ctx, &bench{Lab: l})
	result := &stage.Made{M: m, Seconds: time.Since(start).Seconds()}
	if h := l.cachedM(e.Value); h.key != nil {
		result.Seconds = h.seconds
	}
	if m, ok := m.(interface{ Rank() int }); ok {
		result.S = m.Rank()
	}
	if m, ok := m.(interface{ Description() string }); ok {
		result.Text = m.Description()
	}
	if m, ok := m.(interface{ Flops() (build, apply float64) }); ok {
		result.BuildFlops, result.ApplyFlops = m.Flops()
	}
	if m, ok := m.(interface{ Bytes() int64 }); ok {
		result.Bytes = m.Bytes()
	}
	return result, err
}

// makeLowRank builds M = ZZᵀ+λ_pI, which is not shared, in a form that can draw from N(0, M). It sets CondBound and, if
// K was formed, LambdaMin, which are known for landmarks only.
func (l *Lab) makeLowRank(ctx context.Context, p stage.LowRank) (*stage.Made, error) {
	settled, err := p.Settled((&bench{Lab: l}).Problem().Defaults())
	if err != nil {
		return nil, err
	}
	approx := settled.(stage.LowRank).Approximation(l.cfg.Kernel)
	f, err := l.lowRankFactor(ctx, &bench{Lab: l}, approx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	lambdaP, form := approx.LambdaP+f.value.ExtraLambdaP, cmp.Or(approx.Form, precond.FormLInv)
	w, err := precond.New(ctx, f.value.Z, lambdaP, &precond.Options{Form: form, Comm: l.comm})
	if err != nil {
		return nil, err
	}
	n, d, s := float64(l.train.Len()), float64(l.train.Dim()), float64(f.value.Z.D)
	result := &stage.Made{M: w, BuildFlops: n*s*s + 2*s*s*s/3, ApplyFlops: 4*n*s + 2*s*s, S: f.value.Z.D,
		LambdaP: lambdaP,
		Bytes:   w.Bytes(), Text: f.value.Text, Seconds: f.seconds + time.Since(start).Seconds()}
	if w.Corrects() {
		result.ApplyFlops *= 2
	}
	landmarks := f.value.Factor
	if landmarks == nil {
		result.BuildFlops += 2 * n * s * d
		return result, nil
	}
	result.BuildFlops += n * s * (2*d + s) // computing columns of K and the factor
	result.CondBound = landmarks.CondBound(l.cfg.Lambda, lambdaP)
	if l.k.value != nil {
		result.LambdaMin = bound.LambdaMin(landmarks, l.cfg.Lambda, lambdaP, 2*l.kernelErrorBound(l.k.value))
	}
	return result, nil
}

// withDraw returns a lab of the same problem and the same K whose seed is larger by draw.
func (l *Lab) withDraw(draw int) *Lab {
	if draw == 0 {
		return l
	}
	drawnLab := *l
	drawnLab.cfg.Seed += uint64(draw)
	p := l.problem
	drawnLab.problem = &problem{data: p.data, train: p.train, coding: p.coding, y: p.y, comm: p.comm,
		running: p.running, k: p.k, shift: p.shift, note: p.note}
	return &drawnLab
}
