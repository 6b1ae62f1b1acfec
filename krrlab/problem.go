package krrlab

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
)

// begin waits for other stages of the problem, as long as ctx lets it, and returns what ends this one.
func (p *problem) begin(ctx context.Context) (end func(), err error) {
	select {
	case p.busy <- struct{}{}:
		return func() { <-p.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Free gives back the memory of K, Z and M, which stages of labs of this problem (With) share. Stages
// form them again.
func (l *Lab) Free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.k.free()
	l.z.free()
	l.m.free()
	l.v.free()
}

// K returns K+λI, formed by the first stage that needs it and held for those that follow (Free), with the error that
// solve.Policy prefers.
func (l *Lab) K(ctx context.Context) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, 0, nil, false)
	return k.a, err
}

// matrix returns K+λI where a stage holds held bytes beside it and the vectors: the one there is if it
// is of the storage and the accuracy asked for and fits, or is what is resumed (as, nil for none). That of a
// solve, which is refined, may be in 16 bits unasked. It fails where no storage fits into the configured memory.
func (l *Lab) matrix(ctx context.Context, beside int64, as *gram.Choice, refined bool) (f held[*gram.Matrix],
	err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	beside += l.vectors()
	k, t, key := &l.k, l.system(), []any{l.cfg.Storage, l.cfg.Tiles}
	asked := t.Accuracy()
	suits := k.key != nil && (refined || l.cfg.Storage != gram.Auto || k.a.Storage() != gram.Fixed16) &&
		(k.accuracy <= asked || k.a.Choice().Error <= asked) && (as == nil || as.Same(k.a.Choice()))
	if suits {
		const full, fits = 1, 2
		state := int64(fits)
		if l.cfg.Memory > 0 && beside+k.a.Bytes() > l.cfg.Memory {
			state = full
		}
		if state, err = comm.Least(ctx, l.comm, state); err != nil { // each rank has its own limit
			return f, err
		}
		suits = state == fits
	}
	if !suits {
		k.free()
	}
	return k.take(key, func() (*gram.Matrix, error) {
		l.v.free() // of the one before
		k.accuracy = asked
		return gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.storage(ctx, t, beside, as, refined))
	})
}

// storage says how K is to be stored, for matrix.
func (l *Lab) storage(ctx context.Context, t *solve.System, beside int64, as *gram.Choice,
	refined bool) *gram.Options {
	o := &gram.Options{Storage: l.cfg.Storage, Tiles: l.cfg.Tiles, As: as, Seed: l.cfg.Seed, Drop: t.Preferred() / 4,
		Refined: refined, Progress: l.watch(ctx, stage.Kernel), Comm: l.comm}
	if t.Checked() {
		o.Prefer = t.Preferred()
	}
	if l.cfg.Memory > 0 {
		o.Memory = max(1, l.cfg.Memory-beside)
	}
	if as == nil && l.comm.Size() == 1 {
		o.Chosen = l.planned.Chosen(o.Storage, t.Accuracy())
	}
	return o
}

// factor returns Z of an approximation.
func (l *Lab) factor(ctx context.Context, of *stage.Approximation) (held[*stage.Drawn], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lockedFactor(ctx, of)
}

func (l *Lab) lockedFactor(ctx context.Context, of *stage.Approximation) (held[*stage.Drawn], error) {
	drawn := *of
	drawn.LambdaP, drawn.Form = 0, precond.AutoForm // on which Z does not depend
	return l.z.take([]any{drawn, l.cfg.Seed}, func() (*stage.Drawn, error) {
		l.m.free()
		l.v.free()
		z, err := l.draw(ctx, of)
		return z, comm.Agree(ctx, l.comm, err)
	})
}

// inverse returns (ZZᵀ+λ_pI)⁻¹ of an approximation.
func (l *Lab) inverse(ctx context.Context, of *stage.Approximation) (m held[*precond.Woodbury], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	z, err := l.lockedFactor(ctx, of)
	if err != nil {
		return m, err
	}
	lambdaP := of.LambdaP + z.a.More
	return l.m.take([]any{lambdaP, of.Form}, func() (*precond.Woodbury, error) {
		l.v.free()
		l.Tell(ctx, Event{Stage: stage.Factor})
		return precond.New(ctx, z.a.Z, lambdaP,
			&precond.Options{Form: of.Form, RHS: l.columns(), Fast: true, Comm: l.comm})
	})
}

// woodbury makes M of an approximation.
func (l *Lab) woodbury(ctx context.Context, p approximation) (*precond.Woodbury, error) {
	q, err := p.settled(l.cfg.Kernel, l.train.Len(), l.cfg.Lambda)
	if err != nil {
		return nil, err
	}
	m, err := l.inverse(ctx, q.(approximation).parts())
	return m.a, err
}

// Z returns Z, n×s, of the configured preconditioner ZZᵀ+λ_pI: for Features its rows are φ(x_i)ᵀ, so that E[ZZᵀ] = K.
// On ranks it has the rows of this one. It is held for the stages to come (Free), and must not be changed.
func (l *Lab) Z(ctx context.Context) (*points.Dense32, error) {
	of := l.approximation()
	if of == nil {
		return nil, fmt.Errorf("krrlab: the preconditioner %v has no Z", l.cfg.Precond)
	}
	f, err := l.factor(ctx, of)
	if err != nil {
		return nil, err
	}
	return f.a.Z, nil
}

// M returns the configured preconditioner, nil for M = I. Of an approximation ZZᵀ+λ_pI it is a *precond.Woodbury, held
// for the stages to come (Free).
func (l *Lab) M(ctx context.Context) (pcg.Preconditioner, error) {
	m, err := l.cfg.Precond.Make(ctx, l)
	if n := l.train.Len(); err == nil && m != nil && m.Dim() != n {
		err = fmt.Errorf("krrlab: the preconditioner %v is of order %d, for n = %d points", l.cfg.Precond, m.Dim(), n)
	}
	return m, comm.Agree(ctx, l.comm, err)
}

// vectors returns the bytes of the points, the targets, PCG's n×t blocks and the rows that Stop looks at.
func (l *Lab) vectors() int64 {
	n, _, t := l.Dims()
	held := l.pointBytes() + 8*8*int64(n)*int64(t)
	if l.cfg.Stop.Rule == bound.Labels {
		held += bound.SampleBytes(n)
	}
	return held
}
