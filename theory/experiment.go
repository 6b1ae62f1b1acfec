package theory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/precond/sketch"
	"github.com/krrlab/lab/krrlab/stage/lambdap"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
)

// experiment is the run of one check: its trials, and the result that they add to. What it calls that
// can fail ends it: must panics with the error, as a failure, which run returns.
type experiment struct {
	Result
	ctx      context.Context
	trials   int
	g        rng.Stream
	parts    Parts
	progress func(done, total int)
}

// failure is an error on its way out of a check.
type failure struct{ error }

// fail ends the check with an error.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// must returns v, or ends the check if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	return v
}

// run calls f and returns the error that ended it, if one did.
func run(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// each calls body for trials 0, …, n−1 on Threads() goroutines, each with its own stream
// g.Sub(name, i), whatever the number of threads. It ends the check with the error of the first trial
// that had one, or ctx's.
func (e *experiment) each(name string, n int, body func(i int, g rng.Stream)) {
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		next atomic.Int64
		done int
	)
	errs := make([]error, n)
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && e.ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			if errs[i] = run(func() { body(i, e.g.Sub(name, uint64(i))) }); errs[i] != nil {
				next.Store(int64(n))
			}
			mu.Lock()
			done++
			e.progress(done, n)
			mu.Unlock()
		}
	}
	// Within ForEach products take one thread each, which is faster for small ones and makes the bits
	// the same for any number of threads. The trials run beside it, for parts call ForEach themselves.
	stopped := accel.ForEach(e.ctx, 1, func(_, _ int) {
		for range min(n, accel.Threads()) {
			wg.Go(work)
		}
		wg.Wait()
	})
	if err := cmp.Or(append(errs, stopped)...); err != nil {
		panic(failure{err})
	}
}

// sample runs n trials of a body that sets k numbers, and returns number j of all trials as
// out[j].
func (e *experiment) sample(name string, n, k int, body func(i int, g rng.Stream, v []float64)) [][]float64 {
	out := make([][]float64, k)
	for j := range out {
		out[j] = make([]float64, n)
	}
	e.each(name, n, func(i int, g rng.Stream) {
		v := make([]float64, k)
		body(i, g, v)
		for j := range out {
			out[j][i] = v[j]
		}
	})
	return out
}

// trial is what one random instance shows.
type trial struct{ seen []observation }

// observation is a number of a trial, and how those of all trials are judged.
type observation struct {
	name  string
	value float64
	judge func(e *experiment, values []float64)
}

// atMost, share and mean are those of experiment, for all trials that have the name.
func (t *trial) atMost(name string, v, limit float64) {
	t.seen = append(t.seen, observation{name, v, func(e *experiment, all []float64) { e.atMost(name, all, limit) }})
}

func (t *trial) share(name string, v, limit, delta float64) {
	t.seen = append(t.seen, observation{name, v,
		func(e *experiment, all []float64) { e.share(name, all, limit, delta) }})
}

func (t *trial) mean(name string, v, want float64) {
	t.seen = append(t.seen, observation{name, v, func(e *experiment, all []float64) { e.mean(name, all, want, 0) }})
}

// try runs the trials and adds the measures of what they observe, in the order in which the first has it.
func (e *experiment) try(name string, body func(i int, g rng.Stream, t *trial)) {
	trials := make([]trial, e.trials)
	e.each(name, e.trials, func(i int, g rng.Stream) { body(i, g, &trials[i]) })
	values := map[string][]float64{}
	var names []observation
	for _, t := range trials {
		for _, o := range t.seen {
			if values[o.name] == nil {
				names = append(names, o)
			}
			values[o.name] = append(values[o.name], o.value)
		}
	}
	for _, o := range names {
		o.judge(e, values[o.name])
	}
}

// precond returns M⁻¹ for M = ZZᵀ+λ_pI, where the system is K+λI.
func (e *experiment) precond(z *points.Dense32, lambda, lambdaP float64, form precond.Form) Preconditioner {
	return must(e.parts.Precond(e.ctx, z, lambda, lambdaP, form))
}

// kernel returns K in float64, as it is stored.
func (e *experiment) kernel(k kernel.Kernel, x *points.Dense, storage gram.Storage) *mat.SymDense {
	return symmetrized(must(e.parts.Kernel(e.ctx, k, x, storage)))
}

// stored returns K+λI by package gram, in float64.
func (e *experiment) stored(k kernel.Kernel, x *points.Dense, lambda float64) *gram.Matrix {
	return must(gram.New(e.ctx, k, x, lambda, &gram.Options{Storage: gram.Float64}))
}

// solve returns what PCG makes of a·x = y.
func (e *experiment) solve(a mat.Symmetric, m pcg.Preconditioner, y *mat.VecDense, o *pcg.Options) mat.Vector {
	return must(e.parts.Solve(e.ctx, operator{a}, m, mat.DenseCopyOf(y), o)).X.ColView(0)
}

func (e *experiment) add(m Measure) { e.Measures = append(e.Measures, m) }

// atMost adds the measure of errors that may reach limit at most, or of quantities that may
// reach their bound: with limit 1 the values are quantities over their bounds.
func (e *experiment) atMost(name string, values []float64, limit float64) {
	m := Measure{Name: name, Limit: limit, Trials: len(values), Failures: exceeding(values, limit)}
	for _, v := range values {
		if !(v <= m.Value) {
			m.Value = v
		}
	}
	m.Ratio = m.Value / limit
	e.add(m)
}

// exceeding returns how many values are above a limit, or not a number.
func exceeding(values []float64, limit float64) int {
	return floats.Count(func(v float64) bool { return !(v <= limit) }, values)
}

// share adds the measure of an event, one that happened where values exceed limit, of which the
// claim is that its probability is at most δ: the ratio is the lower end of the 99.9 % interval of
// Clopper and Pearson over δ.
func (e *experiment) share(name string, values []float64, limit, delta float64) {
	m := Measure{Name: name, Limit: delta, Trials: len(values), Failures: exceeding(values, limit)}
	m.Value = float64(m.Failures) / float64(m.Trials)
	m.Ratio = clopperPearson(m.Failures, m.Trials) / delta
	e.add(m)
}

// clopperPearson returns the lower end of the one-sided 99.9 % interval of a probability, for k
// events in n trials: the p for which k or more have the probability 0.001,
//
//	I_p(k, n−k+1) = 0.001,
//
// and 0 for k = 0. The upper end is 1 less that of the n−k others.
func clopperPearson(k, n int) float64 {
	if k == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(k), float64(n-k+1), 1e-3)
}

// meanLevel is the two-sided level of a test of a mean. It is far below the 0.001 of
// probabilities, for there are dozens of such tests.
const meanLevel = 1e-6

// skewness is what a mean below its expectation is allowed for. Squared errors of a sketch of dozens of
// features have skewnesses up to some 10, of 6,000 draws: few draws hold much of the mean, and
// where they are missing the standard deviation is too small as well. (Of hundreds of features,
// with hardly a collision in most draws, it is 20 and more: means of those are not judged.)
const skewness = 10

// mean adds the measure of numbers whose expectation is known: the ratio is Student's t over its
// quantile q of level 1e-6, on both sides; below the expectation over q + skewness·(2q²+1)/(6√n), the first
// term of the Cornish–Fisher expansion (P. Hall, The Bootstrap and Edgeworth Expansion, 1992). bound, if
// not 0, is what the claim has for the expectation: it is contradicted where the tightness is above 1.
func (e *experiment) mean(name string, values []float64, want, bound float64) {
	n := float64(len(values))
	mean, sd := stat.MeanStdDev(values, nil)
	t := math.Abs(mean-want) / math.Max(sd/math.Sqrt(n), 1e-12*math.Abs(want))
	if mean == want {
		t = 0
	}
	q := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1 - meanLevel/2)
	if mean < want {
		q += skewness * (2*q*q + 1) / (6 * math.Sqrt(n))
	}
	m := Measure{Name: name, Value: mean, Limit: want, Trials: len(values), Ratio: t / q}
	if bound > 0 {
		m.Tightness = want / bound
	}
	if m.Tightness > 1 {
		m.Ratio = max(m.Ratio, m.Tightness)
	}
	if m.Ratio > 1 {
		m.Failures = 1
	}
	e.add(m)
}

// Parts are the pieces of the project that the claims are checked on. A nil field means the
// project's own; another is for trying what a check makes of a piece that is broken, or of a new
// one.
type Parts struct {
	Fourier      func(k kernel.Kernel) feature.Dist
	TensorSketch func(k kernel.Polynomial) feature.Dist
	SRHT         sketch.Dist
	CountSketch  sketch.Dist
	Gaussian     sketch.Dist
	// Precond returns M⁻¹ for M = ZZᵀ+λ_pI, where the system is K+λI.
	Precond func(ctx context.Context, z *points.Dense32, lambda, lambdaP float64, form precond.Form) (Preconditioner,
		error)
	// Kernel returns K, n×n, as it is stored.
	Kernel func(ctx context.Context, k kernel.Kernel, x points.Points, storage gram.Storage) (*mat.Dense, error)
	Solve  func(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense, o *pcg.Options) (*pcg.Result,
		error)
	// Choose returns one of several solutions.
	Choose func(ctx context.Context, a pcg.Operator, xs []*mat.Dense) (*mat.Dense, error)
	// LowRank are the factors K̂ = FFᵀ of some columns of K.
	LowRank []lowRank
	// RidgeBound is the bound of κ for λ, λ_p and η, TestBound are the ends of the spectrum of M⁻¹A
	// that (θ, α, γ) guarantee, and Iterations is the count for κ and ε.
	RidgeBound func(lambda, lambdaP, eta float64) float64
	TestBound  func(c sketchsize.Test) (low, high float64)
	Iterations func(kappa, eps float64) int
	// PredictionBound bounds |f(x)−f̃(x)|, given k(x, x), ‖r‖₂ and λ.
	PredictionBound func(diag, residual, lambda float64) float64
	// LeaveOneOut returns the residuals of the points left out, given c and diag A⁻¹.
	LeaveOneOut func(c, diag []float64) []float64
	Search      func(ctx context.Context, p sketchsize.Problem, o *sketchsize.Options,
		g rng.Stream) (*sketchsize.Result, error)
}

// lowRank makes a factor K̂ = FFᵀ of rank columns of K. lowrank.Nystrom is one.
type lowRank = func(ctx context.Context, src lowrank.Source, rank int, g rng.Stream,
	o *lowrank.Options) (*lowrank.Factor, error)

// Preconditioner is M⁻¹ and s_{λ_p}(ZZᵀ). *precond.Woodbury is one.
type Preconditioner interface {
	pcg.Preconditioner
	StatDim() float64
}

// settled returns p with the project's own for what is nil.
func (p Parts) settled() Parts {
	builtin := reflect.ValueOf(builtinParts())
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			v.Field(i).Set(builtin.Field(i))
		}
	}
	return p
}

func builtinParts() Parts {
	return Parts{
		Fourier:      func(k kernel.Kernel) feature.Dist { return feature.Fourier{Kernel: k} },
		TensorSketch: func(k kernel.Polynomial) feature.Dist { return feature.TensorSketch{Kernel: k} },
		SRHT:         sketch.SRHT{},
		CountSketch:  sketch.CountSketch{},
		Gaussian:     sketch.Gaussian{},
		Precond: func(ctx context.Context, z *points.Dense32, _, lambdaP float64, form precond.Form) (Preconditioner,
			error) {
			return precond.New(ctx, z, lambdaP, &precond.Options{Form: form})
		},
		Kernel:     storedKernel,
		Solve:      pcg.Solve,
		Choose:     pcg.MedianByNorm,
		RidgeBound: lambdap.Bound,
		LowRank:    []lowRank{lowrank.Nystrom, lowrank.RPCholesky},
		TestBound: func(c sketchsize.Test) (low, high float64) {
			low, _ = c.Lower()
			high, _ = c.Upper()
			return low, high
		},
		Iterations:      pcg.IterationBound,
		PredictionBound: PredictionBound,
		LeaveOneOut:     LeaveOneOut,
		Search:          sketchsize.Search,
	}
}

// storedKernel is K as package gram stores it.
func storedKernel(ctx context.Context, k kernel.Kernel, x points.Points, storage gram.Storage) (*mat.Dense, error) {
	a, err := gram.New(ctx, k, x, 1, &gram.Options{Storage: storage, Accuracy: math.MaxFloat64})
	if err != nil {
		return nil, err
	}
	out := mat.NewDense(a.Dim(), a.Dim(), nil)
	return out, a.DenseTo(ctx, out)
}
