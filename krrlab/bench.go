package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

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
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// bench gives stages access to the problem, the matrices and the preconditioners of a lab. It implements stage.Bench,
// stage.Refitter and the interface Bench of package plan.
type bench struct {
	*Lab
	problem *stage.Problem
}

var _ stage.Refitter = (*bench)(nil)

// Problem implements stage.Bench.
func (b *bench) Problem() *stage.Problem {
	if b.problem == nil {
		l := b.Lab
		b.problem = &stage.Problem{
			Header: l.header(), Kernel: l.cfg.Kernel, X: l.train.X, Y: l.y, Coding: l.coding, Train: l.data,
			Comm: l.comm, Memory: l.memory(), MaxIter: l.cfg.MaxIter,
			Precond: stage.NameOf(l.cfg.Precond),
			Entry:   stage.Entry{Value: l.cfg.Precond}, FixedRulePrecond: l.Planning(),
			S: DefaultFeatures(l.train.Len()),
			Z: l.approximation(), ProcessTimeout: l.cfg.ProcessTimeout,
		}
	}
	return b.problem
}

// K implements stage.Bench.
func (b *bench) K(ctx context.Context, extraBytes int64) (*stage.Gram, error) {
	k, err := b.matrix(ctx, kernelRequest{extraBytes: extraBytes})
	if err != nil {
		return nil, err
	}
	return &stage.Gram{Matrix: k.value, Seconds: k.seconds, Error: b.kernelErrorBound(k.value)}, nil
}

// Dense implements stage.Bench.
func (b *bench) Dense(ctx context.Context, bytesPerEntry int64) (*mat.Dense, float64, error) {
	n := b.train.Len()
	if bytesPerEntry > 0 {
		memory, err := comm.SmallestBudget(ctx, b.comm, b.memory())
		if err == nil {
			err = memory.Check(bytesPerEntry*int64(n)*int64(n), fmt.Sprintf("dense work on K of n = %d points", n),
				"take another method, or allow more by --memory")
		}
		if err != nil {
			return nil, 0, err
		}
	}
	exact, err := gram.NewExact(b.cfg.Kernel, b.train.X, b.cfg.Lambda, b.system().RecomputedErrorBound(), b.comm)
	if err != nil {
		return nil, 0, err
	}
	b.Notify(ctx, Event{Stage: stage.Kernel, Remaining: -1})
	k := mat.NewDense(n, n, nil)
	return k, b.kernelErrorBound(exact), exact.DenseTo(ctx, k)
}

// Z implements stage.Bench.
func (b *bench) Z(ctx context.Context, a stage.Approximation) (*stage.FeatureMatrix, error) {
	if n := b.train.Len(); a.S < 1 || a.S > n {
		return nil, fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", a.S, n)
	}
	features, err := b.lowRankFactor(ctx, b, &a)
	if err != nil {
		return nil, err
	}
	z := *features.value
	z.Seconds = features.seconds
	return &z, nil
}

// Cached implements stage.Bench.
func (b *bench) Cached(key any, build func() (pcg.Preconditioner, error)) (pcg.Preconditioner, error) {
	b.makingM.Lock()
	defer b.makingM.Unlock()
	cachedM := &b.Lab.m
	_, isFromK := key.(stage.KernelPreconditioner)
	preconditioner, err := cachedM.get(&b.mu, []any{key, b.cfg.Seed}, build)
	if err == nil {
		b.mu.Lock()
		cachedM.dependsOnK = isFromK
		b.mu.Unlock()
	}
	return preconditioner.value, err
}

// Entry implements stage.Bench. A rank and a λ_p that the text does not set are taken from the configuration.
func (b *bench) Entry(e stage.Entry) (stage.Entry, error) {
	if e.Value != nil {
		return e, stage.CheckOptions(e.Value)
	}
	_, text := e.Split()
	parsed, err := stage.ParsePreconditioner(text)
	if err != nil {
		return e, fmt.Errorf("krrlab: the preconditioner %q: %w", e.Text, err)
	}
	e.Value = parsed
	lowRank, ok := parsed.(stage.LowRank)
	if approx := b.approximation(); ok && approx != nil {
		defaults := b.Problem().Defaults()
		defaults.S, defaults.LambdaP = approx.S, approx.LambdaP
		if completed, err := lowRank.WithDefaults(defaults); err == nil { // if this fails, Make returns the error
			e.Value = completed
		}
	}
	return e, nil
}

// Make implements stage.Bench.
func (b *bench) Make(ctx context.Context, e stage.Entry, draw int) (*stage.BuiltPreconditioner, error) {
	lab := b.withDraw(draw)
	lowRank, ok := e.Value.(stage.LowRank)
	if ok {
		return lab.makeLowRank(ctx, lowRank)
	}
	start := time.Now()
	m, err := e.Value.Make(ctx, &bench{Lab: lab})
	result := &stage.BuiltPreconditioner{M: m, Seconds: time.Since(start).Seconds()}
	if err == nil {
		result.Text = describe(m, e.Value)
	}
	if shared := lab.cachedM(e.Value); shared.key != nil {
		result.Seconds = shared.seconds
	}
	if m, ok := m.(interface{ Rank() int }); ok {
		result.S = m.Rank()
	}
	if m, ok := m.(interface{ Flops() (build, apply float64) }); ok {
		result.BuildFlops, result.ApplyFlops = m.Flops()
	}
	if m, ok := m.(interface{ Bytes() int64 }); ok {
		result.Bytes = m.Bytes()
	}
	return result, err
}

// makeLowRank builds M = ZZᵀ+λ_pI in a form that can draw from N(0, M). M is not kept for other stages. For landmarks,
// makeLowRank also sets CondBound and, if K was formed, LambdaMin, which are not known for other Z.
func (l *Lab) makeLowRank(ctx context.Context, p stage.LowRank) (*stage.BuiltPreconditioner, error) {
	completed, err := p.WithDefaults((&bench{Lab: l}).Problem().Defaults())
	if err != nil {
		return nil, err
	}
	approx := completed.(stage.LowRank).Approximation(l.cfg.Kernel)
	features, err := l.lowRankFactor(ctx, &bench{Lab: l}, approx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	lambdaP, form := approx.LambdaP+features.value.ExtraLambdaP, cmp.Or(approx.Form, precond.FormLInv)
	woodbury, err := precond.New(ctx, features.value.Z, lambdaP, &precond.Options{Form: form, Comm: l.comm})
	if err != nil {
		return nil, err
	}
	n, d, s := float64(l.train.Len()), float64(l.train.Dim()), float64(features.value.Z.D)
	result := &stage.BuiltPreconditioner{M: woodbury, BuildFlops: n*s*s + 2*s*s*s/3, ApplyFlops: 4*n*s + 2*s*s,
		S: features.value.Z.D, LambdaP: lambdaP, Bytes: woodbury.Bytes(), Text: features.value.Text,
		Seconds: features.seconds + time.Since(start).Seconds()}
	if woodbury.Corrects() {
		result.ApplyFlops *= 2
	}
	landmarks := features.value.Factor
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

// withDraw returns a lab of the same problem and the same K whose seed is larger by draw, so that it draws other random
// preconditioners. For draw 0 it returns the lab itself.
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

// Z returns Z, n×s, of the configured preconditioner ZZᵀ+λ_pI. For Features its rows are φ(x_i)ᵀ, so that E[ZZᵀ] = K.
// On ranks, the result has the rows of this rank. Later stages use the same Z (see Free), so it must not be changed. It
// returns an error if the preconditioner has no Z.
func (l *Lab) Z(ctx context.Context) (*points.Dense32, error) {
	approx := l.approximation()
	if approx == nil {
		return nil, fmt.Errorf("krrlab: the preconditioner %v has no Z", l.cfg.Precond)
	}
	features, err := l.lowRankFactor(ctx, &bench{Lab: l}, approx)
	if err != nil {
		return nil, err
	}
	return features.value.Z, nil
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

// kernelRequest specifies the kernel matrix that a stage needs.
type kernelRequest struct {
	extraBytes int64        // memory that the stage needs in addition to K and the vectors
	resumed    *gram.Choice // storage in a state that is resumed; nil: none is resumed
	refined    bool         // the answer is refined, so that auto may store K in 16 bits
}

// matrix returns K+λI with the stored kernel matrix. It returns the kept matrix if this has the requested storage and a
// small enough error and fits into memory on every rank. Otherwise it frees the kept matrix, and M if M was built from
// K, and forms another one. It returns an error if no storage fits into memory.
func (l *Lab) matrix(ctx context.Context, request kernelRequest) (result cached[*gram.Matrix], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cachedK, system, key := &l.k, l.system(), []any{l.cfg.Storage, l.cfg.Tiles}
	maxError := system.StorageErrorBound()
	suits := cachedK.key != nil && (request.refined || l.cfg.Storage != gram.Auto ||
		cachedK.value.Storage() != gram.Fixed16) && (cachedK.accuracy <= maxError ||
		cachedK.value.Choice().Error <= maxError) &&
		(request.resumed == nil || request.resumed.SameStorage(cachedK.value.Choice()))
	if suits {
		memory, err := comm.SmallestBudget(ctx, l.comm, l.memory().Reserve(request.extraBytes+cachedK.value.Bytes()))
		if err != nil { // each rank has its own limit
			return result, err
		}
		suits = memory.Fits(0)
	}
	if !suits {
		cachedK.free()
	}
	return cachedK.get(new(sync.Mutex), key, func() (*gram.Matrix, error) { // mu is locked
		if l.m.dependsOnK {
			l.m.free()
		}
		cachedK.accuracy = maxError
		return gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.storageOptions(ctx, system, request))
	})
}

// storageOptions returns the options for storing the K of a system as a stage requests it.
func (l *Lab) storageOptions(ctx context.Context, system *solve.System, request kernelRequest) *gram.Options {
	options := &gram.Options{Storage: l.cfg.Storage, Tiles: l.cfg.Tiles, SameAs: request.resumed, Seed: l.cfg.Seed,
		MaxDroppedNorm: system.PreferredError() / 4,
		Memory:         l.memory().Reserve(request.extraBytes),
		ExactResiduals: request.refined, Progress: l.watch(ctx, stage.Kernel), Comm: l.comm}
	if system.MayRecompute() {
		options.PreferredAccuracy = system.PreferredError()
	}
	if request.resumed == nil && l.comm.Size() == 1 {
		options.Choice = l.savedPlan.StorageChoice(options.Storage, system.StorageErrorBound())
	}
	return options
}

// lowRankFactor returns the Z, n×s, of an approximation ZZᵀ ≈ K: the cached one if it has the same options and seed.
// Before it draws another Z, it frees the cached M, which may depend on the previous one. With the spectral rule, Z is
// multiplied by a rotation of its columns, and z.ExtraLambdaP is set.
func (l *Lab) lowRankFactor(ctx context.Context, b stage.Bench,
	approx *stage.Approximation) (cached[*stage.FeatureMatrix], error) {
	l.makingZ.Lock()
	defer l.makingZ.Unlock()
	return l.z.get(&l.mu, []any{zKey(approx), l.cfg.Seed}, func() (*stage.FeatureMatrix, error) {
		l.mu.Lock()
		l.m.free()
		l.mu.Unlock()
		z, err := approx.Draw(ctx, b, approx.S)
		if err == nil {
			z.Text = approx.String()
		}
		if err == nil && approx.Spectral {
			var rotation []float64
			if rotation, z.ExtraLambdaP, err = precond.SpectralTransform(ctx, l.comm, z.Z); err == nil {
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

// cachedM returns the kept M with the given key, or the zero value, whose key is nil, if another M or none is kept.
func (l *Lab) cachedM(key any) (preconditioner cached[pcg.Preconditioner]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reflect.DeepEqual(l.m.key, []any{key, l.cfg.Seed}) {
		preconditioner = l.m
	}
	return preconditioner
}

// memory returns the memory budget of a stage. The points, the targets, the vectors of a solve and the sample of rows
// that Stop watches are in use.
func (l *Lab) memory() accel.Budget {
	n, _, t := l.Dims()
	budget := l.pointMemory().Reserve(cost.VectorBytes(n, t))
	if l.cfg.Stop.Rule == bound.ByLabels {
		budget = budget.Reserve(bound.LabelSampleBytes(n))
	}
	return budget
}

// pointMemory returns the memory budget in which the points, and K if it is precomputed, are in use.
func (l *Lab) pointMemory() accel.Budget {
	return accel.Budget{Limit: l.cfg.Memory, Used: l.pointBytes()}
}

// pointBytes returns the bytes of the points, and of K if it is precomputed.
func (l *Lab) pointBytes() int64 {
	return points.MemoryBytes(l.train.X) + kernel.AsPrecomputed(l.cfg.Kernel).Bytes()
}

// minEigenvalue returns a lower bound of the eigenvalues of K+λI, which error bounds are based on. It is λ if K is
// known to be positive semi-definite, and 0, which is no bound, otherwise.
func (l *Lab) minEigenvalue() float64 {
	if kernel.IsSemidefinite(l.cfg.Kernel) {
		return l.cfg.Lambda
	}
	return 0
}

// kernelErrorBound returns a bound of ‖K̃−K'‖₂, where K̃ is the stored kernel matrix and K' = K+shift·I is positive
// semi-definite. The shift is 0 except for a precomputed K (checkSemidefinite). The intervals of stages are those of
// K'.
func (l *Lab) kernelErrorBound(k *gram.Matrix) float64 { return k.Choice().Error + l.shift }

// checkSemidefinite sets l.shift for a precomputed K, such that K+shift·I is positive semi-definite
// (gram.SemidefiniteShift). If only some rows of K could be tested, l.note, which reports show, says so. For other
// kernels it does nothing.
func (l *Lab) checkSemidefinite(ctx context.Context) error {
	if kernel.IsSemidefinite(l.cfg.Kernel) || l.shift > 0 {
		return nil
	}
	shift, tested, err := gram.SemidefiniteShift(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.pointMemory())
	if tested < l.train.Len() {
		l.note = fmt.Sprintf("K, which is given, is taken to be positive semi-definite, as %d rows of it are", tested)
	}
	l.shift = shift
	return err
}

// system returns the system to solve and the method for solving it.
func (l *Lab) system() *solve.System {
	cfg := l.cfg
	return &solve.System{
		Kernel: cfg.Kernel, Train: l.train, Y: l.y, Lambda: cfg.Lambda, MinEigenvalue: l.minEigenvalue(),
		ProvedSemidefinite: kernel.BuiltIn(cfg.Kernel),
		Solver:             cfg.Solver, Tol: cfg.Tol, MaxIter: cfg.MaxIter, Storage: cfg.Storage,
		RetryFloat64: l.retryFloat64, Tiles: cfg.Tiles, Memory: l.pointMemory(),
		Seed: cfg.Seed, Residual: cfg.Exact, Policy: l.policy, Stop: cfg.Stop, StopRows: cfg.StopRows,
		Start: l.start, StartTrace: l.startTrace,
		Comm: l.comm, Monitor: cfg.Monitor, Plan: l.plan, Checkpoint: cfg.Checkpoint,
	}
}

// savePlan stores a plan for the next Solve.
func (l *Lab) savePlan(p *plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.savedPlan = p
}
