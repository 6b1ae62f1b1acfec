package krrlab

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// formed is a matrix that was formed, in seconds, now or by an earlier stage.
type formed[T any] struct {
	it      T
	seconds float64
	shared  bool
}

// drawKey says which Z was drawn.
type drawKey struct {
	recipe   any // recipe.drawn
	s        int
	spectral bool
	seed     uint64
}

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
	l.k.a = nil
	l.freeFactor()
}

// freeFactor frees Z and what was made of it.
func (p *problem) freeFactor() {
	p.z.factor, p.m.Woodbury, p.v.Inverse = nil, nil, nil
}

// K returns K+λI, formed by the first stage that needs it and held for those that follow (Free), with the error that
// solve.Policy prefers.
func (l *Lab) K(ctx context.Context) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, 0, nil, false)
	return k.it, err
}

// matrix returns K+λI where a stage holds held bytes beside it and the vectors: the one there is if it
// is of the storage and the accuracy asked for and fits, or is what is resumed (as, nil for none). That of a
// solve, which is refined, may be in 16 bits unasked. It fails where no storage fits into the configured memory.
func (l *Lab) matrix(ctx context.Context, held int64, as *gram.Choice, refined bool) (f formed[*gram.Matrix],
	err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held += l.vectors()
	k := &l.k
	t := l.system()
	asked := t.Accuracy()
	suits := k.a != nil && k.storage == l.cfg.Storage && k.tiles == l.cfg.Tiles &&
		(refined || k.storage != gram.Auto || k.a.Storage() != gram.Fixed16) &&
		(k.accuracy <= asked || k.a.Choice().Error <= asked) && (as == nil || as.Same(k.a.Choice()))
	if suits {
		const full, fits = 1, 2
		state := int64(fits)
		if l.cfg.Memory > 0 && held+k.a.Bytes() > l.cfg.Memory {
			state = full
		}
		if state, err = comm.Least(ctx, l.comm, state); err != nil { // each rank has its own limit
			return f, err
		}
		suits = state == fits
	}
	if suits {
		return formed[*gram.Matrix]{k.a, k.seconds, true}, nil
	}
	k.a, l.v.Inverse = nil, nil // of the one before
	o := &gram.Options{Storage: l.cfg.Storage, Tiles: l.cfg.Tiles, As: as, Seed: l.cfg.Seed, Drop: t.Preferred() / 4,
		Refined: refined, Progress: l.watch(ctx, stage.Kernel), Comm: l.comm}
	if t.Checked() {
		o.Prefer = t.Preferred()
	}
	if l.cfg.Memory > 0 {
		o.Memory = max(1, l.cfg.Memory-held)
	}
	if as == nil && l.comm.Size() == 1 {
		o.Chosen = l.planned.Chosen(o.Storage, asked)
	}
	start := time.Now()
	a, err := gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, o)
	if err != nil {
		return f, err
	}
	k.a, k.storage, k.tiles, k.accuracy, k.seconds = a, l.cfg.Storage, l.cfg.Tiles, asked, time.Since(start).Seconds()
	return formed[*gram.Matrix]{a, k.seconds, false}, nil
}

// factor returns Z of the recipe.
func (l *Lab) factor(ctx context.Context, recipe *recipe) (formed[*factor], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lockedFactor(ctx, recipe)
}

func (l *Lab) lockedFactor(ctx context.Context, recipe *recipe) (formed[*factor], error) {
	key := drawKey{recipe.drawn, recipe.s, recipe.spectral, l.cfg.Seed}
	if l.z.factor != nil && reflect.DeepEqual(l.z.key, key) {
		return formed[*factor]{l.z.factor, l.z.seconds, true}, nil
	}
	l.freeFactor()
	start := time.Now()
	f, err := recipe.draw(ctx, l, recipe)
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return formed[*factor]{}, err
	}
	l.z.factor, l.z.key, l.z.seconds = f, key, time.Since(start).Seconds()
	return formed[*factor]{f, l.z.seconds, false}, nil
}

// inverse returns (ZZᵀ+λ_pI)⁻¹ of Z of the recipe.
func (l *Lab) inverse(ctx context.Context, recipe *recipe) (m formed[*precond.Woodbury], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.lockedFactor(ctx, recipe); err != nil {
		return m, err
	}
	held, lambdaP, form := &l.m, recipe.lambdaP+l.z.more, recipe.form
	if held.Woodbury != nil && held.lambdaP == lambdaP && held.form == form {
		return formed[*precond.Woodbury]{held.Woodbury, held.seconds, true}, nil
	}
	held.Woodbury, l.v.Inverse = nil, nil
	l.Tell(ctx, Event{Stage: stage.Factor})
	start := time.Now()
	held.Woodbury, err = precond.New(ctx, l.z.z, lambdaP,
		&precond.Options{Form: form, RHS: l.columns(), Fast: true, Comm: l.comm})
	if err != nil {
		return m, err
	}
	held.lambdaP, held.form, held.seconds = lambdaP, form, time.Since(start).Seconds()
	return formed[*precond.Woodbury]{held.Woodbury, held.seconds, false}, nil
}

// woodbury makes M of an approximation.
func (l *Lab) woodbury(ctx context.Context, p approximation) (*precond.Woodbury, error) {
	p, err := p.settled(l.cfg.Kernel, l.train.Len(), l.cfg.Lambda)
	if err != nil {
		return nil, err
	}
	m, err := l.inverse(ctx, p.recipe())
	return m.it, err
}

// Z returns Z, n×s, of the configured preconditioner ZZᵀ+λ_pI: for Features its rows are φ(x_i)ᵀ, so that E[ZZᵀ] = K.
// On ranks it has the rows of this one. It is held for the stages to come (Free), and must not be changed.
func (l *Lab) Z(ctx context.Context) (*points.Dense32, error) {
	recipe := l.approximation()
	if recipe == nil {
		return nil, fmt.Errorf("krrlab: the preconditioner %v has no Z", l.cfg.Precond)
	}
	f, err := l.factor(ctx, recipe)
	if err != nil {
		return nil, err
	}
	return f.it.z, nil
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
