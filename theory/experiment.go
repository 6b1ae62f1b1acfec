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

// experiment is one run of the check of a claim. Its methods measure quantities in random trials and add measures to
// the Result. If a function that a check calls returns an error, must panics with the error wrapped in a failure, which
// ends the check; run recovers and returns the error.
type experiment struct {
	Result
	ctx      context.Context
	trials   int                        // Options.Trials
	random   rng.Stream                 // random numbers of the claim
	parts    Parts                      // implementations that the claim is checked on
	progress func(completed, total int) // reports the trials of the current part of the check
}

// failure wraps an error that ends a check by a panic.
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

// run calls f. If f panics with a failure, run returns its error.
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

// forEachTrial calls body for the trials 0, …, n−1 on Threads() goroutines. Trial i has the random stream
// e.random.Sub(name, i), so that results do not depend on the number of threads. If a trial fails, the check ends with
// the error of the first such trial; if ctx ends, it ends with the error of ctx.
func (e *experiment) forEachTrial(name string, n int, body func(i int, g rng.Stream)) {
	var (
		mu        sync.Mutex
		wg        sync.WaitGroup
		nextTrial atomic.Int64
		completed int
	)
	errs := make([]error, n) // errs[i] is the error of trial i
	work := func() {
		for i := int(nextTrial.Add(1)) - 1; i < n && e.ctx.Err() == nil; i = int(nextTrial.Add(1)) - 1 {
			if errs[i] = run(func() { body(i, e.random.Sub(name, uint64(i))) }); errs[i] != nil {
				nextTrial.Store(int64(n))
			}
			mu.Lock()
			completed++
			e.progress(completed, n)
			mu.Unlock()
		}
	}
	// Within ForEach every matrix product uses one thread. This is faster for small products and gives bit-identical
	// results for any number of threads. The trials run in goroutines of their own, because the parts call ForEach too.
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

// sample runs n trials of a body that returns a number, and returns the number of every trial.
func (e *experiment) sample(name string, n int, body func(g rng.Stream) float64) []float64 {
	values := make([]float64, n)
	e.forEachTrial(name, n, func(i int, g rng.Stream) { values[i] = body(g) })
	return values
}

// trial collects the observations of one random instance.
type trial struct{ observations []observation }

// observation is a number that was measured in a trial.
type observation struct {
	name  string
	value float64
	judge func(e *experiment, values []float64) // adds the measure of the values with this name in all trials
}

// checkAtMost records an observation for experiment.checkAtMost with all observations of this name.
func (t *trial) checkAtMost(name string, v, limit float64) {
	t.observations = append(t.observations, observation{name, v,
		func(e *experiment, all []float64) { e.checkAtMost(name, all, limit) }})
}

// checkProbability records an observation for experiment.checkProbability with all observations of this name.
func (t *trial) checkProbability(name string, v, limit, delta float64) {
	t.observations = append(t.observations, observation{name, v,
		func(e *experiment, all []float64) { e.checkProbability(name, all, limit, delta) }})
}

// checkMean records an observation for experiment.checkMean with all observations of this name.
func (t *trial) checkMean(name string, v, want float64) {
	t.observations = append(t.observations, observation{name, v,
		func(e *experiment, all []float64) { e.checkMean(name, all, want, 0) }})
}

// runTrials runs e.trials trials and adds a measure for each name of an observation, in the order of first appearance.
func (e *experiment) runTrials(name string, body func(i int, g rng.Stream, t *trial)) {
	trials := make([]trial, e.trials)
	e.forEachTrial(name, e.trials, func(i int, g rng.Stream) { body(i, g, &trials[i]) })
	values := map[string][]float64{}
	var distinct []observation // the first observation of each name
	for _, t := range trials {
		for _, o := range t.observations {
			if values[o.name] == nil {
				distinct = append(distinct, o)
			}
			values[o.name] = append(values[o.name], o.value)
		}
	}
	for _, o := range distinct {
		o.judge(e, values[o.name])
	}
}

// preconditioner returns M⁻¹ for M = ZZᵀ+λ_pI and the system K+λI, in the given form.
func (e *experiment) preconditioner(z *points.Dense32, lambda, lambdaP float64, form precond.Form) Preconditioner {
	return must(e.parts.Precond(e.ctx, z, lambda, lambdaP, form))
}

// storedKernel returns the stored kernel matrix, converted to float64.
func (e *experiment) storedKernel(k kernel.Kernel, x *points.Dense, storage gram.Storage) *mat.SymDense {
	return symmetricPart(must(e.parts.Kernel(e.ctx, k, x, storage)))
}

// storedMatrix returns K+λI of package gram, stored in float64.
func (e *experiment) storedMatrix(k kernel.Kernel, x *points.Dense, lambda float64) *gram.Matrix {
	return must(gram.New(e.ctx, k, x, lambda, &gram.Options{Storage: gram.Float64}))
}

// solve returns the solution of a·x = y by PCG with preconditioner m.
func (e *experiment) solve(a mat.Symmetric, m pcg.Preconditioner, y *mat.VecDense, o *pcg.Options) mat.Vector {
	return must(e.parts.Solve(e.ctx, operator{a}, m, mat.DenseCopyOf(y), o)).X.ColView(0)
}

// checkAtMost adds the measure of values that must not exceed limit. The values are errors, or, with limit 1,
// quantities divided by their bounds. A value that is not a number contradicts the claim.
func (e *experiment) checkAtMost(name string, values []float64, limit float64) {
	m := Measure{Name: name, Limit: limit, Trials: len(values), Failures: countAbove(values, limit)}
	for _, v := range values {
		m.Value = max(m.Value, v) // NaN if a value is NaN
	}
	m.Ratio = m.Value / limit
	e.addMeasure(m)
}

// addMeasure appends a measure to the result.
func (e *experiment) addMeasure(m Measure) { e.Measures = append(e.Measures, m) }

// countAbove returns the number of values that are above the limit or not a number.
func countAbove(values []float64, limit float64) int {
	return floats.Count(func(v float64) bool { return !(v <= limit) }, values)
}

// checkProbability adds the measure of an event whose probability is claimed to be at most δ. The event happened in
// the trials whose value exceeds limit. The ratio is the lower end of the 99.9 % interval of Clopper and Pearson
// divided by δ.
func (e *experiment) checkProbability(name string, values []float64, limit, delta float64) {
	m := Measure{Name: name, Limit: delta, Trials: len(values), Failures: countAbove(values, limit)}
	m.Value = float64(m.Failures) / float64(m.Trials)
	m.Ratio = clopperPearson(m.Failures, m.Trials) / delta
	e.addMeasure(m)
}

// clopperPearson returns the lower end of the one-sided 99.9 % interval of a probability, for k events in n trials. It
// is the p for which k or more events have the probability 0.001,
//
//	I_p(k, n−k+1) = 0.001,
//
// and 0 for k = 0. The upper end is 1 − clopperPearson(n−k, n).
func clopperPearson(k, n int) float64 {
	if k == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(k), float64(n-k+1), 1e-3)
}

// meanLevel is the two-sided significance level of a test of a mean. It is much smaller than the level 0.001 for
// probabilities, because there are dozens of such tests. A larger level causes more false alarms.
const meanLevel = 1e-6

// assumedSkewness is the skewness of the numbers that checkMean assumes if their mean is below its expectation. The
// squared errors of sketches with dozens of features have skewnesses up to about 10, measured on 6,000 draws: few draws
// contribute much of the mean, and if they are missing the standard deviation is too small as well. (With hundreds of
// features most draws have hardly any collision and the skewness is 20 or more. Means of such draws are not tested.) A
// larger value makes the test less sensitive to means that are too small.
const assumedSkewness = 10

// checkMean adds the measure of numbers with the known expectation want. The ratio is Student's t divided by its
// two-sided quantile q of level meanLevel. If the mean is below its expectation, q is increased by
// assumedSkewness·(2q²+1)/(6√n), the first term of the Cornish–Fisher expansion (P. Hall, The Bootstrap and Edgeworth
// Expansion, 1992). bound, if not 0, is the claimed bound on the expectation; the claim is contradicted if the
// tightness want/bound is above 1.
func (e *experiment) checkMean(name string, values []float64, want, bound float64) {
	n := float64(len(values))
	mean, sd := stat.MeanStdDev(values, nil)
	t := math.Abs(mean-want) / math.Max(sd/math.Sqrt(n), 1e-12*math.Abs(want))
	if mean == want {
		t = 0
	}
	q := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1 - meanLevel/2)
	if mean < want {
		q += assumedSkewness * (2*q*q + 1) / (6 * math.Sqrt(n))
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
	e.addMeasure(m)
}

// Parts contains the implementations that the claims are checked on. A nil field means the project's own. Other values
// serve to test that a check detects a broken part, or to try a new one.
type Parts struct {
	// Fourier and TensorSketch return the distributions of random features for a kernel.
	Fourier      func(k kernel.Kernel) feature.Dist
	TensorSketch func(k kernel.Polynomial) feature.Dist
	// SRHT, CountSketch and Gaussian are the distributions of sketches.
	SRHT, CountSketch, Gaussian sketch.Dist
	// Precond returns M⁻¹ for M = ZZᵀ+λ_pI and the system K+λI.
	Precond func(ctx context.Context, z *points.Dense32, lambda, lambdaP float64, form precond.Form) (Preconditioner,
		error)
	// Kernel returns the stored kernel matrix, n×n, converted to float64.
	Kernel func(ctx context.Context, k kernel.Kernel, x points.Points, storage gram.Storage) (*mat.Dense, error)
	// Solve solves a·x = b by conjugate gradients with preconditioner m.
	Solve func(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense, o *pcg.Options) (*pcg.Result,
		error)
	// Choose returns one of several approximate solutions of a system with the matrix a, as Remark 4 does.
	Choose func(ctx context.Context, a pcg.Operator, xs []*mat.Dense) (*mat.Dense, error)
	// LowRank contains functions that compute a factor F with K̂ = FFᵀ from some columns of K.
	LowRank []lowRank
	// RidgeBound returns the bound on κ for λ, λ_p and η.
	RidgeBound func(lambda, lambdaP, eta float64) float64
	// SpectrumBounds returns the bounds on the eigenvalues of M⁻¹A that the constants (θ, α, γ) of Theorem 7 guarantee.
	SpectrumBounds func(c sketchsize.ConditionConstants) (low, high float64)
	// Iterations returns the number of iterations that is sufficient for κ and ε.
	Iterations func(kappa, eps float64) int
	// PredictionBound bounds |f(x)−f̃(x)|, given k(x, x), ‖r‖₂ and λ.
	PredictionBound func(diag, residual, lambda float64) float64
	// LeaveOneOut returns the leave-one-out residuals, given c and diag A⁻¹.
	LeaveOneOut func(c, diag []float64) []float64
	// Search tests increasing numbers of features by the conditions of Theorem 7.
	Search func(ctx context.Context, p sketchsize.Problem, o *sketchsize.Options,
		g rng.Stream) (*sketchsize.Result, error)
}

// lowRank computes a factor F with K̂ = FFᵀ from rank columns of K, as lowrank.Nystrom does.
type lowRank = func(ctx context.Context, src lowrank.Source, rank int, g rng.Stream,
	o *lowrank.Options) (*lowrank.Factor, error)

// Preconditioner applies M⁻¹ and returns the statistical dimension s_{λ_p}(ZZᵀ). *precond.Woodbury implements it.
type Preconditioner interface {
	pcg.Preconditioner
	StatDim() float64
}

// withDefaults returns p with the project's own parts in place of nil fields.
func (p Parts) withDefaults() Parts {
	builtin := reflect.ValueOf(builtinParts())
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			v.Field(i).Set(builtin.Field(i))
		}
	}
	return p
}

// builtinParts returns the project's own parts.
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
		Kernel:          kernelByGram,
		Solve:           pcg.Solve,
		Choose:          pcg.MedianByNorm,
		RidgeBound:      lambdap.Bound,
		LowRank:         []lowRank{lowrank.Nystrom, lowrank.RPCholesky},
		SpectrumBounds:  func(c sketchsize.ConditionConstants) (low, high float64) { return c.Lower(), c.Upper() },
		Iterations:      pcg.IterationBound,
		PredictionBound: PredictionBound,
		LeaveOneOut:     LeaveOneOut,
		Search:          sketchsize.Search,
	}
}

// kernelByGram returns the kernel matrix as package gram stores it, converted to float64.
func kernelByGram(ctx context.Context, k kernel.Kernel, x points.Points, storage gram.Storage) (*mat.Dense, error) {
	a, err := gram.New(ctx, k, x, 1, &gram.Options{Storage: storage, Accuracy: math.MaxFloat64})
	if err != nil {
		return nil, err
	}
	values := mat.NewDense(a.Dim(), a.Dim(), nil)
	return values, a.DenseTo(ctx, values)
}
