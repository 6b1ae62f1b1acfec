package krrlab

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// begin waits for other stages of the problem, as long as ctx lets it, and returns what ends this one.
func (p *problem) acquire(ctx context.Context) (end func(), err error) {
	select {
	case p.running <- struct{}{}:
		return func() { <-p.running }, nil
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
}

// K returns K+λI, formed by the first stage that needs it and held for those that follow (Free), with the error that
// solve.Policy prefers.
func (l *Lab) K(ctx context.Context) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, 0, nil, false)
	return k.value, err
}

// matrix returns K+λI where a stage holds held bytes beside it and the vectors: the one there is if it
// is of the storage and the accuracy asked for and fits, or is what is resumed (as, nil for none). That of a
// solve, which is refined, may be in 16 bits unasked. It fails where no storage fits into the configured memory.
func (l *Lab) matrix(ctx context.Context, extraBytes int64, resumed *gram.Choice, refined bool) (f cached[*gram.Matrix],
	err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	extraBytes += l.vectorBytes()
	k, t, key := &l.k, l.system(), []any{l.cfg.Storage, l.cfg.Tiles}
	accuracy := t.StorageErrorBound()
	suits := k.key != nil && (refined || l.cfg.Storage != gram.Auto || k.value.Storage() != gram.Fixed16) &&
		(k.accuracy <= accuracy || k.value.Choice().Error <= accuracy) && (resumed == nil ||
		resumed.Same(k.value.Choice()))
	if suits {
		const full, fits = 1, 2
		state := int64(fits)
		if l.cfg.Memory > 0 && extraBytes+k.value.Bytes() > l.cfg.Memory {
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
	return k.get(key, func() (*gram.Matrix, error) {
		if l.m.dependsOnK {
			l.m.free()
		}
		k.accuracy = accuracy
		return gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.storageOptions(ctx, t, extraBytes, resumed,
			refined))
	})
}

// storage says how K is to be stored, for matrix.
func (l *Lab) storageOptions(ctx context.Context, t *solve.System, extraBytes int64, resumed *gram.Choice,
	refined bool) *gram.Options {
	o := &gram.Options{Storage: l.cfg.Storage, Tiles: l.cfg.Tiles, SameAs: resumed, Seed: l.cfg.Seed,
		MaxDroppedNorm: t.PreferredError() / 4,
		Refined:        refined, Progress: l.watch(ctx, stage.Kernel), Comm: l.comm}
	if t.MayRecompute() {
		o.PreferredAccuracy = t.PreferredError()
	}
	if l.cfg.Memory > 0 {
		o.Memory = max(1, l.cfg.Memory-extraBytes)
	}
	if resumed == nil && l.comm.Size() == 1 {
		o.Chosen = l.savedPlan.StorageChoice(o.Storage, t.StorageErrorBound())
	}
	return o
}

// factor returns Z of an approximation.
func (l *Lab) lowRankFactor(ctx context.Context, b stage.Bench, approx *stage.Approximation) (cached[*stage.Drawn],
	error) {
	l.makingZ.Lock()
	defer l.makingZ.Unlock()
	drawn := *approx
	drawn.LambdaP, drawn.Form = 0, precond.AutoForm // on which Z does not depend
	return l.z.getGuarded(&l.mu, []any{drawn, l.cfg.Seed}, func() (*stage.Drawn, error) {
		l.mu.Lock()
		l.m.free()
		l.mu.Unlock()
		z, err := approx.Draw(ctx, b, approx.S)
		if err == nil {
			z.Text = approx.String()
		}
		if err == nil && approx.Spectral {
			var t []float64
			if t, z.ExtraLambdaP, err = precond.Spectral(ctx, l.comm, z.Z); err == nil {
				err = z.Factor.MulRight(ctx, l.comm, t)
			}
		}
		return z, comm.Agree(ctx, l.comm, err)
	})
}

// vectors returns the bytes of the points, the targets, PCG's n×t blocks and the rows that Stop looks at.
func (l *Lab) vectorBytes() int64 {
	n, _, t := l.Dims()
	bytes := l.pointBytes() + 8*8*int64(n)*int64(t)
	if l.cfg.Stop.Rule == bound.Labels {
		bytes += bound.SampleBytes(n)
	}
	return bytes
}

// heldM returns the M of a key that is held, with the seconds that it took.
func (l *Lab) cachedM(key any) (h cached[pcg.Preconditioner]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reflect.DeepEqual(l.m.key, []any{key, l.cfg.Seed}) {
		h = l.m
	}
	return h
}

// leastKnown returns what the eigenvalues of K+λI are known to be at least, which bounds of errors rest on: λ, or 0
// where K is not known to be positive semi-definite.
func (l *Lab) minEigenvalue() float64 {
	if kernel.Semidefinite(l.cfg.Kernel) {
		return l.cfg.Lambda
	}
	return 0
}

// pointBytes returns the bytes of the points, and of K where it is given.
func (l *Lab) pointBytes() int64 {
	return points.MemoryBytes(l.train.X) + kernel.AsPrecomputed(l.cfg.Kernel).Bytes()
}

// kError bounds the distance of K as stored from a positive semi-definite K, whose intervals stages give.
func (l *Lab) kernelErrorBound(k *gram.Matrix) float64 { return k.Choice().Error + l.shift }

// semidefinite sees to it that K+under·I is positive semi-definite, under at most λ/100, where K is given: by a
// Cholesky factor, of more than 4,000 points, or than the memory allows, by one of as many of its rows, which is no
// proof, and noted.
func (l *Lab) checkSemidefinite(ctx context.Context) error {
	if kernel.Semidefinite(l.cfg.Kernel) || l.shift > 0 {
		return nil
	}
	n, x, maxRows := l.train.Len(), l.train.X, 4000
	if l.cfg.Memory > 0 {
		maxRows = min(maxRows, int(math.Sqrt(float64(max(l.cfg.Memory-l.pointBytes(), 64))/16))) // a copy and a factor
	}
	if n > maxRows {
		rows := make([]int, maxRows)
		for i := range rows {
			rows[i] = i * n / maxRows
		}
		x, n = points.Gather(x, rows), maxRows
		l.note = fmt.Sprintf("K, which is given, is taken to be positive semi-definite, as %d rows of it are", n)
	}
	a, err := gram.NewExact(l.cfg.Kernel, x, 0, 0, nil)
	if err != nil {
		return err
	}
	k, factor := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	if err := a.DenseTo(ctx, k); err != nil {
		return err
	}
	for _, share := range []float64{1e-8, 1e-6, 1e-4, 1e-2} {
		factor.Copy(k)
		for i := range n {
			factor.Set(i, i, k.At(i, i)+share*l.cfg.Lambda)
		}
		// off by at most (n+1)u·tr (Higham, Accuracy and Stability, theorem 10.3)
		if accel.Dpotrf(n, factor.RawMatrix().Data, n) {
			l.shift = share*l.cfg.Lambda + 2*float64(n+1)*0x1p-53*(mat.Trace(k)+float64(n)*l.cfg.Lambda)
			return nil
		}
	}
	return fmt.Errorf("krrlab: the given K is not positive semi-definite, which this stage's intervals rest on: it "+
		"has an eigenvalue near or below −λ/100 = %.3g; clip its negative eigenvalues, or take a larger λ",
		-l.cfg.Lambda/100)
}

// system returns the system and how it is to be solved.
func (l *Lab) system() *solve.System {
	c := l.cfg
	t := &solve.System{
		Kernel: c.Kernel, Train: l.train, Y: l.y, Lambda: c.Lambda, MinEigenvalue: l.minEigenvalue(),
		ProvedSemidefinite: kernel.BuiltIn(c.Kernel),
		Solver:             c.Solver, Tol: c.Tol, MaxIter: c.MaxIter, Storage: c.Storage, RetryFloat64: l.retryFloat64,
		Tiles: c.Tiles,
		Seed:  c.Seed, Residual: c.Exact, Policy: l.policy, Stop: c.Stop, StopRows: c.StopRows,
		Comm: l.comm, Monitor: c.Monitor, Plan: l.plan, Checkpoint: c.Checkpoint,
	}
	if c.Memory > 0 {
		t.Memory = max(1, c.Memory-l.pointBytes())
	}
	return t
}
