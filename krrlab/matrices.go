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
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// acquire waits until no other stage of the problem runs, and returns a function that ends this stage. It returns the
// error of ctx if that ends first.
func (p *problem) acquire(ctx context.Context) (end func(), err error) {
	select {
	case p.running <- struct{}{}:
		return func() { <-p.running }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Free releases the memory of K, Z and M, which stages of all labs of this problem share (With). Stages form them again
// when they need them.
func (l *Lab) Free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.k.free()
	l.z.free()
	l.m.free()
}

// K returns K+λI. It is formed, with the storage error that solve.Policy prefers, by the first stage that needs it, and
// later stages use it again (see Free).
func (l *Lab) K(ctx context.Context) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, kernelRequest{})
	return k.value, err
}

// kernelRequest specifies the kernel matrix that a stage needs.
type kernelRequest struct {
	extraBytes int64        // memory that the stage needs in addition to K and the vectors
	resumed    *gram.Choice // storage in a state that is resumed; nil: none is resumed
	refined    bool         // the answer is refined, so that auto may store K in 16 bits
}

// matrix returns K+λI with the stored kernel matrix. It returns the cached one if that has the requested storage and a
// small enough error and fits into memory on every rank. Otherwise it frees that matrix, and M if M was built from it,
// and forms another one. It returns an error if no storage fits.
func (l *Lab) matrix(ctx context.Context, r kernelRequest) (f cached[*gram.Matrix], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, system, key := &l.k, l.system(), []any{l.cfg.Storage, l.cfg.Tiles}
	maxError := system.StorageErrorBound()
	suits := k.key != nil && (r.refined || l.cfg.Storage != gram.Auto || k.value.Storage() != gram.Fixed16) &&
		(k.accuracy <= maxError || k.value.Choice().Error <= maxError) &&
		(r.resumed == nil || r.resumed.Same(k.value.Choice()))
	if suits {
		memory, err := comm.Smallest(ctx, l.comm, l.memory().Reserve(r.extraBytes+k.value.Bytes()))
		if err != nil { // each rank has its own limit
			return f, err
		}
		suits = memory.Fits(0)
	}
	if !suits {
		k.free()
	}
	return k.get(key, func() (*gram.Matrix, error) {
		if l.m.dependsOnK {
			l.m.free()
		}
		k.accuracy = maxError
		return gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.storageOptions(ctx, system, r))
	})
}

// storageOptions returns the options for storing K, for matrix.
func (l *Lab) storageOptions(ctx context.Context, t *solve.System, r kernelRequest) *gram.Options {
	o := &gram.Options{Storage: l.cfg.Storage, Tiles: l.cfg.Tiles, SameAs: r.resumed, Seed: l.cfg.Seed,
		MaxDroppedNorm: t.PreferredError() / 4,
		Memory:         l.memory().Reserve(r.extraBytes),
		Refined:        r.refined, Progress: l.watch(ctx, stage.Kernel), Comm: l.comm}
	if t.MayRecompute() {
		o.PreferredAccuracy = t.PreferredError()
	}
	if r.resumed == nil && l.comm.Size() == 1 {
		o.Chosen = l.savedPlan.StorageChoice(o.Storage, t.StorageErrorBound())
	}
	return o
}

// lowRankFactor returns the Z, n×s, of an approximation ZZᵀ ≈ K: the cached one if it has the same options and seed.
// Before it draws another Z, it frees the cached M, which may depend on the previous one. With the spectral rule, Z is
// multiplied by a rotation of its columns, and z.ExtraLambdaP is set.
func (l *Lab) lowRankFactor(ctx context.Context, b stage.Bench, approx *stage.Approximation) (cached[*stage.Drawn],
	error) {
	l.makingZ.Lock()
	defer l.makingZ.Unlock()
	return l.z.getGuarded(&l.mu, []any{zKey(approx), l.cfg.Seed}, func() (*stage.Drawn, error) {
		l.mu.Lock()
		l.m.free()
		l.mu.Unlock()
		z, err := approx.Draw(ctx, b, approx.S)
		if err == nil {
			z.Text = approx.String()
		}
		if err == nil && approx.Spectral {
			var rotation []float64
			if rotation, z.ExtraLambdaP, err = precond.Spectral(ctx, l.comm, z.Z); err == nil {
				err = z.Factor.MulRight(ctx, l.comm, rotation)
			}
		}
		return z, comm.Agree(ctx, l.comm, err)
	})
}

// zKey returns the options of an approximation on which its Z depends.
func zKey(approx *stage.Approximation) stage.Approximation {
	key := *approx
	key.LambdaP, key.Form = 0, precond.AutoForm
	return key
}

// memory returns the memory budget of a stage. The points, the targets, the vectors of a solve and the sample of rows
// that Stop watches are in use.
func (l *Lab) memory() accel.Budget {
	n, _, t := l.Dims()
	b := l.pointMemory().Reserve(cost.VectorBytes(n, t))
	if l.cfg.Stop.Rule == bound.Labels {
		b = b.Reserve(bound.SampleBytes(n))
	}
	return b
}

// pointMemory returns the memory budget in which the points, and K if it is precomputed, are in use.
func (l *Lab) pointMemory() accel.Budget {
	return accel.Budget{Limit: l.cfg.Memory, Used: l.pointBytes()}
}

// cachedM returns the cached M with that key, and the seconds that it took, or zero if there is none.
func (l *Lab) cachedM(key any) (h cached[pcg.Preconditioner]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reflect.DeepEqual(l.m.key, []any{key, l.cfg.Seed}) {
		h = l.m
	}
	return h
}

// minEigenvalue returns a lower bound of the eigenvalues of K+λI, which error bounds are based on. It is λ if K is
// known to be positive semi-definite, and 0, which is no bound, otherwise.
func (l *Lab) minEigenvalue() float64 {
	if kernel.Semidefinite(l.cfg.Kernel) {
		return l.cfg.Lambda
	}
	return 0
}

// pointBytes returns the bytes of the points, and of K if it is precomputed.
func (l *Lab) pointBytes() int64 {
	return points.MemoryBytes(l.train.X) + kernel.AsPrecomputed(l.cfg.Kernel).Bytes()
}

// kernelErrorBound returns a bound of ‖K̃−K'‖₂, where K̃ is the stored kernel matrix and K' = K+shift·I is positive
// semi-definite. The shift is 0 except for a precomputed K (checkSemidefinite). The intervals of stages are those of
// K'.
func (l *Lab) kernelErrorBound(k *gram.Matrix) float64 { return k.Choice().Error + l.shift }

// checkSemidefinite sets l.shift for a precomputed K, such that K+shift·I is positive semi-definite. The shift is at
// most λ/100 plus the rounding error of the test; if that is not enough, checkSemidefinite returns an error. For other
// kernels it does nothing.
//
// It tests this by a Cholesky factorization. If there are more than 4,000 points, or more than memory allows, it
// factors only as many evenly spaced rows and columns of K. The smaller test proves nothing about all of K, and l.note,
// which reports show, says so.
func (l *Lab) checkSemidefinite(ctx context.Context) error {
	if kernel.Semidefinite(l.cfg.Kernel) || l.shift > 0 {
		return nil
	}
	n, x := l.train.Len(), l.train.X
	maxRows := min(4000, int(math.Sqrt(float64(max(l.pointMemory().Free(), 64))/16))) // a copy of K and its factor
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
		// the backward error of the factor is at most (n+1)u·tr (Higham, Accuracy and Stability, theorem 10.3)
		if accel.Dpotrf(n, factor.RawMatrix().Data, n) {
			l.shift = share*l.cfg.Lambda + 2*float64(n+1)*0x1p-53*(mat.Trace(k)+float64(n)*l.cfg.Lambda)
			return nil
		}
	}
	return fmt.Errorf("krrlab: the given K is not positive semi-definite, which this stage's intervals rest on: it "+
		"has an eigenvalue near or below −λ/100 = %.3g; clip its negative eigenvalues, or take a larger λ",
		-l.cfg.Lambda/100)
}

// system returns the system to solve and the method for solving it.
func (l *Lab) system() *solve.System {
	c := l.cfg
	t := &solve.System{
		Kernel: c.Kernel, Train: l.train, Y: l.y, Lambda: c.Lambda, MinEigenvalue: l.minEigenvalue(),
		ProvedSemidefinite: kernel.BuiltIn(c.Kernel),
		Solver:             c.Solver, Tol: c.Tol, MaxIter: c.MaxIter, Storage: c.Storage, RetryFloat64: l.retryFloat64,
		Tiles: c.Tiles, Memory: l.pointMemory(),
		Seed: c.Seed, Residual: c.Exact, Policy: l.policy, Stop: c.Stop, StopRows: c.StopRows,
		Start: l.start, StartTrace: l.startTrace,
		Comm: l.comm, Monitor: c.Monitor, Plan: l.plan, Checkpoint: c.Checkpoint,
	}
	return t
}
