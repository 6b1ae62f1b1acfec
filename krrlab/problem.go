package krrlab

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// formed is a matrix that was formed, in so many seconds, now or by an earlier stage.
type formed[T any] struct {
	it      T
	seconds float64
	shared  bool
}

// drawKey says which Z was drawn.
type drawKey struct {
	recipe any // recipe.drawn
	s      int
	seed   uint64
	rep    int
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

// run runs a stage here or by the Backend.
func run[T any](ctx context.Context, l *Lab, name stage.Name, options any, work func(context.Context) (*T, error)) (*T, error) {
	ctx, ended := stage.Watch(ctx)
	v, err := func() (*T, error) {
		if l.cfg.Backend != nil {
			return send[T](ctx, l, name, options)
		}
		end, err := l.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		if name != stage.Solve && name != stage.Plan && name != stage.Race { // which claim nothing of it
			if err := l.semidefinite(ctx); err != nil {
				return nil, err
			}
		}
		return work(ctx)
	}()
	return v, ended(v != nil, err)
}

// send runs a stage by the Backend.
func send[T any](ctx context.Context, l *Lab, name stage.Name, options any) (*T, error) {
	v := new(T)
	some, err := l.cfg.Backend.Run(ctx, l, name, options, v)
	if !some {
		return nil, err
	}
	if sol, ok := any(v).(interface {
		adopt(context.Context, *Lab) error
	}); ok {
		if e := sol.adopt(ctx, l); e != nil {
			return nil, e
		}
	}
	return v, err
}

// Free gives back the memory of K, Z and M, which stages of labs of this problem (With) share. Stages
// form them anew.
func (l *Lab) Free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.k.a = nil
	l.freeFactor()
}

// freeFactor frees Z, what was made of it, and where a race ended.
func (p *problem) freeFactor() {
	p.z.factor, p.g.Gram, p.m.Woodbury, p.v.Inverse, p.won = nil, nil, nil, nil, won{}
}

// Held returns the bytes of K, Z and M that are held for the stages to come.
func (l *Lab) Held() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.heldFactor()
	if l.k.a != nil {
		held += l.k.a.Bytes()
	}
	return held
}

// heldFactor returns the bytes of Z, ZᵀZ and M. M holds the Z it was made of.
func (p *problem) heldFactor() (held int64) {
	switch {
	case p.m.Woodbury != nil:
		held = p.m.Bytes()
	case p.z.factor != nil:
		held = 4 * int64(p.z.z.N) * int64(p.z.z.D)
	}
	if p.v.Inverse != nil {
		held += p.v.Bytes()
	}
	if p.g.Gram != nil {
		s := int64(p.z.z.D)
		held += 8 * s * s
	}
	return held
}

// K returns K+λI, formed by the first stage that needs it and held for those that follow (Free). With E
// the error of K as stored, the answer C of the stored problem misses that of the true one by the
// residual EC, ‖Ec_j‖₂ ≤ ‖E‖₂‖y_j‖₂/λ, and products in float32 miss by as much again. Where the true
// residual decides, ‖E‖₂ ≤ 20τλ is preferred: c_j lies mostly outside the leading directions, in which
// E is largest. (ADULT, λ = 0.01, τ = 1e-3, ‖E‖₂ ≈ 2.3e-4 in float32 without a gram.Choice.Shift: the recurrence
// ended at 1.9e-4 with a true residual of 1.8e-3 in float32 and 1.9e-4 in float64.) What still misses τ is refined.
func (l *Lab) K(ctx context.Context) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, 0, nil)
	return k.it, err
}

// matrix returns K+λI where a stage holds so many bytes beside it and the vectors: the one there is if it
// is of the storage and the accuracy asked for and fits, or is what is resumed (as, nil for none). It fails
// where no storage fits into the configured memory.
func (l *Lab) matrix(ctx context.Context, held int64, as *gram.Choice) (f formed[*gram.Matrix], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held += l.vectors()
	k := &l.k
	asked := l.accuracy()
	suits := k.a != nil && k.storage == l.cfg.Storage && k.tiles == l.cfg.Tiles && (k.accuracy <= asked || k.a.Choice().Error <= asked) && (as == nil || as.Same(k.a.Choice()))
	if suits {
		const full, fits = 1, 2
		state := int64(fits)
		if l.cfg.Memory > 0 && held+k.a.Bytes() > l.cfg.Memory {
			state = full
		}
		if state, err = comm.Least(ctx, l.comm, state); err != nil { // ranks have limits of their own
			return f, err
		}
		suits = state == fits
	}
	if suits {
		return formed[*gram.Matrix]{k.a, k.seconds, true}, nil
	}
	k.a, l.v.Inverse, l.won = nil, nil, won{} // of the one before
	o := &gram.Options{Storage: l.cfg.Storage, Tiles: l.cfg.Tiles, As: as, Seed: l.cfg.Seed, Drop: l.preferred() / 4, Progress: l.watch(ctx, stage.Kernel), Comm: l.comm}
	if l.checked() {
		o.Prefer = l.preferred()
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

// accuracy returns the bound of ‖E‖₂ that K asks for, or prefers.
func (l *Lab) accuracy() float64 {
	if l.checked() {
		return min(l.preferred(), l.cfg.Lambda/10)
	}
	return l.cfg.Lambda / 10
}

// checked reports whether residuals are taken with all of K in float64, where that is not too much.
func (l *Lab) checked() bool {
	return l.cfg.Exact == ExactResidual || l.cfg.Exact == AutoResidual && l.work() <= l.refineUpTo
}

// preferred returns 20τλ: see K; next to nothing for a kernel that is to be evaluated once, for K and for residuals.
func (l *Lab) preferred() float64 {
	if kernel.Costly(l.cfg.Kernel) {
		return 1e-300
	}
	return 20 * l.cfg.Tol * l.cfg.Lambda
}

// exactness returns τλ/20, what ‖E‖₂ of K recomputed may be at most: as ‖c_j‖₂ ≤ ‖y_j‖₂/λ up to the
// residual, it is then τ/20 of the true residual.
func (l *Lab) exactness() float64 { return l.cfg.Tol * l.cfg.Lambda / 20 }

// factor returns Z number rep of the recipe.
func (l *Lab) factor(ctx context.Context, recipe *recipe, rep int) (formed[*factor], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lockedFactor(ctx, recipe, rep)
}

func (l *Lab) lockedFactor(ctx context.Context, recipe *recipe, rep int) (formed[*factor], error) {
	key := drawKey{recipe.drawn, recipe.s, l.cfg.Seed, rep}
	if l.z.factor != nil && reflect.DeepEqual(l.z.key, key) {
		return formed[*factor]{l.z.factor, l.z.seconds, true}, nil
	}
	l.freeFactor()
	start := time.Now()
	f, err := recipe.draw(ctx, l, recipe.s, rep)
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return formed[*factor]{}, err
	}
	l.z.factor, l.z.key, l.z.seconds = f, key, time.Since(start).Seconds()
	return formed[*factor]{f, l.z.seconds, false}, nil
}

// inverse returns (ZZᵀ+λ_pI)⁻¹ of Z number rep of the recipe; what names the part of it that was there.
func (l *Lab) inverse(ctx context.Context, recipe *recipe, rep int) (m formed[*precond.Woodbury], what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.lockedFactor(ctx, recipe, rep); err != nil {
		return m, "", err
	}
	s, lambdaP, form := recipe.s, recipe.lambdaP, recipe.form
	if l.m.Woodbury != nil && l.m.lambdaP == lambdaP && l.m.form == form {
		return formed[*precond.Woodbury]{l.m.Woodbury, l.g.seconds + l.m.seconds, true}, "factor", nil
	}
	l.m.Woodbury, l.v.Inverse, l.won = nil, nil, won{}
	l.Tell(ctx, Event{Stage: stage.Factor})
	o := &precond.Options{Form: form, RHS: l.columns(), StatDim: true, Fast: true, Comm: l.comm}
	start := time.Now()
	z := l.z.z
	room := l.cfg.Memory == 0 || l.cfg.Memory >= l.vectors()+4*int64(z.N)*int64(s)+24*int64(s)*int64(s)
	if l.labs < 2 || !room || l.comm.Size() > 1 {
		l.g.Gram, l.g.seconds = nil, 0
		l.m.Woodbury, err = precond.New(ctx, z, lambdaP, o)
	} else {
		if l.g.Gram != nil && l.g.Error() <= lambdaP/10 {
			what = "ZᵀZ"
		} else if l.g.Gram, err = precond.NewGram(ctx, z, lambdaP); err != nil {
			return m, "", err
		} else {
			l.g.seconds = time.Since(start).Seconds()
			start = time.Now()
		}
		l.m.Woodbury, err = precond.NewFromGram(ctx, z, l.g.Gram, lambdaP, o)
	}
	if err != nil {
		return m, "", err
	}
	l.m.lambdaP, l.m.form, l.m.seconds = lambdaP, form, time.Since(start).Seconds()
	return formed[*precond.Woodbury]{l.m.Woodbury, l.g.seconds + l.m.seconds, what != ""}, what, nil
}

// woodbury makes M number rep of an approximation.
func (l *Lab) woodbury(ctx context.Context, p approximation, rep int) (*precond.Woodbury, error) {
	p, err := p.settled(l.cfg.Kernel, l.train.Len(), l.cfg.Lambda)
	if err != nil {
		return nil, err
	}
	m, _, err := l.inverse(ctx, p.recipe(), rep)
	return m.it, err
}

// Z returns Z, n×s, of the configured preconditioner ZZᵀ+λ_pI, number rep (0 … Repeat−1): for
// Features its rows are φ(x_i)ᵀ, so that E[ZZᵀ] = K. On ranks it has the rows of this one. It is held for
// the stages to come (Free), and must not be changed.
func (l *Lab) Z(ctx context.Context, rep int) (*points.Dense32, error) {
	recipe := l.approximation()
	if recipe == nil {
		return nil, fmt.Errorf("krrlab: the preconditioner %v has no Z", l.cfg.Precond)
	}
	f, err := l.factor(ctx, recipe, rep)
	if err != nil {
		return nil, err
	}
	return f.it.z, nil
}

// M returns the configured preconditioner number rep, nil for M = I. Of an approximation ZZᵀ+λ_pI it is
// a *precond.Woodbury, held for the stages to come (Free).
func (l *Lab) M(ctx context.Context, rep int) (pcg.Preconditioner, error) {
	m, err := l.cfg.Precond.Make(ctx, l, rep)
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

// work returns n²d, what it takes to form all of K, where calls of Eval count as 10⁴.
func (l *Lab) work() float64 {
	n, d, _ := l.Dims()
	if kernel.Costly(l.cfg.Kernel) {
		d += 1e4
	}
	return float64(n) * float64(n) * float64(d)
}

// exact reports whether true residuals are taken with K in float64 from the start: recomputed, or that of a costly kernel, which is kept for them.
func (l *Lab) exact() bool {
	upTo := l.exactUpTo
	if kernel.Costly(l.cfg.Kernel) {
		upTo = l.refineUpTo
	}
	return l.cfg.Exact == ExactResidual || l.cfg.Exact == AutoResidual && l.work()*l.formed() <= upTo
}

// refines reports whether they are where the rows checked miss the tolerance.
func (l *Lab) refines() bool {
	return l.cfg.Exact == AutoResidual && l.work()*l.formed() <= l.refineUpTo
}

// formed returns the share of K that is formed in float64, as far as is known.
func (l *Lab) formed() float64 {
	if l.k.a == nil {
		return 1
	}
	c := l.k.a.Choice()
	if c.Sparse != nil && c.Sparse.Told { // see gram.Matrix.Exact
		return 1
	}
	return c.Formed()
}

// dense returns K in float64, and what it is off at most.
func (l *Lab) dense(ctx context.Context) (k *mat.Dense, off float64, err error) {
	a, err := gram.NewExact(l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.exactness(), l.comm)
	if err != nil {
		return nil, 0, err
	}
	l.Tell(ctx, Event{Stage: stage.Kernel, Remaining: -1})
	n := l.train.Len()
	k = mat.NewDense(n, n, nil)
	return k, l.kError(a), a.DenseTo(ctx, k)
}

// tooMuch says what work on K in float64 needs, so many bytes for each entry, beside K where it is given, if a rank does not allow
// it; "" where all do.
func (l *Lab) tooMuch(ctx context.Context, bytes int64) (string, error) {
	n := int64(l.train.Len())
	most, err := comm.Least(ctx, l.comm, l.cfg.Memory)
	if need := bytes*n*n + kernel.Given(l.cfg.Kernel).Bytes(); most > 0 && need > most {
		return fmt.Sprintf("%s, the limit is %s", accel.Bytes(need), accel.Bytes(most)), nil
	}
	return "", err
}
